package bolt

import (
	"sync"

	"go.etcd.io/bbolt"
)

// mostKept is how many views of a segment wait for their next reader: about as
// many as read at once, for a reader waits for nothing.
const mostKept = 4

// views are the read transactions of a segment in which nobody reads just now: to
// begin one costs as much as to find a record in it. None is kept while the file
// is written, or beyond that. It would not see what was written, keep pages from
// being used again, and never let go of a mapping that has to grow.
type views struct {
	mu      sync.Mutex
	kept    []segmentView
	writes  int // how often one has begun or ended
	writing int // that have begun and not ended: a fold and what the committer notes may overlap
}

// segmentView is what a logReader has of a segment, nil as long as it has not
// needed it.
type segmentView struct {
	tx     *bbolt.Tx
	cursor *bbolt.Cursor
	place  uint64 // revision that the cursor is at, 0: none
	writes int    // of views, before the transaction was begun
}

// read begins to read, in the newest state of the file.
func (s *segment) read() (segmentView, error) {
	if v, ok := s.views.take(); ok {
		return v, nil
	}
	v := segmentView{writes: s.views.count()}
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

// take returns a view that was kept.
func (vs *views) take() (v segmentView, ok bool) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	last := len(vs.kept) - 1
	if last < 0 {
		return v, false
	}
	v, vs.kept = vs.kept[last], vs.kept[:last]
	return v, true
}

func (vs *views) count() int {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return vs.writes
}

// keep has a view wait for its next reader, unless it has to end.
func (vs *views) keep(v segmentView) {
	if !vs.put(v) {
		_ = v.tx.Rollback()
	}
}

// put reports whether a view may wait. Views end outside of the lock: to end one
// may have to wait for a file that is being closed, which waits for those who
// still read, and want the lock.
func (vs *views) put(v segmentView) bool {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v.writes != vs.writes || vs.writing > 0 || len(vs.kept) == mostKept {
		return false
	}
	vs.kept = append(vs.kept, v)
	return true
}

// shut ends all views that nobody reads in, and keeps none until as many reopen.
func (vs *views) shut() {
	vs.mu.Lock()
	vs.writing++
	vs.writes++
	ended := vs.kept
	vs.kept = nil
	vs.mu.Unlock()
	for _, v := range ended {
		_ = v.tx.Rollback()
	}
}

func (vs *views) reopen() {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.writing--
	vs.writes++
}

// waiting is how many are kept.
func (vs *views) waiting() int {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return len(vs.kept)
}
