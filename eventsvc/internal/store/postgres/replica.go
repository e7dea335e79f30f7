package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/shared/safefile"
)

// markName is the file, beside those of the store, that says of which database they are a copy.
const markName = "copy-of.json"

// A mark names the database of a copy.
type mark struct {
	Cluster string `json:"cluster"`
	Epoch   uint64 `json:"epoch"`
	Filling bool   `json:"filling,omitempty"` // it does not have everything yet, and is made again after a restart
}

// IsCopy reports whether the store in a directory is the copy of a database.
func IsCopy(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, markName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// A replica is the copy of a database in bolt files, which can be replaced by an empty one. All methods are safe for
// concurrent use, but follow and remake are for the tail alone.
type replica struct {
	options  bolt.Options
	remade   prometheus.Counter
	lacking  bool       // a remake has failed: there is no copy until one succeeds; only remake's user uses it
	applying sync.Mutex // held while changes are stored, and while the copy is replaced

	mu       sync.Mutex
	db       *bolt.DB
	metrics  *prometheus.Registry // of db
	mark     mark
	applied  chan struct{} // closed when the revision has changed
	replaced chan struct{} // closed when db was replaced
}

// openReplica opens the copy, or begins with an empty one if it cannot be read: the database has everything. A store of
// its own is refused.
func openReplica(o bolt.Options, c *bolt.Copy) (*replica, error) {
	o.Copy = c
	r := &replica{options: o, applied: make(chan struct{}), replaced: make(chan struct{})}
	r.remade = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "store_copy_remade_total", Help: "Times that the copy was made again from the database.",
	})
	err := r.readMark()
	if err == nil {
		err = r.open(false)
	}
	if store.DamageOf(err) == nil {
		return r, err
	}
	o.Log.Error("the copy cannot be opened, and is made again from the database", "error", err)
	return r, r.discard()
}

// readMark reads of which database the copy is. Where there is none it makes the directory of one.
func (r *replica) readMark() error {
	dir := r.options.Dir
	path := filepath.Join(dir, markName)
	text, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(text, &r.mark); err != nil {
			return &store.FileError{Path: path, Reason: err.Error(), Fix: "remove " + dir}
		}
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	there, err := bolt.Holds(dir)
	if err == nil && there {
		err = &RefusedError{fmt.Sprintf("%s holds the events of a store of its own, and is not the copy of a database: export them, "+
			"name another data directory, and import them there", dir)}
	}
	if err == nil {
		err = safefile.MkdirAll(dir)
	}
	if err == nil {
		err = r.follow(mark{Filling: true}) // of whichever database is there
	}
	return err
}

// discard replaces the files by those of an empty copy.
func (r *replica) discard() error {
	r.remade.Inc()
	m := r.belongs()
	m.Filling = true
	if err := r.follow(m); err != nil {
		return err
	}
	return r.open(true)
}

// open opens the files, or an empty copy without them. Their metrics are collected through the replica, because the
// files may be replaced.
func (r *replica) open(discard bool) error {
	o, metrics, c := r.options, prometheus.NewRegistry(), *r.options.Copy
	c.Discard = discard
	o.Copy, o.Registry = &c, metrics
	db, err := bolt.Open(o)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.db, r.metrics = db, metrics
	close(r.replaced)
	r.replaced = make(chan struct{})
	return nil
}

// current returns the copy, and what is closed when it is replaced.
func (r *replica) current() (*bolt.DB, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.db, r.replaced
}

// now returns the copy.
func (r *replica) now() *bolt.DB {
	db, _ := r.current()
	return db
}

// Describe implements [prometheus.Collector]: the metrics are those of the copy.
func (r *replica) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (r *replica) Collect(c chan<- prometheus.Metric) {
	r.mu.Lock()
	metrics := r.metrics
	r.mu.Unlock()
	metrics.Collect(c)
}

