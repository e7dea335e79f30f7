package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// number returns what a query of one number finds at the first server of a DSN that can be reached.
func number(t testing.TB, dsn, query string) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// becomes waits until a query of one number finds it.
func becomes(t testing.TB, dsn, query string, want int64) {
	t.Helper()
	waittest.Becomes(t, func() error {
		if n := number(t, dsn, query); n != want {
			return fmt.Errorf("%s: %d, want %d", query, n, want)
		}
		return nil
	})
}

// waiting is which commits wait for a standby.
const waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

// A commit whose wait for the standby ends before the standby has it is not acknowledged, and no replica shows it,
// whether the standby comes back or takes over without it.
func TestWaitForStandbyEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		does  func(t *testing.T, pair *pgtest.Pair, writer postgres.Options)
		shows int64 // records of the commit in the database then
	}{
		"cancelled": {func(t *testing.T, pair *pgtest.Pair, _ postgres.Options) {
			pgtest.Exec(t, pair.DSN, "SELECT pg_cancel_backend(pid) "+waiting)
		}, 1},
		"terminated": {func(t *testing.T, pair *pgtest.Pair, _ postgres.Options) {
			pgtest.Exec(t, pair.DSN, "SELECT pg_terminate_backend(pid) "+waiting)
		}, 1},
		"primary restarted": {func(t *testing.T, pair *pgtest.Pair, _ postgres.Options) {
			pair.RestartPrimary(t)
		}, 1},
		"time limit of the service": {func(t *testing.T, pair *pgtest.Pair, writer postgres.Options) {
			waittest.Becomes(t, func() error {
				if metric(t, writer, "store_database_ambiguous_commits_total") == 0 {
					return errors.New("the service waits")
				}
				return nil
			})
		}, 0},
	} {
		for _, takesOver := range []bool{false, true} {
			if !*storetest.Long && takesOver != (end.shows == 1) { // the short form has the harder half: a standby takes over that lacks what the database shows
				continue
			}
			t.Run(fmt.Sprintf("%s, standby takes over: %t", name, takesOver), func(t *testing.T) {
				t.Parallel()
				pair := pgtest.StartPair(t)
				dsn := service(t, pair.DSN)
				options := []postgres.Options{registered(impatient(dsn, t.TempDir())), registered(impatient(dsn, t.TempDir()))}
				for i := range options {
					options[i].Timeout = 3 * time.Second // on a busy machine a replica that waits for a second is never ready
				}
				replicas := []*postgres.DB{open(t, options[0]), open(t, options[1])}
				before := created(t, replicas[0], "before")
				for _, db := range replicas {
					if _, err := db.Fresh(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				pair.Detach(t)
				answered := make(chan store.Record, 1)
				go func() {
					var r store.Record
					err := store.ErrUnavailable
					for errors.Is(err, store.ErrUnavailable) {
						r, err = store.Create(t.Context(), replicas[0], store.Key{Namespace: "a", Name: "waits"}, store.Draft{Value: []byte("v")})
					}
					if err != nil {
						t.Error(err)
					}
					answered <- r
				}()
				becomes(t, pair.DSN, "SELECT count(*) "+waiting, 1)
				end.does(t, pair, options[0])
				becomes(t, pair.DSN, fmt.Sprintf("SELECT count(*) FROM eventsvc.log WHERE revision > %d", before), end.shows)
				for i, db := range replicas { // the tails have seen that there is something
					waittest.Becomes(t, func() error {
						if n := postgres.Behind(db); int64(n) != end.shows {
							return fmt.Errorf("replica %d is %d revisions behind, want %d", i, n, end.shows)
						}
						return nil
					})
					if at := db.Revision(); at != before {
						t.Errorf("replica %d shows revision %d, the standby has %d", i, at, before)
					}
				}
				select {
				case r := <-answered:
					t.Errorf("acknowledged under revision %d", r.Revision)
				default:
				}
				if takesOver {
					pair.KillPrimary(t)
				} else {
					pair.Attach(t)
				}
				r := waittest.Within(t, answered)
				healthy(t, dsn, replicas...)
				for i, db := range replicas {
					if there, err := store.Read(t.Context(), db, store.Key{Namespace: "a", Name: "waits"}); err != nil || there.Revision != r.Revision {
						t.Errorf("replica %d has it under revision %d, acknowledged was %d; %v", i, there.Revision, r.Revision, err)
					}
					if n := metric(t, options[i], "store_database_lost_commits_total"); n != 0 {
						t.Errorf("replica %d has shown what was lost", i)
					}
				}
			})
		}
	}
}

// A commit that its replica has not confirmed, because it has ended, is confirmed by another one.
func TestConfirmedByAnother(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := service(t, pair.DSN)
	db := open(t, options(dsn, t.TempDir()))
	before := created(t, db, "before")
	waittest.Becomes(t, func() error { return db.Standby(t.Context()) })
	pgtest.Exec(t, dsn, `SET search_path = eventsvc; SELECT commit_batch(1, gen_random_uuid(), 1, '{1}', '{a}', '{other}', '{0}', '{""}', '{""}')`)
	waittest.Becomes(t, func() error {
		if at := db.Revision(); at != before+1 {
			return fmt.Errorf("the copy is at revision %d, want %d", at, before+1)
		}
		return nil
	})
	healthy(t, dsn, db)
}

// That the only synchronous standby is away, which stops all writes, is named before and while a commit waits, for a
// role with the right to see the standbys and for one without.
func TestStandbyAway(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"", "GRANT pg_read_all_stats TO eventsvc_service"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			pair := pgtest.StartPair(t)
			dsn := service(t, pair.DSN)
			pgtest.Exec(t, pair.DSN, right)
			var log logs
			o := registered(impatient(dsn, t.TempDir()))
			o.Copy.Log = slog.New(slog.NewJSONHandler(&log, nil))
			writer, other := open(t, impatient(dsn, t.TempDir())), open(t, o)
			created(t, writer, "before")
			waittest.Becomes(t, func() error { return other.Standby(t.Context()) })
			says := func(want string, missing float64, waits bool) {
				t.Helper()
				waittest.Becomes(t, func() error {
					err := other.Standby(t.Context())
					m, w := metric(t, o, "store_database_standbys_missing"), metric(t, o, "store_database_standby_wait_seconds")
					if !strings.Contains(fmt.Sprint(err), want) || m != missing || w > 3 != waits {
						return fmt.Errorf("%w; %v are missing, a commit waits for %v s", err, m, w)
					}
					return nil
				})
			}
			pair.Detach(t)
			says(`synchronous_standby_names is "*", 0 of 1 are connected`, 1, false)
			var clients sync.WaitGroup
			clients.Go(func() { created(t, writer, "waits") })
			says("a commit has waited for", 1, true)
			if s := other.State(); !strings.HasSuffix(s, "a synchronous standby that does not answer") {
				t.Error(s)
			}
			pair.Attach(t)
			says("nil", 0, false)
			waittest.Join(t, &clients)
			for _, line := range []string{"writes wait for a synchronous standby", "the synchronous standbys answer again"} {
				if n := strings.Count(log.String(), `"`+line+`"`); n != 1 {
					t.Errorf("%q is logged %d times", line, n)
				}
			}
		})
	}
}

// A standby that is connected and does not answer stops all writes too.
func TestStandbyHangs(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := open(t, impatient(service(t, pair.DSN), t.TempDir()))
	created(t, db, "before")
	pair.PauseStandby(t)
	var clients sync.WaitGroup
	clients.Go(func() { created(t, db, "waits") })
	waittest.Becomes(t, func() error {
		if err := db.Standby(t.Context()); err == nil || !strings.Contains(err.Error(), "1 of 1 are connected") {
			return fmt.Errorf("nobody says that the standby hangs: %w", err)
		}
		return nil
	})
	pair.ResumeStandby(t)
	waittest.Join(t, &clients)
	waittest.Becomes(t, func() error { return db.Standby(t.Context()) })
}

// logs is what was logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
