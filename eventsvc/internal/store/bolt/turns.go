package bolt

import (
	"context"

	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// turns are those of a read that may take long.
type turns struct {
	*flow.Turns
	reader *reader
	log    *seglog.Reader
}

// turns returns the turns of a read.
func (r *reader) turns(ctx context.Context, log *seglog.Reader) *turns {
	return &turns{Turns: flow.NewTurns(ctx), reader: r, log: log}
}

// next lets others go first if the read has gone on for long. It returns an error if nobody waits for the answer any
// more, or if the store is being closed.
func (t *turns) next() error {
	switch {
	case !t.Next():
		return t.Err()
	case t.reader.Closed():
		return store.ErrClosed
	}
	return nil
}
