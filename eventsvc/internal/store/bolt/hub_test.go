package bolt

import (
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// TestRoundsOfWatchers: one change is announced at once, to many watchers group
// by group; those that follow faster than many can write are announced together,
// and nobody who waits is forgotten.
func TestRoundsOfWatchers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		watchers    int
		step, round time.Duration // from group to group, and until it is the first's turn again
	}{
		{1, 0, 15 * time.Microsecond},
		{100, 0, 1500 * time.Microsecond},
		{1000, 1875 * time.Microsecond, 15 * time.Millisecond},
		{20000, maxRound / hubGroups, maxRound},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(1, 16, 1<<20)
			for g := range hubGroups {
				h.join("", g)
			}
			start := time.Now()
			publish := func(revision uint64) (wakes [hubGroups]<-chan struct{}) {
				for g := range wakes {
					_, _, wakes[g], _ = h.after(nil, "", revision-1, 1, g)
				}
				h.publish([]change{{revision: revision, kind: created, current: &store.Version{}}})
				h.announce(test.watchers)
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
			if changes, _, _, ok := h.after(nil, "", 1, 10, 0); !ok || len(changes) != 3 {
				t.Errorf("%d changes, want 3", len(changes))
			}
			for g := range fourth {
				<-fourth[g]
			}
			if took := time.Since(start); took >= 2*test.round {
				t.Errorf("%d watchers: the last hear of it after %s, within two rounds of %s", test.watchers, took, test.round)
			}
			last := publish(5)
			h.close() // also ends a round that is to come
			for g := range last {
				<-last[g]
			}
		})
	}
}
