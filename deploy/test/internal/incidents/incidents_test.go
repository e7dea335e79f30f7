package incidents_test

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/deploy/test/internal/incidents"
)

var week = incidents.Week{Seed: 1, Events: 5000, End: time.Date(2026, 3, 4, 12, 30, 0, 0, time.UTC)}

// lines generates a week and returns its lines.
func lines(t *testing.T, w incidents.Week) (*incidents.Facts, []*eventsv1.Event, []byte) {
	t.Helper()
	var out bytes.Buffer
	facts, err := w.Write(&out)
	if err != nil {
		t.Fatal(err)
	}
	var all []*eventsv1.Event
	for line := range bytes.Lines(out.Bytes()) {
		var l struct {
			Type   string
			Object *eventsv1.Event
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l.Object)
	}
	return facts, all, out.Bytes()
}

// observed is when an event was last observed.
func observed(e *eventsv1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.DeprecatedLastTimestamp.Time
}

// TestWeek: a week has as many events as were asked for, within the week and in the order of time, and is always the
// same.
func TestWeek(t *testing.T) {
	t.Parallel()
	facts, all, text := lines(t, week)
	uids := map[string]bool{}
	last := facts.Begin
	for _, e := range all {
		uids[string(e.UID)] = true
		at := observed(e)
		if at.Before(last) || !at.Before(week.End) || e.CreationTimestamp.Time.After(at) {
			t.Fatalf("%s/%s, created %s, was observed at %s, after %s", e.Namespace, e.Name, e.CreationTimestamp, at, last)
		}
		last = at.Truncate(time.Second)
		if e.Regarding.Kind == "" || e.Regarding.Name == "" || e.Regarding.UID == "" || e.Note == "" || strings.Contains(e.Note, "%!") || e.ReportingController == "" {
			t.Fatalf("%+v", e)
		}
	}
	if len(uids) != week.Events {
		t.Errorf("%d events, want %d", len(uids), week.Events)
	}
	if last.Before(week.End.Add(-time.Minute)) {
		t.Errorf("the last event is at %s", last)
	}
	if _, _, again := lines(t, week); !bytes.Equal(text, again) {
		t.Error("the same week is not the same again")
	}
	other := week
	other.Seed++
	if _, _, another := lines(t, other); bytes.Equal(text, another) {
		t.Error("another seed gives the same week")
	}
}

// TestTooFew: the incidents are never cut.
func TestTooFew(t *testing.T) {
	t.Parallel()
	if _, err := (incidents.Week{Seed: 1, Events: 10, End: week.End}).Write(io.Discard); err == nil {
		t.Error("a week of ten events")
	}
}

// TestFacts: what the facts say is what the events show, whatever is in the background.
func TestFacts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2000, 40_000} {
		w := week
		w.Events = n
		facts, all, _ := lines(t, w)
		about := func(reason, part string) (first, last time.Time, hosts []string) {
			for _, e := range all {
				if e.Reason != reason || !strings.Contains(e.Regarding.Namespace+"/"+e.Regarding.Name+" "+e.Note, part) {
					continue
				}
				if first.IsZero() {
					first = observed(e)
				}
				last = observed(e)
				if !slices.Contains(hosts, e.DeprecatedSource.Host) {
					hosts = append(hosts, e.DeprecatedSource.Host)
				}
			}
			slices.Sort(hosts)
			return first, last, hosts
		}
		check := func(what string, wantFirst, wantLast time.Time, wantHosts []string, first, last time.Time, hosts []string) {
			if !first.Equal(wantFirst) || !wantLast.IsZero() && !last.Equal(wantLast) || wantHosts != nil && !slices.Equal(hosts, wantHosts) {
				t.Errorf("%d events: %s from %s to %s on %v; the facts say from %s to %s on %v", n, what, first, last, hosts, wantFirst, wantLast, wantHosts)
			}
		}
		f, l, h := about("Failed", facts.Pulls.Registry)
		check("pulls fail", facts.Pulls.Begin, facts.Pulls.End, facts.Pulls.Nodes, f, l, h)
		f, l, h = about("OOMKilling", facts.OOM.Pod)
		check("kills", facts.OOM.Begin, facts.OOM.End, []string{facts.OOM.Node}, f, l, h)
		f, _, _ = about("NodeNotReady", "/"+facts.NotReady.Node+" ")
		check("a node is not ready", facts.NotReady.Begin, time.Time{}, nil, f, time.Time{}, nil)
		f, l, _ = about("NodeReady", "/"+facts.NotReady.Node+" ")
		check("the node is ready", facts.NotReady.End, facts.NotReady.End, nil, f, l, nil)
		f, _, _ = about("FailedMount", facts.Mounts.Namespace+"/"+facts.Mounts.Pods[0]+" ")
		check("mounts fail", facts.Mounts.Begin, time.Time{}, nil, f, time.Time{}, nil)
		f, _, _ = about("ScalingReplicaSet", facts.Rollout.ReplicaSet)
		check("a rollout", facts.Rollout.Begin, time.Time{}, nil, f, time.Time{}, nil)
		f, _, _ = about("Unhealthy", facts.Rollout.Namespace+"/"+facts.Rollout.Pods[0]+" ")
		check("the new version is not ready", facts.Rollout.Failing, time.Time{}, nil, f, time.Time{}, nil)
	}
}
