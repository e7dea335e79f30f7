package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/shared/pgreason"
)

// Options say which database and which copy of it. Access and Copy.Dir are required.
type Options struct {
	Access
	// Copy has the options of the copy, and the limits of the store: the copy whose replica clears away finds what is
	// past them. Its clock serves retention alone, because the database gives the times of writes.
	Copy bolt.Options
	// LocalReads answers reads from the copy as it is, at most MaxStaleness old. By default [DB.Fresh] asks the
	// database.
	LocalReads   bool
	MaxStaleness time.Duration // default 10 s

	keepEvery time.Duration // how often history is looked for that can be removed; default 5 s
}

// now returns the wall clock, by which revisions go on after a gap.
func (o *Options) now() time.Time {
	if o.Copy.Now != nil {
		return o.Copy.Now()
	}
	return time.Now()
}

// DB is the PostgreSQL engine of package store.
type DB struct {
	o         Options
	pool      *pgxpool.Pool
	copy      *replica
	queue     *commit.Queue
	committer *committer
	confirmer *confirmer
	tail      *tail
	head      *headReader
	keeper    *keeper
	metrics   *metrics
	life      *commit.Life
}

var _ store.Store = (*DB)(nil)

// Open opens the copy, and begins to follow the database. The database may be away: [DB.Ready] tells when the copy has
// caught up. A schema that this program cannot use, and a copy of another database, are refused if the database answers
// now.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Copy.Log == nil {
		o.Copy.Log = slog.New(slog.DiscardHandler)
	}
	if o.Copy.Registry == nil {
		o.Copy.Registry = prometheus.NewRegistry()
	}
	if o.MaxStaleness <= 0 {
		o.MaxStaleness = 10 * time.Second
	}
	pool, err := o.pool()
	if err != nil {
		return nil, err
	}
	db := &DB{o: o, pool: pool, queue: commit.NewQueue(commit.QueueWrites, commit.QueueBytes)}
	db.life = commit.NewLife(func() error {
		defer db.pool.Close()
		return db.copy.close()
	})
	db.keeper = newKeeper(db)
	if db.copy, err = openReplica(o.Copy, &bolt.Copy{Expires: db.keeper.holds, Delete: func(ctx context.Context, seen []store.Seen) error {
		_, _, err := db.DeleteMany(ctx, seen, nil)
		return err
	}}); err != nil {
		pool.Close()
		return nil, err
	}
	db.metrics = newMetrics(db)
	db.head = &headReader{db: db}
	db.tail = newTail(db)
	db.committer = newCommitter(db)
	db.confirmer = newConfirmer(db)
	if err := db.begin(ctx); err != nil {
		pool.Close()
		return nil, errors.Join(err, db.copy.close())
	}
	db.life.Running.Go(db.committer.run)
	db.life.Running.Go(db.committer.copyWritten)
	db.life.Running.Go(db.confirmer.run)
	db.life.Running.Go(db.tail.run)
	db.life.Running.Go(db.keeper.run)
	return db, nil
}

// begin registers the metrics, and refuses a database that the copy cannot follow.
func (db *DB) begin(ctx context.Context) error {
	if err := db.metrics.register(db.o.Copy.Registry); err != nil {
		return fmt.Errorf("store metrics: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, db.o.timeout())
	defer cancel()
	err := db.tail.identify(ctx, db.pool)
	if refused := new(RefusedError); errors.As(err, &refused) {
		return err
	} else if err != nil {
		db.o.Copy.Log.Warn("the database does not answer; trying until it does", "error", pgreason.Of(err))
	}
	return nil
}

// RefusedError says why a database cannot be served from. It does not pass by itself.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Close ends watches, commits the writes that wait, and closes the copy and all connections.
func (db *DB) Close() error { return db.life.Close() }

// Revision implements [store.Store]. It is the revision of the copy.
func (db *DB) Revision() uint64 { return db.copy.now().Revision() }

// Fresh makes the copy as new as the newest write that was acknowledged by any replica before the call. With local
// reads it returns the age of the copy instead. It returns [store.ErrUnavailable] if it can do neither.
func (db *DB) Fresh(ctx context.Context) (age time.Duration, err error) {
	if !db.tail.caughtUp.Load() {
		return 0, errFilling
	}
	if db.o.LocalReads {
		if age = db.tail.age(); age > db.o.MaxStaleness {
			return 0, fmt.Errorf("%w: the copy is %s old, the limit is %s", store.ErrUnavailable, age.Round(time.Millisecond), db.o.MaxStaleness)
		}
		return age, nil
	}
	return 0, db.head.refresh(ctx)
}

// Ready reports why the copy cannot be read, nil if it can.
func (db *DB) Ready(ctx context.Context) error {
	if !db.tail.caughtUp.Load() {
		return fmt.Errorf("the copy is at revision %d and has not caught up with the database", db.Revision())
	}
	return db.copy.now().Ready(ctx)
}

// Connected reports why the database cannot be written, nil if it can.
func (db *DB) Connected(context.Context) error { return db.tail.failed() }

// Room returns an error if there is no disk space for new events in the copy.
func (db *DB) Room(ctx context.Context) error { return db.copy.now().Room(ctx) }

// OnTime returns an error if the copy's maintenance is late.
func (db *DB) OnTime(ctx context.Context) error { return db.copy.now().OnTime(ctx) }

// Run keeps the copy within its limits until ctx ends.
func (db *DB) Run(ctx context.Context) error {
	for ctx.Err() == nil && db.life.Ctx.Err() == nil {
		copied, replaced := db.copy.current()
		if err := copied.Run(ctx); err != nil {
			return err
		}
		select {
		case <-replaced:
		case <-ctx.Done():
		case <-db.life.Ctx.Done():
		}
	}
	return nil
}
