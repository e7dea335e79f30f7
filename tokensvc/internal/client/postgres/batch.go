package postgres

import (
	"context"
	"slices"
	"sync"
)

// queries lets look-ups that would have to wait for a connection share a query. A query begins after the look-ups that
// it answers, so that a row that has been changed takes effect at once.
type queries struct {
	ask func(ids []string) ([]row, error)

	mu      sync.Mutex
	free    int      // queries that may begin
	waiting []*query // in the order in which they will begin
}

// maxIDs bounds what one query asks for: PostgreSQL takes at most 65,535 parameters.
const maxIDs = 1024

// query asks for one or more ids.
type query struct {
	ids  map[string]bool
	done chan struct{}
	rows []row // rows and err are valid when done is closed
	err  error
}

// find returns rows that include those of the id.
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
	if last := len(qs.waiting) - 1; last >= 0 && len(qs.waiting[last].ids) < maxIDs {
		qs.waiting[last].ids[id] = true
		return qs.waiting[last]
	}
	q := &query{ids: map[string]bool{id: true}, done: make(chan struct{})}
	if qs.free > 0 {
		qs.free--
		go qs.run(q)
	} else {
		qs.waiting = append(qs.waiting, q)
	}
	return q
}

// run asks until no look-up waits.
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

// following returns the next query, nil if no look-up waits for one.
func (qs *queries) following() *query {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if len(qs.waiting) == 0 {
		qs.free++
		return nil
	}
	q := qs.waiting[0]
	qs.waiting = slices.Delete(qs.waiting, 0, 1)
	return q
}
