package seglog

import (
	"sync"

	"go.etcd.io/bbolt"
)

// maxIdle is how many idle transactions a segment keeps: about as many as there are
// readers at a time, because readers wait for nothing.
const maxIdle = 4

// A txPool keeps idle read transactions of a segment, because to begin one costs as much
// as to find a record in it. It keeps none while the file is written, and none that was
// begun before: that would not see what was written, would keep bbolt from reusing pages,
// and would hold on to a mapping that has to grow.
type txPool struct {
	mu      sync.Mutex
	idle    []segmentTx
	writes  int // how often a write has begun or ended
	writing int // writes in progress: a checkpoint and a note in the meta bucket may overlap
}

// segmentTx is a read transaction of a segment, zero as long as the reader has not needed
// it.
type segmentTx struct {
	tx     *bbolt.Tx
	cursor *bbolt.Cursor
	place  uint64 // revision that the cursor is at, 0: none
	writes int    // of the pool, before the transaction was begun
}

// read returns a transaction that sees the newest state of the file.
func (s *Segment) read() (segmentTx, error) {
	if v, ok := s.pool.acquire(); ok {
		return v, nil
	}
	v := segmentTx{writes: s.pool.count()}
	tx, err := s.db.Begin(false)
	if err != nil {
		return v, err
	}
	defer func() {
		if v.tx == nil { // the page of its root is damaged, on which bbolt panics
			_ = tx.Rollback()
		}
	}()
	v.cursor = tx.Bucket([]byte(bucketLog)).Cursor()
	v.tx = tx
	return v, nil
}

// acquire returns an idle transaction.
func (p *txPool) acquire() (v segmentTx, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return v, false
	}
	v, p.idle = p.idle[last], p.idle[:last]
	return v, true
}

func (p *txPool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// release returns a transaction to the pool, or rolls it back if the file has been
// written since it began.
func (p *txPool) release(v segmentTx) {
	if !p.tryRelease(v) {
		_ = v.tx.Rollback()
	}
}

// tryRelease reports whether the pool has taken a transaction. Transactions are rolled
// back outside of the lock, because a rollback may wait for Close of the file, which waits
// for readers, which need the lock.
func (p *txPool) tryRelease(v segmentTx) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.writes != p.writes || p.writing > 0 || len(p.idle) == maxIdle {
		return false
	}
	p.idle = append(p.idle, v)
	return true
}

// beginWrite rolls back all idle transactions, and keeps none until endWrite was called as
// often.
func (p *txPool) beginWrite() {
	p.mu.Lock()
	p.writing++
	p.writes++
	ended := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, v := range ended {
		_ = v.tx.Rollback()
	}
}

// endWrite ends what beginWrite began.
func (p *txPool) endWrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing--
	p.writes++
}

// idleCount returns the number of idle transactions.
func (p *txPool) idleCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
