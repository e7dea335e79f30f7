package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
)

// linear is a replica as the API uses it: a read first makes the copy fresh.
type linear struct{ *postgres.DB }

func (l linear) Get(ctx context.Context, key store.Key, look func(*store.View) error) error {
	if _, err := l.Fresh(ctx); err != nil {
		return err
	}
	return l.DB.Get(ctx, key, look)
}

// R5: clients of different replicas see of one event what they would see of one store.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	dsn := service(t, pgtest.Start(t).Database(t))
	a, b := open(t, options(dsn, t.TempDir())), open(t, options(dsn, t.TempDir()))
	storetest.Linearizable(t, 150, linear{a}, linear{b})
}

// The same, while the server ends connections at any moment. Commits whose answers are lost are looked up.
func TestLinearizableOverLostConnections(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	dsn := service(t, owner)
	a, b := open(t, options(dsn, t.TempDir())), open(t, options(dsn, t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			pgtest.Exec(t, owner, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'eventsvc_service' AND query LIKE '%commit_batch%'
				AND datname = current_database(); SELECT pg_sleep(0.02)`)
		}
	})
	storetest.Linearizable(t, 150, linear{a}, linear{b})
	cancel()
	waittest.Join(t, &wg)
	healthy(t, dsn, a, b)
}

// healthy checks the database, and that the copies have the same events.
func healthy(t testing.TB, dsn string, replicas ...*postgres.DB) {
	t.Helper()
	r, err := postgres.Check(t.Context(), postgres.Access{DSN: dsn})
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("the database: %+v, %v", r, err)
	}
	var first string
	for i, db := range replicas {
		waittest.Becomes(t, func() error { _, err := db.Fresh(t.Context()); return err })
		records, page, err := store.Records(t.Context(), db, store.Query{})
		all := fmt.Sprint(page.Revision, records, err)
		if first == "" {
			first = all
		}
		if all != first || int64(len(records)) != r.Events {
			t.Errorf("replica %d has %d events, not the same ones as the first; the database has %d; %v", i, len(records), r.Events, err)
		}
		if found, err := db.Check(t.Context(), nil); err != nil || len(found.Problems) > 0 {
			t.Errorf("the copy of replica %d: %+v, %v", i, found, err)
		}
	}
}

// R6: a client that watches through one replica and resumes through another gets every change once, in order.
func TestWatchMovesBetweenReplicas(t *testing.T) {
	t.Parallel()
	dsn := service(t, pgtest.Start(t).Database(t))
	replicas := []*postgres.DB{open(t, options(dsn, t.TempDir())), open(t, options(dsn, t.TempDir()))}
	const writes = 600
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range writes {
			if _, err := store.Create(t.Context(), replicas[i%2], store.Key{Namespace: "a", Name: fmt.Sprint(i)}, store.Draft{Value: []byte("v")}); err != nil {
				t.Error(err)
			}
		}
	})
	after := uint64(1)
	for turn := 0; after < writes+1 && !t.Failed(); turn++ {
		db := replicas[turn%2]
		if _, err := db.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, err := db.Watch(t.Context(), store.WatchQuery{After: after})
		if err != nil {
			t.Fatal(err)
		}
		b, err := storetest.Next(t, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Changes {
			if d.Revision != after+1 {
				t.Fatalf("revision %d after %d", d.Revision, after)
			}
			after = d.Revision
		}
		w.Close()
	}
	waittest.Join(t, &wg)
}

// A copy never leaves a record out that the tail has not seen although the head is behind it. PostgreSQL shows that for
// a moment when a commit has attached a partition after a statement was planned, and before it has taken its snapshot.
func TestHeadAheadOfTheLog(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	db := open(t, options(service(t, owner), t.TempDir()))
	seen := created(t, db, "first")
	watcher, err := db.Watch(t.Context(), store.WatchQuery{After: seen})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	pgtest.Exec(t, owner, "UPDATE eventsvc.head SET revision = revision + 1")
	waittest.Becomes(t, func() error {
		if behind := postgres.Behind(db); behind != 1 {
			return fmt.Errorf("the copy is %d revisions behind, want 1", behind)
		}
		return nil
	})
	if at := db.Revision(); at != seen {
		t.Fatalf("the copy is at revision %d without its record", at)
	}
	pgtest.Exec(t, owner, fmt.Sprintf("INSERT INTO eventsvc.log VALUES (%[1]d, 1, 'a', 'late', 0, now(), '', 'x'); INSERT INTO eventsvc.objects VALUES ('a', 'late', %[1]d)", seen+1))
	b, err := storetest.Next(t, watcher)
	if err != nil || len(b.Changes) != 1 || b.Changes[0].Revision != seen+1 || b.Changes[0].Type != store.Added {
		t.Errorf("told of the record: %+v, %v", b, err)
	}
}

// A replica that starts empty catches up, also with a log whose history was removed in part, and one that was away for
// longer than the history makes its copy again.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	dsn := service(t, owner)
	away, dir := options(dsn, t.TempDir()), t.TempDir()
	first := open(t, options(dsn, dir))
	for i := range 200 {
		key := store.Key{Namespace: "a", Name: fmt.Sprint(i % 50)}
		if i == 100 {
			open(t, away).Close()
		}
		if _, err := first.Update(t.Context(), key, store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: store.Draft{Value: []byte(fmt.Sprint(i))}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		if _, err := first.Update(t.Context(), store.Key{Namespace: "a", Name: fmt.Sprint(i)}, store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Delete}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Exec(t, owner, "SET search_path = eventsvc; SELECT remove_history(210, 1000000)")
	removed := uint64(210)
	filling, err := postgres.Open(t.Context(), options(dsn, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer filling.Close()
	ctx, cancel := waittest.Context(t)
	defer cancel()
	for expired := new(store.ExpiredError); !errors.As(err, &expired); { // at no time does the copy seem to hold what was removed
		if _, err = filling.Watch(ctx, store.WatchQuery{After: 2}); err == nil || ctx.Err() != nil {
			t.Fatalf("a watch after a revision that was removed: %v", err)
		}
	}
	back, empty := open(t, away), open(t, options(dsn, t.TempDir()))
	healthy(t, dsn, first, back, empty)
	for i, db := range []*postgres.DB{back, empty} {
		var expired *store.ExpiredError
		if _, err := db.Watch(t.Context(), store.WatchQuery{After: removed - 1}); !errors.As(err, &expired) || expired.Oldest != removed {
			t.Errorf("replica %d: watch after a revision that was removed: %v", i, err)
		}
		w, err := db.Watch(t.Context(), store.WatchQuery{After: removed})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := storetest.Next(t, w); err != nil || b.Changes[0].Revision != removed+1 || b.Changes[0].Type != store.Removed {
			t.Errorf("replica %d: watch after the oldest revision: %+v, %v", i, b, err)
		}
	}
}

// loseAfter makes the database what a server has that is promoted without the last commits.
func loseAfter(t *testing.T, owner string, kept uint64) {
	t.Helper()
	pgtest.Exec(t, owner, fmt.Sprintf(`
		BEGIN;
		UPDATE eventsvc.head SET revision = %[1]d, time = (SELECT time FROM eventsvc.log WHERE revision = %[1]d);
		DELETE FROM eventsvc.objects WHERE revision > %[1]d; DELETE FROM eventsvc.log WHERE revision > %[1]d; DELETE FROM eventsvc.writer;
		COMMIT;
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'eventsvc_service' AND datname = current_database()`, kept))
}

// A failover that has lost commits is found: what was lost is not served, revisions that clients have seen are never
// given out again, and clients list again.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	tries := 4
	if *storetest.Long {
		tries = 20
	}
	for try := range tries {
		owner := server.Database(t)
		dsn := service(t, owner)
		saw, other := open(t, options(dsn, t.TempDir())), open(t, options(dsn, t.TempDir()))
		var last store.Record
		create := func(db *postgres.DB, name string) {
			t.Helper()
			waittest.Becomes(t, func() (err error) {
				last, err = store.Create(t.Context(), db, store.Key{Namespace: "a", Name: name}, store.Draft{Value: []byte(name)})
				return err
			})
		}
		create(saw, "kept")
		kept := last.Revision
		if _, err := other.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if try%2 == 0 { // the other one has seen nothing of it
			other.Close()
		}
		for i := range 1 + try {
			create(saw, fmt.Sprintf("lost%d", i))
		}
		lost := last.Revision
		loseAfter(t, owner, kept)
		if try%2 == 0 {
			other = open(t, options(dsn, t.TempDir()))
		}
		if try%4 < 2 { // revisions that were lost are given out again, before the loss is found
			create(other, "new")
		}
		waittest.Becomes(t, func() error {
			if r, err := postgres.Check(t.Context(), postgres.Access{DSN: dsn}); err != nil || r.Epoch != 2 {
				return fmt.Errorf("try %d: the loss is not found: %+v, %w", try, r, err)
			}
			return nil
		})
		create(other, "after")
		if last.Revision <= lost {
			t.Errorf("try %d: revision %d was given out, and is one of those up to %d again", try, last.Revision, lost)
		}
		healthy(t, dsn, saw, other)
		for _, db := range []*postgres.DB{saw, other} {
			if _, err := store.Read(t.Context(), db, store.Key{Namespace: "a", Name: "lost0"}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("try %d: a lost event is served: %v", try, err)
			}
			var expired *store.ExpiredError
			if _, err := db.Watch(t.Context(), store.WatchQuery{After: lost}); !errors.As(err, &expired) {
				t.Errorf("try %d: watch after a lost revision: %v", try, err)
			}
		}
		saw.Close()
		other.Close()
	}
}

// Every replica that has seen lost commits says up to which revision they went, and which the database has of those,
// also if another one has begun a new epoch before.
func TestLossIsNamed(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	dsn := service(t, owner)
	var said [2]logs
	var replicas []*postgres.DB
	for i := range said {
		o := options(dsn, t.TempDir())
		o.Copy.Log = slog.New(slog.NewJSONHandler(&said[i], nil))
		replicas = append(replicas, open(t, o))
	}
	kept := created(t, replicas[0], "kept")
	created(t, replicas[0], "lost")
	lost := created(t, replicas[0], "lost too")
	if _, err := replicas[1].Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	loseAfter(t, owner, kept)
	for i := range said {
		waittest.Becomes(t, func() error {
			if want := fmt.Sprintf(`"revision":%d,"database":%d,`, lost, kept); !strings.Contains(said[i].String(), want) {
				return fmt.Errorf("replica %d does not say %s:\n%s", i, want, &said[i])
			}
			return nil
		})
	}
	healthy(t, dsn, replicas...)
}

// While clients write, the database loses its newest commits. No revision that was acknowledged is given to another
// event, from the first write after the loss on.
func TestLostCommitsUnderLoad(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	dsn := service(t, owner)
	db := open(t, options(dsn, t.TempDir()))
	var mu sync.Mutex
	acknowledged := map[uint64]string{}
	var writers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer waittest.Join(t, &writers)
	defer stop()
	for writer := range 8 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%d-%d", writer, i)
				r, err := store.Create(context.WithoutCancel(ctx), db, store.Key{Namespace: "a", Name: name}, store.Draft{Value: []byte(name)})
				switch {
				case errors.Is(err, store.ErrUnavailable):
					<-time.After(time.Millisecond) // as a client does that is told to come back
				case err != nil:
					t.Errorf("create: %v", err)
				default:
					mu.Lock()
					if before, twice := acknowledged[r.Revision]; twice {
						t.Errorf("revision %d was given to %s, and to %s", r.Revision, before, name)
					}
					acknowledged[r.Revision] = name
					mu.Unlock()
				}
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(acknowledged) }
	for epoch := uint64(2); epoch < 7; epoch++ {
		from := count()
		waittest.Becomes(t, func() error {
			if n := count() - from; n < 60 {
				return fmt.Errorf("%d writes are acknowledged", n)
			}
			return nil
		})
		pgtest.Exec(t, owner, `DO $$ DECLARE kept bigint; BEGIN
			SELECT revision - 40 INTO kept FROM eventsvc.head FOR UPDATE;
			UPDATE eventsvc.head SET revision = kept;
			DELETE FROM eventsvc.objects WHERE revision > kept; DELETE FROM eventsvc.log WHERE revision > kept; DELETE FROM eventsvc.writer;
		END $$`)
		waittest.Becomes(t, func() error {
			if r, err := postgres.Check(t.Context(), postgres.Access{DSN: dsn}); err != nil || r.Epoch != epoch {
				return errors.Join(err, fmt.Errorf("%+v; want epoch %d", r, epoch))
			}
			return db.Ready(t.Context())
		})
	}
	stop()
	waittest.Join(t, &writers)
	healthy(t, dsn, db)
}

// registered returns options with metrics of their own.
func registered(o postgres.Options) postgres.Options {
	o.Copy.Registry = prometheus.NewRegistry()
	return o
}

// losses returns how often a replica has found that the database lacks what it has seen.
func losses(t *testing.T, o postgres.Options) float64 {
	t.Helper()
	return metric(t, o, "store_database_lost_commits_total")
}

// metric returns the value of a counter or a gauge.
func metric(t *testing.T, o postgres.Options, name string) float64 {
	t.Helper()
	families, err := o.Copy.Registry.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// A replica that comes back when another one has found the loss, and has removed the history since, finds it too.
func TestLostCommitsRemoved(t *testing.T) {
	t.Parallel()
	owner := pgtest.Start(t).Database(t)
	dsn := service(t, owner)
	late, other := registered(options(dsn, t.TempDir())), registered(options(dsn, t.TempDir()))
	away, found := open(t, late), open(t, other)
	kept := created(t, away, "kept")
	lost := created(t, away, "lost")
	if _, err := found.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	loseAfter(t, owner, kept)
	waittest.Becomes(t, func() error {
		if n := losses(t, other); n != 1 {
			return fmt.Errorf("the loss was found %v times", n)
		}
		return found.Ready(t.Context())
	})
	if err := found.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	created(t, found, "after")
	late = registered(late)
	back := open(t, late)
	healthy(t, dsn, back, found)
	if n := losses(t, late); n != 1 {
		t.Errorf("the replica that came back has found the loss %v times", n)
	}
	var expired *store.ExpiredError
	if _, err := back.Watch(t.Context(), store.WatchQuery{After: lost}); !errors.As(err, &expired) {
		t.Errorf("watch after a lost revision: %v", err)
	}
}

// What a replica commits while its copy is compared with the database is not taken for a loss.
func TestCompareUnderLoad(t *testing.T) {
	t.Parallel()
	dsn := service(t, pgtest.Start(t).Database(t))
	db := open(t, options(dsn, t.TempDir()))
	each := 60
	if *storetest.Long {
		each = 250
	}
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for i := range each {
				postgres.Doubt(db)
				created(t, db, fmt.Sprintf("%d-%d", writer, i))
			}
		})
	}
	writers.Wait()
	healthy(t, dsn, db)
	if r, err := postgres.Check(t.Context(), postgres.Access{DSN: dsn}); err != nil || r.Epoch != 1 {
		t.Errorf("%+v, %v; want epoch 1, because nothing was lost", r, err)
	}
}

// One replica clears away what is past its time, from the database and from the copies of all. When it ends, another
// one goes on.
func TestRetentionOverReplicas(t *testing.T) {
	t.Parallel()
	dsn := service(t, pgtest.Start(t).Database(t))
	var all []*postgres.DB
	for range 2 {
		o := options(dsn, t.TempDir())
		o.Copy.Retention, o.Copy.History = time.Second, time.Second
		postgres.KeepEvery(&o, 200*time.Millisecond)
		all = append(all, open(t, o))
	}
	keeper := func() (db *postgres.DB) {
		t.Helper()
		waittest.Becomes(t, func() error {
			held := 0
			for _, one := range all {
				if postgres.Keeps(one) {
					db, held = one, held+1
				}
			}
			if held != 1 {
				return fmt.Errorf("%d replicas clear away", held)
			}
			return nil
		})
		return db
	}
	for len(all) > 0 {
		name := fmt.Sprint("of ", len(all))
		first := created(t, all[0], name)
		waittest.Becomes(t, func() error {
			for _, db := range all {
				if err := db.Maintain(t.Context()); err != nil {
					return err
				}
			}
			r, err := postgres.Check(t.Context(), postgres.Access{DSN: dsn})
			if err == nil && r.Records > 0 {
				err = fmt.Errorf("the database still has %+v", r)
			}
			return err
		})
		for _, db := range all {
			if _, err := store.Read(t.Context(), db, store.Key{Namespace: "a", Name: name}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("an event that is past its time: %v", err)
			}
			var expired *store.ExpiredError
			if _, err := db.Watch(t.Context(), store.WatchQuery{After: first - 1}); !errors.As(err, &expired) {
				t.Errorf("a watch of history that is past its time: %v", err)
			}
		}
		gone := keeper()
		healthy(t, dsn, all...)
		gone.Close()
		all = slices.DeleteFunc(all, func(db *postgres.DB) bool { return db == gone })
	}
}

// The server does not compile plans, which takes it longer than a watch at another replica should wait.
func TestPlansAreNotCompiled(t *testing.T) {
	t.Parallel()
	dsn := service(t, pgtest.Start(t).Database(t))
	for _, more := range []string{"", "&jit=on"} {
		db := open(t, options(dsn+more, t.TempDir()))
		if value, err := postgres.Setting(t.Context(), db, "jit"); err != nil || value != "off" {
			t.Errorf("%q: jit is %q, %v", more, value, err)
		}
	}
}

// A replica looks for the primary, even if its DSN asks for a standby.
func TestStandbyInDSN(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := service(t, pair.DSN)
	for _, kind := range []string{"standby", "prefer-standby", "read-only", "primary", "any"} {
		t.Run(kind, func(t *testing.T) {
			created(t, open(t, options(dsn+"&target_session_attrs="+kind, t.TempDir())), kind)
		})
	}
}
