package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// warning is the key of the last warning of a connection in its custom data.
const warning = "warning"

// noteWarning keeps a warning of the server. That the wait for a standby was cancelled is told by a warning alone, in
// the language of the server.
func noteWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		conn.CustomData()[warning] = n.Message
	}
}

// errUnconfirmed says that a commit may be missing on the standbys that it should have waited for.
var errUnconfirmed = errors.New("the database has committed with a warning, so a failover may lose the commit")

// unwarned runs a statement that commits. After a warning the standbys may not have the commit, as after an answer that
// was lost.
func unwarned(conn *pgx.Conn, commit func() error) error {
	data := conn.PgConn().CustomData()
	delete(data, warning)
	if err := commit(); err != nil {
		return err
	}
	if text, warned := data[warning].(string); warned {
		return fmt.Errorf("%w: %s", errUnconfirmed, text)
	}
	return nil
}

// A confirmer tells all replicas how far the standbys have the log, if commits wait for standbys. A commit is confirmed
// in a transaction of its own, which its clients do not wait for. Its methods but run are safe for concurrent use.
type confirmer struct {
	db     *DB
	newest atomic.Uint64 // that the standbys have
	wake   chan struct{}
	asking atomic.Bool
}

func newConfirmer(db *DB) *confirmer { return &confirmer{db: db, wake: make(chan struct{}, 1)} }

// committed notes that a commit up to a revision was answered.
func (c *confirmer) committed(revision uint64) {
	if !c.db.tail.standby.Load() {
		return
	}
	c.newest.Store(revision)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run confirms what this replica has committed. If that fails, the tail of any replica asks.
func (c *confirmer) run() {
	for {
		select {
		case <-c.wake:
			ctx, cancel := context.WithTimeout(c.db.life.Ctx, c.db.o.timeout())
			_, _ = c.db.pool.Exec(ctx, "SELECT confirm($1, $2)", c.newest.Load(), c.db.committer.id.String())
			cancel()
		case <-c.db.life.Ctx.Done():
			return
		}
	}
}

// askAfter is how long a revision may be unconfirmed before a replica asks the standbys.
const askAfter = 200 * time.Millisecond

// ask confirms a revision that the database shows, by a commit of its own: when that is answered, the standbys have
// both. One session of all replicas waits at a time.
func (c *confirmer) ask(revision uint64) {
	if !c.asking.CompareAndSwap(false, true) {
		return
	}
	c.db.life.Running.Go(func() {
		defer c.asking.Store(false)
		ctx, cancel := context.WithTimeout(c.db.life.Ctx, c.db.o.timeout())
		defer cancel()
		conn, err := c.db.pool.Acquire(ctx)
		if err != nil {
			return
		}
		defer conn.Release()
		var at *string
		if err := unwarned(conn.Conn(), func() error { return conn.QueryRow(ctx, askStandbys, askLock).Scan(&at) }); err == nil && at != nil {
			_, _ = conn.Exec(ctx, "SELECT confirm($1, '')", revision)
		}
	})
}

// askStandbys writes to the write-ahead log, where nobody reads it.
const askStandbys = "SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN pg_logical_emit_message(true, 'eventsvc', '')::text END"

// askLock is the key of the advisory lock of the session that waits for the standbys.
const askLock int64 = 0x7469_6e67_0003
