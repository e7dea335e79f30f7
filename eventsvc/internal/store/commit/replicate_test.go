package commit_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/shared/waittest"
)

// TestApply: changes of another store have its revisions and times. One that does not follow from what is here ends
// them.
func TestApply(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{})
	at := time.Unix(1_700_000_000, 0).UTC()
	change := func(kind seglog.Kind, i int, revision uint64) commit.Replicated {
		c := commit.Replicated{Revision: revision, Kind: kind, Key: key(i), Time: at}
		if kind != seglog.Deleted {
			c.Draft = store.Draft{Value: []byte("copied")}
		}
		return c
	}
	if err := p.Committer.Apply(t.Context(), []commit.Replicated{
		change(seglog.Created, 1, 10), change(seglog.Created, 2, 11), change(seglog.Modified, 1, 20), change(seglog.Modified, 3, 21), change(seglog.Deleted, 2, 30),
	}); err != nil {
		t.Fatal(err)
	}
	for i, revision := range map[int]uint64{1: 20, 2: 0, 3: 21} { // of 3, the other store has no version before
		if r, exists := p.Read(t, key(i)); exists != (revision > 0) || r.Revision != revision || exists && (!r.Time.Equal(at) || string(r.Value) != "copied") {
			t.Errorf("%s: exists %t, %+v", key(i), exists, r)
		}
	}
	for name, c := range map[string]commit.Replicated{
		"a revision that was": change(seglog.Created, 4, 30), "a second creation": change(seglog.Created, 1, 40), "no such event": change(seglog.Deleted, 2, 40),
	} {
		if err := p.Committer.Apply(t.Context(), []commit.Replicated{c}); !errors.As(err, new(*store.CorruptError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if live := p.Usage.Live(); live.Events != 2 {
		t.Errorf("%d events, want 2", live.Events)
	}
}

// TestSkipAndRotate: revisions that are left out are never given out, files that are sealed keep their records, and
// what is given up stays so.
func TestSkipAndRotate(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{})
	p.Create(t, key(1), store.Draft{Value: []byte("before")})
	if got, err := p.Committer.Skip(t.Context(), func(last uint64) uint64 { return last + 100 }); err != nil || got != 102 {
		t.Fatalf("skipped to %d, %v", got, err)
	}
	p.Create(t, key(2), store.Draft{Value: []byte("behind")})
	before, _ := p.Read(t, key(1))
	behind, _ := p.Read(t, key(2))
	if before.Revision != 2 || behind.Revision != 103 || p.Files.Log.CompactRevision() != 102 || len(p.Files.Log.Segments()) != 2 {
		t.Errorf("revisions %d and %d, compact revision %d, %d files", before.Revision, behind.Revision, p.Files.Log.CompactRevision(), len(p.Files.Log.Segments()))
	}
	w := p.Committer.Writer
	if err := p.Committer.Queue.Do(t.Context(), func() error {
		return errors.Join(w.Checkpoint(), w.Rotate(), w.MoveCompactRevision(103), w.MoveCompactRevision(50))
	}); err != nil {
		t.Fatal(err)
	}
	if saved, err := p.Files.Log.Head().SavedCompactRevision(); err != nil || saved != 103 || p.Files.Log.CompactRevision() != 103 {
		t.Errorf("the compact revision is %d, saved %d, %v", p.Files.Log.CompactRevision(), saved, err)
	}
	if err := p.Committer.Flush(t.Context()); err != nil || p.Files.Index.Merged() != 103 {
		t.Errorf("merged up to %d, %v", p.Files.Index.Merged(), err)
	}
}

// TestFailure: after a file could not be written, each write is refused with the reason, and so is a new file of the
// log.
func TestFailure(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{})
	p.Create(t, key(1), store.Draft{Value: []byte("there")})
	h, called := p.Committer.Writer.Health, make(chan struct{})
	h.OnFailure(func() { close(called) })
	if err := h.Failed(); err != nil {
		t.Fatal(err)
	}
	failed := h.Fail("wal", errors.New("broken"))
	waittest.Within(t, called)
	waittest.Within(t, h.Done())
	if again := h.Fail("index", errors.New("later")); !errors.Is(failed, store.ErrUnwritable) || again.Error() != failed.Error() {
		t.Errorf("failed with %v, and then with %v", failed, again)
	}
	w := writeOf(t.Context(), seglog.Created, key(2), store.Seen{})
	if err := p.Committer.Queue.Submit(w); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("a write after the failure: %v", err)
	}
	if r, exists := p.Read(t, key(1)); !exists || string(r.Value) != "there" {
		t.Errorf("what was written before: %t %+v", exists, r)
	}
	last := func() (revision uint64) {
		if err := p.Committer.Queue.Do(t.Context(), func() error { revision = p.Committer.Writer.Last; return nil }); err != nil {
			t.Error(err)
		}
		return revision
	}
	before := last()
	change := commit.Replicated{Revision: before + 10, Kind: seglog.Created, Key: key(3), Time: time.Unix(1_700_000_000, 0)}
	if err := p.Committer.Apply(t.Context(), []commit.Replicated{change}); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("a change of another store after the failure: %v", err)
	}
	if after := last(); after != before {
		t.Errorf("the last revision is %d after a change that was not stored, was %d: the other store could not send it again", after, before)
	}
}

