package index_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/shared/randtest"
	"tidings.example/shared/waittest"
)

// TestPack: what is packed within the file leads to the same versions, except those that are gone, and the file stays
// about as small as a new one, however often events come and go.
func TestPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := openIndex(t, dir)
	random := randtest.New(t)
	const part, parts, rounds = 3000, 3, 8 // of events; so many parts exist at a time
	m, v := pointers{}, versions{}
	revision, first := uint64(1), uint64(0) // the log has revisions from the first on
	held := func(last uint64) (index.Revisions, error) {
		set := index.Revisions{}
		for r := first; r <= last; r++ {
			set.Add(r)
		}
		return set, nil
	}
	var begun []uint64 // the revisions at which the rounds began
	for round := range rounds {
		if begun = append(begun, revision); round >= parts {
			first = begun[round-parts+1]
		}
		for key, p := range m {
			if p.Revision() < first {
				delete(m, key)
				revision++
				x.Put(key, index.NewPointer(revision, true), nil)
			}
		}
		for range part {
			revision++
			key := fmt.Sprintf("ns-%d/pod-%d.%014x", random.IntN(4), random.IntN(40), random.Uint64()>>8)
			a := [event.NumFields]string{event.Reason: fmt.Sprint("R", random.IntN(3)), event.RegardingName: fmt.Sprint("pod-", revision), event.ReportingController: fmt.Sprint("c-", random.IntN(part/20))}
			m[key] = index.NewPointer(revision, false)
			x.Put(key, m[key], event.NewAttributes(a, nil))
			for _, value := range []string{a[event.Reason], a[event.RegardingName], a[event.ReportingController]} {
				v[value] = append(v[value], revision)
			}
		}
		if !x.Freeze(index.Live{Events: m.live()}) {
			t.Fatal("it was not frozen")
		}
		if err := x.Merge(first); err != nil {
			t.Fatal(err)
		}
		how := held
		if round%2 == 0 {
			how = nil
		}
		if err := x.Pack(t.Context(), first, how); err != nil {
			t.Fatal(err)
		}
		for value, revisions := range v {
			v[value] = slices.DeleteFunc(revisions, func(r uint64) bool { return r < first })
		}
		when := fmt.Sprint("round ", round)
		m.wantIn(t, x, when, random)
		v.wantIn(t, x, when)
	}
	packed := disk.Usage(x.Path())
	if err := x.Rewrite(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	m.wantIn(t, x, "written again", random)
	v.wantIn(t, x, "written again")
	if again := disk.Usage(x.Path()); packed > 4*again {
		t.Errorf("packed within the file, it has %d bytes, written again %d", packed, again)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// TestNeedsRewrite: after an import the index is written again, and not packed first.
func TestNeedsRewrite(t *testing.T) {
	t.Parallel()
	x := openIndex(t, t.TempDir())
	const n = 100_000
	for i := range n {
		x.Put(fmt.Sprintf("ns/pod.%08x", i), index.NewPointer(uint64(i+2), false), nil)
	}
	if !x.Freeze(index.Live{Events: n}) {
		t.Fatal("it was not frozen")
	}
	if err := x.Merge(0); err != nil {
		t.Fatal(err)
	}
	if !x.NeedsRewrite(n) || !x.NeedsRewrite(2*n) {
		t.Error("most keys are not sorted, and it is not to be written again")
	}
	if x.NeedsRewrite(3*n) || !x.NeedsPack(3*n) {
		t.Error("a third of the keys is not sorted, and is not only to be packed")
	}
	if x.NeedsRewrite(2*n+2) || !x.NeedsPack(2*n+2) {
		t.Error("fewer than half of the keys are not sorted, and the file is not to be packed only")
	}
	held := func(uint64) (index.Revisions, error) { return index.Revisions{}, nil }
	if err := x.Rewrite(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if x.NeedsRewrite(n) || x.NeedsPack(n) {
		t.Error("it was written again, and is to be again")
	}
}

// TestPackBesideMerges: merges go on while the file is packed, and readers find everything.
func TestPackBesideMerges(t *testing.T) {
	t.Parallel()
	x := openIndex(t, t.TempDir())
	random := randtest.New(t)
	m, v := pointers{}, versions{}
	const n = 20_000
	v.add(t, x, random, 0, n)
	var packing sync.WaitGroup
	held := make(chan struct{})
	packing.Go(func() {
		err := x.Pack(t.Context(), 0, func(last uint64) (index.Revisions, error) {
			close(held)
			return all(last)
		})
		if err != nil {
			t.Error(err)
		}
	})
	waittest.Within(t, held)
	for i := range 5 {
		v.add(t, x, random, n+i*1000, 1000)
	}
	waittest.Join(t, &packing)
	for i := range n + 5000 {
		m[fmt.Sprintf("shop/event-%06d", i)] = index.NewPointer(uint64(2+i), false)
	}
	v.wantIn(t, x, "packed beside merges")
	keys := slices.Sorted(maps.Keys(m))
	err := x.View(func(view index.View) error {
		it := view.Iterate("", "")
		for _, key := range keys {
			if !it.Valid() || string(it.Key()) != key || it.Pointer() != m[key] {
				t.Fatalf("%q leads to %v, want %s", it.Key(), it.Pointer(), key)
			}
			it.Next()
		}
		return it.Err()
	})
	if err != nil {
		t.Error(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}
