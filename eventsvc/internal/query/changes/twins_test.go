//go:build !race

package changes_test

import (
	"slices"
	"testing"
)

// TestTwins plays each incident twice. The first time must not hide the second one, which is then news again.
func TestTwins(t *testing.T) {
	t.Parallel()
	for _, set := range []struct {
		name        string
		seed        uint64
		share, long float64
		all         []feltIncident
		twins       []float64
	}{
		{"31 hours before, elsewhere", 3, 1, 6 * day, elsewhere, []float64{31 * hour}},
		{"31 hours before, unseen", 5, 1, 6 * day, unseen, []float64{31 * hour}},
		{"31 hours before, fresh and further", 4, 1, 6 * day, slices.Concat(fresh, further), []float64{31 * hour}},
		{"a week before", 6, 0.4, 2 * week, elsewhere, []float64{week}},
		{"a week and some hours before", 6, 0.4, 2 * week, unseen, []float64{week + 5*hour}},
		{"two and nine weeks before", 7, 0.1, 10 * week, fresh, []float64{2 * week, 9*week - 7*hour}},
	} {
		t.Run(set.name, func(t *testing.T) {
			t.Parallel()
			c := playedIn(background(set.seed, set.share, set.long), unfelt(set.all), set.twins...)
			var found places
			for i := range set.all {
				found.look(t, &set.all[i].incident, c.ask(t, at(c.begins(i)+asked)))
			}
			found.want(t, 14, 18)
		})
	}
}
