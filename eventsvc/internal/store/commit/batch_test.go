package commit_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/eventsvc/internal/watch"
	"tidings.example/shared/waittest"
)

// hold keeps the committer from taking writes until release is called.
func hold(t *testing.T, p *bolttest.Parts) (release func()) {
	t.Helper()
	held, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- p.Committer.Queue.Do(context.Background(), func() error { close(held); <-proceed; return nil })
	}()
	waittest.Within(t, held)
	return func() {
		t.Helper()
		close(proceed)
		if err := waittest.Within(t, done); err != nil {
			t.Error(err)
		}
	}
}

func key(i int) store.Key { return store.Key{Namespace: "ns", Name: fmt.Sprint("e", i)} }

func writeOf(ctx context.Context, k seglog.Kind, key store.Key, seen store.Seen) *commit.Write {
	return &commit.Write{Ctx: ctx, Kind: k, Key: key, Seen: seen, Draft: store.Draft{Value: []byte("written")}}
}

// noLog is for watchers that find everything in the ring.
type noLog struct{}

func (noLog) Replay([]*watch.Change, *store.WatchQuery, uint64) ([]*watch.Change, uint64, error) {
	return nil, 0, errors.New("the log was read")
}

// R19: writes that cannot be made are refused each for its own reason, and those
// that share the commit with them are made, as if they had come alone.
func TestBadWritesInACommit(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{})
	p.Create(t, key(0), store.Draft{Value: []byte("there")})
	there, _ := p.Read(t, key(0))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	stale := store.Seen{Key: there.Key, Revision: there.Revision - 1}
	never := store.Seen{Key: key(99), Revision: there.Revision}
	batch := []struct {
		w    *commit.Write
		want error
	}{
		{writeOf(t.Context(), seglog.Created, key(1), store.Seen{}), nil},
		{writeOf(t.Context(), seglog.Created, key(0), store.Seen{}), commit.ErrConflict},
		{writeOf(t.Context(), seglog.Modified, there.Key, stale), commit.ErrConflict},
		{writeOf(t.Context(), seglog.Created, key(2), store.Seen{}), nil},
		{writeOf(gone, seglog.Created, key(3), store.Seen{}), context.Canceled},
		{writeOf(t.Context(), seglog.Created, key(1), store.Seen{}), commit.ErrConflict}, // created three before
		{writeOf(t.Context(), seglog.Deleted, key(99), never), commit.ErrConflict},
		{writeOf(t.Context(), seglog.Modified, there.Key, there.View().Seen()), nil},
		{writeOf(t.Context(), seglog.Deleted, there.Key, there.View().Seen()), commit.ErrConflict}, // modified just before
	}
	for _, b := range batch {
		if b.w.Kind != seglog.Created {
			b.w.Previous = &store.Version{Record: there} // as far as the writer knows
		}
	}
	w := p.Hub.Subscribe(store.WatchQuery{After: there.Revision}, noLog{})
	defer w.Close()
	before := p.Metric(t, "store_commit_writes")
	release := hold(t, p)
	for i, b := range batch {
		if err := p.Committer.Queue.Enqueue(b.w); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	release()
	revision := there.Revision
	for i, b := range batch {
		if err := p.Committer.Queue.Await(b.w); !errors.Is(err, b.want) {
			t.Errorf("write %d: %v, want %v", i, err, b.want)
		}
		if b.want != nil {
			continue
		}
		if revision++; b.w.Revision() != revision {
			t.Errorf("write %d has revision %d, want %d: what was refused takes none", i, b.w.Revision(), revision)
		}
		if got, exists := p.Read(t, b.w.Key); !exists || got.Revision != revision || string(got.Value) != "written" {
			t.Errorf("write %d: %+v", i, got)
		}
	}
	if n := p.Metric(t, "store_commit_writes") - before; n != 1 {
		t.Errorf("%v commits, want one for all: the test shows nothing otherwise", n)
	}
	for _, name := range []int{3, 99} {
		if got, exists := p.Read(t, key(name)); exists {
			t.Errorf("%s, which was refused: %+v", key(name), got)
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

// TestRoomForSome: where not all writes of a commit have room, those that come first and have it are made, of a request
// all or none.
func TestRoomForSome(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{MaxBytes: 8 << 20, SegmentBytes: 128 << 10, QueueBytes: 4 << 20})
	for round := 0; ; round++ {
		all := make([]commit.Write, 30)
		for i := range all {
			all[i] = *writeOf(t.Context(), seglog.Created, key(round*len(all)+i), store.Seen{})
			all[i].Draft.Value = bytes.Repeat([]byte("x"), 5000)
		}
		together := slices.Clone(all[:10]) // with the next one, before others that come alone
		all[10].With = together
		release := hold(t, p)
		for i := 10; i < len(all); i++ {
			if err := p.Committer.Queue.Enqueue(&all[i]); err != nil {
				t.Fatal(err)
			}
		}
		release()
		made := 0
		for i := 10; i < len(all); i++ {
			err := p.Committer.Queue.Await(&all[i])
			if err == nil {
				made++
			} else if !errors.Is(err, store.ErrFull) {
				t.Fatal(err)
			}
			if _, there := p.Read(t, all[i].Key); there != (err == nil) {
				t.Errorf("write %d: %v, and it is there: %v", i, err, there)
			}
		}
		for i := range together {
			if _, there := p.Read(t, together[i].Key); there != (all[10].Err == nil) {
				t.Errorf("write %d of one request: %v, and the last one: %v", i, together[i].Err, all[10].Err)
			}
		}
		if made < 20 {
			if made == 0 {
				t.Errorf("round %d: none of the writes is made, and the commit before had room for all", round)
			}
			return
		}
	}
}

// TestRoomForTheMerge: what is accepted has room in the index too, into which it is merged later, at any place.
func TestRoomForTheMerge(t *testing.T) {
	t.Parallel()
	const limit = 8 << 20
	p := bolttest.OpenParts(t, bolttest.PartsOptions{MaxBytes: limit, SegmentBytes: 128 << 10})
	log := disk.Usage(filepath.Join(filepath.Dir(p.Files.Index.Path()), wal.FileName))
	most := int64(0)
	for full := false; !full; {
		all := make([]*commit.Write, 100)
		for i := range all {
			all[i] = writeOf(t.Context(), seglog.Created, store.Key{Namespace: "ns", Name: rand.Text()}, store.Seen{})
			all[i].Draft.Value = bytes.Repeat([]byte("x"), 500)
			if err := p.Committer.Queue.Enqueue(all[i]); err != nil {
				t.Fatal(err)
			}
		}
		for _, w := range all {
			if err := p.Committer.Queue.Await(w); errors.Is(err, store.ErrFull) {
				full = true
			} else if err != nil {
				t.Fatal(err)
			}
		}
		files := p.Usage.Stats().FileBytes
		merge := p.Files.Index.MergeBytes()
		if most = max(most, merge); files+2*log+merge > limit { // the log is brought into the head
			t.Fatalf("the files have %d bytes, and grow by %d when the index is merged, beyond %d", files, merge, limit)
		}
	}
	if most < limit/32 {
		t.Errorf("merges add %d bytes at most: the test shows nothing", most)
	}
}

// TestQueueIsBounded: the number and the bytes of writes that wait for their
// commit are limited. The next write is refused and changes nothing. The
// waiting writes are served, and then there is room again.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]bolttest.PartsOptions{
		"by number": {QueueLength: 3},
		"by bytes":  {QueueBytes: 4*seglog.MaxEntryBytes(len("ns/e0"), len("written")) - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := bolttest.OpenParts(t, o)
			for round := range 2 {
				release := hold(t, p)
				var waiting []*commit.Write
				for i := range 3 {
					w := writeOf(t.Context(), seglog.Created, key(round*4+i), store.Seen{})
					if err := p.Committer.Queue.Enqueue(w); err != nil {
						t.Fatalf("round %d, write %d: %v", round, i, err)
					}
					waiting = append(waiting, w)
				}
				refused := writeOf(t.Context(), seglog.Created, key(round*4+3), store.Seen{})
				if err := p.Committer.Queue.Submit(refused); !errors.Is(err, store.ErrBusy) {
					t.Errorf("round %d: one more than may wait: %v, want %v", round, err, store.ErrBusy)
				}
				release()
				for _, w := range waiting {
					if err := p.Committer.Queue.Await(w); err != nil {
						t.Error(err)
					}
				}
				if got, exists := p.Read(t, refused.Key); exists {
					t.Errorf("round %d: what was refused: %+v", round, got)
				}
			}
			if _, n := p.Committer.Queue.Waiting(); n != 0 {
				t.Errorf("%d bytes are still counted as waiting", n)
			}
		})
	}
}

