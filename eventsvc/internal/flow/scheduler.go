package flow

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Level is a kind of request with seats of its own, so that a flood of one kind
// does not delay another.
type Level int

// The levels.
const (
	Reads    Level = iota
	Writes         // and all other requests with a body
	Watches        // until the initial state is sent, and tails while they match
	Refusals       // of tokens
	levels
)

// String returns the label of the level in metrics.
func (l Level) String() string { return [...]string{"read", "write", "watch", "refusal"}[l] }

// Anonymous is the flow of all callers whose token is refused, so that these
// callers delay each other and nobody else. The name of a client is its
// issuer, NUL and its subject, and no issuer is empty.
const Anonymous = "\x00"

// Errors of [Scheduler.Enter].
var (
	ErrTooManyRequests = errors.New("flow: too many requests are in flight")
	ErrTooManyOfFlow   = errors.New("flow: too many requests of this client are in flight")
)

const (
	// minUse is the least that holding a seat counts, so that flows alternate
	// even if the clock is too coarse to tell their requests apart.
	minUse = 10 * time.Microsecond
	// contention is how long flows count as competing after a request of one
	// followed a request of another.
	contention = time.Second
)

// costs estimate what a request takes outside its seat: the server reads it, and
// the store writes it. A refusal counts much more than it takes, so that all
// anonymous callers together get a small part of a client's share.
var costs = [levels]time.Duration{
	Reads: 25 * time.Microsecond, Writes: 65 * time.Microsecond, Refusals: 100 * time.Microsecond,
}

// Scheduler gives out seats.
type Scheduler struct {
	maxRequests, maxOfFlow, processors int
	seats                              int // of each level
	rooms                              rooms

	mu       sync.Mutex
	inFlight int
	flows    map[string]*flow // with anything in flight, on a seat or waiting, or with time to account for
	levels   [levels]level
	clock    time.Duration // the most that a flow had used when it got a seat
	latest   string        // flow that made the newest request
	changed  time.Time     // when latest last changed
	since    time.Time     // start of the current period
	active   int           // flows that used time in the period before
	timer    *time.Timer   // dispatches when the next period starts; nil: not needed
}

// level is the state of one Level.
type level struct {
	working int // requests that hold a seat
	waiting int
	queue   []*flow // with waiting requests
}

// flow is the state of one client's requests.
type flow struct {
	name     string
	inFlight int
	stalled  int // of these, requests that wait for their client
	working  int
	used     time.Duration           // in all; decides who is next
	spent    time.Duration           // in the current period, with what earlier ones left over
	waiting  [levels][]chan struct{} // closed when the request gets its seat
	large    chan struct{}           // holds one element for each large body; nil: none yet
}

// New makes a scheduler for a number of processors. It lets maxRequests requests be in
// flight, and maxOfFlow of one flow. The first request of a flow is always let in, so that
// a crowd of others cannot shut a client out.
func New(maxRequests, maxOfFlow, processors int) *Scheduler {
	return &Scheduler{
		maxRequests: maxRequests, maxOfFlow: maxOfFlow, processors: processors, flows: map[string]*flow{}, rooms: rooms{of: map[string]*taken{}},
		seats: max(4, 2*processors), // more than processors: a page fault blocks a request on its seat
	}
}

// Enter counts a request in. The caller must release the seat. A read holds it
// already if one is free; otherwise Acquire waits for it. Watches are not counted
// as in flight: their number is bounded elsewhere.
func (s *Scheduler) Enter(l Level, name string) (*Seat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flow(name)
	seat := &Seat{scheduler: s, level: l, flow: f, room: Room{pool: &s.rooms, flow: name}}
	if l == Watches {
		return seat, nil
	}
	switch {
	case f.inFlight >= s.maxOfFlow:
		return nil, ErrTooManyOfFlow
	case s.inFlight >= s.maxRequests && f.inFlight > 0:
		return nil, ErrTooManyRequests
	}
	f.inFlight++
	s.inFlight++
	f.charge(costs[l])
	if l == Reads && s.tryStart(f, l) {
		seat.began = time.Now()
	}
	return seat, nil
}

// flow returns the flow of a name, a new one if there is none.
func (s *Scheduler) flow(name string) *flow {
	s.startPeriod()
	f := s.flows[name]
	if f == nil {
		f = &flow{name: name, used: s.clock}
		s.flows[name] = f
	}
	if name != s.latest && name != Anonymous {
		if s.latest != "" {
			s.changed = time.Now()
		}
		s.latest = name
	}
	return f
}

// running reports whether a flow has a request in flight that needs a processor, now or soon: a request that waits for
// the disk needs one soon, a request that waits for its client may need none for long.
func (f *flow) running() bool { return f.inFlight > f.stalled }

