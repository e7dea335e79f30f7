package bolt

import (
	"context"
	"time"

	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// turnTime is about how long a read goes on before other requests go first. Only tests change it.
var turnTime = 500 * time.Microsecond

// turns are those of a read that may take long. It holds its segments all the time. Before other requests go first it
// ends the transaction that keeps bbolt from reusing pages of the head.
type turns struct {
	*flow.Turns
	reader *reader
	log    *seglog.Reader
	began  time.Time
}

// turns returns the turns of a read.
func (r *reader) turns(ctx context.Context, log *seglog.Reader) *turns {
	return &turns{Turns: flow.NewTurns(ctx), reader: r, log: log}
}

// next lets others go first, at the first call and when the read has gone on for long. It returns an error if nobody
// waits for the answer any more, or if the store is being closed.
func (t *turns) next() error {
	if time.Since(t.began) < turnTime {
		return nil
	}
	t.log.Rest()
	switch {
	case !t.Next():
		return t.Err()
	case t.reader.Closed():
		return store.ErrClosed
	}
	t.began = time.Now()
	return nil
}
