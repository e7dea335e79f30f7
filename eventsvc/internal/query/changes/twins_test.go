//go:build !race

package changes_test

import (
	"slices"
	"testing"

	"tidings.example/eventsvc/internal/query"
)

// twin is how long before an incident the same one happened once before.
const twin = 31 * hour

// TestTwins plays each incident twice. The first time must not hide the second one, which is then news again.
func TestTwins(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("plays clusters of a million events")
	}
	for _, set := range []struct {
		name string
		seed uint64
		all  []feltIncident
	}{{"elsewhere", 3, elsewhere}, {"unseen", 5, unseen}, {"fresh and further", 7, slices.Concat(fresh, further)}} {
		t.Run(set.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(set.seed, 1)
			for i := range set.all {
				set.all[i].play(&scene{c, begins(i) - twin})
				set.all[i].play(&scene{c, begins(i)})
			}
			c.sort()
			first, found, over := 0, 0, 0
			for i := range set.all {
				in := &set.all[i]
				a := c.ask(t, at(begins(i)+asked))
				place := in.rankOf(a.Rows)
				if place == 1 {
					first++
				}
				if place > 0 && place <= 5 {
					found++
				}
				if a.Verdict.State == query.Over {
					over++
				}
				t.Logf("%s: rank %d of %d; %s", in.name, place, len(a.Rows), a.Verdict.Text)
				for n := range a.Rows[:min(len(a.Rows), 6)] {
					t.Logf("        %s", row(&a.Rows[n]))
				}
			}
			n := len(set.all)
			t.Logf("of %d causes with a twin %d are first and %d among the first five; %d verdicts say over", n, first, found, over)
			if 20*first < 12*n || 20*found < 16*n {
				t.Errorf("of %d causes with a twin %d are first and %d among the first five, want 12 and 16 of 20", n, first, found)
			}
		})
	}
}