// charge adds time that was used without a seat.
func (f *flow) charge(d time.Duration) {
	f.used += d
	f.spent += d
}

// idle reports whether no request of a flow holds a seat or waits for one.
func (f *flow) idle() bool {
	return f.working == 0 && !slices.ContainsFunc(f.waiting[:], func(w []chan struct{}) bool { return len(w) > 0 })
}

// tryStart gives a request of a flow a seat if it need not wait for one.
func (s *Scheduler) tryStart(f *flow, l Level) bool {
	if f.idle() { // time that a flow did not use is not saved up
		f.used = max(f.used, s.clock)
	}
	v := &s.levels[l]
	if v.working == s.seats || f.working >= s.maxSeats(f) || len(f.waiting[l]) > 0 || s.overShare(f) {
		return false
	}
	s.start(v, f) // a seat is free, so no flow that waits may take one now
	return true
}

// enqueue puts a request behind the others of its flow. It returns nil if the
// request got a seat at once.
func (s *Scheduler) enqueue(f *flow, l Level) chan struct{} {
	if s.tryStart(f, l) {
		return nil
	}
	v := &s.levels[l]
	if len(f.waiting[l]) == 0 {
		v.queue = append(v.queue, f)
	}
	ready := make(chan struct{})
	f.waiting[l] = append(f.waiting[l], ready)
	v.waiting++
	if s.overShare(f) {
		s.dispatchLater()
	}
	return ready
}

// cancel takes a request out of the queue. It returns false if the request has
// got its seat.
func (s *Scheduler) cancel(f *flow, l Level, ready chan struct{}) bool {
	i := slices.Index(f.waiting[l], ready)
	if i < 0 {
		return false
	}
	s.dequeue(f, l, i)
	return true
}

// dequeue removes the i-th waiting request of a flow.
func (s *Scheduler) dequeue(f *flow, l Level, i int) {
	v := &s.levels[l]
	f.waiting[l] = slices.Delete(f.waiting[l], i, i+1)
	v.waiting--
	if len(f.waiting[l]) == 0 {
		v.queue = slices.DeleteFunc(v.queue, func(other *flow) bool { return other == f })
	}
}

// dispatch gives the free seats of a level to waiting requests.
func (s *Scheduler) dispatch(l Level) {
	v := &s.levels[l]
	for v.working < s.seats && len(v.queue) > 0 {
		f := s.next(v)
		if f == nil {
			return
		}
		close(f.waiting[l][0])
		s.dequeue(f, l, 0)
		s.start(v, f)
	}
}

// start counts a request that gets a seat.
func (s *Scheduler) start(v *level, f *flow) {
	v.working++
	f.working++
	s.clock = max(s.clock, f.used)
	f.used += minUse
}

// stop counts a request that gives up its seat.
func (s *Scheduler) stop(f *flow, l Level) {
	s.levels[l].working--
	f.working--
	s.dispatchAll()
}

// dispatchAll dispatches all levels: a flow may have waited for its own requests
// on another level, or for other flows to end.
func (s *Scheduler) dispatchAll() {
	for l := range levels {
		s.dispatch(l)
	}
}

// contended reports whether more than one flow made requests lately.
func (s *Scheduler) contended() bool {
	return !s.changed.IsZero() && time.Since(s.changed) < contention
}

// alone reports whether a flow may use all seats, because no other flow competes.
// Anonymous callers may not, and do not count as competitors.
func (s *Scheduler) alone(f *flow) bool { return f.name != Anonymous && !s.contended() }

// maxSeats is how many requests of a flow may hold a seat at once.
func (s *Scheduler) maxSeats(f *flow) int {
	if s.alone(f) {
		return s.maxRequests
	}
	return max(1, s.processors-1)
}

// next is the waiting flow that gets the next seat, nil if none may have one.
func (s *Scheduler) next(v *level) (next *flow) {
	for _, f := range v.queue {
		switch {
		case f.working >= s.maxSeats(f) || next != nil && f.used >= next.used:
		case s.overShare(f):
			s.dispatchLater()
		default:
			next = f
		}
	}
	return next
}

// Collectors returns the metrics of the scheduler.
func (s *Scheduler) Collectors() []prometheus.Collector {
	all := []prometheus.Collector{s.rooms.gauge()}
	for l := range levels {
		v := &s.levels[l]
		read := func(n *int) func() float64 {
			return func() float64 {
				s.mu.Lock()
				defer s.mu.Unlock()
				return float64(*n)
			}
		}
		labels := prometheus.Labels{"class": l.String()}
		all = append(all,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "eventsvc_requests_working", Help: "Requests that hold a seat: they need a processor.", ConstLabels: labels,
			}, read(&v.working)),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "eventsvc_requests_waiting", Help: "Requests that wait for a seat.", ConstLabels: labels,
			}, read(&v.waiting)))
	}
	return all
}
