package bolt

import (
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// TestRoundsOfWatchers: one change is announced at once; those that follow
// faster than many watchers can write are announced together, and nobody who
// waits is forgotten.
func TestRoundsOfWatchers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		watchers int
		round    time.Duration
	}{{1, 10 * time.Microsecond}, {1000, 10 * time.Millisecond}, {20000, maxRound}} {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(1, 16, 1<<20)
			start := time.Now()
			publish := func(revision uint64) <-chan struct{} {
				_, wake, _ := h.after(nil, revision-1, 1)
				h.publish([]change{{revision: revision, kind: created, current: &store.Version{}}})
				h.announce(test.watchers)
				return wake
			}
			<-publish(2)
			if took := time.Since(start); took != 0 {
				t.Errorf("%d watchers: the first is announced after %s", test.watchers, took)
			}
			third, fourth := publish(3), publish(4)
			<-third
			<-fourth
			if took := time.Since(start); took != test.round {
				t.Errorf("%d watchers: the next are announced after %s, want %s", test.watchers, took, test.round)
			}
			if changes, _, ok := h.after(nil, 1, 10); !ok || len(changes) != 3 {
				t.Errorf("%d changes, want 3", len(changes))
			}
			last := publish(5)
			h.close() // also ends a round that is to come
			<-last
		})
	}
}