// TestQueueWithoutCommitter: an engine takes the writes that wait together, and answers each. Those that it does not
// answer are refused.
func TestQueueWithoutCommitter(t *testing.T) {
	t.Parallel()
	q := commit.NewQueue(10, 1<<20)
	write := func(i int) *commit.Write {
		w := writeOf(t.Context(), seglog.Created, key(i), store.Seen{})
		if err := q.Enqueue(w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	made, refused := write(1), write(2)
	taken := q.Take(nil)
	if len(taken) != 2 || taken[0] != made || taken[1] != refused {
		t.Fatalf("taken are %v", taken)
	}
	at := time.Unix(1_700_000_000, 0)
	q.Answer(made, 7, at, nil)
	q.Answer(refused, 0, time.Time{}, commit.ErrConflict)
	if err := q.Await(made); err != nil || made.Revision() != 7 || !made.Result().Record.Time.Equal(at) || !made.Result().Created {
		t.Errorf("made: %+v, %v", made.Result(), err)
	}
	if err := q.Await(refused); !errors.Is(err, commit.ErrConflict) {
		t.Errorf("refused: %v", err)
	}
	waits := write(3)
	q.Refuse(store.ErrClosed)
	if err := q.Await(waits); !errors.Is(err, store.ErrClosed) {
		t.Errorf("one that waits: %v", err)
	}
	stop := make(chan struct{})
	close(stop)
	if taken := q.Take(stop); taken != nil {
		t.Errorf("taken after the stop: %v", taken)
	}
	gone, cancel := context.WithCancel(t.Context())
	left := writeOf(gone, seglog.Created, key(4), store.Seen{})
	if err := q.Enqueue(left); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := q.Await(left); !errors.Is(err, context.Canceled) {
		t.Errorf("one whose caller has left: %v", err)
	}
	last := writeOf(t.Context(), seglog.Created, key(5), store.Seen{})
	if err := q.Enqueue(last); err != nil {
		t.Fatal(err)
	}
	q.End()
	if err := q.Await(last); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if err := q.Do(t.Context(), func() error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a call after the end: %v", err)
	}
}

// TestMergerTriesAgain: what was frozen is merged without a committer, and a merger ends with its stop.
func TestMergerTriesAgain(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{})
	p.Create(t, key(1), store.Draft{Value: []byte("there")})
	m := commit.NewMerger(commit.Merger{Index: p.Files.Index, Records: p.Files.Log, Usage: p.Usage, MaxKeys: 1, Unmerged: func() {}, Log: slog.New(slog.DiscardHandler)})
	if !m.Full() {
		t.Error("a memtable with a key is not full, with a limit of one")
	}
	if err := m.MergeAll(); err != nil || p.Files.Index.Merged() != 2 || m.Full() {
		t.Errorf("merged up to %d, %v", p.Files.Index.Merged(), err)
	}
}
