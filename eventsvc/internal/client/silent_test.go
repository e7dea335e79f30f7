package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilent: when a watch that says nothing is ended. The looks at the server are half a minute apart.
func TestSilent(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	const same, later, fails, working = "7", "8", "?", ""
	for name, c := range map[string]struct {
		looks []string // what each finds: the version of the server, or why there is none
		frame int      // the look before which a frame comes; 0: none does
		want  error    // at the last look; nil: the watch goes on
	}{
		"nothing has changed":   {[]string{same, same, same}, 0, nil},
		"says nothing":          {[]string{later, later}, 0, ErrSilent},
		"begins later":          {[]string{same, later, later}, 0, ErrSilent},
		"a frame between":       {[]string{later, later, later}, 1, ErrSilent},
		"who takes it works":    {[]string{later, working, later, working}, 0, nil},
		"does not answer":       {[]string{fails, fails}, 0, away},
		"did not answer once":   {[]string{fails, same, fails, same}, 0, nil},
		"answers, and is later": {[]string{fails, later}, 0, ErrSilent},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var waiting atomic.Pointer[string]
			var version atomic.Value
			ended := make(chan error, 1)
			go func() {
				ended <- silent(ctx, 30*time.Second, &waiting, func(context.Context) (string, error) {
					if version.Load() == fails {
						return "", away
					}
					return version.Load().(string), nil
				})
			}()
			for i, found := range c.looks {
				version.Store(found)
				if found == working {
					waiting.Store(nil)
				} else if waiting.Load() == nil || i > 0 && i == c.frame {
					waiting.Store(new(same))
				}
				if len(ended) > 0 {
					t.Errorf("%s: ended at look %d", name, i)
				}
				time.Sleep(30 * time.Second)
				synctest.Wait()
			}
			if over := len(ended) > 0; over != (c.want != nil) {
				t.Errorf("%s: ended %v", name, over)
			}
			stop()
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		})
	}
}