// await waits until the copy has a revision, and returns the copy.
func (r *replica) await(ctx context.Context, revision uint64) (*bolt.DB, error) {
	for {
		r.mu.Lock()
		db, applied := r.db, r.applied
		r.mu.Unlock()
		if db.Revision() >= revision {
			return db, nil
		}
		select {
		case <-applied:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// change changes the copy, and wakes who waits for its revision.
func (r *replica) change(f func(*bolt.DB) error) error {
	if err := f(r.now()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.applied)
	r.applied = make(chan struct{})
	return nil
}

// apply stores changes of the log, but those that the copy has already.
func (r *replica) apply(ctx context.Context, changes []commit.Replicated) error {
	r.applying.Lock()
	defer r.applying.Unlock()
	return r.applyLocked(ctx, changes)
}

// applyTo stores what a batch has written in an epoch, if the copy is the one that has everything before it. Otherwise
// the tail brings it, or the database has lost it.
func (r *replica) applyTo(ctx context.Context, db *bolt.DB, epoch uint64, changes []commit.Replicated) error {
	r.applying.Lock()
	defer r.applying.Unlock()
	if r.now() != db || r.belongs().Epoch != epoch {
		return nil
	}
	return r.applyLocked(ctx, changes)
}

func (r *replica) applyLocked(ctx context.Context, changes []commit.Replicated) error {
	return r.change(func(db *bolt.DB) error {
		at := db.Revision()
		if changes = changes[sort.Search(len(changes), func(i int) bool { return changes[i].Revision > at }):]; len(changes) == 0 {
			return nil
		}
		return db.Follow().Apply(ctx, changes)
	})
}

// belongs returns of which database the copy is.
func (r *replica) belongs() mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mark
}

// follow notes of which database the copy is.
func (r *replica) follow(m mark) error {
	if r.belongs() == m {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	path := filepath.Join(r.options.Dir, markName)
	if err := safefile.Write(path, text); err != nil {
		return fmt.Errorf("copy of the database: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark = m
	return nil
}

// remake replaces the copy by an empty one. Watches of the old one end.
func (r *replica) remake() error {
	r.applying.Lock()
	defer r.applying.Unlock()
	r.lacking = true
	_ = r.now().Close() // what it could not write is not needed
	err := r.discard()
	r.lacking = err != nil
	return err
}

// close closes the files.
func (r *replica) close() error { return r.now().Close() }

// whole returns the copy unless it is being filled. While it is, history that the database has removed seems to be
// held, so a watch would miss changes.
func (db *DB) whole() (*bolt.DB, error) {
	copied := db.copy.now() // before the look: a copy that is replaced in between is closed
	if !db.tail.caughtUp.Load() {
		return nil, errFilling
	}
	return copied, nil
}

var errFilling = fmt.Errorf("%w: the copy has not caught up yet", store.ErrUnavailable)

// Get implements [store.Store].
func (db *DB) Get(ctx context.Context, key store.Key, look func(*store.View) error) error {
	copied, err := db.whole()
	if err != nil {
		return err
	}
	return between(db, copied.Get(ctx, key, look))
}

// List implements [store.Store].
func (db *DB) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	copied, err := db.whole()
	if err != nil {
		return store.Page{}, err
	}
	page, err := copied.List(ctx, q, visit)
	return page, between(db, err)
}

// Watch implements [store.Store].
func (db *DB) Watch(ctx context.Context, q store.WatchQuery) (store.Watcher, error) {
	copied, err := db.whole()
	if err != nil {
		return nil, err
	}
	w, err := copied.Watch(ctx, q)
	return w, between(db, err)
}

// between returns the error of an access to the copy. That the copy is closed while the store is not means that it is
// being replaced.
func between(db *DB, err error) error {
	if errors.Is(err, store.ErrClosed) && db.life.Ctx.Err() == nil {
		return fmt.Errorf("%w: the copy is being made again", store.ErrUnavailable)
	}
	return err
}
