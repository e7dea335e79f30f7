package changes_test

import (
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/changes"
)

// failed has a limit on pulls that is over, and an image that is missing now, under one reason.
func failed(t *testing.T, before ...func(m *memory)) *memory {
	return small(t, func(m *memory) {
		probe(m)
		for _, say := range before {
			say(m)
		}
		for n := range 60 {
			m.say(minutes(55)+10*float64(n), "shop", "Pod", "web-7d5fb757db-x2x7q", warning, "Failed", "kubelet", "Failed to pull image: toomanyrequests: you have reached your pull rate limit")
		}
		for n := range 40 {
			m.say(minutes(7)+10*float64(n), "shop", "Pod", "api-6c9f8d7b5-k4k9v", warning, "Failed", "kubelet", "Failed to pull image registry/api:1.9.9: manifest unknown")
		}
	})
}

// TestApart: of two incidents of one reason the verdict is about the one that goes on, and says that the other is over.
func TestApart(t *testing.T) {
	t.Parallel()
	m := failed(t)
	a := rank(t, m, changes.Query{At: noon, Window: time.Hour, Allows: everywhere})
	v := a.Verdict
	want := "Failed of Pod api-* in shop: 40 times since " + minutesTime(7).Format(time.RFC3339) + ", goes on (every 11s, the last one 30s ago); 60 times more from 2026-05-13T11:05:00Z to 2026-05-13T11:14:50Z, which is over: “Failed to pull image: toomanyrequests: you have reached your pull rate limit”."
	if v.Text != want || v.State != query.Ongoing || !v.Change.First.Equal(minutesTime(7)) {
		t.Errorf("%s\nwant %s", v.Text, want)
	}
	r := row(a, "Failed")
	if r == nil || r.Now != 100 || !r.First.Equal(minutesTime(7)) || !strings.Contains(r.Why, "of these 60 times from") || !strings.HasSuffix(r.Why, "manifest unknown”") {
		t.Errorf("%+v", r)
	}
}

// TestVerdictOfAnyLimit: the verdict is the same however many rows are shown.
func TestVerdictOfAnyLimit(t *testing.T) {
	t.Parallel()
	m := failed(t)
	for _, q := range []changes.Query{{At: noon, Window: time.Hour, Allows: everywhere}, {At: noon, Window: 6 * time.Hour, Allows: everywhere}} {
		q.Limit = 20
		want := rank(t, m, q).Verdict.Text
		for q.Limit = 1; q.Limit < 20; q.Limit += 2 {
			if got := rank(t, m, q).Verdict.Text; got != want {
				t.Errorf("of %d rows: %s\nof 20: %s", q.Limit, got, want)
			}
		}
	}
}

// TestCauseOfWhatIsOver: what came before an incident that is over is not told of the one that goes on.
func TestCauseOfWhatIsOver(t *testing.T) {
	t.Parallel()
	m := failed(t, func(m *memory) {
		m.say(minutes(55)-20, "shop", "Deployment", "web", normal, "ScalingReplicaSet", "deployment-controller", "Scaled up replica set web-7d5fb757db to 3")
	})
	if v := rank(t, m, changes.Query{At: noon, Window: time.Hour, Allows: everywhere}).Verdict; v.Cause != nil || !strings.HasPrefix(v.Text, "Failed of Pod api-*") {
		t.Errorf("%s", v.Text)
	}
}

// TestAmongUsual: what goes on is told apart from what comes now and then under the same reason, and began when it did.
func TestAmongUsual(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		probe(m)
		for n := range 65 {
			m.say(minutes(11)+10*float64(n), "shop", "Pod", "api-6c9f8d7b5-k4k9v", warning, "Unhealthy", "kubelet", "HTTP probe failed with statuscode: 500")
		}
	})
	if v := rank(t, m, changes.Query{At: noon, Window: 6 * time.Hour, Allows: everywhere}).Verdict; !strings.HasPrefix(v.Text, "Unhealthy of Pod api-6c9f8d7b5-k4k9v in shop: 65 times since 2026-05-13T11:49:00Z, goes on (every 10s, the last one 20s ago)") {
		t.Errorf("%s", v.Text)
	}
}

// TestOngoing: the verdict is about what goes on and is much more than usual, though something that is over is the
// first row.
func TestOngoing(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		probe(m)
		for n := range 30 {
			burst(m, 50, 9, []string{"mail", "chat", "maps"}[n%3], "Pod", "web-7d5fb757db-"+random(n), "NetworkNotReady")
		}
		for n := range 50 {
			m.say(minutes(9)+10*float64(n), "shop", "Pod", "api-6c9f8d7b5-k4k9v", warning, "FailedMount", "kubelet", "MountVolume.SetUp failed")
		}
	})
	a := rank(t, m, changes.Query{At: noon, Window: time.Hour, Allows: everywhere})
	if len(a.Rows) < 2 || a.Rows[0].By.Reason != "NetworkNotReady" {
		t.Fatalf("%+v", a.Rows)
	}
	if v := a.Verdict; v.State != query.Ongoing || v.Change.By.Reason != "FailedMount" || !strings.Contains(v.Text, "; besides, NetworkNotReady of Pod in 3 namespaces: over for 49m") {
		t.Errorf("%s", v.Text)
	}
}

// TestFinds: the verdict of a question with a search counts what that finds, and says what was compared.
func TestFinds(t *testing.T) {
	t.Parallel()
	m := failed(t)
	q := changes.Query{At: noon, Window: time.Hour, Allows: everywhere, Wanted: func(d event.Dimensions) bool { return d.Reason == "Failed" }}
	if text := rank(t, m, q).Verdict.Text; !strings.HasPrefix(text, "In what the search finds: Failed of Pod api-* in shop: 40 times") {
		t.Error(text)
	}
	for word, want := range map[string]string{
		"toomanyrequests": "In what the search finds: Failed of Pod in shop: 60 times since 2026-05-13T11:05:00Z, over for 45m10s (had come every 10s); compared with what is usual were all 100 of them.",
		"neverwritten":    "In all events that the search touches: Failed of Pod in shop: ",
	} {
		q.Finds = &event.Filter{Kind: event.FilterWord, Word: event.Fold(nil, []byte(word))}
		if v := rank(t, m, q).Verdict; !strings.HasPrefix(v.Text, want) {
			t.Errorf("%s\nwant %s", v.Text, want)
		}
	}
}
