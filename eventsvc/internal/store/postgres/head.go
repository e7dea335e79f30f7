package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/pgreason"
)

// head is the state of the whole store.
type head struct {
	Cluster                  string
	Epoch, Revision, Removed uint64
	Standby                  bool // a synchronous standby is required
	Uncertain                bool // the server was promoted after the newest commit, which has not waited for a standby
}

// A headReader reads the newest revision, once for all who wait for it. It is safe for concurrent use.
type headReader struct {
	db      *DB
	reading sync.Mutex // held while the database is asked

	mu   sync.Mutex
	next *headRead // that has not begun; nil if nobody waits for it
}

// A headRead is one question to the database.
type headRead struct {
	done chan struct{}
	head head
	err  error
}

// read returns the head as it is at some time after the call.
func (r *headReader) read(ctx context.Context) (head, error) {
	r.mu.Lock()
	one := r.next
	if one == nil {
		one = &headRead{done: make(chan struct{})}
		r.next = one
		go r.ask(one)
	}
	r.mu.Unlock()
	select {
	case <-one.done:
		return one.head, one.err
	case <-ctx.Done():
		return head{}, ctx.Err()
	}
}

// ask asks the database. Who comes later waits for the next question, because this one may have been answered before.
func (r *headReader) ask(one *headRead) {
	r.reading.Lock()
	defer r.reading.Unlock()
	r.mu.Lock()
	r.next = nil
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.db.life.Ctx, r.db.o.timeout())
	defer cancel()
	start := time.Now()
	one.err = r.db.pool.QueryRow(ctx, "SELECT epoch, revision FROM head").Scan(&one.head.Epoch, &one.head.Revision)
	if one.err != nil {
		one.err = r.db.unavailable(one.err)
	} else {
		r.db.metrics.asked(time.Since(start))
	}
	close(one.done)
}

// refresh makes the copy as new as the head is now.
func (r *headReader) refresh(ctx context.Context) error {
	db := r.db
	known := db.Revision()
	h, err := r.read(ctx)
	if err != nil {
		return err
	}
	if h.Revision < known || h.Epoch != db.tail.epoch.Load() {
		db.tail.doubt()
		return fmt.Errorf("%w with what this replica has seen: it is at revision %d of epoch %d", store.ErrUnavailable, h.Revision, h.Epoch)
	}
	if _, err = db.copy.await(ctx, h.Revision); err != nil {
		return err
	}
	_, err = db.whole() // the copy may have been replaced
	return err
}

// unavailable makes an error of the database one of the store.
func (db *DB) unavailable(err error) error {
	if db.life.Closed() {
		return store.ErrClosed
	}
	if errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, pgreason.Of(err))
}
