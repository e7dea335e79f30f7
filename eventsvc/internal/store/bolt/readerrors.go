package bolt

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
)

// reads reports and counts what readers come upon. It is safe for concurrent use.
type reads struct {
	log     *slog.Logger
	life    *commit.Life
	damaged prometheus.Counter
	replays prometheus.Counter
}

func newReads(log *slog.Logger, l *commit.Life) *reads {
	return &reads{
		log: log, life: l,
		damaged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_damaged_reads_total", Help: "Reads that found damage and were answered with an error.",
		}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_watch_replays_total", Help: "Reads of the log for watchers that begin in the past or were left behind.",
		}),
	}
}

// failed logs and counts an error of a read, and makes it a *store.CorruptError, unless
// the caller or the store has ended the read.
func (r *reads) failed(err error) error {
	if errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if r.life.Closed() {
		return store.ErrClosed
	}
	ce, ok := errors.AsType[*store.CorruptError](err)
	if !ok {
		ce = &store.CorruptError{Reason: err.Error()}
	}
	r.log.Error("a stored event cannot be read", "error", ce)
	r.damaged.Inc()
	return ce
}
