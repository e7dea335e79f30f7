package changes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/query/changes"
)

// playedIn returns a cluster in which incidents happen, and each of them at some times before that too.
func playedIn(c *cluster, all []incident, twins ...float64) *cluster {
	return c.played(func(c *cluster) {
		for i := range all {
			for _, before := range slices.Concat(twins, []float64{0}) {
				all[i].play(&scene{c, c.begins(i) - before})
			}
		}
	})
}

// begins is when an incident begins: one every three hours and some, by day and by night, in the last days of the
// background, so that there is history before the first one.
func (c *cluster) begins(i int) float64 { return c.end - 4*day + float64(i)*3.13*hour }

// asked is how long after its beginning an incident is looked into.
const asked = 600.0

func at(seconds float64) time.Time { return monday.Add(time.Duration(seconds) * time.Second) }

// ask asks a cluster, as it was at that time.
func (c *cluster) ask(t testing.TB, when time.Time, namespaces ...string) changes.Answer {
	t.Helper()
	return rank(t, c.memory, changes.Query{At: when, Allows: everywhere, Namespaces: namespaces, Revision: c.until(when)})
}

// names reports whether a row names the cause of an incident.
func (in *incident) names(r *changes.Change) bool {
	if in.reason == "" {
		return r.Kind == changes.Silent && strings.Contains(r.Why, in.object)
	}
	if r.By.Kind != in.kind || r.By.Reason != in.reason && !slices.Contains(r.Also, in.reason) || in.namespace != "" && r.By.Namespace != in.namespace {
		return false
	}
	return in.object == "" || strings.HasPrefix(r.Object, in.object) || r.Sample != nil && in.object != "" && strings.HasPrefix(r.Sample.Name, in.object)
}

// places counts the causes that are the first row, and that are among the first five.
type places struct{ of, first, five int }

// look finds the cause of an incident in an answer.
func (p *places) look(t *testing.T, in *incident, a changes.Answer) {
	t.Helper()
	place := 1 + slices.IndexFunc(a.Rows, func(r changes.Change) bool { return in.names(&r) })
	p.of++
	if place == 1 {
		p.first++
	}
	if place > 0 && place <= 5 {
		p.five++
	}
	t.Logf("%s: %d of %d; %s", in.name, place, len(a.Rows), a.Verdict.Text)
	for i := range a.Rows[:min(len(a.Rows), 6)] {
		r := &a.Rows[i]
		t.Logf("        %6.2f %-8s %s/%s/%s %s %v", r.Score, r.Kind, r.By.Namespace, r.By.Kind, r.By.Reason, r.Object, r.Namespaces)
	}
}

// want reports an error if fewer of 20 causes are first or among the first five.
func (p *places) want(t *testing.T, first, five int) {
	t.Helper()
	t.Logf("of %d causes %d are first and %d among the first five", p.of, p.first, p.five)
	if 20*p.first < first*p.of || 20*p.five < five*p.of {
		t.Errorf("of %d causes %d are first and %d among the first five, want %d and %d of 20", p.of, p.first, p.five, first, five)
	}
}

// TestIncidents mixes incidents into a million background events and asks for changes ten
// minutes after each began.
func TestIncidents(t *testing.T) {
	t.Parallel()
	incidents := slices.Concat(incidents, heldOut)
	c := playedIn(background(1, 1, week), incidents)
	if n := len(c.seen); n < 1_000_000 {
		t.Errorf("the background has %d events, want a million", n)
	}
	var found places
	for i := range incidents {
		found.look(t, &incidents[i], c.ask(t, at(c.begins(i)+asked)))
	}
	found.want(t, 0, 20)
}

// TestQuietDays counts the rows of every hour of a Friday on which nothing happens, in four clusters.
func TestQuietDays(t *testing.T) {
	t.Parallel()
	const most, mostAbove = 56, 0 // of score 6 and above
	rows, above := 0, 0
	for _, seed := range []uint64{1, 3, 4, 5} {
		c := background(seed, 1, 6*day)
		if seed == 1 {
			c = background(seed, 1, week)
		}
		for h := range 24 {
			a := c.ask(t, at(4*day+float64(h)*hour+hour/2))
			rows += len(a.Rows)
			for i := range a.Rows {
				t.Logf("%d, %02d:30 %.2f %s", seed, h, a.Rows[i].Score, a.Rows[i].Why)
				if a.Rows[i].Score >= 6 {
					above++
				}
			}
		}
	}
	t.Logf("%d rows, %d of score 6 and above", rows, above)
	if rows > most || above > mostAbove {
		t.Errorf("%d rows in 96 questions on quiet days, of which %d of score 6 and above, want at most %d and %d", rows, above, most, mostAbove)
	}
}
