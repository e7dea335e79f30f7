package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/shared/pgreason"
)

// The tail looks for new records whenever a commit notifies it, and every lookEvery besides. It reads at most
// readRecords in one statement, and stores them when there are storeRecords or storeBytes of them.
const (
	lookEvery    = 100 * time.Millisecond
	retryEvery   = 250 * time.Millisecond
	readRecords  = 16384
	storeRecords = 2048
	storeBytes   = 8 << 20
)

// A tail brings the records of the log into the copy.
type tail struct {
	db       *DB
	doubts   chan struct{} // told to look at the database again
	epoch    atomic.Uint64 // that the copy is of
	caughtUp atomic.Bool   // the copy had every record once since it was opened or remade
	behind   atomic.Uint64 // revisions that the copy lacked when the tail looked last
	current  atomic.Int64  // when the copy last had every record, in nanoseconds after began
	began    time.Time
	failure  atomic.Pointer[error] // why the database cannot be read, nil if it can
	standby  atomic.Bool           // commits wait for a synchronous standby
	standbys atomic.Pointer[standbys]
	looked   time.Time // when the standbys were last asked for; only run uses it
	known    bool      // the schema was found to be this program's; only run uses it
	told     time.Time // when progress was last logged; only run uses it
	waiting  uint64    // a revision that was not confirmed when it was read; only run uses it
	since    time.Time // when that was; only run uses it
}

func newTail(db *DB) *tail {
	t := &tail{db: db, doubts: make(chan struct{}, 1), began: time.Now()}
	t.epoch.Store(db.copy.belongs().Epoch)
	t.standbys.Store(&standbys{})
	return t
}

// age returns how long ago the copy last had every record.
func (t *tail) age() time.Duration { return time.Since(t.began) - time.Duration(t.current.Load()) }

// failed returns why the database cannot be read, nil if it can.
func (t *tail) failed() error {
	if p := t.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// doubt has the tail compare copy and database, as after a lost connection.
func (t *tail) doubt() {
	select {
	case t.doubts <- struct{}{}:
	default:
	}
}

// leave drops all connections if their server is not the primary any more, so that the primary is looked for again.
func (t *tail) leave(err error) {
	if suspect(err) {
		t.db.pool.Reset()
		t.doubt()
	}
}

// run follows the database until the store closes.
func (t *tail) run() {
	log := t.db.o.Copy.Log
	for t.db.life.Ctx.Err() == nil {
		err := t.follow(t.db.life.Ctx)
		if t.db.life.Ctx.Err() != nil {
			return
		}
		if errors.Is(err, errDoubt) {
			continue
		}
		t.db.pool.Reset() // the other connections are likely to be broken too: a batch sent over one would have to be looked up
		err = pgreason.Of(err)
		t.standbys.Store(&standbys{})
		if t.failure.Swap(&err) == nil {
			log.Error("the database cannot be followed; trying until it can", "error", err)
		}
		select {
		case <-time.After(retryEvery):
		case <-t.db.life.Ctx.Done():
		}
	}
}

// errHung ends a connection whose server does not go on.
var errHung = errors.New("the database has sent nothing for the time of a statement")

// errDoubt ends a connection because the database may not be what it was.
var errDoubt = errors.New("the state of the database is in doubt")

// follow brings records into the copy over one connection, until that fails.
func (t *tail) follow(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, t.db.o.timeout())
	conn, err := t.db.pool.Acquire(within)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Release()
	defer end(ctx, conn.Conn()) // which ends the subscription
	if err := t.complete(ctx, conn.Conn()); err != nil {
		return err
	}
	if t.failure.Swap(nil) != nil {
		t.db.o.Copy.Log.Info("the database is followed again")
	}
	for {
		more, err := t.read(ctx, conn.Conn(), false)
		if err != nil {
			return t.broken(err)
		}
		if more {
			continue
		}
		select {
		case <-t.doubts:
			return errDoubt
		default:
		}
		if time.Since(t.looked) > lookAtStandbys {
			if err := t.look(ctx, conn.Conn()); err != nil {
				return err
			}
		}
		if err := t.wait(ctx, conn.Conn()); err != nil {
			return err
		}
	}
}

// complete subscribes, and has the copy whole.
func (t *tail) complete(ctx context.Context, conn *pgx.Conn) error {
	if t.db.copy.lacking { // as on a full disk
		if err := t.remake(); err != nil {
			return err
		}
	}
	if err := t.begin(ctx, conn); err != nil {
		return err
	}
	if t.db.copy.belongs().Filling {
		if err := t.fill(ctx, conn); err != nil {
			return t.broken(err)
		}
	}
	return nil
}

// begin subscribes to what others commit, and compares the copy with the database.
func (t *tail) begin(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, t.db.o.timeout())
	defer cancel()
	if _, err := conn.Exec(ctx, "LISTEN eventsvc_log"); err != nil {
		return err
	}
	if err := t.identify(ctx, conn); err != nil {
		return err
	}
	return t.verify(ctx, conn)
}

