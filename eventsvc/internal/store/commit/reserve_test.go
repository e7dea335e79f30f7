package commit_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/shared/waittest"
)

// TestMergeIsKeptBack: what a merge of the index will take is not free, neither for events nor for deletions.
func TestMergeIsKeptBack(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{})
	full, err := usage.New(filepath.Dir(p.Files.Index.Path()), usage.Limits{MinFree: 1 << 60}, p.Files)
	if err != nil {
		t.Fatal(err)
	}
	const least = 4 << 20
	for name := 0; p.Files.Index.MergeBytes() < least; name++ {
		p.Files.Index.Put(fmt.Sprint("ns/", name, rand.Text()), 1)
	}
	merge := p.Files.Index.MergeBytes()
	waittest.Becomes(t, func() error {
		before, err := full.Free()
		create, _ := full.Full(0)
		room := full.DeletionRoom()
		after, err2 := full.Free()
		switch free := before - merge; {
		case err != nil || err2 != nil || before != after:
			return fmt.Errorf("the disk is used by others: %d and %d bytes are free, %w, %w", before, after, err, err2)
		case room != free:
			t.Fatalf("deletions have %d bytes, want %d", room, free)
		case create == nil || !strings.Contains(create.Error(), fmt.Sprintf(" %d MiB are free", free>>20)):
			t.Fatalf("%v; %d bytes are free when all is merged", create, free)
		}
		return nil
	})
}

// TestDamagedPageUnderACommit: a commit that meets a damaged page of the index makes none of its writes, and leaves no
// gap: the next write has the next revision.
func TestDamagedPageUnderACommit(t *testing.T) {
	t.Parallel()
	p := bolttest.OpenParts(t, bolttest.PartsOptions{})
	for i := range 1000 {
		p.Create(t, key(i), store.Draft{Value: []byte("there")})
	}
	if err := p.Committer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	there, _ := p.Read(t, key(500))
	path := p.Files.Index.Path()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	for page := 0; page < len(damaged); page += os.Getpagesize() {
		if bytes.Contains(damaged[page:page+os.Getpagesize()], []byte(there.Namespace+"/")) { // it has keys
			copy(damaged[page:], bytes.Repeat([]byte{0xff}, 8)) // its number
		}
	}
	overwrite(t, path, damaged)
	last := p.Hub.Published()
	w := writeOf(t.Context(), seglog.Modified, there.Key, there.View().Seen())
	w.With = []commit.Write{*writeOf(t.Context(), seglog.Created, key(2000), store.Seen{})}
	if err := p.Committer.Queue.Submit(w); err == nil || !strings.Contains(err.Error(), "damaged page") {
		t.Errorf("a commit over a damaged page: %v", err)
	}
	overwrite(t, path, whole)
	p.Create(t, key(2001), store.Draft{Value: []byte("next")})
	if next, _ := p.Read(t, key(2001)); next.Revision != last+1 {
		t.Errorf("the next write has revision %d, want %d", next.Revision, last+1)
	}
	if _, ok := p.Read(t, key(2000)); ok {
		t.Error("a write of the failed commit is there")
	}
}

// overwrite replaces what a file has, which may be mapped: it is never shorter meanwhile.
func overwrite(t *testing.T, path string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(content, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
