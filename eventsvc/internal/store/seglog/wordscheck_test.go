package seglog

import (
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/wal"
)

// TestLackingWords: where words are missing in front of others, the check says up to which revision.
func TestLackingWords(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	s, last := l.Head(), uint64(2+fullBlockRecords)
	var records []wal.Record
	for revision := s.Base; revision <= last; revision++ {
		records = append(records, wal.Record{Revision: revision, Data: storedRecord(t, revision, nil)})
	}
	if err := l.Checkpoint(s, records); err != nil {
		t.Fatal(err)
	}
	if err := s.Seal(last); err != nil {
		t.Fatal(err)
	}
	path := s.Path + ".tmp"
	all := func(f func(needed func(*Entry) (bool, error)) error) error {
		return f(func(*Entry) (bool, error) { return true, nil })
	}
	if _, err := l.Rewrite(t.Context(), s, path, Rewriting{Filter: all, Compress: true}); err != nil {
		t.Fatal(err)
	}
	if problems := wordProblems(t, path); len(problems) > 0 {
		t.Fatal(problems)
	}
	end := keepLastWords(t, path, s.Base, last)
	want := []string{fmt.Sprintf("there are no words of the notes up to revision %d", end)}
	if problems := wordProblems(t, path); !slices.Equal(problems, want) {
		t.Errorf("%q, want %q", problems, want)
	}
}

// wordProblems returns what [CheckWords] finds in a file.
func wordProblems(t *testing.T, path string) (problems []string) {
	t.Helper()
	s, err := OpenSegment(path, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = CheckWords(s, func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return problems
}

// keepLastWords takes the words of the first block out of a file, and returns the last revision of that.
func keepLastWords(t *testing.T, path string, base, last uint64) (end uint64) {
	t.Helper()
	writer, err := newBlockWriter(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		blocks := fileRecordsIn(tx, base, true)
		first, _ := blocks.Bucket.Cursor().First()
		end = be.Uint64(first)
		w := wordWriter{from: end, in: map[string]wordPlaces{}}
		if err := blocks.addWords(&w, end+1, last); err != nil {
			return err
		}
		w.end(last)
		return tx.Bucket([]byte(bucketWords)).Put(w.entry(writer.encoder))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return end
}