// wait waits until another replica has committed something, or for lookEvery.
func (t *tail) wait(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	own := t.db.committer.id.String()
	for {
		n, err := conn.WaitForNotification(ctx)
		switch {
		case err == nil && n.Payload == own: // the copy gets it without the tail
		case err == nil:
			return drain(conn)
		case pgconn.Timeout(err):
			return nil
		default:
			return err
		}
	}
}

// drain drops the notifications that have come already: one read serves all of them.
func drain(conn *pgx.Conn) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		switch _, err := conn.WaitForNotification(ended); {
		case errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return err
		}
	}
}

// broken remakes a copy that the log does not continue, or that cannot be read.
func (t *tail) broken(err error) error {
	damaged := new(store.CorruptError)
	if !errors.As(err, &damaged) {
		return err
	}
	t.db.o.Copy.Log.Error("the copy cannot be continued, and is made again from the database", "error", err)
	return errors.Join(err, t.remake())
}

// remake begins with an empty copy.
func (t *tail) remake() error {
	t.caughtUp.Store(false)
	return t.db.copy.remake()
}

// selectTail reads the head with the records after a revision, of one snapshot. There is one row without a record if
// there are none. If commits wait for a standby, records are read up to the newest one that is confirmed.
const selectTail = `
	WITH h AS (
		SELECT head.*, standby, CASE WHEN standby THEN least(head.revision, greatest(confirmed.revision, $1)) ELSE head.revision END AS shown
		FROM head, confirmed, (SELECT current_setting('synchronous_standby_names') <> '' AS standby) s
	)
	SELECT h.epoch, h.revision, h.shown, h.compact_revision, h.removed_revision, h.standby, l.revision, l.op, l.namespace, l.name, l.time, l.attributes, l.value
	FROM h LEFT JOIN LATERAL (
		SELECT * FROM log WHERE log.revision > $1 AND log.revision <= h.shown ORDER BY log.revision LIMIT $2
	) l ON true
	ORDER BY l.revision`

// read brings the next records into the copy, and reports whether there are more.
func (t *tail) read(ctx context.Context, conn *pgx.Conn, filling bool) (more bool, err error) {
	from, asked := t.db.Revision(), time.Since(t.began)
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hung := time.AfterFunc(t.db.o.timeout(), func() { cancel(errHung) })
	defer func() {
		if hung.Stop(); errors.Is(context.Cause(asking), errHung) {
			err = errHung
		}
	}()
	rows, err := conn.Query(asking, selectTail, from, readRecords)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	p := &part{tail: t, from: from, at: from, filling: filling}
	n := 0
	for rows.Next() {
		var revision *uint64
		var op *int16
		var namespace, name *string
		var at *time.Time
		var d store.Draft
		if err := rows.Scan(&p.head.Epoch, &p.head.Revision, &p.shown, &p.compact, &p.head.Removed, &p.head.Standby, &revision, &op, &namespace, &name, &at, &d.Attributes, &d.Value); err != nil {
			return false, err
		}
		if err := p.continues(); err != nil {
			return false, err
		}
		if revision == nil {
			break
		}
		n++
		hung.Stop() // the copy takes its time
		err := p.add(ctx, commit.Replicated{
			Revision: *revision, Kind: seglog.Kind(*op), Key: store.Key{Namespace: *namespace, Name: *name}, Time: *at, Draft: d,
		}, len(d.Value))
		if err != nil {
			return false, err
		}
		hung.Reset(t.db.o.timeout())
	}
	hung.Stop()
	if err := rows.Err(); err != nil {
		return false, err
	}
	return t.finish(ctx, p, n, asked)
}

// finish ends a read of n records, and reports whether there are more.
func (t *tail) finish(ctx context.Context, p *part, n int, asked time.Duration) (more bool, err error) {
	err = p.store(ctx)
	if err == nil && n < readRecords && !p.lacks() {
		return false, t.reached(ctx, p, asked)
	}
	t.behind.Store(p.head.Revision - min(p.head.Revision, p.at))
	if err == nil && n == 0 && p.filling {
		err = fmt.Errorf("the log of the database lacks the revisions from %d to %d", p.at+1, p.shown)
	}
	return n > 0 || err != nil, err
}

// fill reads the whole log into an empty copy, in one snapshot: what is removed meanwhile would be missing at one place
// and not at another.
func (t *tail) fill(ctx context.Context, conn *pgx.Conn) error {
	if t.db.Revision() != emptyRevision { // the process ended while it filled the copy
		if err := t.remake(); err != nil {
			return err
		}
	}
	removed, err := t.snapshot(ctx, conn)
	if err != nil {
		return err
	}
	for more := true; more; {
		if more, err = t.read(ctx, conn, true); err != nil {
			return err
		}
		t.tell()
	}
	within, cancel := context.WithTimeout(ctx, t.db.o.timeout())
	defer cancel()
	if _, err := conn.Exec(within, "COMMIT"); err != nil {
		return err
	}
	if err := t.db.copy.now().Follow().GiveUp(ctx, removed); err != nil {
		return err
	}
	m := t.db.copy.belongs()
	m.Filling = false
	return t.db.copy.follow(m)
}

