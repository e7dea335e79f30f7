package postgres_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
)

// Replicas work behind a PgBouncer that pools by session and has no settings for them, with a role that has none
// either, and with one whose settings are bad for them.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"", `ALTER ROLE eventsvc_service SET search_path = public; ALTER ROLE eventsvc_service SET synchronous_commit = off;
		ALTER ROLE eventsvc_service SET jit = on; ALTER ROLE eventsvc_service SET lock_timeout = 0;
		ALTER ROLE eventsvc_service SET default_transaction_isolation = serializable`} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			owner := pgtest.StartPair(t).DSN
			service(t, pgtest.Pool(t, owner, "session"))
			dsn := service(t, owner)
			pgtest.Exec(t, owner, settings)
			replicas := []*postgres.DB{open(t, options(pgtest.Pool(t, dsn, "session"), t.TempDir())), open(t, options(pgtest.Pool(t, dsn, "session"), t.TempDir()))}
			for name, want := range map[string]string{
				"search_path": "eventsvc", "synchronous_commit": "on", "jit": "off", "lock_timeout": "7500ms", "default_transaction_isolation": "read committed",
			} {
				if value, err := postgres.Setting(t.Context(), replicas[0], name); err != nil || value != want {
					t.Errorf("%s is %q, want %q; %v", name, value, want, err)
				}
			}
			w, err := replicas[1].Watch(t.Context(), store.WatchQuery{After: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for i := range 20 {
				created(t, replicas[i%2], fmt.Sprint(i))
			}
			for seen := 0; seen < 20; {
				b, err := storetest.Next(t, w)
				if err != nil {
					t.Fatal(err)
				}
				seen += len(b.Changes)
			}
			healthy(t, dsn, replicas...)
			// The keeper and the tail hold what belongs to a session: a lock, and a subscription.
			waittest.Becomes(t, func() error {
				if postgres.Keeps(replicas[0]) == postgres.Keeps(replicas[1]) {
					return fmt.Errorf("not one replica clears away")
				}
				return nil
			})
		})
	}
}

// A pooler that gives each statement another connection is refused: the settings of a session would be missing in the
// next.
func TestPgBouncerWithoutSessions(t *testing.T) {
	t.Parallel()
	dsn := service(t, pgtest.Start(t).Database(t))
	db, err := postgres.Open(t.Context(), options(pgtest.Pool(t, dsn, "transaction")+"&default_query_exec_mode=exec", t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	waittest.Becomes(t, func() error {
		_, read := db.Fresh(t.Context())
		_, write := store.Create(t.Context(), db, store.Key{Namespace: "a", Name: rand.Text()}, store.Draft{Value: []byte("v")})
		if err := errors.Join(db.Connected(t.Context()), read, write); err == nil || !strings.Contains(err.Error(), "pool_mode = session") {
			return fmt.Errorf("it is served: %w", err)
		}
		return nil
	})
}
