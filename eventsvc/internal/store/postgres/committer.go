package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/shared/pgreason"
)

// codeEpoch is the SQLSTATE that commit_batch raises when the epoch is another one.
const codeEpoch = "TD001"

// A committer writes batches, one transaction at a time. While one is under way the next one gathers.
type committer struct {
	db     *DB
	id     uuid.UUID // of this replica, in the table writer
	batch  int64     // number of the last batch
	state  string    // SQLSTATE by which the server refused the last batch; empty if it did not
	epoch  uint64    // in which the last batch was sent
	toCopy chan answered
}

// answered is a batch whose answers wait for the copy.
type answered struct {
	batch   []*commit.Write
	results []result // of the batch
	epoch   uint64
	at      time.Time
	changes []commit.Replicated // that were written, in order of revision
}

// result is the answer to one write.
type result struct {
	revision uint64
	err      error
}

// A few batches may wait to be brought into the copy. The tail brings the others.
const copyBatches = 16

func newCommitter(db *DB) *committer {
	return &committer{db: db, id: uuid.New(), toCopy: make(chan answered, copyBatches)}
}

// copyWritten brings what this replica has committed into its copy, behind everything that was committed before by
// others, and then answers the writes. The database need not be asked for what it has got from here.
func (c *committer) copyWritten() {
	defer c.db.queue.End()
	for a := range c.toCopy {
		if err := c.applyWritten(&a); err != nil {
			c.db.tail.doubt() // which finds the same, unless the store closes
		}
		c.answer(&a)
	}
}

// answer answers the writes of a batch.
func (c *committer) answer(a *answered) {
	for i, w := range a.batch {
		c.db.queue.Answer(w, a.results[i].revision, a.at, a.results[i].err)
	}
}

// applyWritten brings a batch into the copy.
func (c *committer) applyWritten(a *answered) error {
	db, err := c.db.copy.await(c.db.life.Ctx, a.changes[0].Revision-1)
	if err != nil {
		return err
	}
	return c.db.copy.applyTo(c.db.life.Ctx, db, a.epoch, a.changes)
}

// run commits writes until the store closes, and then refuses what waits.
func (c *committer) run() {
	defer close(c.toCopy)
	for {
		batch := c.db.queue.Take(c.db.life.Ctx.Done())
		if batch == nil {
			c.db.queue.Refuse(store.ErrClosed)
			return
		}
		c.commit(batch)
	}
}

// batchResult is what became of a batch.
type batchResult struct {
	revisions []int64 // of its writes; 0: refused
	head      uint64  // the newest revision then
	at        time.Time
}

// commit stores the writes of a batch that can be stored together, and has all of them answered.
func (c *committer) commit(batch []*commit.Write) {
	start := time.Now()
	accepted, places := c.choose(batch)
	var o batchResult
	var err error
	if len(accepted) > 0 {
		o, err = c.send(accepted)
	}
	c.db.metrics.committed(len(batch), time.Since(start))
	a := answered{batch: batch, results: make([]result, len(batch)), epoch: c.epoch, at: o.at}
	for i, w := range batch {
		a.results[i].err = cmp.Or(w.Err, err, error(&conflict{o.head}))
	}
	for i, revision := range o.revisions {
		if w := accepted[i]; revision > 0 {
			a.results[places[i]] = result{revision: uint64(revision)}
			a.changes = append(a.changes, commit.Replicated{Revision: uint64(revision), Kind: w.Kind, Key: w.Key, Time: o.at, Draft: w.Draft})
		}
	}
	if len(a.changes) == 0 { // a refusal does not wait for the copy, which may wait for a database that is away
		c.answer(&a)
		return
	}
	select {
	case c.toCopy <- a:
	default:
		c.answer(&a)
	}
}

// choose returns the writes that are sent to the database, and their places in the batch: those whose caller waits
// still, one for each event. The others of an event have not seen the one before them, so they are conflicts.
func (c *committer) choose(batch []*commit.Write) (accepted []*commit.Write, places []int) {
	full := between(c.db, c.db.copy.now().Room(c.db.life.Ctx))
	keys := make(map[store.Key]bool, len(batch))
	for i, w := range batch {
		switch err := w.Ctx.Err(); {
		case err != nil:
			w.Err = err
		case full != nil && w.Kind != seglog.Deleted:
			w.Err = full
		case !keys[w.Key]:
			keys[w.Key] = true
			accepted, places = append(accepted, w), append(places, i)
		}
	}
	return accepted, places
}

// tries is how often a batch is sent. It is sent again only when it is known that it was not written, and that it never
// will be: for instance after the server was restarted, where every connection of the pool has to fail once.
const tries = 2 * minConnections

// send commits writes, and finds out what became of them. Unless the store closes
// meanwhile, an error says that nothing was written.
func (c *committer) send(writes []*commit.Write) (o batchResult, err error) {
	for range tries {
		c.batch++
		o, err = c.transact(writes)
		if err == nil {
			c.state = ""
			c.db.confirmer.committed(o.head)
			return o, nil
		}
		if !ambiguous(err) {
			break
		}
		c.db.o.Copy.Log.Warn("the answer to a commit was lost; asking what became of it", "error", pgreason.Of(err))
		c.db.metrics.ambiguous.Inc()
		var written bool
		if o, written = c.resolve(writes); written {
			c.db.confirmer.committed(o.head)
			return o, nil
		}
		if slices.ContainsFunc(writes, func(w *commit.Write) bool { return w.Ctx.Err() != nil }) {
			break // its caller was told that nobody knows
		}
	}
	if errors.Is(err, errOther) || code(err) == codeEpoch {
		c.db.tail.doubt()
	}
	c.db.tail.leave(err)
	c.refused(err)
	return batchResult{}, c.db.unavailable(err)
}

