package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
)

// identify refuses a database that is not the one of the copy, and at first one whose schema is not this program's. A
// schema that is upgraded later is one that this program can stand.
func (t *tail) identify(ctx context.Context, db querier) error {
	if !t.known {
		s, err := readSchema(ctx, db)
		if err != nil {
			return err
		}
		if err := s.Usable(); err != nil {
			return &RefusedError{err.Error()}
		}
		t.known = true
	}
	h, err := readHead(ctx, db)
	if err != nil {
		return err
	}
	t.standby.Store(h.Standby)
	switch known := t.db.copy.belongs(); {
	case known.Cluster == "":
		t.epoch.Store(h.Epoch)
		return t.db.copy.follow(mark{Cluster: h.Cluster, Epoch: h.Epoch, Filling: true})
	case known.Cluster != h.Cluster:
		return &RefusedError{fmt.Sprintf("%s is the copy of database %s, but this is database %s: name another data directory, or the other database",
			t.db.o.Copy.Dir, known.Cluster, h.Cluster)}
	}
	return nil
}

// readHead reads the head.
func readHead(ctx context.Context, db querier) (h head, err error) {
	err = db.QueryRow(ctx, "SELECT cluster::text, epoch, revision, removed_revision, current_setting('synchronous_standby_names') <> '', timeline <> timeline() AND NOT synchronous FROM head").
		Scan(&h.Cluster, &h.Epoch, &h.Revision, &h.Removed, &h.Standby, &h.Uncertain)
	return h, err
}

// verify compares the copy with the database. If the copy has commits that the database does not have, a failover has
// lost them: clients have seen these revisions, and the database would give them to other writes.
func (t *tail) verify(ctx context.Context, conn *pgx.Conn) error {
	at := t.db.Revision() // before the head is read, because the copy gets what this replica commits meanwhile
	newest, err := t.db.copy.now().Follow().Newest()
	if err != nil {
		return t.broken(err)
	}
	h, err := readHead(ctx, conn)
	if err != nil {
		return err
	}
	// In another epoch, a record that was removed may have been one that was lost: nobody can tell.
	lost := h.Revision < at || h.Epoch != t.epoch.Load() && newest.Revision <= h.Removed
	if !lost && newest.Revision > h.Removed {
		if lost, err = differs(ctx, conn, newest); err != nil {
			return err
		}
	}
	switch {
	case lost:
		return t.lost(ctx, conn, h)
	case h.Uncertain:
		return t.uncertain(ctx, conn, h)
	}
	return t.enter(h.Epoch)
}

// uncertain begins a new epoch after a failover to a server that the last commits did not wait for: it may lack some
// that only clients and replicas that are away have seen. What the copy has is there.
func (t *tail) uncertain(ctx context.Context, conn *pgx.Conn, h head) error {
	next := bolt.Bumped(h.Revision, t.db.o.now())
	if _, err := conn.Exec(ctx, "SELECT skip_revisions($1, $2, $3)", h.Epoch, next, h.Epoch+1); err != nil {
		return err
	}
	t.db.o.Copy.Log.Warn("a standby was promoted that commits did not wait for, so acknowledged writes may be lost: revisions go on after a gap, and "+
		"clients have to list again", "revision", h.Revision, "next", next)
	return errors.Join(errDoubt, t.enter(h.Epoch+1))
}

// differs reports whether the database has another record under a revision, or none.
func differs(ctx context.Context, db querier, r commit.Replicated) (bool, error) {
	there := commit.Replicated{Revision: r.Revision}
	var op int16
	err := db.QueryRow(ctx, "SELECT op, namespace, name, time, attributes, value FROM log WHERE revision = $1", r.Revision).
		Scan(&op, &there.Key.Namespace, &there.Key.Name, &there.Time, &there.Draft.Attributes, &there.Draft.Value)
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil
	}
	same := there.Key == r.Key && there.Time.Equal(r.Time) && (seglog.Kind(op) == seglog.Deleted) == (r.Kind == seglog.Deleted) &&
		bytes.Equal(there.Draft.Attributes, r.Draft.Attributes) && bytes.Equal(there.Draft.Value, r.Draft.Value)
	return !same, err
}

// enter notes the epoch of a database that the copy continues.
func (t *tail) enter(epoch uint64) error {
	if t.epoch.Load() == epoch {
		return nil
	}
	m := t.db.copy.belongs()
	m.Epoch = epoch
	if err := t.db.copy.follow(m); err != nil {
		return err
	}
	t.epoch.Store(epoch)
	return nil
}

// lost begins a new epoch, unless another replica has, and makes the copy again. The epoch begins with a revision that
// no client knows, and states before it are given up, so that clients list again. An epoch of another replica that
// begins below what this one has shown does not do: there the clock of the other one is behind, and another epoch
// begins.
func (t *tail) lost(ctx context.Context, conn *pgx.Conn, h head) error {
	known, kept := t.db.Revision(), uint64(0)
	if err := conn.QueryRow(ctx, "SELECT coalesce(max(revision), 0) FROM log WHERE revision <= $1", known).Scan(&kept); err != nil {
		return err
	}
	t.db.metrics.lost.Inc()
	t.db.o.Copy.Log.Error("the database has lost writes that were acknowledged: it was restored, or a failover went to a server that did not have "+
		"them; clients have to list again", "revision", known, "database", kept, "epoch", h.Epoch)
	epoch := h.Epoch
	if epoch == t.epoch.Load() || h.Revision < known {
		epoch++
		next := bolt.Bumped(max(h.Revision, known), t.db.o.now())
		if _, err := conn.Exec(ctx, "SELECT skip_revisions($1, $2, $3)", h.Epoch, next, epoch); err != nil {
			return err
		}
	}
	if err := t.remake(); err != nil {
		return err
	}
	return errors.Join(errDoubt, t.enter(epoch))
}

// BumpRevision continues with revisions that no client can know: see [bolt.DB.BumpRevision].
func (db *DB) BumpRevision(ctx context.Context, known uint64) (revision uint64, err error) {
	for done := false; !done; {
		h, err := readHead(ctx, db.pool)
		if err != nil {
			return 0, db.unavailable(err)
		}
		revision = bolt.Bumped(max(h.Revision, known), db.o.now())
		if err := db.pool.QueryRow(ctx, "SELECT done FROM skip_revisions($1, $2, $1)", h.Epoch, revision).Scan(&done); err != nil {
			return 0, db.unavailable(err)
		}
	}
	if _, err := db.copy.await(ctx, revision); err != nil {
		return 0, err
	}
	db.o.Copy.Log.Info("revisions go on after a gap; clients that know older ones have to list again", "revision", revision)
	return revision, nil
}
