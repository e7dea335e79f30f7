package events_test

import (
	"context"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
)

// timekeeper notes until when the store was given time.
type timekeeper struct {
	store.Store
	deadline time.Time
}

func (k *timekeeper) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	k.deadline, _ = ctx.Deadline()
	return k.Store.Update(ctx, key, expect, decide)
}

func (k *timekeeper) Watch(ctx context.Context, _ store.WatchQuery) (store.Watcher, error) {
	k.deadline, _ = ctx.Deadline()
	return nil, store.ErrClosed // the stream ends at once
}

// TestTimeOfRequests: a write may take 34 seconds and less if the client says so; a
// watch lasts as long as asked for, or else between half an hour and an hour.
func TestTimeOfRequests(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	k := &timekeeper{Store: w.DB}
	w.Config.Store = k
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, query, body string
		least, most         time.Duration
	}{
		{"POST", "", apitest.NewEvent("a"), 34 * time.Second, 34 * time.Second},
		{"POST", "?timeout=0s", apitest.NewEvent("b"), 34 * time.Second, 34 * time.Second},
		{"POST", "?timeout=5s", apitest.NewEvent("c"), 5 * time.Second, 5 * time.Second},
		{"POST", "?timeout=5h", apitest.NewEvent("d"), 34 * time.Second, 34 * time.Second},
		{"GET", "?watch=true&resourceVersion=1&timeoutSeconds=7", "", 7 * time.Second, 7 * time.Second},
		{"GET", "?watch=true&resourceVersion=1&timeoutSeconds=0", "", 30 * time.Minute, time.Hour},
		{"GET", "?watch=true&resourceVersion=1", "", 30 * time.Minute, time.Hour},
		{"GET", "?watch=true&resourceVersion=1&timeout=5s", "", 30 * time.Minute, time.Hour},
	} {
		k.deadline = time.Time{}
		before := time.Now()
		w.Do(c.method, apitest.EventsPath+c.query, c.body)
		after := time.Now()
		if k.deadline.Before(before.Add(c.least)) || k.deadline.After(after.Add(c.most)) {
			t.Errorf("%s %s: the store has %s, want %s to %s", c.method, c.query, k.deadline.Sub(before), c.least, c.most)
		}
	}
}
