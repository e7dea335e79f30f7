package request

import "runtime"

// piece is how many bytes of a body are looked at without a break, which takes less
// than a tenth of a millisecond.
const piece = 64 << 10

// pieces parts the work on a large body: after each piece of it, all that is
// ready to run goes first. The runtime itself would take the processor away only
// after ten milliseconds, for which other requests would wait. A body that is
// smaller than a piece is worked on without a break.
type pieces struct{ done int }

// reach is told how far the work has come.
func (p *pieces) reach(at int) {
	if at-p.done >= piece {
		p.done = at
		runtime.Gosched()
	}
}
