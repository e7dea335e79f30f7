package commit

import (
	"context"
	"errors"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// A Batch changes different events as [store.Store.UpdateMany] does. It is used once: Prepare, perhaps Reconsider,
// Commit.
type Batch struct {
	Store  store.Store
	Queue  *Queue
	Now    func() time.Time // returns the time of the writes
	Keys   []store.Key
	Decide func(i int, current *store.Record) (store.Decision, error)

	outcomes []store.Outcome
	writes   []Write
	places   []int // of the writes, among the keys
	idle     []int // of the keys whose decision was to write nothing, or an error
}

// Prepare makes the decisions.
func (b *Batch) Prepare(ctx context.Context, expect func(i int) store.Expect) {
	b.outcomes = make([]store.Outcome, len(b.Keys))
	b.writes, b.places = make([]Write, 0, len(b.Keys)), make([]int, 0, len(b.Keys))
	for i, key := range b.Keys {
		if err := CheckKey(key); err != nil {
			b.outcomes[i].Err = err
			continue
		}
		b.prepare(ctx, i, expect(i))
	}
}

// prepare makes one decision.
func (b *Batch) prepare(ctx context.Context, i int, expect store.Expect) {
	w, kept, err := Prepare(ctx, b.Store, b.Keys[i], expect, b.decide(i), b.Now)
	if b.outcomes[i] = (store.Outcome{Result: kept, Err: err}); w == nil {
		b.idle = append(b.idle, i)
		return
	}
	b.writes, b.places = append(b.writes, *w), append(b.places, i)
}

func (b *Batch) decide(i int) store.Decide {
	return func(current *store.Record) (store.Decision, error) { return b.Decide(i, current) }
}

// Reconsider repeats the decisions that write nothing, after fresh has brought the store up to date. If fresh fails,
// they get its error. Without such decisions it does not call fresh.
func (b *Batch) Reconsider(ctx context.Context, fresh func(context.Context) error) {
	if len(b.idle) == 0 {
		return
	}
	idle, err := b.idle, fresh(ctx)
	b.idle = nil
	for _, i := range idle {
		if err != nil {
			b.outcomes[i] = store.Outcome{Err: err}
			continue
		}
		b.prepare(ctx, i, store.Any)
	}
}

// Commit makes the writes in one commit. An event that was written since its decision is changed alone. If the queue
// has no room for all writes, none is made, and they have [store.ErrBusy].
func (b *Batch) Commit(ctx context.Context) []store.Outcome {
	if len(b.writes) == 0 {
		return b.outcomes
	}
	last := len(b.writes) - 1
	b.writes[last].With = b.writes[:last]
	err := b.Queue.Submit(&b.writes[last])
	for n, i := range b.places {
		switch w := &b.writes[n]; {
		case err != nil && !errors.Is(err, ErrConflict): // of all; the others may not be answered yet
			b.outcomes[i].Err = err
		case errors.Is(w.Err, ErrConflict):
			b.outcomes[i].Result, b.outcomes[i].Err = b.Store.Update(ctx, w.Key, store.Any, b.decide(i))
		case w.Err != nil:
			b.outcomes[i].Err = w.Err
		default:
			b.outcomes[i].Result = w.Result()
		}
	}
	return b.outcomes
}