// refused counts a batch that was not written. What the server says is logged when it is not what it said of the batch
// before; that the server is away is logged by the tail.
func (c *committer) refused(err error) {
	c.db.metrics.refused.Inc()
	if state := code(err); state != c.state {
		c.state = state
		if state != "" {
			c.db.o.Copy.Log.Error("the database refuses commits", "error", pgreason.Of(err))
		}
	}
}

// ambiguous reports whether a batch may have been committed although its commit has failed with an error.
func ambiguous(err error) bool {
	if pgconn.SafeToRetry(err) || errors.Is(err, errConnect) || errors.Is(err, errOther) {
		return false
	}
	// The server says what it did, but for a connection that it ends: the commit may wait for a standby at that time. A
	// statement that is cancelled has written nothing: the end of such a wait is told by a warning.
	state := code(err)
	return state == "" || state[:2] == "08" || state[:2] == "57" && state != "57014"
}

// errConnect says that there was no connection to send anything on.
var errConnect = errors.New("no connection")

// errOther says that the database is not the one that the copy follows: its epoch is another one, or it lacks commits
// that the copy has.
var errOther = errors.New("the database does not have what this replica has seen; it is compared with the copy first")

// commitBatch runs commit_batch if the database has everything that the copy has. After a failover that has lost
// commits, the server would give the revisions of the lost ones to other events, although clients know them. The row of
// the head is locked first, so the answer holds until the commit. A server that was promoted after commits that waited
// for no standby may have lost some that no replica here has seen: it commits when a gap in the revisions is made. The
// function takes the epoch from that row, so it is not called without it.
const commitBatch = `
	SELECT b.revisions, b.head_revision, b.stamp
	FROM (SELECT epoch FROM head WHERE epoch = $1 AND revision >= $10 AND (synchronous OR timeline = timeline()) FOR UPDATE) h,
		LATERAL commit_batch(h.epoch, $2, $3, $4, $5, $6, $7, $8, $9) b`

// transact runs one transaction.
func (c *committer) transact(writes []*commit.Write) (o batchResult, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.db.o.timeout()) // also for what waits when the store closes
	defer cancel()
	conn, err := c.db.pool.Acquire(ctx)
	if err != nil {
		return o, fmt.Errorf("%w: %w", errConnect, pgreason.Of(err))
	}
	defer conn.Release()
	n := len(writes)
	ops, seen := make([]int16, n), make([]int64, n)
	namespaces, names := make([]string, n), make([]string, n)
	attributes, values := make(pgtype.FlatArray[[]byte], n), make(pgtype.FlatArray[[]byte], n) // [][]byte would be read by reflection
	for i, w := range writes {
		ops[i], seen[i] = int16(w.Kind), int64(w.Seen.Revision)
		namespaces[i], names[i] = w.Key.Namespace, w.Key.Name
		attributes[i], values[i] = notNil(w.Draft.Attributes), notNil(w.Draft.Value)
	}
	// The revision of the copy is read when there is a connection: what the copy gets while one is sought, another
	// server may lack.
	c.epoch = c.db.tail.epoch.Load()
	err = unwarned(conn.Conn(), func() error {
		return conn.QueryRow(ctx, commitBatch,
			int64(c.epoch), c.id, c.batch, ops, namespaces, names, seen, attributes, values, int64(c.db.Revision())).
			Scan(&o.revisions, &o.head, &o.at)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = errOther
	}
	return o, err
}

// notNil returns b, which pgx would send as NULL if it were nil.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// resolveEvery is the time between two attempts to ask what became of a batch.
const resolveEvery = 100 * time.Millisecond

// resolve asks what became of the last batch, until the database answers or the store closes. Meanwhile it refuses
// other writes, which have not been sent. A batch that was not written then never will be. False also means that the
// store closes: to send the batch again does no harm, because each write names the version that it follows.
func (c *committer) resolve(writes []*commit.Write) (o batchResult, written bool) {
	for {
		o, written, err := c.ask(writes)
		if err == nil {
			return o, written
		}
		c.db.tail.leave(err)
		c.db.queue.Refuse(c.db.unavailable(err))
		select {
		case <-time.After(resolveEvery):
		case <-c.db.life.Ctx.Done():
			return batchResult{}, false
		}
	}
}

// ask asks once. The question is a commit too: when it is answered without a warning, the standbys have what it was
// asked for.
func (c *committer) ask(writes []*commit.Write) (o batchResult, written bool, err error) {
	ctx, cancel := context.WithTimeout(c.db.life.Ctx, c.db.o.timeout())
	defer cancel()
	conn, err := c.db.pool.Acquire(ctx)
	if err != nil {
		return o, false, err
	}
	defer conn.Release()
	var first, last int64
	err = unwarned(conn.Conn(), func() error {
		return conn.QueryRow(ctx, "SELECT first, last, head_revision FROM resolve_batch($1, $2)", c.id, c.batch).Scan(&first, &last, &o.head)
	})
	if err != nil || first > last && last == 0 {
		return o, false, err
	}
	rows, err := conn.Query(ctx, "SELECT namespace, name, revision, time FROM log WHERE revision BETWEEN $1 AND $2", first, last)
	if err != nil {
		return o, false, err
	}
	made := map[store.Key]int64{}
	var key store.Key
	var revision int64
	_, err = pgx.ForEachRow(rows, []any{&key.Namespace, &key.Name, &revision, &o.at}, func() error {
		made[key] = revision
		return nil
	})
	for _, w := range writes {
		o.revisions = append(o.revisions, made[w.Key])
	}
	return o, err == nil, err
}
