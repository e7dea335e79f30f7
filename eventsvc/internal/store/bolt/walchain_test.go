package bolt

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/shared/randtest"
)

// A chain is a store that is killed again and again, each time in the middle of
// its last write.
type chain struct {
	o       Options
	r       *rand.Rand
	want    map[string][]byte
	written int64

	name  string // the write that was cut short
	value []byte
}

// R1, R2, R3: restarts of restarts. A write that was cut short is there whole or
// not at all; revisions are given away, writes go past the write-ahead log, files are
// rotated, and stores stop because a file has failed.
func TestRestartsOfRestarts(t *testing.T) {
	t.Parallel()
	rounds := 10
	if long := flag.Lookup("long"); long != nil && long.Value.String() == "true" {
		rounds = 300
	}
	c := &chain{r: randtest.New(t), want: map[string][]byte{}}
	c.o = Options{Dir: t.TempDir(), SegmentBytes: 600 << 10, MemtableLimit: 40}
	for round := range rounds {
		db := openInside(t, c.o)
		c.compare(t, db)
		for range c.r.IntN(40) {
			c.settle(c.write(t, db))
		}
		if c.r.IntN(8) == 0 {
			db.Fail()
			closeInside(t, db)
			db = openInside(t, c.o)
		}
		before := killedInside(t, db)
		name, value := c.write(t, db)
		after := killedInside(t, db)
		if c.tear(t, before, after) {
			c.settle(name, value)
		} else {
			c.name, c.value = name, value
		}
		closeInside(t, db)
		if err := errors.Join(os.RemoveAll(before), os.RemoveAll(c.o.Dir)); err != nil {
			t.Fatal(err)
		}
		if c.o.Dir = after; t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

func (c *chain) settle(name string, value []byte) {
	c.want[name] = value
	c.written++
}

// write writes an event; now and then one that is longer than the write-ahead log.
func (c *chain) write(t *testing.T, db *DB) (name string, value []byte) {
	t.Helper()
	n := c.r.IntN(6000)
	if c.r.IntN(40) == 0 {
		n = 70 << 10
	}
	value = make([]byte, n)
	for i := range value {
		value[i] = byte(c.r.Uint32())
	}
	if c.r.IntN(9) == 0 { // as to writes that are refused
		given := uint64(c.r.IntN(3))
		if err := db.committer.Queue.Do(t.Context(), func() error { db.committer.Writer.Last += given; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	name = fmt.Sprint("e", c.r.IntN(60))
	putInside(t, db, name, value)
	return name, value
}

// compare wants everything that was written in the store, and counted once.
func (c *chain) compare(t *testing.T, db *DB) {
	t.Helper()
	get := func(name string) []byte {
		r, err := store.Read(t.Context(), db, store.Key{Namespace: "ns", Name: name})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		return r.Value
	}
	if c.name != "" && bytes.Equal(get(c.name), c.value) {
		c.settle(c.name, c.value) // it was whole
	}
	c.name = ""
	for name, value := range c.want {
		if !bytes.Equal(get(name), value) {
			t.Errorf("%s is not what was written", name)
		}
	}
	counted := int64(0)
	now := time.Now()
	in := store.Range{From: now.Add(-time.Hour), To: now.Add(time.Hour)}
	err := db.Timeline().Count(t.Context(), store.Count{Range: in, Group: func(event.Dimensions, event.Regarding) int { return 0 }}, func(o store.Occurred) { counted += o.Count })
	if err != nil || counted != c.written {
		t.Errorf("%d writes are counted, want %d: %v", counted, c.written, err)
	}
}

// tear makes some sectors of the last write what they were before it, if it went
// into the write-ahead log alone. It reports whether the write is whole.
func (c *chain) tear(t *testing.T, before, after string) (whole bool) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(after, seglog.SegmentPattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range logs {
		was, err := os.ReadFile(filepath.Join(before, filepath.Base(path)))
		if is, err2 := os.ReadFile(path); err != nil || err2 != nil || !bytes.Equal(was, is) {
			return true
		}
	}
	was, err := os.ReadFile(filepath.Join(before, wal.FileName))
	is, err2 := os.ReadFile(filepath.Join(after, wal.FileName))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	whole = true
	const sector = 512
	for at := 0; at < len(is); at += sector {
		if !bytes.Equal(was[at:at+sector], is[at:at+sector]) && c.r.IntN(3) == 0 {
			copy(is[at:at+sector], was[at:])
			whole = false
		}
	}
	if err := os.WriteFile(filepath.Join(after, wal.FileName), is, 0o600); err != nil {
		t.Fatal(err)
	}
	return whole
}
