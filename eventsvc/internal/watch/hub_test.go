package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// TestRoundsOfWatchers: many watchers are woken group by group. Changes that come
// faster than they can write are announced together, and no watcher is forgotten.
func TestRoundsOfWatchers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		watchers    int
		step, round time.Duration // from group to group, and until it is the first's turn again
	}{
		{1, 0, 15 * time.Microsecond},
		{100, 0, 1500 * time.Microsecond},
		{1000, 1875 * time.Microsecond, 15 * time.Millisecond},
		{20000, maxRound / groupCount, maxRound},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := NewHub(1, 16, 1<<20)
			for range groupCount {
				h.join(&Watcher{})
			}
			start := time.Now()
			publish := func(revision uint64) (wakes [groupCount]<-chan struct{}) {
				for g := range wakes {
					_, _, wakes[g], _ = h.after(nil, "", revision-1, g)
				}
				h.Publish([]Change{{Revision: revision, Current: &store.Version{}}})
				h.Announce(test.watchers)
				return wakes
			}
			second, third := publish(2), publish(3)
			for g := range second {
				<-second[g]
				if took, want := time.Since(start), time.Duration(g)*test.step; took != want {
					t.Errorf("%d watchers: group %d hears of the first after %s, want %s", test.watchers, g, took, want)
				}
			}
			fourth := publish(4)
			<-third[0]
			<-fourth[0]
			if took := time.Since(start); took != test.round {
				t.Errorf("%d watchers: the next are announced after %s, want %s", test.watchers, took, test.round)
			}
			if changes, _, _, ok := h.after(nil, "", 1, 0); !ok || len(changes) != 3 {
				t.Errorf("%d changes, want 3", len(changes))
			}
			for g := range fourth {
				<-fourth[g]
			}
			if took := time.Since(start); took >= 2*test.round {
				t.Errorf("%d watchers: the last hear of it after %s, within two rounds of %s", test.watchers, took, test.round)
			}
			last := publish(5)
			h.Close() // also ends a round that is to come
			for g := range last {
				<-last[g]
			}
		})
	}
}
