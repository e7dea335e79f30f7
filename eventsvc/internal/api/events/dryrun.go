package events

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/store"
)

// target returns the store that a write goes to.
func target(s store.Store, dryRun bool) store.Store {
	if dryRun {
		return dryStore{s}
	}
	return s
}

// dryStore is a store whose writes only find out what would become of an event.
type dryStore struct{ store.Store }

// Update implements [store.Store].
func (s dryStore) Update(ctx context.Context, key store.Key, _ store.Expect, decide store.Decide) (store.Result, error) {
	var current *store.Record
	rec, err := store.Read(ctx, s.Store, key)
	switch {
	case err == nil:
		current = &rec
	case !errors.Is(err, store.ErrNotFound):
		return store.Result{}, err
	}
	d, err := decide(current)
	if err != nil {
		return store.Result{}, err
	}
	result := store.Result{Record: rec, Op: d.Op, Created: current == nil && d.Op == store.Put}
	if d.Op == store.Put {
		result.Record.Key, result.Record.Attributes, result.Record.Value = key, d.Draft.Attributes, d.Draft.Value
	}
	return result, nil
}

// UpdateMany implements [store.Store].
func (s dryStore) UpdateMany(
	ctx context.Context, keys []store.Key, expect func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	all := make([]store.Outcome, len(keys))
	for i, key := range keys {
		all[i].Result, all[i].Err = s.Update(ctx, key, expect(i), func(current *store.Record) (store.Decision, error) { return decide(i, current) })
	}
	return all
}
