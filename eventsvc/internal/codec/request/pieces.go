package request

import "runtime"

// piece is how many bytes of a body are processed without a break: less than
// 0.1 ms.
const piece = 64 << 10

// pieces divides the work on a large body: after each piece it yields to all
// goroutines that are ready to run. The runtime preempts only after 10 ms, for
// which other requests would wait.
type pieces struct{ done int }

// reach reports how many bytes are done, and yields if that completes a piece.
func (p *pieces) reach(at int) {
	if at-p.done >= piece {
		p.done = at
		runtime.Gosched()
	}
}
