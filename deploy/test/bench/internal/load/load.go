package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"tidings.example/deploy/test/bench/internal/stats"
)

// grace is how long answers may be late after the last request.
const grace = 30 * time.Second

// Spec says what a Load asks and what it expects.
type Spec struct {
	Addr netip.AddrPort
	// Secure makes it TLS with HTTP/2 instead of plain HTTP/1.1.
	Secure *tls.Config
	// Conns is the number of connections, each with one request at a time.
	Conns int
	// Interval makes the load open: request i is due at i × Interval after the
	// start, whether the ones before it are answered or not, and its latency
	// counts from then, so that waiting for a free connection counts. Zero
	// makes it closed: a connection asks again as soon as it is answered.
	Interval time.Duration
	// Limit ends the load after that many requests; 0 is none.
	Limit int
	// Next appends request i to dst.
	Next func(dst []byte, i int) []byte
	// Keep tells whether the body of answer i is kept for Check; nil keeps all.
	// Not keeping the large ones spares the copy.
	Keep func(i int) bool
	// Check judges answer i. It must return an error for every status that is
	// not the expected one.
	Check func(i int, a *Answer) error
}

// Load is requests of one kind on their connections.
type Load struct {
	// Latency is from the intended start (open) or the write (closed) to the
	// last byte of the answer.
	Latency stats.Histogram
	// Done counts the answers that passed Check, Failed the others.
	Done, Failed int
	// Failure is the first that failed.
	Failure error

	spec    Spec
	loop    *Loop
	idle    []*client
	next    int             // of the next request
	start   time.Duration   // when request 0 was due
	began   []time.Duration // the intended starts of the requests
	stopped bool
	busy    int
}

// client is one connection of a Load.
type client struct {
	load   *Load
	conn   *conn
	answer Answer
	out    []byte
	op     int
	since  time.Duration
	busy   bool
}

// NewLoad connects; the first request leaves with Start.
func (l *Loop) NewLoad(spec Spec) (*Load, error) {
	ld := &Load{spec: spec, loop: l, stopped: true}
	for range spec.Conns {
		c := &client{load: ld}
		var err error
		if c.conn, err = l.dial(spec.Addr, spec.Secure, c); err != nil {
			return nil, err
		}
		ld.idle = append(ld.idle, c)
	}
	l.timed = append(l.timed, ld)
	return ld, nil
}

// Do sends spec.Limit requests and waits for their answers. It returns an error
// if one fails Check, or if not all are answered within the given time.
func Do(spec Spec, within time.Duration) error {
	l, err := NewLoop()
	if err != nil {
		return err
	}
	defer l.Close()
	ld, err := l.NewLoad(spec)
	if err != nil {
		return err
	}
	ld.Start()
	if err := l.Run(within, ld.Finished); err != nil {
		return err
	}
	if !ld.Finished() {
		return fmt.Errorf("%d of %d requests are answered after %v", ld.Done, spec.Limit, within)
	}
	return ld.Failure
}

// Start begins to send requests, or goes on after Drain.
func (ld *Load) Start() {
	ld.stopped, ld.start = false, ld.loop.Now()-time.Duration(ld.next)*ld.spec.Interval
}

// Reset forgets the figures so far, for the end of a warm-up.
func (ld *Load) Reset() {
	ld.Latency, ld.Done, ld.Failed = stats.Histogram{}, 0, 0
}

// Drain asks nothing more and waits for the answers that are due.
func (ld *Load) Drain() error {
	ld.stopped = true
	if err := ld.loop.Run(grace, func() bool { return ld.busy == 0 }); err != nil {
		return err
	}
	if ld.busy > 0 {
		return fmt.Errorf("%d requests were not answered within %v", ld.busy, grace)
	}
	return nil
}

// Asked is the number of requests sent so far; they are numbered from 0.
func (ld *Load) Asked() int { return ld.next }

// Finished tells that the limit is reached and everything is answered.
func (ld *Load) Finished() bool { return ld.exhausted() && ld.busy == 0 }

// Began is the intended start of request i, which must have been asked.
func (ld *Load) Began(i int) time.Duration { return ld.began[i] }

func (ld *Load) exhausted() bool {
	return ld.spec.Limit > 0 && ld.next >= ld.spec.Limit
}

func (ld *Load) due() (time.Duration, bool) {
	if ld.stopped || ld.exhausted() || len(ld.idle) == 0 {
		return 0, false
	}
	return ld.start + time.Duration(ld.next)*ld.spec.Interval, true
}

// act sends on idle connections what is due.
func (ld *Load) act(now time.Duration) error {
	for at, ok := ld.due(); ok && at <= now; at, ok = ld.due() {
		c := ld.idle[0] // the one that was idle the longest: servers end connections that never ask
		ld.idle = slices.Delete(ld.idle, 0, 1)
		if ld.spec.Interval == 0 {
			at = now
		}
		if err := c.ask(at); err != nil {
			return err
		}
	}
	return nil
}

// ask sends the next request.
func (c *client) ask(since time.Duration) error {
	ld := c.load
	c.op, c.since, c.busy = ld.next, since, true
	ld.next++
	ld.began = append(ld.began, since)
	ld.busy++
	c.answer.reset(ld.spec.Keep == nil || ld.spec.Keep(c.op))
	c.out = ld.spec.Next(c.out[:0], c.op)
	return c.conn.ask(c.out)
}

func (c *client) receive(p []byte, now time.Duration) error {
	if !c.busy && c.conn.session == nil {
		return fmt.Errorf("%d bytes on a connection that has asked nothing", len(p))
	}
	done, err := c.conn.parse(&c.answer, p)
	if err != nil || !done || !c.busy {
		return err
	}
	ld := c.load
	ld.Latency.Add(now - c.since)
	ld.busy--
	c.busy = false
	if err := ld.spec.Check(c.op, &c.answer); err == nil {
		ld.Done++
	} else {
		ld.fail(fmt.Errorf("request %d: %w", c.op, err))
	}
	if ld.spec.Interval == 0 && !ld.stopped && !ld.exhausted() {
		return c.ask(ld.loop.Now())
	}
	ld.idle = append(ld.idle, c)
	return nil
}

func (ld *Load) fail(err error) {
	if ld.Failed++; ld.Failure == nil {
		ld.Failure = err
	}
}

// errClosed reports that the server closed a connection in use.
var errClosed = errors.New("the server closed a connection that was in use")

func (c *client) closed(err error) error {
	return errors.Join(errClosed, err)
}

// Status is a Check for answers of which only the status matters.
func Status(want int) func(int, *Answer) error {
	return func(_ int, a *Answer) error {
		if a.Status != want {
			return fmt.Errorf("status %d, want %d: %.300s", a.Status, want, a.Body)
		}
		return nil
	}
}

// OneOf is a Check for answers with one of a few statuses.
func OneOf(want ...int) func(int, *Answer) error {
	return func(_ int, a *Answer) error {
		if !slices.Contains(want, a.Status) {
			return fmt.Errorf("status %d, want one of %v: %.300s", a.Status, want, a.Body)
		}
		return nil
	}
}
