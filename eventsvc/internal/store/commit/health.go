package commit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"tidings.example/eventsvc/internal/store"
)

// Health knows whether the files of a store can be written. After a failure nothing is written any
// more, and the process is to stop: the kernel drops pages that it could not write, and reports the
// error once, so that another sync would acknowledge what is not on the disk. The next start reads
// what is there. It is safe for concurrent use.
type Health struct {
	log    *slog.Logger
	once   sync.Once
	failed context.Context // ends with the failure, which is its cause
	end    context.CancelCauseFunc
}

// NewHealth returns the health of files that can be written.
func NewHealth(log *slog.Logger) *Health {
	h := &Health{log: log}
	h.failed, h.end = context.WithCancelCause(context.Background())
	return h
}

// Done is closed by the failure.
func (h *Health) Done() <-chan struct{} { return h.failed.Done() }

// OnFailure has f called after the failure, unless it was stopped before.
func (h *Health) OnFailure(f func()) (stop func() bool) { return context.AfterFunc(h.failed, f) }

// Failed returns why nothing can be written, nil if it can.
func (h *Health) Failed() error { return context.Cause(h.failed) }

// Fail refuses all writes from now on, because nobody knows what of a write to a file is on the
// disk. It returns the error for the writers.
func (h *Health) Fail(path string, cause error) error {
	h.once.Do(func() {
		h.log.Error("a file of the store could not be written; the process stops, and the next start reads what was acknowledged", "file", path, "error", cause)
		h.end(fmt.Errorf("%w: %s: %w", store.ErrUnwritable, path, cause))
	})
	return h.Failed()
}
