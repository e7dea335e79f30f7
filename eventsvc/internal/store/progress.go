package store

// Progress is told how far long work has come: now and then, and always at its end. It
// may be nil.
type Progress func(done, total int64)

// Tell calls p unless it is nil.
func (p Progress) Tell(done, total int64) {
	if p != nil {
		p(done, total)
	}
}
