package changes_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/changes"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/randtest"
)

func rank(t testing.TB, m store.Timeline, q changes.Query) changes.Answer {
	t.Helper()
	if q.Note == nil {
		q.Note = notes(m)
	}
	a, err := changes.Rank(t.Context(), m, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// notes returns the reader of the notes of a timeline.
func notes(m store.Timeline) func(*store.View) ([]byte, error) {
	if m, ok := m.(interface {
		note(*store.View) ([]byte, error)
	}); ok {
		return m.note
	}
	return codec.Note
}

// probe is what a quiet cluster of small timelines has: a readiness probe that fails every
// ten minutes.
func probe(m *memory) {
	for before := 48 * 60.0; before > 0; before -= 10 {
		m.say(minutes(before), "shop", "Pod", "web-7d5fb757db-x2x7q", warning, "Unhealthy", "kubelet", "Readiness probe failed")
	}
}

// burst records n observations from so many minutes before noon on, a second apart.
func burst(m *memory, before float64, n int, namespace, kind, name, reason string) {
	for i := range n {
		m.say(minutes(before)+float64(i), namespace, kind, name, warning, reason, "kubelet", "note")
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	type row struct {
		Namespace, Kind, Reason, Object string
		Way                             changes.Kind
		Now                             int64
		Before                          float64
		Why                             string
	}
	for _, test := range []struct {
		name   string
		record func(*memory)
		want   []row
	}{
		{"nothing but what is usual", probe, nil},
		{"a reason that was never seen", func(m *memory) {
			probe(m)
			burst(m, 5, 3, "shop", "Pod", "queue-0", "BackOff")
		}, []row{{"shop", "Pod", "BackOff", "queue-0", changes.New, 3, 0,
			"BackOff 3 times in 15m, never before in 1d23h; Pod queue-0 in shop; began to fail: “note” | by chance alone in less than one of 1,000,000 windows"}}},
		{"one that other namespaces have", func(m *memory) {
			probe(m)
			for n := range 4 {
				burst(m, 1000+60*float64(n), 1, fmt.Sprintf("team-%d", n), "Pod", "web-0", "BackOff")
			}
			burst(m, 5, 2, "shop", "Pod", "queue-1", "BackOff")
		}, []row{{"shop", "Pod", "BackOff", "queue-1", changes.New, 2, 0,
			"BackOff 2 times in 15m, never before in 1d23h; Pod queue-1 in shop; began to fail: “note” | by chance alone in one of 53,000 windows; 4 other namespaces had it"}}},
		{"more than usual", func(m *memory) {
			probe(m)
			burst(m, 5, 20, "shop", "Pod", "web-7d5fb757db-x2x7q", "Unhealthy")
		}, []row{{"shop", "Pod", "Unhealthy", "web-7d5fb757db-x2x7q", changes.More, 21, 2,
			"Unhealthy 21 times in 15m against 2 expected (in the window before); Pod web-7d5fb757db-x2x7q in shop: “Readiness probe failed” | by chance alone in less than one of 1,000,000 windows"}}},
		{"as much as a day before", func(m *memory) {
			probe(m)
			burst(m, 5, 20, "shop", "Pod", "web-7d5fb757db-x2x7q", "Unhealthy")
			burst(m, 5+24*60, 22, "shop", "Pod", "web-7d5fb757db-x2x7q", "Unhealthy")
		}, []row{{"shop", "Pod", "Unhealthy", "web-7d5fb757db-x2x7q", changes.Again, 21, 2,
			"Unhealthy 21 times in 15m against 2 expected (in the window before); Pod web-7d5fb757db-x2x7q in shop; again, as on Tuesday 2026-05-12 11:55 UTC (23 times in 5m): “Readiness probe failed” | by chance alone in less than one of 1,000,000 windows"}}},
		{"less than usual", func(m *memory) {
			for before := 48 * 60.0; before > 15; before-- {
				m.say(minutes(before), "shop", "CronJob", "tick", normal, "SuccessfulCreate", "cronjob-controller", "Created job")
			}
		}, []row{{"shop", "CronJob", "SuccessfulCreate", "", changes.Less, 0, 15,
			"SuccessfulCreate 0 times in 15m against 15 expected (on average of 1d23h); CronJob in shop | by chance alone in less than one of 1,000,000 windows"}}},
		{"the same in many namespaces", func(m *memory) {
			probe(m)
			for n := range 5 {
				burst(m, 5, 4, fmt.Sprintf("team-%d", n), "Pod", "web-0", "Failed")
			}
		}, []row{{"", "Pod", "Failed", "", changes.New, 20, 0,
			"Failed 20 times in 15m, never before in 1d23h; Pod in 5 namespaces (5 objects): “note” | by chance alone in less than one of 1,000,000 windows"}}},
		{"a thousand pods of one owner", func(m *memory) {
			probe(m)
			for n := range 1000 {
				m.say(minutes(10)+float64(n)/3, "shop", "Pod", fmt.Sprintf("api-7d5fb757db-%s", random(n)), warning, "Failed", "kubelet", "Error: ErrImagePull")
			}
		}, []row{{"shop", "Pod", "Failed", "api-*", changes.New, 1000, 0,
			"Failed 1000 times in 15m, never before in 1d23h; Pod api-* in shop (1000 objects); began to fail: “Error: ErrImagePull” | by chance alone in less than one of 1,000,000 windows"}}},
		{"an object that begins to fail among others that do", func(m *memory) {
			for before := 48 * 60.0; before > 0; before-- {
				m.say(minutes(before), "shop", "Pod", "old-7d5fb757db-x2x7q", warning, "BackOff", "kubelet", "Back-off")
			}
			burst(m, 5, 5, "shop", "Pod", "api-0", "BackOff")
		}, []row{{"shop", "Pod", "BackOff", "api-0", changes.Failing, 5, 0,
			"BackOff 5 times in 15m, to an object without a warning before; Pod api-0 in shop: “note” | by chance alone in less than one of 1,000,000 windows"}}},
		{"reasons that come together", func(m *memory) {
			probe(m)
			for n := range 6 {
				for _, reason := range []string{"Pulled", "Created", "Started"} {
					m.say(minutes(9-float64(n)), "shop", "Pod", "queue-0", normal, reason, "kubelet", "container")
				}
			}
		}, []row{{"shop", "Pod", "Created", "queue-0", changes.New, 6, 0,
			"Created 6 times in 15m, never before in 1d23h; Pod queue-0 in shop; with Pulled, Started: “container” | by chance alone in less than one of 1,000,000 windows"}}},
		{"a single event of a routine kind in the minute before an outage", func(m *memory) {
			probe(m)
			for before := 47 * 60.0; before > 60; before -= 8 * 60 {
				m.say(minutes(before), "default", "Node", "node-9", normal, "NodeNotReady", "node-controller", "status is now")
			}
			m.say(minutes(8), "default", "Node", "node-1", normal, "NodeNotReady", "node-controller", "status is now")
			for n := range 5 {
				burst(m, 7.9, 4, fmt.Sprintf("team-%d", n), "Pod", "web-0", "NodeNotReady")
			}
		}, []row{
			{"", "Pod", "NodeNotReady", "", changes.New, 20, 0,
				"NodeNotReady 20 times in 15m, never before in 1d23h; Pod in 5 namespaces (5 objects); 6s after NodeNotReady of Node node-1: “note” | by chance alone in less than one of 1,000,000 windows"},
			{"default", "Node", "NodeNotReady", "node-1", changes.More, 1, 0.03,
				"NodeNotReady once in 15m against 0 expected (on average of 1d23h); Node node-1; in the minute before NodeNotReady of Pod in 5 namespaces began: “status is now” | by chance alone in one of 680 windows; once in the minute before; before 1 other change"},
		}},
		{"a symptom behind its cause", func(m *memory) {
			probe(m)
			m.say(minutes(8), "default", "Node", "node-1", normal, "NodeNotReady", "node-controller", "status is now")
			m.say(minutes(8), "default", "Node", "node-1", normal, "NodeNotReady", "kubelet", "status is now")
			for n := range 5 {
				burst(m, 7, 4, fmt.Sprintf("team-%d", n), "Pod", "web-0", "TaintManagerEviction")
			}
		}, []row{
			{"", "Pod", "TaintManagerEviction", "", changes.New, 20, 0,
				"TaintManagerEviction 20 times in 15m, never before in 1d23h; Pod in 5 namespaces (5 objects); 1m after NodeNotReady of Node node-1: “note” | by chance alone in less than one of 1,000,000 windows"},
			{"default", "Node", "NodeNotReady", "node-1", changes.New, 2, 0,
				"NodeNotReady 2 times in 15m, never before in 1d23h; Node node-1: “status is now” | by chance alone in one of 220,000 windows; before 1 other change"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := small(t, test.record)
			a := rank(t, m, changes.Query{At: noon, Allows: everywhere})
			var got []row
			for _, r := range a.Rows {
				got = append(got, row{r.By.Namespace, r.By.Kind, r.By.Reason, r.Object, r.Kind, r.Now, r.Before, r.Why + " | " + r.Statistics})
				if r.Sample == nil && r.Now > 0 {
					t.Errorf("%s has no sample", r.Why)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// random returns a suffix as pods have. TestTogether: what is one change is one row, with each other reason once. A
// problem and what is routine, or changes of different namespaces, are two.
func TestTogether(t *testing.T) {
	t.Parallel()
	say := func(m *memory, at int, namespace, kind, typ, reason string) {
		m.say(minutes(8)+float64(at), namespace, kind, "web-0", typ, reason, "kubelet", "note")
	}
	for _, test := range []struct {
		name   string
		record func(*memory)
		want   []string
	}{
		{"a problem of two types", func(m *memory) {
			for n := range 6 {
				say(m, 9*n, "shop", "Pod", warning, "Failed")
				say(m, 9*n, "shop", "Pod", normal, "BackOff")
			}
		}, []string{"Normal BackOff [Failed]"}},
		{"a problem as often as what is routine", func(m *memory) {
			for n := range 6 {
				say(m, 9*n, "shop", "Pod", warning, "Failed")
				say(m, 9*n, "shop", "Pod", normal, "Pulling")
			}
		}, []string{"Warning Failed []", "Normal Pulling []"}},
		{"a reason of two kinds", func(m *memory) {
			for n := range 6 {
				say(m, n, "shop", "CronJob", normal, "SuccessfulCreate")
				say(m, n, "shop", "Job", normal, "SuccessfulCreate")
				say(m, n, "shop", "Pod", normal, "Scheduled")
				say(m, n, "shop", "ReplicaSet", normal, "Scheduled")
			}
		}, []string{"Normal SuccessfulCreate [Scheduled]"}},
		{"steps in the same namespaces", func(m *memory) {
			for n := range 12 {
				say(m, n/4, fmt.Sprint("team-", n%4), "Pod", normal, "Created")
				say(m, n/4, fmt.Sprint("team-", n%3), "Pod", normal, "Pulled")
			}
		}, []string{"Normal Created [Pulled]"}},
		{"as often in other namespaces", func(m *memory) {
			for n := range 12 {
				say(m, n/4, fmt.Sprint("team-", n%4), "Pod", normal, "Pulled")
				say(m, n/4, fmt.Sprint("team-", 4+n%4), "Pod", normal, "Created")
			}
		}, []string{"Normal Created []", "Normal Pulled []"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := small(t, func(m *memory) {
				probe(m)
				test.record(m)
			})
			var got []string
			for _, r := range rank(t, m, changes.Query{At: noon, Allows: everywhere}).Rows {
				got = append(got, fmt.Sprint(r.By.Type, " ", r.By.Reason, " ", r.Also))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func random(n int) string {
	b := make([]byte, 5)
	for i := range b {
		b[i] = safe[n%len(safe)]
		n /= len(safe)
	}
	return string(b)
}

func TestLinkAndSample(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		probe(m)
		burst(m, 5, 3, "shop", "Pod", "web-0", "BackOff")
		burst(m, 4, 3, "shop", "Pod", "web-1", "BackOff")
	})
	a := rank(t, m, changes.Query{At: noon, Allows: everywhere})
	if len(a.Rows) != 1 {
		t.Fatalf("%d rows, want 1", len(a.Rows))
	}
	r := a.Rows[0]
	if want := minutesTime(5); !r.First.Equal(want) {
		t.Errorf("first %v, want %v", r.First, want)
	}
	if r.Sample.Attributes.Field(event.RegardingName) == nil || string(r.Sample.Attributes.Field(event.RegardingName)) != "web-1" {
		t.Errorf("the sample is %s, want the newest event, of web-1", r.Sample.Key)
	}
	const want = "fieldSelector=regarding.kind%3DPod%2Creason%3DBackOff%2Ctype%3DWarning&from=2026-05-13T11%3A45%3A00Z&namespace=shop&revision=294&to=2026-05-13T12%3A00%3A00Z"
	if got := r.Link.Encode(); got != want {
		t.Errorf("link %s\nwant %s", got, want)
	}
	if r.By.Reporter != "kubelet" {
		t.Errorf("reporter %q, want kubelet", r.By.Reporter)
	}
}

func minutesTime(before float64) time.Time {
	return noon.Add(-time.Duration(before * float64(time.Minute)))
}

func TestObject(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		probe(m)
		burst(m, 5, 3, "shop", "Pod", "web-0", "BackOff")
		burst(m, 5, 9, "shop", "Pod", "web-1", "FailedMount")
		burst(m, 5, 9, "mail", "Pod", "web-0", "Evicted")
		burst(m, 5, 2, "default", "Node", "node-1", "Rebooted")
	})
	for _, test := range []struct {
		name   string
		object query.Subject
		in     string
		allows func(namespace, cluster string) bool
		want   string
	}{
		{"by kind, namespace and name", query.Subject{Kind: "Pod", Name: "web-0"}, "shop", everywhere, "BackOff"},
		{"by kind and name", query.Subject{Kind: "Pod", Name: "web-0"}, "", only("shop"), "BackOff"},
		{"by UID", query.Subject{UID: "uid-web-1"}, "", everywhere, "FailedMount"},
		{"a node, whose events have a namespace", query.Subject{Kind: "Node", Name: "node-1"}, "default", everywhere, "Rebooted"},
		{"of a namespace that is not allowed", query.Subject{Kind: "Pod", Name: "web-0"}, "mail", only("shop"), ""},
		{"that there is not", query.Subject{Kind: "Pod", Name: "nobody"}, "", everywhere, ""},
		{"none, but its namespace, whose first event is recent", query.Subject{}, "mail", only("mail"), "Evicted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var namespaces []string
			if test.in != "" {
				namespaces = []string{test.in}
			}
			a := rank(t, m, changes.Query{At: noon, Allows: test.allows, Object: test.object, Namespaces: namespaces})
			var reasons []string
			for _, r := range a.Rows {
				reasons = append(reasons, r.By.Reason)
			}
			if got := strings.Join(reasons, " "); got != test.want {
				t.Errorf("rows %q, want %q", got, test.want)
			}
		})
	}
}

func TestBadQuestions(t *testing.T) {
	t.Parallel()
	m := small(t, probe)
	for _, test := range []struct {
		q    changes.Query
		want string
	}{
		{changes.Query{}, "at"},
		{changes.Query{At: noon, Window: time.Second}, "window"},
		{changes.Query{At: noon, Window: -time.Hour}, "window"},
		{changes.Query{At: noon, Window: 32 * 24 * time.Hour}, "window"},
		{changes.Query{At: noon, Window: time.Hour + time.Millisecond}, "window"},
		{changes.Query{At: noon, Limit: 101}, "limit"},
		{changes.Query{At: noon, Limit: -1}, "limit"},
		{changes.Query{At: noon, Object: query.Subject{Kind: "Pod"}}, "object"},
		{changes.Query{At: noon, Object: query.Subject{Name: "web"}}, "object"},
	} {
		test.q.Allows, test.q.Note = everywhere, m.note
		_, err := changes.Rank(t.Context(), m, test.q)
		if wrong := new(query.ParameterError); !errors.As(err, &wrong) || wrong.Parameter != test.want {
			t.Errorf("%+v: %v, want an error about %s", test.q, err, test.want)
		}
	}
	if _, err := changes.Rank(t.Context(), m, changes.Query{At: noon}); err == nil {
		t.Error("a question without a set of namespaces is answered")
	}
}

func TestHistoryThatIsShort(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		record func(*memory)
		window time.Duration
		want   string
	}{
		{"none at all", func(*memory) {}, 0, "there is no history before the window, so nothing can be compared"},
		{"within the window only", func(m *memory) { burst(m, 5, 9, "shop", "Pod", "web-0", "BackOff") }, 0, "there is no history before the window, so nothing can be compared"},
		{"shorter than the window", func(m *memory) {
			probe(m)
			burst(m, 5, 9, "shop", "Pod", "web-0", "BackOff")
		}, 30 * time.Hour, "the history before the window is shorter than the window"},
		{"longer than the window", probe, 20 * time.Hour, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := small(t, test.record)
			a := rank(t, m, changes.Query{At: noon, Window: test.window, Allows: everywhere})
			if got := strings.Join(a.Partial, "; "); got != test.want {
				t.Errorf("partial %q, want %q", got, test.want)
			}
			if strings.HasPrefix(test.want, "there is no") && len(a.Rows) > 0 {
				t.Errorf("%d rows without anything to compare with", len(a.Rows))
			}
		})
	}
}

// noise records a random small cluster.
func noise(m *memory, rng *rand.Rand, namespaces int) {
	for ns := range namespaces {
		for series := range 1 + rng.IntN(6) {
			reason := fmt.Sprintf("Reason%d", series)
			typ := []string{normal, warning}[rng.IntN(2)]
			gap := math.Exp(rng.Float64()*6) + 1 // minutes
			for before := 48 * 60 * rng.Float64(); before > 0.1; before -= gap * rng.ExpFloat64() {
				m.say(minutes(before), fmt.Sprintf("team-%d", ns), "Pod", fmt.Sprintf("web-%d", rng.IntN(4)), typ, reason, "kubelet", "note")
			}
			if rng.IntN(4) == 0 {
				for range rng.IntN(30) {
					m.say(minutes(14*rng.Float64()+0.1), fmt.Sprintf("team-%d", ns), "Pod", fmt.Sprintf("api-%d", rng.IntN(9)), typ, reason, "kubelet", "note")
				}
			}
		}
	}
}

// shuffled is a timeline that groups and visits in a random order.
type shuffled struct {
	*memory
	rng *rand.Rand
}

func (s shuffled) Count(ctx context.Context, c store.Count, visit func(store.Occurred)) error {
	for _, i := range s.rng.Perm(len(s.dimensions)) {
		c.Group(s.dimensions[i], event.Regarding{})
	}
	var all []store.Occurred
	err := s.memory.Count(ctx, c, func(o store.Occurred) { all = append(all, o) })
	s.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, o := range all {
		visit(o)
	}
	return err
}

// forget clears what differs between stores that have the same events of one caller.
func forget(a changes.Answer) changes.Answer {
	a.Range.Revision = 0
	row := func(r *changes.Change) {
		r.Link.Del("revision")
		if r.Follows != nil {
			r.Follows.Link.Del("revision")
		}
		if r.Former != nil {
			r.Former.Link.Del("revision")
		}
		r.Sample = nil
	}
	for i := range a.Rows {
		row(&a.Rows[i])
	}
	if v := a.Verdict; v.Change != nil {
		row(v.Change)
	}
	if v := a.Verdict; v.Cause != nil {
		v.Cause.Link.Del("revision")
	}
	return a
}

func TestOrderOfTheTimelineDoesNotMatter(t *testing.T) {
	t.Parallel()
	rows := 0
	first := randtest.Seed(t)
	for round := range uint64(30) {
		seed := first + round
		rng := rand.New(rand.NewPCG(seed, 7))
		m := small(t, func(m *memory) { noise(m, rng, 1+rng.IntN(8)) })
		q := changes.Query{At: noon, Window: time.Duration(1+rng.IntN(60)) * time.Minute, Allows: everywhere}
		want := rank(t, m, q)
		for range 3 {
			got := rank(t, shuffled{m, rng}, q)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
		}
		rows += len(want.Rows)
	}
	if rows < 30 {
		t.Errorf("only %d rows were compared", rows)
	}
}

// TestLongAgo: what happened long before the store was first written to is no history to compare with,
// and costs nothing. But what came then is not new.
func TestLongAgo(t *testing.T) {
	t.Parallel()
	record := func(m *memory) {
		probe(m)
		burst(m, 5, 20, "shop", "Pod", "web-7d5fb757db-x2x7q", "Unhealthy")
	}
	long := minutesTime(56 * 365 * 24 * 60).Sub(minutesTime(48 * 60)).Seconds()
	old := small(t, func(m *memory) {
		record(m)
		m.say(long, "shop", "Pod", "web-0", warning, "Unhealthy", "kubelet", "note")
		m.say(long, "other", "Pod", "web-0", warning, "Unhealthy", "kubelet", "note")
		m.say(long, "shop", "Pod", "db-0", warning, "BackOff", "kubelet", "note")
		burst(m, 5, 3, "shop", "Pod", "db-0", "BackOff")
	})
	recent := small(t, record)
	old.written, recent.written = minutesTime(48*60), minutesTime(48*60)
	want := rank(t, recent, changes.Query{At: noon, Allows: everywhere}).Rows[0]
	got := rank(t, old, changes.Query{At: noon, Allows: everywhere})
	for _, r := range got.Rows {
		switch {
		case r.By.Reason == "BackOff" && r.Kind == changes.New:
			t.Errorf("%s", r.Why)
		case r.By.Reason == "Unhealthy" && (r.Before != want.Before || r.Kind != changes.More):
			t.Errorf("%s, want %s", r.Why, want.Why)
		}
	}
	if !got.HistoryFrom.Equal(minutesTime(48*60)) || len(got.Rows) < 2 {
		t.Errorf("history from %s, %d rows", got.HistoryFrom, len(got.Rows))
	}
}

func TestHiddenNamespacesHaveNoInfluence(t *testing.T) {
	t.Parallel()
	rows := 0
	first := randtest.Seed(t)
	for round := range uint64(30) {
		seed := first + round
		record := func(m *memory) { noise(m, rand.New(rand.NewPCG(seed, 8)), 5) }
		seen := small(t, record)
		all := small(t, func(m *memory) {
			record(m)
			rng := rand.New(rand.NewPCG(seed, 9))
			for range 3000 { // also before all others
				m.say(minutes(50*60*rng.Float64()), "secret", []string{"Pod", "Node"}[rng.IntN(2)], fmt.Sprintf("web-%d", rng.IntN(4)),
					warning, fmt.Sprintf("Reason%d", rng.IntN(9)), "kubelet", "note")
			}
			burst(m, 5, 500, "secret", "Node", "node-1", "NodeNotReady")
		})
		seen.written = minutesTime(48 * 60)
		all.written = seen.written // the one thing that all may know
		allows := func(n, _ string) bool { return n != "secret" }
		want := forget(rank(t, seen, changes.Query{At: noon, Allows: allows}))
		got := forget(rank(t, all, changes.Query{At: noon, Allows: allows}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		rows += len(want.Rows)
	}
	if rows < 30 {
		t.Errorf("only %d rows were compared", rows)
	}
}

// TestMoreOfEverything observes everything more often. The same rows are then as certain or
// more so.
func TestMoreOfEverything(t *testing.T) {
	t.Parallel()
	seed := randtest.Seed(t)
	record := func(times int) func(*memory) {
		return func(m *memory) {
			rng := rand.New(rand.NewPCG(seed, 3))
			for range times {
				for before := 48 * 60.0; before > 0; before -= 4 * rng.ExpFloat64() {
					m.say(minutes(max(before, 0.1)), "shop", "Pod", "web-0", warning, "Unhealthy", "kubelet", "note")
				}
				burst(m, 5, 25, "shop", "Pod", "web-0", "Unhealthy")
				// Elsewhere: a change that precedes another counts more, unless that is chance.
				burst(m, 5, 2, "pay", "Pod", "web-1", "BackOff")
			}
		}
	}
	one, many := small(t, record(1)), small(t, record(10))
	a := rank(t, one, changes.Query{At: noon, Allows: everywhere})
	b := rank(t, many, changes.Query{At: noon, Allows: everywhere})
	if len(a.Rows) != 2 || len(b.Rows) != 2 {
		t.Fatalf("%d and %d rows, want 2", len(a.Rows), len(b.Rows))
	}
	for i, r := range b.Rows {
		var same *changes.Change
		for j := range a.Rows {
			if a.Rows[j].By == r.By && a.Rows[j].Kind == r.Kind {
				same = &a.Rows[j]
			}
		}
		if same == nil || r.Score < same.Score || r.Now < 5*same.Now {
			t.Errorf("row %d: %s\nhas nothing like it in %v", i, r.Why, a.Rows)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"web-7d5fb757db-x2x7q":      "web",      // of a ReplicaSet
		"web-7d5fb757db":            "web",      // the ReplicaSet
		"database-0":                "database", // of a StatefulSet
		"backup-29631000-x2x7q":     "backup",   // of a CronJob
		"agent-x2x7q":               "agent",    // of a DaemonSet
		"payment-gateway":           "payment-gateway",
		"kube-apiserver-control-01": "kube-apiserver-control",
		"x2x7q":                     "x2x7q",
		"":                          "",
		"-x2x7q":                    "-x2x7q",
		"a-1-2-3-4":                 "a-1", // at most three
	} {
		if got := changes.Workload(name); got != want {
			t.Errorf("%q is of %q, want %q", name, got, want)
		}
	}
}

func TestSurprise(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ now, before, windows, want float64 }{
		{0, 0, 10, 0},
		{5, 50, 10, 0},                 // the same rate
		{10, 0, 1, 20 * math.Log(2)},   // all in one of two
		{1, 0, 671, 2 * math.Log(672)}, // the first in a week
		{0, 10, 1, 20 * math.Log(2)},   // none any more
		{110, 31 * 1, 1, 2 * (110*math.Log(110/70.5) + 31*math.Log(31/70.5))}, // the form of Dunning's table
	} {
		if got := changes.Surprise(test.now, test.before, test.windows); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%v now and %v in %v windows: G² %v, want %v", test.now, test.before, test.windows, got, test.want)
		}
	}
}

func TestOnset(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		bins     []int64
		expected float64
		want     int
	}{
		{"of one event", []int64{0, 0, 0, 1, 0}, 0, 3},
		{"of a burst at the end", []int64{1, 0, 1, 0, 1, 0, 9, 9}, 3, 6},
		{"of a burst in the middle", []int64{1, 0, 9, 9, 0, 1}, 2, 2},
		{"of nothing unusual", []int64{1, 1, 1, 1}, 4, 0},
	} {
		if got := changes.Onset(test.bins, test.expected); got != test.want {
			t.Errorf("%s: bin %d, want %d", test.name, got, test.want)
		}
	}
}
