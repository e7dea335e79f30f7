// Package flow shares the processors fairly among clients.
//
// It follows Kubernetes' API Priority and Fairness and uses its words: a flow is
// the requests of one client, a [Level] is a kind of request with seats of its
// own, and a request holds a seat while it needs a processor.
//
// # Contract
//
// A request enters a level with [Scheduler.Enter] and ends with [Seat.Release],
// on every path. Between the two it holds its seat while it computes
// ([Seat.Acquire]) and not while it waits for the disk or for its client
// ([Seat.Yield]). [Seat.Write] and [Reader] do this for answers and bodies, and
// [Turns] for work that takes long.
//
// The scheduler guarantees:
//
//   - Only so many requests are in flight, in all and of one flow. Enter refuses
//     more, except the first request of a flow.
//   - Only so many requests of a level hold a seat. Almost all the processor time
//     of a request is spent on a seat, so requests that are not bounded here do
//     not fill the processors.
//   - A free seat goes to the waiting flow that has used the least time, however
//     many requests other flows have waiting and however long those take. What a
//     request costs outside its seat (receiving it, storing it) is estimated and
//     added.
//   - While several flows are active, each leaves one processor free for the
//     others. A flow that is alone may take every seat.
//   - A flow that has used its fair share of all processors' time in the current
//     period gets no seat while a flow below its share has a request in flight.
//     That holds even if the other request waits for the disk: it will need a
//     processor again at once. It does not if that waits for its client, who may
//     never read or send.
//   - Of the large bodies of a flow only a few are in memory at once. They are
//     read in pieces, and each piece waits for a seat.
//   - All callers whose token is refused are one flow, [Anonymous].
//
// # Errors
//
// Enter returns [ErrTooManyRequests] or [ErrTooManyOfFlow]; nothing was done for
// the request yet, so that the client may try again. Acquire returns the error of
// its context and nothing else.
//
// # Concurrency
//
// A Scheduler is safe for concurrent use. A Seat is used by the one goroutine
// that serves the request. All methods of a nil *Seat, and those of a released
// one, do nothing, so that exempt requests take the same path as others.
//
// # Why not a semaphore
//
// One semaphore for each level, and a cap on the seats of a flow of one less than
// there are processors, need half of the code. Beside a flood of one client
// (attack/flood of the benchmark, 5 alternating runs, 2 processors), the p99 of
// other clients was 65 ms (39 to 197) instead of 23 ms (14 to 24), and they got a
// quarter of the requests done. Without an attack there was no difference. A cap
// limits how many seats a flow holds, and not how much time it takes from others.
//
// # What it does not know
//
// HTTP, tokens, verbs and stores. It sees levels, names of flows and time.
package flow