// TestDeletionsOfManyEvents: a deletion of more events than one commit takes tells how many it has
// deleted, and of which it has not because they have changed.
func TestDeletionsOfManyEvents(t *testing.T) {
	t.Parallel()
	const n = 1030 // a commit takes 1024
	p := bolttest.OpenParts(t, bolttest.PartsOptions{QueueLength: n, QueueBytes: 1 << 30})
	storetest.Parallel(t, n, func(i int) { p.Create(t, key(i), store.Draft{Value: []byte("there")}) })
	var seen []store.Seen
	for i := range n {
		r, _ := p.Read(t, key(i))
		seen = append(seen, r.View().Seen())
	}
	changed, _ := p.Read(t, key(7))
	w := writeOf(t.Context(), seglog.Modified, changed.Key, changed.View().Seen())
	w.Previous = &store.Version{Record: changed}
	if err := p.Committer.Queue.Submit(w); err != nil {
		t.Fatal(err)
	}
	d := commit.Deletions{Queue: p.Committer.Queue}
	if err := d.Do(t.Context(), seen); err != nil || d.Count != n-1 || len(d.Changed) != 1 || d.Changed[0] != changed.Key || d.Revision != w.Revision()+n-1 {
		t.Errorf("%d are deleted, changed are %v, the last revision is %d, %v", d.Count, d.Changed, d.Revision, err)
	}
	if live := p.Usage.Live(); live.Events != 1 {
		t.Errorf("%d events are left", live.Events)
	}
}
