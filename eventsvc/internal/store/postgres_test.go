package store_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
)

// The tests wait for servers more than they compute, so more of them run at a time than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil { // -parallel goes before
		panic(err)
	}
	os.Exit(pgtest.Run(m.Run))
}

// postgresEngine runs the contract through one or more replicas, which take turns.
type postgresEngine struct {
	t        testing.TB
	dsn      string
	options  []postgres.Options
	now      func() time.Time
	clock    *pgx.Conn // sets the clock of the database
	replicas *turns
}

func newPostgres(t testing.TB, server *pgtest.Server, now func() time.Time, replicas int) *postgresEngine {
	owner := server.Database(t)
	pgtest.Exec(t, owner, `DO $$ BEGIN CREATE ROLE eventsvc_service LOGIN PASSWORD 'service'; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
	if _, err := postgres.Migrate(t.Context(), postgres.Access{DSN: owner}, "eventsvc_service"); err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(owner, "@")
	e := &postgresEngine{t: t, dsn: "postgres://eventsvc_service:service@" + address, now: now}
	pgtest.Exec(t, owner, `
		CREATE TABLE eventsvc.test_clock (time timestamptz); INSERT INTO eventsvc.test_clock VALUES (now());
		GRANT SELECT, UPDATE ON eventsvc.test_clock TO eventsvc_service;
		CREATE OR REPLACE FUNCTION eventsvc.wall_clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT time FROM eventsvc.test_clock'`)
	var err error
	if e.clock, err = pgx.Connect(t.Context(), e.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.clock.Close(context.WithoutCancel(t.Context())) })
	for range replicas {
		o := postgres.Options{Access: postgres.Access{DSN: e.dsn}, Copy: boltOptions(t, now)}
		o.Copy.MaxBytes, o.Copy.MinFree = -1, -1
		if *storetest.Compress {
			o.Copy.CompressAfter = time.Nanosecond
		}
		e.options = append(e.options, o)
	}
	return e
}

// Start implements engine.
func (e *postgresEngine) Start(t testing.TB) store.Store {
	t.Helper()
	e.replicas = &turns{t: t, setClock: e.setClock}
	for _, o := range e.options {
		db, err := postgres.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		waittest.Becomes(t, func() error { return db.Ready(t.Context()) })
		e.replicas.all = append(e.replicas.all, db)
	}
	return e.replicas
}

func (e *postgresEngine) setClock() {
	if _, err := e.clock.Exec(context.Background(), "UPDATE eventsvc.test_clock SET time = $1", e.now()); err != nil {
		e.t.Error(err)
	}
}

// Stop implements engine. It checks the database and the copies.
func (e *postgresEngine) Stop(t testing.TB) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	r, err := postgres.Check(ctx, postgres.Access{DSN: e.dsn})
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("the database: %+v, %v", r, err)
	}
	for i, db := range e.replicas.all {
		found, err := db.Check(ctx, nil)
		if err != nil || len(found.Problems) > 0 {
			t.Errorf("the copy of replica %d: %+v, %v", i, found, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Trim implements trimmer. It waits until the database has nothing either of what the copies gave up.
func (e *postgresEngine) Trim(t testing.TB) (oldest uint64) {
	t.Helper()
	for _, db := range e.replicas.all {
		if _, err := db.Fresh(t.Context()); err != nil {
			t.Error(err)
		}
		if err := db.Maintain(t.Context()); err != nil {
			t.Error(err)
		}
		if oldest = db.Stats().Oldest; oldest != e.replicas.all[0].Stats().Oldest {
			t.Errorf("copies give up states before %d and %d", oldest, e.replicas.all[0].Stats().Oldest)
		}
	}
	return oldest
}

// Bump implements bumper.
func (e *postgresEngine) Bump(t testing.TB) uint64 {
	t.Helper()
	revision, err := e.replicas.all[0].BumpRevision(t.Context(), 0)
	if err != nil {
		t.Error(err)
	}
	return revision
}

// turns is a store whose calls go to one replica after the other.
type turns struct {
	t        testing.TB
	setClock func()

	mu   sync.Mutex
	all  []*postgres.DB
	next int
}

var _ store.Store = (*turns)(nil)

// one returns the next replica.
func (s *turns) one() *postgres.DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setClock()
	s.next = (s.next + 1) % len(s.all)
	return s.all[s.next]
}

// fresh returns the next replica with a copy that is as new as the database.
func (s *turns) fresh(ctx context.Context) (*postgres.DB, error) {
	db := s.one()
	_, err := db.Fresh(ctx)
	return db, err
}

func (s *turns) Get(ctx context.Context, key store.Key, look func(*store.View) error) error {
	db, err := s.fresh(ctx)
	if err != nil {
		return err
	}
	return db.Get(ctx, key, look)
}

func (s *turns) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	db, err := s.fresh(ctx)
	if err != nil {
		return store.Page{}, err
	}
	return db.List(ctx, q, visit)
}

func (s *turns) Watch(ctx context.Context, q store.WatchQuery) (store.Watcher, error) {
	db, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	return db.Watch(ctx, q)
}

func (s *turns) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	db, err := s.fresh(ctx) // so that decide sees the newest version first, as these cases expect
	if err != nil {
		return store.Result{}, err
	}
	r, err := db.Update(ctx, key, expect, decide)
	return r, errors.Join(err, s.refresh(ctx, err))
}

// refresh brings every copy to the revision of a write, as these cases expect of watches that are open.
func (s *turns) refresh(ctx context.Context, failed error) error {
	for _, db := range s.all {
		if _, err := db.Fresh(ctx); failed == nil && err != nil {
			return err
		}
	}
	return nil
}

func (s *turns) UpdateMany(
	ctx context.Context, keys []store.Key, expect func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	all := s.one().UpdateMany(ctx, keys, expect, decide)
	if err := s.refresh(ctx, nil); err != nil {
		s.t.Error(err)
	}
	return all
}

func (s *turns) DeleteMany(ctx context.Context, seen []store.Seen, by []byte) (int, []store.Key, error) {
	n, changed, err := s.one().DeleteMany(ctx, seen, by)
	return n, changed, errors.Join(err, s.refresh(ctx, err))
}

func (s *turns) Revision() uint64 {
	db, err := s.fresh(context.WithoutCancel(s.t.Context()))
	if err != nil {
		s.t.Error(err)
	}
	return db.Revision()
}

// Timeline implements timeliner.
func (s *turns) Timeline() store.Timeline {
	db, err := s.fresh(s.t.Context())
	if err != nil {
		s.t.Error(err)
	}
	return db.Timeline()
}

// The engine does what every store does, through two replicas that take turns and, in the long form, through one.
func TestPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	replicas := []int{2}
	if *storetest.Long {
		replicas = []int{1, 2}
	}
	for _, replicas := range replicas {
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			t.Parallel()
			testContract(t, func(t testing.TB, now func() time.Time) engine { return newPostgres(t, server, now, replicas) })
		})
	}
}
