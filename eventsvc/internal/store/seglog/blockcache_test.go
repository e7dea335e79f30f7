package seglog

import (
	"sync"
	"testing"
)

// TestCache: it stays within its bytes, and what is read once does not throw out what gets
// use.
func TestCache(t *testing.T) {
	t.Parallel()
	key, value := packBlock(t, 0, 9, []packedRecord{{7, eventRecord(7)}})
	b, err := parseBlock(key, value)
	if err != nil {
		t.Fatal(err)
	}
	const room = 100
	c := newBlockCache(room * b.Bytes())
	at := func(i int) blockKey { return blockKey{File: 1, Last: uint64(i)} }
	add := func(c *blockCache, i int) {
		t.Helper()
		b, err := c.Parse(at(i), key, value)
		if err != nil {
			t.Fatal(err)
		}
		c.Done(b)
	}
	there := func(c *blockCache, at blockKey) bool {
		b := c.Get(at, false)
		if b != nil {
			c.Done(b)
		}
		return b != nil
	}
	for i := range room / 2 {
		add(c, i)
		if !there(c, at(i)) {
			t.Fatalf("block %d is not there", i)
		}
	}
	for i := range 10 * room { // read once
		add(c, 1000+i)
	}
	for i := range room / 2 {
		if !there(c, at(i)) {
			t.Errorf("block %d was thrown out by others that were read once", i)
		}
	}
	if there(c, at(1000)) || there(c, blockKey{File: 2, Last: 1}) {
		t.Error("a block is there that cannot be")
	}
	for i := range 10 * room { // used twice
		add(c, 5000+i)
		there(c, at(5000+i))
		if s := c.Stats(); s.Bytes > room*b.Bytes() {
			t.Fatalf("%d bytes, %d at most", s.Bytes, room*b.Bytes())
		}
	}
	if there(c, at(0)) {
		t.Error("a block that gets no use any more is still there")
	}
	small := newBlockCache(b.Bytes())
	if add(small, 1); there(small, at(1)) {
		t.Error("a block is kept for which there is no room")
	}
	if s := small.Stats(); s.Hits != 0 || s.Misses != 1 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := c.Parse(at(1), key, value[1:]); err == nil {
		t.Error("a damaged block is added")
	}
}

// TestCacheUsers: a block stays what it is while it is used, however many others come and go, and damaged ones among
// them.
func TestCacheUsers(t *testing.T) {
	t.Parallel()
	type packed struct{ key, value []byte }
	const many = 60
	all, records := make([]packed, many), make([][]packedRecord, many)
	for i := range all {
		first := uint64(1 + 10*i)
		records[i] = []packedRecord{{first, eventRecord(first)}, {first + 1, eventRecord(first + 1)}}
		all[i].key, all[i].value = packBlock(t, first-1, first+9, records[i])
	}
	b, err := parseBlock(all[many-1].key, all[many-1].value)
	if err != nil {
		t.Fatal(err)
	}
	c := newBlockCache(20 * b.Bytes())
	var users sync.WaitGroup
	for n := range 8 {
		users.Go(func() {
			for i := range 2000 {
				which := i * n % many
				at := blockKey{File: uint64(n % 2), Last: records[which][0].revision + 9}
				got := c.Get(at, false)
				if got == nil {
					var err error
					if got, err = c.Parse(at, all[which].key, all[which].value); err != nil {
						t.Error(err)
						return
					}
				}
				if _, err := c.Parse(blockKey{File: 3}, all[which].key, all[which].value[1:]); err == nil {
					t.Error("a damaged block is added")
				}
				for at, r := range records[which] {
					if record := recordAt(got, at); string(record) != string(r.data) {
						t.Errorf("a block that is in use has %q, want %q", record, r.data)
						return
					}
				}
				c.Done(got)
			}
		})
	}
	users.Wait()
}
