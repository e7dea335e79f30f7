package index_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/shared/randtest"
)

// versions are revisions by what they report: some values that many versions have, and many that few have.
type versions map[string][]uint64

// add puts versions into an index, and merges them.
func (v versions) add(t *testing.T, x *index.Index, random *rand.Rand, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		revision := uint64(2 + i)
		a := [event.NumFields]string{event.Reason: fmt.Sprint("R", random.IntN(3)), event.RegardingName: fmt.Sprint("pod-", i), event.ReportingController: fmt.Sprint("c-", random.IntN(n/20))}
		x.Put(fmt.Sprintf("shop/event-%06d", i), index.NewPointer(revision, false), event.NewAttributes(a, nil))
		for _, value := range []string{a[event.Reason], a[event.RegardingName], a[event.ReportingController]} {
			v[value] = append(v[value], revision)
		}
	}
	if !x.Freeze(index.Live{Events: int64(from + n)}) {
		t.Fatal("it was not frozen")
	}
	if err := x.Merge(1); err != nil {
		t.Fatal(err)
	}
}

// fieldOf returns the field that has such values.
func fieldOf(value string) event.Field {
	switch {
	case strings.HasPrefix(value, "R"):
		return event.Reason
	case strings.HasPrefix(value, "c-"):
		return event.ReportingController
	}
	return event.RegardingName
}

// wantIn fails unless the index finds exactly these versions.
func (v versions) wantIn(t *testing.T, x *index.Index, when string) {
	t.Helper()
	err := x.View(func(view index.View) error {
		for value, want := range v {
			s := &event.Selector{Fields: []event.FieldRequirement{{Field: fieldOf(value), Value: value}}}
			terms, n, ok := view.Rarest(s)
			got, err := view.Postings(terms)
			if err != nil {
				return err
			}
			if !ok || n != len(want) || !slices.Equal(got, want) {
				t.Fatalf("%s: %s has %d, counted %d, want %d", when, value, got, n, want)
			}
		}
		return nil
	})
	if err := errors.Join(err, x.Check()); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
}

// all are the revisions of a log from which none is gone.
func all(last uint64) (index.Revisions, error) {
	set := index.Revisions{}
	for r := range last + 1 {
		set.Add(r)
	}
	return set, nil
}

// TestPacked: terms lead to the same versions when they are packed, also together with those that were merged later.
func TestPacked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, dir)
	random := randtest.New(t)
	v := versions{}
	size := func() int64 {
		info, err := os.Stat(x.Path())
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	rewrite := func() {
		if err := x.Rewrite(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		v.wantIn(t, x, "packed")
	}
	const events = 3000
	v.add(t, x, random, 0, events)
	plain := size()
	if rewrite(); size() > plain*3/4 {
		t.Errorf("packed, the file has %d bytes, before %d", size(), plain)
	}
	for i := 1; i < 4; i++ {
		v.add(t, x, random, i*events, events)
		v.wantIn(t, x, "merged behind packed terms")
		rewrite()
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = open(t, dir)
	v.wantIn(t, x, "opened again")
	if err := x.Rewrite(t.Context(), func(uint64) (index.Revisions, error) { return index.Revisions{}, nil }); err != nil {
		t.Fatal(err)
	}
	for value := range v {
		v[value] = nil
	}
	v.wantIn(t, x, "with an empty log")
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// TestDamagedPackedTerms: a flipped bit in packed terms is found when the file is opened.
func TestDamagedPackedTerms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, dir)
	versions{}.add(t, x, randtest.New(t), 0, 1000)
	if err := x.Rewrite(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(filepath.Join(dir, "index.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("packed"))
		k, value := b.Cursor().First()
		value = slices.Clone(value)
		value[len(value)/2] ^= 1
		return b.Put(slices.Clone(k), value)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if x, err := index.Open(dir, nil); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a flipped bit: %v, %v", x, err)
	}
}
