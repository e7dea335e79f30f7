package postgres_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
)

// impatient are options whose statements fail soon.
func impatient(dsn, dir string) postgres.Options {
	o := options(dsn, dir)
	o.Timeout = time.Second
	return o
}

// created creates an event, again and again while nothing can be written, and returns its revision.
func created(t testing.TB, db *postgres.DB, name string) (revision uint64) {
	t.Helper()
	waittest.Becomes(t, func() error {
		r, err := store.Create(t.Context(), db, store.Key{Namespace: "a", Name: name}, store.Draft{Value: []byte(name)})
		revision = r.Revision
		return err
	})
	return revision
}

// refused checks that a write ends, and that its client is told that nothing was written.
func refused(t testing.TB, db *postgres.DB) {
	t.Helper()
	name := rand.Text()
	ctx, cancel := waittest.Context(t)
	defer cancel()
	if _, err := store.Create(ctx, db, store.Key{Namespace: "refused", Name: name}, store.Draft{Value: []byte("v")}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a write ends with %v", err)
	}
}

// A primary that hangs is left when a standby was promoted, although its connections stay open. Nothing that it had
// acknowledged is lost.
func TestPausedPrimary(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := service(t, pair.DSN)
	replicas := []*postgres.DB{open(t, impatient(dsn, t.TempDir())), open(t, impatient(dsn, t.TempDir()))}
	before := created(t, replicas[0], "before")
	pair.PausePrimary(t)
	waittest.Becomes(t, func() error {
		if replicas[0].Connected(t.Context()) == nil {
			return errors.New("the tail has not noticed")
		}
		return nil
	})
	pair.Promote(t)
	for i, db := range replicas {
		if after := created(t, db, fmt.Sprintf("after%d", i)); after <= before {
			t.Errorf("revision %d was given out after %d", after, before)
		}
	}
	healthy(t, dsn, replicas...)
	if _, err := store.Read(t.Context(), replicas[1], store.Key{Namespace: "a", Name: "before"}); err != nil {
		t.Error(err)
	}
}

// A server that has become read-only is left, although its connections stay open, and used again when it may be
// written.
func TestReadOnlyPrimary(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := service(t, pair.DSN)
	db := open(t, impatient(dsn, t.TempDir()))
	created(t, db, "before")
	set := func(value string) {
		pgtest.Exec(t, pair.DSN, "ALTER SYSTEM SET default_transaction_read_only = "+value)
		pgtest.Exec(t, pair.DSN, "SELECT pg_reload_conf()")
	}
	set("on")
	waittest.Becomes(t, func() error { // until the server has read its settings
		_, err := store.Create(t.Context(), db, store.Key{Namespace: "a", Name: rand.Text()}, store.Draft{Value: []byte("v")})
		if !errors.Is(err, store.ErrUnavailable) || db.Connected(t.Context()) == nil {
			return fmt.Errorf("a read-only server is followed, and a write ends with %w", err)
		}
		return nil
	})
	set("off")
	created(t, db, "after")
	healthy(t, dsn, db)
}

// A lock that somebody holds on the head makes writes fail in time, and nothing of them is written later.
func TestHeldLock(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	dsn := service(t, owner)
	db := open(t, impatient(dsn, t.TempDir()))
	created(t, db, "before")
	conn, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "BEGIN; SELECT FROM eventsvc.head FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	refused(t, db)
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	created(t, db, "after")
	healthy(t, dsn, db)
	if there, _, err := store.Records(t.Context(), db, store.Query{Namespace: "refused"}); err != nil || len(there) > 0 {
		t.Errorf("of writes that were refused there are %d, %v", len(there), err)
	}
}

