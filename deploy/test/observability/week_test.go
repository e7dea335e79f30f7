package observability_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/incidents"
)

// told is an alert that eventsvc alerts --try prints: from when to when, and its labels.
type told struct {
	starts, ends time.Time // zero ends: it goes on
	what         string
}

// tryReady imports a week and returns what the ready rules would have sent.
func tryReady(t *testing.T, w incidents.Week) (*incidents.Facts, []told) {
	t.Helper()
	_, events, token := startBoth(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "week.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	facts, err := w.Write(file)
	if err != nil {
		t.Fatal(err)
	}
	imported := exec.CommandContext(t.Context(), filepath.Join(bin, "eventsvc"), "import", file.Name(),
		"--data-dir="+events.dir, "--listen-admin="+strings.TrimPrefix(events.admin, "http://"))
	if out, err := imported.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "eventsvc"), "alerts", "--try", "--since=8d", "--server="+events.url)
	cmd.Env = append(os.Environ(), "EVENTSVC_TOKEN="+token, "TZ=UTC")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var all []told
	for _, row := range regexp.MustCompile(`(?m)^(\d{4}-\S+ \S+)  (\d{4}-\S+ \S+|goes on)\s+(.*?)   *\S.*$`).FindAllStringSubmatch(string(out), -1) {
		one := told{what: row[3]}
		if one.starts, err = time.Parse(time.DateTime, row[1]); err != nil {
			t.Fatal(err)
		}
		if row[2] != "goes on" {
			if one.ends, err = time.Parse(time.DateTime, row[2]); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, one)
	}
	if !strings.Contains(string(out), fmt.Sprintf("\n%d alerts of ", len(all))) {
		t.Fatalf("%d alerts are read of:\n%s", len(all), out)
	}
	return facts, all
}

// TestHealthyWeek: in a week in which nothing is wrong, the ready rules tell of fewer than five things.
func TestHealthyWeek(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		if _, all := tryReady(t, incidents.Week{Seed: seed, Events: 20_000, End: time.Now(), Healthy: true, Copies: true}); len(all) >= 5 {
			t.Errorf("seed %d: %d alerts: %v", seed, len(all), all)
		}
	}
}

// TestWeekOfIncidents: the ready rules tell of each incident, when it has begun and for how long it goes on.
func TestWeekOfIncidents(t *testing.T) {
	t.Parallel()
	facts, all := tryReady(t, incidents.Week{Seed: 1, Events: 20_000, End: time.Now().Add(-time.Minute), Copies: true})
	none := time.Time{}
	for _, want := range []struct {
		what         string
		begin, ends  time.Time     // zero ends: it goes on
		within, tail time.Duration // after begin it is told; after its last occurrence it is over
	}{
		{"NodeNotReady node=" + facts.NotReady.Node, facts.NotReady.Begin, facts.NotReady.End, 2 * time.Minute, 0},
		{"OutOfMemory node=" + facts.OOM.Node, facts.OOM.Begin, facts.OOM.End, 0, time.Hour},
		{"CrashLoop namespace=" + facts.OOM.Namespace + " owner=Deployment/cache", facts.OOM.Begin, facts.OOM.End, 30 * time.Minute, 40 * time.Minute},
		{"ImagePullFails ", facts.Pulls.Begin, facts.Pulls.End, 15 * time.Minute, 30 * time.Minute},
		{"MountFails namespace=" + facts.Mounts.Namespace + " owner=StatefulSet/ledger", facts.Mounts.Begin, none, 10 * time.Minute, 0},
		{"ProbesFail namespace=" + facts.Rollout.Namespace + " owner=Deployment/" + facts.Rollout.Deployment, facts.Rollout.Failing, none, 15 * time.Minute, 0},
		{"RolloutStuck namespace=" + facts.Rollout.Namespace + " owner=Deployment/" + facts.Rollout.Deployment, facts.Rollout.Begin, facts.Rollout.Begin, 11 * time.Minute, 71 * time.Minute},
	} {
		if !slices.ContainsFunc(all, func(got told) bool {
			return strings.HasPrefix(got.what, want.what) && !got.starts.Before(want.begin) && !got.starts.After(want.begin.Add(want.within+time.Second)) &&
				got.ends.IsZero() == want.ends.IsZero() && (want.ends.IsZero() || !got.ends.After(want.ends.Add(want.tail+time.Second)))
		}) {
			t.Errorf("nobody is told of %v, but of %v", want, all)
		}
	}
	if len(all) > 50 {
		t.Errorf("%d alerts", len(all))
	}
}
