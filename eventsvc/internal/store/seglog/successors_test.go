package seglog

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/wal"
)

// TestNext: a version leads to the one behind it, whether that is pending, in a head, sealed or compressed, and never
// to another one. Where a list is damaged or missing nothing is found, and a check says so.
func TestNext(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	newest := map[string]successor{}
	next := map[uint64]successor{}
	var last uint64
	write := func(n int) (records []wal.Record) {
		for range n {
			key := fmt.Sprint("default/e", rnd.IntN(1+int(last/4+1)))
			before, known := newest[key]
			e := Entry{Revision: max(2, last+1), Kind: Modified, Previous: before.revision, Key: []byte(key), NamespaceLen: 7, Value: []byte("{}")}
			last = e.Revision
			if !known || before.deletion {
				e.Kind = Created
			} else if rnd.IntN(4) == 0 {
				e.Kind, e.Value = Deleted, nil
			}
			this := successor{before.revision, e.Revision, e.Kind == Deleted}
			newest[key] = this
			if known {
				next[before.revision] = this
			}
			records = append(records, wal.Record{Revision: e.Revision, Data: AppendEntry(nil, &e)})
		}
		return records
	}
	for range 5 {
		for range 6 {
			if err := l.Checkpoint(l.Head(), write(100)); err != nil {
				t.Fatal(err)
			}
		}
		l.rotateTo(t, last+1)
	}
	for _, i := range []int{0, 2} {
		l.rewriteKeeping(t, l.Segments()[i])
	}
	if err := l.Checkpoint(l.Head(), write(100)); err != nil {
		t.Fatal(err)
	}
	l.SetPending(write(100))
	look := func() (found int) {
		t.Helper()
		err := l.View(func(r *Reader) error {
			for revision := uint64(2); revision <= last; revision++ {
				want, known := next[revision]
				got, deletion, ok, err := r.Next(revision, last)
				if err != nil {
					return err
				}
				if ok && (!known || got != want.revision || deletion != want.deletion) {
					t.Fatalf("revision %d leads to %d, deletion %t; want %+v", revision, got, deletion, want)
				}
				if ok {
					found++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	problems := func() (n int) {
		t.Helper()
		for _, s := range l.Segments() {
			if err := CheckSuccessors(s, func(format string, args ...any) { n++ }); err != nil {
				n++
			}
		}
		return n
	}
	if found, wrong := look(), problems(); found != len(next) || wrong > 0 {
		t.Errorf("%d of %d found, %d problems", found, len(next), wrong)
	}
	for name, spoil := range map[string]func(b *bbolt.Bucket, k, v []byte) error{
		"flipped": func(b *bbolt.Bucket, k, v []byte) error {
			v = append([]byte(nil), v...)
			v[rnd.IntN(len(v))] ^= 1 << rnd.IntN(8)
			return b.Put(k, v)
		},
		"missing": func(b *bbolt.Bucket, _, _ []byte) error {
			k, _ := b.Cursor().Last()
			return b.Delete(append([]byte(nil), k...))
		},
	} {
		before := look()
		s := l.Head()
		err := s.update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucketNext))
			k, v := b.Cursor().First()
			return spoil(b, append([]byte(nil), k...), v)
		})
		if err != nil {
			t.Fatal(err)
		}
		if found := look(); found != before-1 || problems() == 0 {
			t.Errorf("%s in %s: %d of %d found, %d problems", name, filepath.Base(s.Path), found, before, problems())
		}
	}
}
