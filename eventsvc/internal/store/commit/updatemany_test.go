package commit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
)

// commits returns how many commits there were.
func commits(t *testing.T, r *prometheus.Registry) uint64 {
	t.Helper()
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.GetName() == "store_commit_writes" {
			return m.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatal("commits are not counted")
	return 0
}

// TestUpdateMany: what becomes of each event is what an update alone would do, also if it was written meanwhile, and
// what is written shares a commit.
func TestUpdateMany(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Registry: registry})
	defer func() { bolttest.Close(t, db) }()
	key := func(name string) store.Key { return store.Key{Namespace: "shop", Name: name} }
	for _, name := range []string{"changed", "raced", "deleted", "kept"} {
		if _, err := store.Create(t.Context(), db, key(name), store.Draft{Value: []byte("old")}); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"new", "changed", "raced", "deleted", "kept", "refused", "no/key", "nothing"}
	keys := make([]store.Key, len(names))
	for i, name := range names {
		keys[i] = key(name)
	}
	errRefused, raced, before, revision := errors.New("refused"), 0, commits(t, registry), db.Revision()
	expect := func(i int) store.Expect { // of one of them it is wrong
		if slices.Contains([]string{"new", "kept", "nothing"}, names[i]) {
			return store.Absent
		}
		return store.Any
	}
	outcomes := db.UpdateMany(t.Context(), keys, expect, func(i int, current *store.Record) (store.Decision, error) {
		switch names[i] {
		case "raced":
			if raced++; raced == 1 {
				if _, err := db.Update(t.Context(), keys[i], store.Any, bolttest.Change); err != nil {
					t.Error(err)
				}
			}
			return store.Decision{Op: store.Put, Draft: store.Draft{Value: fmt.Appendf(nil, "behind %s", current.Value)}}, nil
		case "deleted":
			return store.Decision{Op: store.Delete}, nil
		case "refused":
			return store.Decision{}, errRefused
		case "kept", "nothing":
			return store.Decision{}, nil
		}
		return store.Decision{Op: store.Put, Draft: store.Draft{Value: []byte("written")}}, nil
	})
	var got []string
	for i, o := range outcomes {
		got = append(got, fmt.Sprintf("%s: op %d, created %t, %q, +%d, refused %t", names[i], o.Op, o.Created, o.Record.Value,
			max(o.Record.Revision, revision)-revision, o.Err != nil))
	}
	want := []string{ // +1 is the write that came between
		fmt.Sprintf(`new: op %d, created true, "written", +2, refused false`, store.Put),
		fmt.Sprintf(`changed: op %d, created false, "written", +3, refused false`, store.Put),
		fmt.Sprintf(`raced: op %d, created false, "behind changed", +5, refused false`, store.Put),
		fmt.Sprintf(`deleted: op %d, created false, "old", +4, refused false`, store.Delete),
		fmt.Sprintf(`kept: op %d, created false, "old", +0, refused false`, store.Keep),
		fmt.Sprintf(`refused: op %d, created false, "", +0, refused true`, store.Keep),
		fmt.Sprintf(`no/key: op %d, created false, "", +0, refused true`, store.Keep),
		fmt.Sprintf(`nothing: op %d, created false, "", +0, refused false`, store.Keep),
	}
	if diff := cmp.Diff(want, got); diff != "" || !errors.Is(outcomes[5].Err, errRefused) {
		t.Errorf("%v (-want +got):\n%s", outcomes[5].Err, diff)
	}
	if n := commits(t, registry) - before; n != 3 || raced != 2 { // the one between, all, and the raced one again
		t.Errorf("%d commits, decided %d times", n, raced)
	}
	bolttest.Check(t, db)
}

func anything(int) store.Expect { return store.Any }

// TestUpdateManyHasNoRoom: what finds no room in the queue, or comes too late, is refused whole.
func TestUpdateManyHasNoRoom(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), QueueBytes: 1 << 10})
	put := func(int, *store.Record) (store.Decision, error) {
		return store.Decision{Op: store.Put, Draft: store.Draft{Value: make([]byte, 600)}}, nil
	}
	keys := []store.Key{{Namespace: "n", Name: "a"}, {Namespace: "n", Name: "b"}}
	refused := func(ctx context.Context, want error) {
		t.Helper()
		for _, o := range db.UpdateMany(ctx, keys, anything, put) {
			if !errors.Is(o.Err, want) {
				t.Errorf("%v, want %v", o.Err, want)
			}
		}
	}
	revision := db.Revision()
	refused(t.Context(), store.ErrBusy)
	if db.Revision() != revision {
		t.Error("something was written")
	}
	for _, o := range db.UpdateMany(t.Context(), keys[:1], anything, put) {
		if o.Err != nil || !o.Created {
			t.Errorf("%+v", o)
		}
	}
	bolttest.Close(t, db)
	refused(t.Context(), store.ErrClosed)
}
