//go:build !race

package changes_test

import "testing"

// TestQuietDays counts the rows of every hour of a day on which nothing happens, in three other clusters.
func TestQuietDays(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("plays three clusters")
	}
	const most = 35 // the count when the steps of a rollout became one row
	rows := 0
	for seed := uint64(11); seed < 14; seed++ {
		c := busy(seed, 1, nil)
		for h := range 24 {
			rows += len(c.ask(t, at(4*day+float64(h)*hour+hour/2)).Rows)
		}
	}
	if rows > most {
		t.Errorf("%d rows in 72 questions on quiet days, want at most %d", rows, most)
	}
}
