package maintenance_test

import (
	"errors"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/maintenance"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/storetest/parts"
)

// TestRewriteKeepsWhatTheIndexLeadsTo: as long as a version is not merged, the record of the one before it is kept. A start counts
// the bytes of events by it.
func TestRewriteKeepsWhatTheIndexLeadsTo(t *testing.T) {
	t.Parallel()
	p := parts.Open(t, parts.Options{Policy: maintenance.Policy{CompressAfter: time.Hour}})
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
