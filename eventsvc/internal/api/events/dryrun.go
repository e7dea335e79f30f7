package events

import (
	"context"

	"tidings.example/eventsvc/internal/store"
)

// target returns the store that a write goes to.
func target(s store.Store, dryRun bool) store.Store {
	if dryRun {
		return dryStore{s}
	}
	return s
}

// dryStore is a store whose writes only find out what would become of an event. To the store below it, each is a
// decision to keep the event, which an engine makes on the newest state as it does any other.
type dryStore struct{ store.Store }

// Update implements [store.Store].
func (s dryStore) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	one := s.UpdateMany(ctx, []store.Key{key}, func(int) store.Expect { return expect },
		func(_ int, current *store.Record) (store.Decision, error) { return decide(current) })[0]
	return one.Result, one.Err
}

// UpdateMany implements [store.Store].
func (s dryStore) UpdateMany(
	ctx context.Context, keys []store.Key, _ func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	decided := make([]store.Decision, len(keys))
	all := s.Store.UpdateMany(ctx, keys, func(int) store.Expect { return store.Any }, func(i int, current *store.Record) (_ store.Decision, err error) {
		decided[i], err = decide(i, current)
		return store.Decision{}, err
	})
	for i, d := range decided {
		r := &all[i].Result
		r.Op, r.Created = d.Op, r.Record.Key == store.Key{} && d.Op == store.Put
		if d.Op == store.Put {
			r.Record.Key, r.Record.Attributes, r.Record.Value = keys[i], d.Draft.Attributes, d.Draft.Value
		}
	}
	return all
}
