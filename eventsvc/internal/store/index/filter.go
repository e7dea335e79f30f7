package index

import (
	"hash/maphash"
	"sync/atomic"
)

// A keyFilter tells of most keys that were never put that they were not, without a look into the file. An import asks
// for every event that it brings whether it is there. It has one writer and any number of readers, who take no lock.
//
// It consists of Bloom filters, each twice as large as the one before. All bits of a key are in one block of 64 bytes,
// which takes one cache miss. About one in a hundred of the other keys is not told from those that were put in a full
// layer.
type keyFilter struct {
	seed   maphash.Seed
	layers atomic.Pointer[[]filterLayer]
	keys   int // put into the last layer; the writer's
}

type filterLayer [][8]atomic.Uint64

const (
	firstBlocks = 1 << 10 // of the first layer
	blockKeys   = 48      // keys in a block, on average, when a layer is full
	maxLayers   = 8       // 16 MiB for twelve million keys; with more of them the filter tells nothing
)

func newKeyFilter() *keyFilter {
	f := &keyFilter{seed: maphash.MakeSeed()}
	f.layers.Store(&[]filterLayer{make(filterLayer, firstBlocks)})
	return f
}

// each calls f with the words of a block that have bits of a key, and these, until it returns false.
func (l filterLayer) each(hash uint64, f func(word *atomic.Uint64, bit uint64) bool) bool {
	block := &l[hash&uint64(len(l)-1)]
	hash = hash * 0x9e3779b97f4a7c15 >> 28
	for range 4 {
		if !f(&block[hash&7], 1<<(hash>>3&63)) {
			return false
		}
		hash >>= 9
	}
	return true
}

// add puts in a key, before it can be found in the index.
func (f *keyFilter) add(key string) {
	layers := *f.layers.Load()
	if len(layers) == 0 {
		return
	}
	last := layers[len(layers)-1]
	if f.keys == blockKeys*len(last) {
		if f.keys = 0; len(layers) == maxLayers {
			f.layers.Store(&[]filterLayer{})
			return
		}
		last = make(filterLayer, 2*len(last))
		more := append(layers[:len(layers):len(layers)], last)
		f.layers.Store(&more)
	}
	f.keys++
	last.each(maphash.String(f.seed, key), func(word *atomic.Uint64, bit uint64) bool {
		word.Or(bit)
		return true
	})
}

// absent reports that a key was never put. It may report false for any key. There may be no filter.
func (f *keyFilter) absent(key string) bool {
	if f == nil {
		return false
	}
	layers := *f.layers.Load()
	hash := maphash.String(f.seed, key)
	for _, l := range layers {
		if l.each(hash, func(word *atomic.Uint64, bit uint64) bool { return word.Load()&bit != 0 }) {
			return false
		}
	}
	return len(layers) > 0
}
