package index

import (
	"fmt"
	"testing"
)

// TestKeyFilter: no key that was put is told to be absent, over several layers, and nearly all others are. When the
// filter is full it tells nothing.
func TestKeyFilter(t *testing.T) {
	t.Parallel()
	key := func(kind string, i int) string { return fmt.Sprintf("shop/%s.%x", kind, i) }
	const n = 5 * blockKeys * firstBlocks // in three layers
	f := newKeyFilter()
	for i := range n {
		f.add(key("put", i))
	}
	if got := len(*f.layers.Load()); got != 3 {
		t.Fatalf("%d layers", got)
	}
	wrong := 0
	for i := range n {
		if f.absent(key("put", i)) {
			t.Fatalf("%s was put", key("put", i))
		}
		if !f.absent(key("other", i)) {
			wrong++
		}
	}
	if wrong > n/20 {
		t.Errorf("%d of %d others are not told from what was put", wrong, n)
	}
	full := make([]filterLayer, maxLayers)
	for i := range full {
		full[i] = make(filterLayer, 1)
	}
	f.layers.Store(&full)
	f.keys = blockKeys
	f.add("one more")
	if f.absent("other") || f.absent("one more") {
		t.Error("a full filter still tells something")
	}
	f.add("and another")
}

// TestKeyFilterOfFile: an index has a filter only if its file had no keys when it was opened.
func TestKeyFilterOfFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *Index {
		x, err := Open(dir, func() []byte { return []byte("0123456789abcdef") })
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := open()
	x.Put("shop/a", NewPointer(1, false))
	for _, what := range []string{"in memory", "in the file"} {
		if _, ok, err := x.Newest("shop/a"); !ok || err != nil {
			t.Errorf("%s: not found: %v", what, err)
		}
		if _, ok, err := x.Newest("shop/b"); ok || err != nil {
			t.Errorf("%s: found what was not put: %v", what, err)
		}
		x.Freeze(Live{Events: 1})
		if err := x.Merge(0); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = open()
	defer func() { _ = x.Close() }()
	if x.known != nil {
		t.Error("the filter lacks what the file has")
	}
	if _, ok, err := x.Newest("shop/a"); !ok || err != nil {
		t.Errorf("not found after the start: %v", err)
	}
}
