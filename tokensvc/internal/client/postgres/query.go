package postgres

import (
	"context"
	"sync"
)

// queries lets look-ups that would have to wait for a connection wait for a query together. A query begins after the
// look-ups that it answers, so that a row that has been changed takes effect at once.
type queries struct {
	ask func(ids []string) ([]row, error)

	mu   sync.Mutex
	free int    // queries that may begin
	next *query // for those who wait; nil: nobody does
}

// query asks for one or more ids.
type query struct {
	ids  map[string]bool
	done chan struct{}
	rows []row // with err valid once done is closed
	err  error
}

// find returns the rows that an id may be meant by, among others.
func (qs *queries) find(ctx context.Context, id string) ([]row, error) {
	q := qs.join(id)
	select {
	case <-q.done:
		return q.rows, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (qs *queries) join(id string) *query {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.next
	if q == nil {
		q = &query{ids: map[string]bool{}, done: make(chan struct{})}
		qs.next = q
	}
	q.ids[id] = true
	if qs.free > 0 {
		qs.free--
		qs.next = nil
		go qs.run(q)
	}
	return q
}

// run asks until nobody waits.
func (qs *queries) run(q *query) {
	for q != nil {
		ids := make([]string, 0, len(q.ids))
		for id := range q.ids {
			ids = append(ids, id)
		}
		q.rows, q.err = qs.ask(ids)
		close(q.done)
		q = qs.following()
	}
}

func (qs *queries) following() *query {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.next
	qs.next = nil
	if q == nil {
		qs.free++
	}
	return q
}
