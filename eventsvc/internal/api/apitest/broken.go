package apitest

import (
	"context"
	"slices"

	"tidings.example/eventsvc/internal/store"
)

// Broken is a store whose every operation fails in the same way.
type Broken struct {
	store.Store
	Err error
}

// Get implements [store.Store].
func (b *Broken) Get(context.Context, store.Key, func(*store.View) error) error { return b.Err }

// List implements [store.Store].
func (b *Broken) List(context.Context, store.Query, func(*store.View) bool) (store.Page, error) {
	return store.Page{}, b.Err
}

// UpdateMany implements [store.Store].
func (b *Broken) UpdateMany(
	_ context.Context, keys []store.Key, _ func(i int) store.Expect, _ func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	return slices.Repeat([]store.Outcome{{Err: b.Err}}, len(keys))
}

// DeleteMany implements [store.Store].
func (b *Broken) DeleteMany(context.Context, []store.Seen, []byte) (int, []store.Key, error) {
	return 0, nil, b.Err
}

// Revision implements [store.Store].
func (b *Broken) Revision() uint64 { return 7 }

// Watch implements [store.Store].
func (b *Broken) Watch(context.Context, store.WatchQuery) (store.Watcher, error) {
	return nil, b.Err
}

// Update implements [store.Store].
func (b *Broken) Update(context.Context, store.Key, store.Expect, store.Decide) (store.Result, error) {
	return store.Result{}, b.Err
}
