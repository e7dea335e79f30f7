package mirror

import (
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/client"
)

// TestSavedWhenIdle: a cursor that does not move is saved each minute, however the marks of the source come.
func TestSavedWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		changes, marks := make(chan client.Change), make(chan cursor)
		c := &copier{ownEvents: ownEvents{&Mirror{}, ""}, state: &state{}}
		c.cursor.version, c.saved.version, c.savedAt = "7", "7", time.Now()
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case marks <- cursor{version: "8", complete: time.Now()}: // which the cursor does not reach
				case <-stop:
					return
				}
				time.Sleep(checkEvery)
			}
		}()
		for began := time.Now(); time.Since(c.savedAt) < saveAnyway; {
			if batch, open := c.next(changes, marks); len(batch) > 0 || !open {
				t.Fatalf("%d changes, open %t", len(batch), open)
			}
			if waited := time.Since(began); waited > time.Minute {
				t.Fatalf("nothing is due after %s", waited)
			}
		}
	})
}
