package changes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/query/changes"
)

// busy is the background with all incidents, or without any.
func busy(seed uint64, share float64, played []incident) *cluster {
	c := newCluster(seed, share)
	for i := range played {
		played[i].play(&scene{c, begins(i)})
	}
	c.sort()
	return c
}

// begins is when an incident begins: one every three hours and some, by day and by night,
// from the fourth day on, so that there is history before the first one.
func begins(i int) float64 { return 3*day + float64(i)*3.13*hour }

// asked is how long after its beginning an incident is looked into.
const asked = 600.0

func at(seconds float64) time.Time { return monday.Add(time.Duration(seconds) * time.Second) }

// ask asks a cluster, as it was at that time.
func (c *cluster) ask(t testing.TB, when time.Time) changes.Answer {
	t.Helper()
	a, err := changes.Rank(t.Context(), c.memory, changes.Query{At: when, Allows: everywhere, Note: c.note, Revision: c.until(when)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// names reports whether a row names the cause of an incident.
func (in *incident) names(r *changes.Change) bool {
	if r.By.Kind != in.kind || r.By.Reason != in.reason && !slices.Contains(r.Also, in.reason) || in.namespace != "" && r.By.Namespace != in.namespace {
		return false
	}
	return in.object == "" || strings.HasPrefix(r.Object, in.object) || r.Sample != nil && in.object != "" && strings.HasPrefix(r.Sample.Name, in.object)
}

// rankOf returns the place of the cause among the rows, from 1; 0 if it is not there.
func (in *incident) rankOf(rows []changes.Change) int {
	for i := range rows {
		if in.names(&rows[i]) {
			return i + 1
		}
	}
	return 0
}

func row(r *changes.Change) string {
	return fmt.Sprintf("%6.2f %-8s %s/%s/%s %s %v", r.Score, r.Kind, r.By.Namespace, r.By.Kind, r.By.Reason, r.Object, r.Namespaces)
}

// TestIncidents mixes incidents into a million background events and asks for changes ten
// minutes after each began.
func TestIncidents(t *testing.T) {
	t.Parallel()
	share := 1.0
	if testing.Short() {
		share = 0.1
	}
	incidents := slices.Concat(incidents, heldOut)
	c := busy(1, share, incidents)
	t.Logf("%d events, %d combinations", len(c.seen), len(c.dimensions))
	if n := len(c.seen); n < 1_000_000 && share == 1 {
		t.Errorf("the background has %d events, want a million", n)
	}
	found := 0
	for i := range incidents {
		in := &incidents[i]
		a := c.ask(t, at(begins(i)+asked))
		rank := in.rankOf(a.Rows)
		if rank > 0 && rank <= 5 {
			found++
		}
		t.Logf("rank %2d of %2d: %s", rank, len(a.Rows), in.name)
		for n := range a.Rows[:min(len(a.Rows), 6)] {
			t.Logf("        %s", row(&a.Rows[n]))
		}
	}
	t.Logf("%d of %d causes are among the first five", found, len(incidents))
	if found*10 < len(incidents)*9 {
		t.Errorf("%d of %d causes are among the first five, want nine of ten", found, len(incidents))
	}
}

// quietRows is how many rows a quiet day had when the steps of a rollout became one row.
const quietRows = 13

// TestQuietDay counts the rows of every hour of a day on which nothing happens.
func TestQuietDay(t *testing.T) {
	t.Parallel()
	share := 1.0
	if testing.Short() {
		share = 0.1
	}
	c := busy(2, share, nil)
	rows, above := 0, map[float64]int{}
	for h := range 24 {
		a := c.ask(t, at(4*day+float64(h)*hour+hour/2)) // a Friday
		rows += len(a.Rows)
		for i := range a.Rows {
			for _, limit := range []float64{5, 6, 7, 8} {
				if a.Rows[i].Score >= limit {
					above[limit]++
				}
			}
			if a.Rows[i].Score >= 6 {
				t.Logf("%02d:30 %s", h, a.Rows[i].Why)
			}
		}
	}
	if share == 1 && rows > quietRows {
		t.Errorf("%d rows in 24 questions on a quiet day, want at most %d", rows, quietRows)
	}
	if above[6] > 2 {
		t.Errorf("%d rows of a quiet day have a score from 6 on, want at most 2", above[6])
	}
	t.Logf("%d rows in 24 questions on a quiet day; of a score from 5 on: %d, 6: %d, 7: %d, 8: %d", rows, above[5], above[6], above[7], above[8])
}
