package blocks_test

import (
	"sync"
	"testing"

	"tidings.example/eventsvc/internal/store/blocks"
)

// TestCache: it stays within its bytes, and what is read once does not throw out what gets
// use.
func TestCache(t *testing.T) {
	t.Parallel()
	b, err := blocks.Parse(pack(t, 0, 9, []stored{{7, event(7)}}))
	if err != nil {
		t.Fatal(err)
	}
	const room = 100
	c := blocks.NewCache(room * b.Bytes())
	at := func(i int) blocks.Place { return blocks.Place{File: 1, Last: uint64(i)} }
	for i := range room / 2 {
		c.Put(at(i), b)
		if c.Get(at(i)) != b {
			t.Fatalf("block %d is not there", i)
		}
	}
	for i := range 10 * room { // read once
		c.Put(at(1000+i), b)
	}
	for i := range room / 2 {
		if c.Get(at(i)) == nil {
			t.Errorf("block %d was thrown out by others that were read once", i)
		}
	}
	if c.Get(at(1000)) != nil || c.Get(blocks.Place{File: 2, Last: 1}) != nil {
		t.Error("a block is there that cannot be")
	}
	for i := range 10 * room { // used twice
		c.Put(at(5000+i), b)
		c.Get(at(5000 + i))
		if s := c.Stats(); s.Bytes > room*b.Bytes() {
			t.Fatalf("%d bytes, %d at most", s.Bytes, room*b.Bytes())
		}
	}
	if c.Get(at(0)) != nil {
		t.Error("a block that gets no use any more is still there")
	}
	small := blocks.NewCache(b.Bytes())
	if small.Put(at(1), b); small.Get(at(1)) != nil {
		t.Error("a block is kept for which there is no room")
	}
	if s := small.Stats(); s.Hits != 0 || s.Misses != 1 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
}

func TestCacheUsers(t *testing.T) {
	t.Parallel()
	b, err := blocks.Parse(pack(t, 0, 9, []stored{{7, event(7)}}))
	if err != nil {
		t.Fatal(err)
	}
	c := blocks.NewCache(20 * b.Bytes())
	var users sync.WaitGroup
	for n := range 8 {
		users.Go(func() {
			for i := range 2000 {
				at := blocks.Place{File: uint64(n % 2), Last: uint64(i * n % 60)}
				if got := c.Get(at); got == nil {
					c.Put(at, b)
				} else if got != b {
					t.Error("another block")
				}
			}
		})
	}
	users.Wait()
}
