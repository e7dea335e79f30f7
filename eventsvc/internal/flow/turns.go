package flow

import "context"

// Turns divides the long work of a request into pieces of less than a millisecond. Before each
// piece the request takes its place in the queue again if it has held its seat for long,
// and learns whether anybody still waits for its answer. It is for one goroutine. The
// caller must hold nothing that others wait for, such as a read of the store.
type Turns struct {
	ctx context.Context
	err error
}

// NewTurns returns the turns of the request that ctx belongs to.
func NewTurns(ctx context.Context) *Turns { return &Turns{ctx: ctx} }

// Next begins a piece of work. It reports false, then and ever after, if the context has
// ended.
func (t *Turns) Next() bool {
	if t.err == nil {
		t.err = t.ctx.Err()
	}
	if t.err == nil {
		t.err = FromContext(t.ctx).Acquire(t.ctx)
	}
	return t.err == nil
}

// Err returns the error that has ended the work, nil if none has.
func (t *Turns) Err() error { return t.err }
