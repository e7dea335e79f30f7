package bolt

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/storetest"
)

// hold keeps the committer from taking writes until release is called.
func hold(t *testing.T, db *DB) (release func()) {
	t.Helper()
	held, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- db.committer.Queue.Do(context.Background(), func() error { close(held); <-proceed; return nil })
	}()
	<-held
	return func() {
		t.Helper()
		close(proceed)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func batchKey(i int) store.Key { return store.Key{Namespace: "ns", Name: fmt.Sprint("e", i)} }

// writeOf is a write as Update makes it.
func writeOf(ctx context.Context, k seglog.Kind, key store.Key, seen store.Seen) *commit.Write {
	return &commit.Write{Ctx: ctx, Kind: k, Key: key, Seen: seen, Draft: store.Draft{Value: []byte("written")}}
}

// commits is how many commits there were, by the histogram of their writes.
func commits(t *testing.T, r *prometheus.Registry) uint64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "store_commit_writes" {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatal("commits are not counted")
	return 0
}

// R19: writes that cannot be made are refused each for its own reason, and those
// that share the commit with them are made, as if they had come alone.
func TestBadWritesInACommit(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	db := openQuiet(t, func(o *Options) { o.Registry = r })
	there, err := store.Create(t.Context(), db, batchKey(0), store.Draft{Value: []byte("there")})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	stale := store.Seen{Key: there.Key, Revision: there.Revision - 1}
	never := store.Seen{Key: batchKey(99), Revision: there.Revision}
	batch := []struct {
		w    *commit.Write
		want error
	}{
		{writeOf(t.Context(), seglog.Created, batchKey(1), store.Seen{}), nil},
		{writeOf(t.Context(), seglog.Created, batchKey(0), store.Seen{}), commit.ErrConflict},
		{writeOf(t.Context(), seglog.Modified, there.Key, stale), commit.ErrConflict},
		{writeOf(t.Context(), seglog.Created, batchKey(2), store.Seen{}), nil},
		{writeOf(gone, seglog.Created, batchKey(3), store.Seen{}), context.Canceled},
		{writeOf(t.Context(), seglog.Created, batchKey(1), store.Seen{}), commit.ErrConflict}, // created three before
		{writeOf(t.Context(), seglog.Deleted, batchKey(99), never), commit.ErrConflict},
		{writeOf(t.Context(), seglog.Modified, there.Key, there.View().Seen()), nil},
		{writeOf(t.Context(), seglog.Deleted, there.Key, there.View().Seen()), commit.ErrConflict}, // modified just before
	}
	for _, b := range batch {
		if b.w.Kind != seglog.Created {
			b.w.Previous = &store.Version{Record: there} // as far as the writer knows
		}
	}
	w, err := db.Watch(t.Context(), store.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	before := commits(t, r)
	release := hold(t, db)
	for i, b := range batch {
		if err := db.committer.Queue.Enqueue(b.w); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	release()
	revision := there.Revision
	for i, b := range batch {
		if err := db.committer.Queue.Await(b.w); !errors.Is(err, b.want) {
			t.Errorf("write %d: %v, want %v", i, err, b.want)
		}
		if b.want != nil {
			continue
		}
		if revision++; b.w.Revision() != revision {
			t.Errorf("write %d has revision %d, want %d: what was refused takes none", i, b.w.Revision(), revision)
		}
		if got, err := store.Read(t.Context(), db, b.w.Key); err != nil || got.Revision != revision || string(got.Value) != "written" {
			t.Errorf("write %d: %+v, %v", i, got, err)
		}
	}
	if n := commits(t, r) - before; n != 1 {
		t.Errorf("%d commits, want one for all: the test shows nothing otherwise", n)
	}
	for _, name := range []int{3, 99} {
		if _, err := store.Read(t.Context(), db, batchKey(name)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s, which was refused: %v", batchKey(name), err)
		}
	}
	if t.Failed() {
		return // what was not written is not told either
	}
	for told := there.Revision; told < revision; {
		b, err := storetest.Next(t, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Changes {
			if told++; d.Revision != told {
				t.Errorf("told of revision %d, want %d", d.Revision, told)
			}
		}
	}
}

// TestQueueIsBounded: the number and the bytes of writes that wait for their
// commit are limited. The next write is refused and changes nothing. The
// waiting writes are served, and then there is room again.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"by number": func(o *Options) { o.QueueLength = 3 },
		"by bytes":  func(o *Options) { o.QueueBytes = 4*seglog.MaxEntryBytes(len("ns/e0"), len("written")) - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openQuiet(t, change)
			for round := range 2 {
				release := hold(t, db)
				var waiting []*commit.Write
				for i := range 3 {
					w := writeOf(t.Context(), seglog.Created, batchKey(round*4+i), store.Seen{})
					if err := db.committer.Queue.Enqueue(w); err != nil {
						t.Fatalf("round %d, write %d: %v", round, i, err)
					}
					waiting = append(waiting, w)
				}
				refused := batchKey(round*4 + 3)
				if _, err := store.Create(t.Context(), db, refused, store.Draft{Value: []byte("written")}); !errors.Is(err, store.ErrBusy) {
					t.Errorf("round %d: one more than may wait: %v, want %v", round, err, store.ErrBusy)
				}
				release()
				for _, w := range waiting {
					if err := db.committer.Queue.Await(w); err != nil {
						t.Error(err)
					}
				}
				if _, err := store.Read(t.Context(), db, refused); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("round %d: what was refused: %v", round, err)
				}
			}
			if _, n := db.committer.Queue.Waiting(); n != 0 {
				t.Errorf("%d bytes are still counted as waiting", n)
			}
		})
	}
}
