package postgres

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"tidings.example/shared/pgreason"
)

// A keeper holds an advisory lock, if no other replica does. The replica that has it clears away what is past its time.
// The lock saves work: nothing goes wrong when two replicas believe that they have it.
type keeper struct {
	db    *DB
	held  atomic.Bool
	every time.Duration // it looks for history to remove
}

func newKeeper(db *DB) *keeper { return &keeper{db: db, every: cmp.Or(db.o.keepEvery, 5*time.Second)} }

// keeperLock is the key of the advisory lock.
const keeperLock = 0x7469_6e67_0002

// The keeper removes removeRecords of history in one transaction, because commits may wait for it. Replicas that were
// not heard of for writerAge are forgotten.
const (
	removeRecords = 2048
	writerAge     = "1 day"
)

// holds reports whether this replica is the one that clears away.
func (k *keeper) holds() bool { return k.held.Load() && k.db.tail.caughtUp.Load() }

// run tries to get the lock, and does the work while it has it.
func (k *keeper) run() {
	for k.db.life.Ctx.Err() == nil {
		if err := k.term(k.db.life.Ctx); err != nil && k.db.life.Ctx.Err() == nil && k.db.tail.failed() == nil {
			k.db.o.Copy.Log.Warn("history could not be removed from the database; trying again", "error", pgreason.Of(err))
		}
		select {
		case <-time.After(k.every):
		case <-k.db.life.Ctx.Done():
		}
	}
}

// term lasts as long as the connection that holds the lock.
func (k *keeper) term(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, k.db.o.timeout())
	defer cancel()
	conn, err := k.db.pool.Acquire(within)
	if err != nil {
		return err
	}
	defer conn.Release()
	var got bool
	if err := conn.QueryRow(within, "SELECT pg_try_advisory_lock($1)", int64(keeperLock)).Scan(&got); err != nil || !got {
		return err
	}
	k.held.Store(true)
	defer func() {
		k.held.Store(false)
		end(ctx, conn.Conn()) // which ends the lock
	}()
	for {
		if err := k.keep(ctx, conn); err != nil {
			return err
		}
		select {
		case <-time.After(k.every):
		case <-ctx.Done():
			return nil
		}
	}
}

// keep clears away, unless the copy does not know yet what is past its time.
func (k *keeper) keep(ctx context.Context, conn *pgxpool.Conn) error {
	if !k.holds() {
		return k.exec(ctx, conn, "SELECT 1")
	}
	return k.clear(ctx, conn)
}

// clear removes from the database what the copy has given up, and forgets replicas that are gone.
func (k *keeper) clear(ctx context.Context, conn *pgxpool.Conn) error {
	upTo := k.db.copy.now().Stats().Oldest
	for at := uint64(0); ; {
		next, err := k.remove(ctx, conn, upTo)
		if err != nil {
			return err
		}
		if next >= upTo || next == at {
			break
		}
		at = next
	}
	if err := k.exec(ctx, conn, "DELETE FROM writer WHERE time < clock_timestamp() - $1::interval", writerAge); err != nil {
		return err
	}
	return k.dropPartitions(ctx, conn)
}

// remove removes some history, and returns up to which revision it is removed.
func (k *keeper) remove(ctx context.Context, conn *pgxpool.Conn, upTo uint64) (at uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, k.db.o.timeout())
	defer cancel()
	err = conn.QueryRow(ctx, "SELECT remove_history($1, $2)", upTo, removeRecords).Scan(&at)
	return at, err
}

// exec runs a statement, for which a server that hangs has no more than the usual time.
func (k *keeper) exec(ctx context.Context, conn *pgxpool.Conn, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, k.db.o.timeout())
	defer cancel()
	_, err := conn.Exec(ctx, statement, args...)
	return err
}

// dropPartitions drops what is empty. A dump that holds the table is not waited for: commits would wait behind.
func (k *keeper) dropPartitions(ctx context.Context, conn *pgxpool.Conn) error {
	err := k.exec(ctx, conn, "SELECT drop_partitions()")
	if code(err) == "55P03" { // lock_not_available
		return nil
	}
	return err
}
