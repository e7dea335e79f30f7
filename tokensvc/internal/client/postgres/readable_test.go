package postgres

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnreadableTableIsSaidOnce: a database that is down at start, or a wrong DSN, is logged once as a warning, and
// once more when the table becomes readable.
func TestUnreadableTableIsSaidOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		looks := 0
		ready := func(context.Context) error {
			if looks++; looks < 4 {
				return errors.New("connection refused")
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- logReadable(ctx, ready, slog.New(slog.NewTextHandler(io.MultiWriter(&out, t.Output()), nil)))
		}()
		time.Sleep(10 * readableWait) // of fake time
		synctest.Wait()
		if looks != 4 || strings.Count(out.String(), "check --database-dsn") != 1 || strings.Count(out.String(), "is readable") != 1 {
			t.Errorf("after %d looks the log says\n%s", looks, out.String())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
