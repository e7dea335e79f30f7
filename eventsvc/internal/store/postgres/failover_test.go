package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/waittest"
)

// A primary that is killed under load, with a synchronous standby that takes over, loses no acknowledged write. A watch
// that is open sees every change once.
func TestFailover(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := service(t, pair.DSN)
	replicas := []*postgres.DB{open(t, options(dsn, t.TempDir())), open(t, options(dsn, t.TempDir()))}
	if err := replicas[0].Standby(t.Context()); err != nil {
		t.Error(err)
	}
	w, err := replicas[1].Watch(t.Context(), store.WatchQuery{After: 1})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	acknowledged := map[string]uint64{}
	var last, longest time.Time
	var gap time.Duration
	var stop atomic.Bool
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for i := 0; !stop.Load(); i++ {
				name := fmt.Sprintf("%d-%d", writer, i)
				r, err := store.Create(t.Context(), replicas[writer%2], store.Key{Namespace: "a", Name: name}, store.Draft{Value: []byte(name)})
				switch {
				case err == nil:
					mu.Lock()
					if now := time.Now(); !last.IsZero() && now.Sub(last) > gap {
						gap, longest = now.Sub(last), last
					}
					last = time.Now()
					acknowledged[name] = r.Revision
					mu.Unlock()
				case errors.Is(err, store.ErrUnavailable):
					<-time.After(5 * time.Millisecond) // as a client does that is told to come back
				default:
					t.Errorf("create: %v", err)
				}
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(acknowledged) }
	more := func(n int) {
		t.Helper()
		from := count()
		waittest.Becomes(t, func() error {
			if got := count() - from; got < n {
				return fmt.Errorf("%d writes are acknowledged, want %d", got, n)
			}
			return nil
		})
	}
	more(300)
	pair.KillPrimary(t)
	more(300)
	stop.Store(true)
	waittest.Join(t, &writers)
	t.Logf("%d writes; none was acknowledged for %s, from %s on", len(acknowledged), gap.Round(time.Millisecond), longest.Format(time.TimeOnly))

	healthy(t, dsn, replicas...)
	seen := map[string]uint64{}
	for after := uint64(1); after < replicas[1].Revision(); {
		b, err := storetest.Next(t, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Changes {
			if d.Revision != after+1 {
				t.Fatalf("the watch shows revision %d after %d", d.Revision, after)
			}
			after, seen[d.Object.Name] = d.Revision, d.Revision
		}
	}
	for name, revision := range acknowledged {
		if seen[name] != revision {
			t.Errorf("%s was acknowledged under revision %d; the watch has seen it under %d", name, revision, seen[name])
		}
	}
	if r, err := postgres.Check(t.Context(), postgres.Access{DSN: dsn}); err != nil || r.Epoch != 1 {
		t.Errorf("%+v, %v; want epoch 1, because nothing was lost", r, err)
	}
}

// A server that stops waiting for its standby is noticed although its connections stay open.
func TestStandbyGivenUp(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := open(t, options(service(t, pair.DSN), t.TempDir()))
	waittest.Becomes(t, func() error { return db.Standby(t.Context()) })
	pair.Asynchronous(t)
	waittest.Becomes(t, func() error {
		if db.Standby(t.Context()) == nil {
			return errors.New("nobody says that commits do not wait any more")
		}
		return nil
	})
	if s := db.State(); !strings.HasSuffix(s, "epoch 1, no synchronous standby") {
		t.Error(s)
	}
}

// After a failover to a standby that commits did not wait for, no revision is given out again, although the only
// replica that has seen it is away.
func TestFailoverBehindTheBackOfReplicas(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	pair.Asynchronous(t)
	dsn := service(t, pair.DSN)
	options := []postgres.Options{registered(impatient(dsn, t.TempDir())), registered(impatient(dsn, t.TempDir()))}
	saw, other := open(t, options[0]), open(t, options[1])
	kept := created(t, saw, "kept")
	waittest.Becomes(t, func() error {
		if at := other.Revision(); at != kept {
			return fmt.Errorf("the other replica is at revision %d, want %d", at, kept)
		}
		return nil
	})
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	pair.Detach(t)
	lost := created(t, saw, "lost")
	if err := saw.Close(); err != nil {
		t.Fatal(err)
	}
	pair.KillPrimary(t)
	options[1] = registered(options[1])
	other = open(t, options[1])
	if after := created(t, other, "after"); after <= lost {
		t.Errorf("revision %d was given out, and is one of those up to %d again", after, lost)
	}
	var expired *store.ExpiredError
	if _, err := other.Watch(t.Context(), store.WatchQuery{After: lost}); !errors.As(err, &expired) {
		t.Errorf("watch after a lost revision: %v", err)
	}
	options[0] = registered(options[0])
	saw = open(t, options[0])
	healthy(t, dsn, saw, other)
	for i, want := range []float64{1, 0} {
		if n := losses(t, options[i]); n != want {
			t.Errorf("replica %d has found a loss %v times, want %v", i, n, want)
		}
	}
	if r, err := postgres.Check(t.Context(), postgres.Access{DSN: dsn}); err != nil || r.Epoch != 2 {
		t.Errorf("%+v, %v; want epoch 2", r, err)
	}
}
