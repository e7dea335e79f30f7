//go:build !race

package changes_test

import (
	"slices"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/query/changes"
)

// TestNight: in a night of many incidents a node that was lost, once, is among the first rows, as the problems of many
// objects follow that, however long the window is.
func TestNight(t *testing.T) {
	t.Parallel()
	named := func(name string) *incident {
		all := slices.Concat(incidents, heldOut)
		return &all[slices.IndexFunc(all, func(in incident) bool { return in.name == name })]
	}
	lost := named("node loss")
	c := background(9, 0.4, 5*day).played(func(c *cluster) {
		for i, name := range []string{"image missing", "certificate expired", "NFS server gone", "liveness flapping", "quota exceeded", "config map missing", "DNS failure"} {
			named(name).play(&scene{c, c.end - 5*hour + float64(i)*0.6*hour})
		}
		lost.play(&scene{c, c.end - 5*hour + 1.4*hour})
	})
	when := at(c.end - hour)
	for _, window := range []time.Duration{3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		a := rank(t, c.memory, changes.Query{At: when, Window: window, Allows: everywhere, Revision: c.until(when)})
		if place := 1 + slices.IndexFunc(a.Rows, func(r changes.Change) bool { return lost.names(&r) }); place < 1 || place > 5 {
			t.Errorf("%s: the node is row %d of %d", window, place, len(a.Rows))
			for i := range a.Rows[:min(len(a.Rows), 8)] {
				t.Logf("%6.2f %s", a.Rows[i].Score, a.Rows[i].Why)
			}
		}
	}
}
