package maintenance_test

import (
	"errors"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
)

// TestRewriteKeepsWhatTheIndexLeadsTo: as long as a version is not merged, the record of the one before it is kept. A
// start counts the bytes of events by it.
func TestRewriteKeepsWhatTheIndexLeadsTo(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{Policy: maintenance.Policy{CompressAfter: time.Hour}})
	key := store.Key{Namespace: "shop", Name: "a"}
	p.Create(t, key, store.Draft{Value: []byte("first")})
	first, _ := p.Read(t, key)
	if err := p.Committer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := commit.Write{Ctx: t.Context(), Kind: seglog.Modified, Key: key, Seen: first.View().Seen(), Draft: store.Draft{Value: []byte("second")}}
	err := p.Committer.Queue.Submit(&w)
	if err == nil {
		err = p.Committer.Queue.Do(t.Context(), func() error {
			return errors.Join(p.Committer.Writer.Rotate(), p.Committer.Writer.MoveCompactRevision(w.Revision()))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	has := func(revision uint64) bool {
		err := p.Files.Log.View(func(r *seglog.Reader) error { _, err := r.Get(revision); return err })
		if err != nil && !errors.Is(err, seglog.ErrGone) {
			t.Error(err)
		}
		return err == nil
	}
	if err := p.Maintenance.CompressAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := p.Files.Log.Segments()[0]; !s.Compressed || !has(first.Revision) {
		t.Errorf("compressed: %t; the version that the file of the index leads to is there: %t", s.Compressed, has(first.Revision))
	}
	if err := p.Maintenance.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	if has(first.Revision) || !has(w.Revision()) {
		t.Errorf("merged and compacted, the first version is there: %t, the second: %t", has(first.Revision), has(w.Revision()))
	}
}

// TestUnlinkReadsAgain: a file of the log is read before it is removed, also if it was counted since the start: the
// account may be wrong.
func TestUnlinkReadsAgain(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{})
	key := store.Key{Namespace: "shop", Name: "a"}
	p.Create(t, key, store.Draft{Value: []byte("alive")})
	if err := p.Committer.Queue.Do(t.Context(), func() error { return errors.Join(p.Committer.Writer.Checkpoint(), p.Committer.Writer.Rotate()) }); err != nil {
		t.Fatal(err)
	}
	first := p.Files.Log.Segments()[0]
	if err := p.Usage.SetSegment(first.Base, usage.SegmentAccount{Dead: first.Bytes(), Counted: true}); err != nil {
		t.Fatal(err)
	}
	if err := p.Maintenance.Compact(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	if r, exists := p.Read(t, key); !exists || string(r.Value) != "alive" {
		t.Errorf("exists %t, %q", exists, r.Value)
	}
	if account := p.Usage.Segment(first.Base); account.Dead != 0 {
		t.Errorf("%d bytes of %d still count as dead", account.Dead, first.Bytes())
	}
}