// A statement that the server cancels, by a time limit of its own, has written nothing: its answer is not lost.
func TestStatementTimeout(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	dsn := service(t, owner)
	o := registered(options(dsn+"&statement_timeout=300", t.TempDir())) // the server's limit ends before that of the service
	db := open(t, o)
	created(t, db, "before")
	const lost, refusals = "store_database_ambiguous_commits_total", "store_database_refused_commits_total"
	before := []float64{metric(t, o, lost), metric(t, o, refusals)} // on a busy machine, of writes that the limit has ended before
	conn, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "BEGIN; SELECT FROM eventsvc.head FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	refused(t, db)
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if l, n := metric(t, o, lost)-before[0], metric(t, o, refusals)-before[1]; l != 0 || n != 1 {
		t.Errorf("%v answers were lost, and %v commits were refused; want 0 and 1", l, n)
	}
	created(t, db, "after")
	healthy(t, dsn, db)
}

// A replica that gets no connection, because others have them all, says so and goes on when there is one.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	dsn := service(t, owner)
	db := open(t, impatient(dsn, t.TempDir()))
	created(t, db, "before")
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	limit := func(n int) { // a superuser gets connections nevertheless
		pgtest.Exec(t, owner, fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", conf.Database, n))
	}
	limit(0)
	pgtest.Exec(t, owner, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'eventsvc_service' AND datname = current_database()")
	waittest.Becomes(t, func() error {
		if db.Connected(t.Context()) == nil {
			return errors.New("the database is followed without a connection")
		}
		return nil
	})
	refused(t, db)
	limit(-1)
	created(t, db, "after")
	healthy(t, dsn, db)
}

// An asynchronous standby that is promoted after its primary was killed has lost commits. Every time that is found, and
// revisions that clients have seen are not given out again.
func TestFailoverThatLoses(t *testing.T) {
	t.Parallel()
	tries := 1
	if *storetest.Long {
		tries = 20
	}
	for try := range tries {
		t.Run(fmt.Sprint(try), func(t *testing.T) {
			pair := pgtest.StartPair(t)
			pair.Asynchronous(t)
			dsn := service(t, pair.DSN)
			replicas := []*postgres.DB{open(t, impatient(dsn, t.TempDir())), open(t, impatient(dsn, t.TempDir()))}
			created(t, replicas[0], "kept")
			pair.Detach(t)
			lost := uint64(0)
			for i := range 1 + try {
				lost = created(t, replicas[0], fmt.Sprintf("lost%d", i))
			}
			pair.KillPrimary(t)
			waittest.Becomes(t, func() error {
				if r, err := postgres.Check(t.Context(), postgres.Access{DSN: dsn}); err != nil || r.Epoch < 2 {
					return fmt.Errorf("the loss is not found: %+v, %w", r, err)
				}
				return nil
			})
			for i, db := range replicas {
				if after := created(t, db, fmt.Sprintf("after%d", i)); after <= lost {
					t.Errorf("revision %d was given out, and is one of those up to %d again", after, lost)
				}
			}
			healthy(t, dsn, replicas...)
			var expired *store.ExpiredError
			if _, err := replicas[0].Watch(t.Context(), store.WatchQuery{After: lost}); !errors.As(err, &expired) {
				t.Errorf("watch after a lost revision: %v", err)
			}
		})
	}
}

// The time of writes never falls, and nothing expires by a clock of the database that is wrong.
func TestDatabaseClockJumps(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	o := options(service(t, owner), t.TempDir())
	o.Copy.Retention = time.Hour
	db := open(t, o)
	clock := func(shows string) {
		pgtest.Exec(t, owner, "CREATE OR REPLACE FUNCTION eventsvc.wall_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()"+shows+"'")
	}
	var last time.Time
	for i, shows := range []string{"", " - interval ''2 days''", " + interval ''2 days''", ""} {
		clock(shows)
		name := fmt.Sprint("jump", i)
		created(t, db, name)
		record, err := store.Read(t.Context(), db, store.Key{Namespace: "a", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if record.Time.Before(last) {
			t.Errorf("%s is of %v, before the one of %v", name, record.Time, last)
		}
		last = record.Time
		waittest.Becomes(t, func() error {
			if !postgres.Keeps(db) {
				return errors.New("it does not clear away")
			}
			return db.Maintain(t.Context())
		})
	}
	records, _, err := store.Records(t.Context(), db, store.Query{})
	if err != nil || len(records) != 4 {
		t.Errorf("%d of 4 events are left, %v", len(records), err)
	}
}