// snapshot begins a transaction that sees one state of the database, and returns up to which revision history is
// removed there.
func (t *tail) snapshot(ctx context.Context, conn *pgx.Conn) (removed uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.db.o.timeout())
	defer cancel()
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, "SELECT removed_revision FROM head").Scan(&removed)
	return removed, err
}

// emptyRevision is the revision of a store without any write.
const emptyRevision = 1

// tellEvery is how often the progress of a copy that is being filled is logged.
const tellEvery = 5 * time.Second

// tell logs how far the copy has come, now and then.
func (t *tail) tell() {
	if time.Since(t.told) < tellEvery {
		return
	}
	t.told = time.Now()
	t.db.o.Copy.Log.Info("filling the copy from the database", "revision", t.db.Revision(), "behind", t.behind.Load())
}

// reached ends a read that has come to the end of the log.
func (t *tail) reached(ctx context.Context, p *part, asked time.Duration) error {
	if err := p.end(ctx); err != nil {
		return err
	}
	t.behind.Store(p.head.Revision - p.at)
	t.standby.Store(p.head.Standby)
	if p.head.Revision == p.at {
		t.current.Store(int64(asked))
	}
	t.confirm(p)
	if !p.filling && !t.caughtUp.Swap(true) {
		t.db.o.Copy.Log.Info("the copy has caught up with the database", "revision", p.at)
	}
	return nil
}

// confirm asks the standbys for a revision that is not confirmed for some time: its replica has ended, or its wait was
// cancelled.
func (t *tail) confirm(p *part) {
	if t.waiting <= p.shown { // not the same as before
		t.waiting, t.since = p.head.Revision, time.Now()
	}
	if t.waiting > p.shown && time.Since(t.since) > askAfter {
		t.db.confirmer.ask(p.head.Revision)
	}
}

// A part is what is read of the log in one statement.
type part struct {
	*tail
	head    head
	shown   uint64 // what is newer is not read yet, because a failover may lose it
	compact uint64 // states before it cannot be read any more; revisions above it all have a record
	from    uint64 // the revision of the copy before
	at      uint64 // the copy has, or changes have, everything up to this revision
	filling bool   // the copy began with nothing, and everything is read in one snapshot
	changes []commit.Replicated
	bytes   int
}

// continues checks that the copy can be continued with the records that were read.
func (p *part) continues() error {
	switch {
	case p.head.Epoch != p.epoch.Load(), p.head.Revision < p.from:
		return errDoubt
	case p.from < p.head.Removed && !p.filling:
		return &store.CorruptError{Revision: p.from, Reason: fmt.Sprintf("the database has removed history up to revision %d since", p.head.Removed)}
	}
	return nil
}

// add takes a record. Revisions without a record were left out on purpose, so the copy leaves them out too, unless the
// record was removed with its history.
func (p *part) add(ctx context.Context, r commit.Replicated, bytes int) error {
	if r.Revision > p.at+1 && r.Revision-1 > p.head.Removed {
		if err := p.store(ctx); err != nil {
			return err
		}
		if err := p.skip(ctx, r.Revision-1); err != nil {
			return err
		}
	}
	p.changes, p.at, p.bytes = append(p.changes, r), r.Revision, p.bytes+bytes
	if len(p.changes) < storeRecords && p.bytes < storeBytes {
		return nil
	}
	return p.store(ctx)
}

// store brings what was taken into the copy.
func (p *part) store(ctx context.Context) error {
	if len(p.changes) == 0 {
		return nil
	}
	err := p.db.copy.apply(ctx, p.changes)
	p.changes, p.bytes = p.changes[:0], 0
	return err
}

// skip leaves out revisions, with all states before them.
func (p *part) skip(ctx context.Context, revision uint64) error {
	p.at = revision
	return p.db.copy.change(func(db *bolt.DB) error { return db.Follow().SkipTo(ctx, revision) })
}

// lacks reports whether there are records before the head that were not read. PostgreSQL plans a statement before it
// takes the snapshot. A partition that a commit attaches in between is not in the plan, although the head is already
// the commit's.
func (p *part) lacks() bool {
	if p.compact > p.shown {
		return p.shown > p.at
	}
	return p.shown > max(p.at, p.compact)
}

// end brings the copy to the revision that is shown. What is between was left out on purpose.
func (p *part) end(ctx context.Context) error {
	if p.shown > p.at {
		return p.skip(ctx, p.shown)
	}
	return nil
}
