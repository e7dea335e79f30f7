package boltfile

import "sync/atomic"

// Readers is a reference count: how many hold an open file, or several. The first one is its owner, who unlinks a file
// as soon as it is replaced or removed, and then releases it. The last to release it closes the file, which gives back
// its descriptor and its blocks on the disk. So no page is unmapped while somebody reads it, and no reader is
// interrupted. It is safe for concurrent use.
type Readers struct {
	n      atomic.Int64
	close  func() error
	closed chan struct{}
	err    error  // of close
	freed  func() // called with the file closed; nil: nothing is
}

// NewReaders returns a count of one, for the owner. close is called once, by the last release.
func NewReaders(close func() error) *Readers {
	r := &Readers{close: close, closed: make(chan struct{})}
	r.n.Store(1)
	return r
}

// Acquire counts one more reader, who must call [Readers.Release]. It reports false if the last one is gone already:
// the owner has another file by now, or none.
func (r *Readers) Acquire() bool {
	for n := r.n.Load(); n > 0; n = r.n.Load() {
		if r.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// Release ends what NewReaders or an Acquire has begun.
func (r *Readers) Release() {
	if r.n.Add(-1) == 0 {
		if r.err = r.close(); r.freed != nil {
			r.freed()
		}
		close(r.closed)
	}
}

// Unlinked releases a file for its owner, who has unlinked it or given its name to another. Its bytes are added to
// those of other such files until it is closed.
func (r *Readers) Unlinked(bytes int64, of *atomic.Int64) {
	of.Add(bytes)
	r.freed = func() { of.Add(-bytes) }
	r.Release()
}

// Wait waits for the last reader, and returns the error of close.
func (r *Readers) Wait() error {
	<-r.closed
	return r.err
}
