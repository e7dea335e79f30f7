package api

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/policy"
)

// class is a kind of requests with a share of its own, so that a flood of one
// kind leaves the other alone.
type class int

const (
	reads class = iota
	writes
	watchStarts // until the state that a watch begins with is sent
	refusals    // of tokens
	classes
)

func (c class) String() string { return [...]string{"read", "write", "watch", "refusal"}[c] }

// classOf is the class of a verb.
func classOf(v policy.Verb) class {
	if v&(policy.Get|policy.List) != 0 {
		return reads
	}
	return writes
}

// turns share the processors among clients. This is all there is to fairness:
//
//   - Only so many requests are in flight, in all and of one client; more are
//     refused. A client with nothing else in flight is never refused.
//   - A request works, that is needs a processor, or it waits: for its client, to
//     send a body or to read an answer, or for the disk. Only so many of a class
//     work at once; one that waits holds up nobody. Nearly all that a request
//     costs is work, the writing of its answer too, so that what is not bounded
//     here does not fill the processors.
//   - Of those that wait for their turn to work, the next is one of the client
//     that has used the least time so far, however many requests others have
//     waiting and however long those take. So a client that asks for little
//     waits for none of a flood but what works already.
//     What a request takes outside its turns is counted with it: to be received,
//     and to be written by the store.
//   - While several clients are about, each leaves a processor to the others, so
//     that what works already is never everything. A client alone has them all.
//   - And who has had an equal part of all processors' time has no more of it
//     while anybody with less has a request in flight, even if that waits for
//     the disk or the network just now: it will be back at once.
//   - Of a client's bodies that are large, only a few are in memory at once.
//     They are read in pieces, each when it is the client's turn, and that counts
//     as work. Who checks or decodes them lets others run after each piece too.
//   - All callers whose token is refused are one client together, see strangers.go.
type turns struct {
	max, maxPerClient, processors int

	mu       sync.Mutex
	inFlight int
	clients  map[string]*account // those with anything in flight or at work, or to remember
	classes  [classes]share
	clock    time.Duration // the most that a client had used when it was let in
	latest   string        // client
	changed  time.Time     // when a request was another client's than the one before
	since    time.Time     // begin of the current period
	about    int           // clients that worked in the one before
	timer    *time.Timer   // admits who has to wait for the next period; nil: nobody has
}

// share is what a class has.
type share struct {
	slots   int // requests that may work at once
	working int
	waiting int
	queue   []*account // clients with requests that wait
}

// account is what one client has and has used.
type account struct {
	client   string
	inFlight int
	working  int
	used     time.Duration
	spent    time.Duration            // of that, what counts against the part of the current period
	waiting  [classes][]chan struct{} // closed when it is the request's turn
	large    chan struct{}            // filled by its large bodies; nil until there is one
}

const (
	// leastUse is what a turn counts at least, so that clients alternate also
	// where the clock does not tell their requests apart.
	leastUse = 10 * time.Microsecond
	// slowWrite is how long a write may take until it no longer counts as work.
	slowWrite = 10 * time.Millisecond
	// company is how long a client is not alone after another's request.
	company = time.Second
	// largeBody is the size from which on a body is large, and largeBodies how
	// many of a client are in memory at once.
	largeBody, largeBodies = 64 << 10, 4
	// readCost is what a kilobyte of a large body counts, several times what it
	// takes to read: the kernel has received it outside of any turn, and the
	// memory has to be cleaned up. Hardly an event needs such a body, so that who
	// sends many of them has a small part of what a client may have.
	readCost = 2 * time.Microsecond
)

// costs are what a request takes that no turn covers: the server reads it, and
// its write is made by the store. A refusal counts for much more than it takes,
// so that strangers together have a small part of what a client may have.
var costs = [classes]time.Duration{
	reads: 25 * time.Microsecond, writes: 65 * time.Microsecond, refusals: 100 * time.Microsecond,
}

// limit sets how many requests may be in flight, and how many processors work
// on them.
func (t *turns) limit(all, perClient, processors int) {
	t.max, t.maxPerClient, t.processors = all, perClient, processors
	t.clients = map[string]*account{}
	// A request that works needs a processor all the time: while it waits for
	// its client or for the disk, it has no slot.
	for c := range t.classes {
		t.classes[c].slots = max(4, 2*processors)
	}
}

// account is the account of a client, which is new if it had none.
func (t *turns) account(client string) *account {
	t.rotate()
	a := t.clients[client]
	if a == nil {
		a = &account{client: client, used: t.clock}
		t.clients[client] = a
	}
	if client != t.latest && client != strangers {
		if t.latest != "" {
			t.changed = time.Now()
		}
		t.latest = client
	}
	return a
}

// charge counts work that no turn covers.
func (a *account) charge(worked time.Duration) {
	a.used += worked
	a.spent += worked
}

// idle tells whether a client has nothing that works or waits.
func (a *account) idle() bool {
	return a.working == 0 && !slices.ContainsFunc(a.waiting[:], func(w []chan struct{}) bool { return len(w) > 0 })
}

// atOnce has a request of a client work, if it need not wait.
func (t *turns) atOnce(a *account, c class) bool {
	if a.idle() { // what was not used in time is not saved up
		a.used = max(a.used, t.clock)
	}
	s := &t.classes[c]
	if s.working == s.slots || a.working >= t.most(a) || len(a.waiting[c]) > 0 || t.sated(a) {
		return false
	}
	t.start(s, a) // all others that wait could not, whoever is first
	return true
}

// wait puts a request of a client behind the client's others; nil if it need
// not wait.
func (t *turns) wait(a *account, c class) chan struct{} {
	if t.atOnce(a, c) {
		return nil
	}
	s := &t.classes[c]
	if len(a.waiting[c]) == 0 {
		s.queue = append(s.queue, a)
	}
	ready := make(chan struct{})
	a.waiting[c] = append(a.waiting[c], ready)
	s.waiting++
	if t.sated(a) {
		t.wakeLater()
	}
	return ready
}

// forget takes a request away that no longer waits; false if it was let in.
func (t *turns) forget(a *account, c class, ready chan struct{}) bool {
	i := slices.Index(a.waiting[c], ready)
	if i < 0 {
		return false
	}
	t.remove(a, c, i)
	return true
}

// remove takes the i-th of a client's waiting requests away.
func (t *turns) remove(a *account, c class, i int) {
	s := &t.classes[c]
	a.waiting[c] = slices.Delete(a.waiting[c], i, i+1)
	s.waiting--
	if len(a.waiting[c]) == 0 {
		s.queue = slices.DeleteFunc(s.queue, func(other *account) bool { return other == a })
	}
}

// admit lets in those whose turn it is.
func (t *turns) admit(c class) {
	s := &t.classes[c]
	for s.working < s.slots && len(s.queue) > 0 {
		a := t.first(s)
		if a == nil {
			return
		}
		close(a.waiting[c][0])
		t.remove(a, c, 0)
		t.start(s, a)
	}
}

// start counts in that a client's request works.
func (t *turns) start(s *share, a *account) {
	s.working++
	a.working++
	t.clock = max(t.clock, a.used)
	a.used += leastUse
}

// lonely tells whether all requests of the last moments were one client's.
func (t *turns) lonely() bool { return t.changed.IsZero() || time.Since(t.changed) >= company }

// alone tells whether a client need not think of others. Strangers always do,
// and are company to nobody.
func (t *turns) alone(a *account) bool { return a.client != strangers && t.lonely() }

// most is how many requests of a client may work at once.
func (t *turns) most(a *account) int {
	if t.alone(a) {
		return t.max
	}
	return max(1, t.processors-1)
}

// first is the client whose turn it is, nil if none may have one.
func (t *turns) first(s *share) (first *account) {
	for _, a := range s.queue {
		switch {
		case a.working >= t.most(a) || first != nil && a.used >= first.used:
		case t.sated(a):
			t.wakeLater()
		default:
			first = a
		}
	}
	return first
}

// stop ends the work of a request of a client.
func (t *turns) stop(a *account, c class) {
	t.classes[c].working--
	a.working--
	t.admitAll()
}

// admitAll lets in those of all classes: a client may have waited for itself in
// another, or for others to be gone.
func (t *turns) admitAll() {
	for c := range classes {
		t.admit(c)
	}
}

// collectors show how many requests work and wait.
func (t *turns) collectors() []prometheus.Collector {
	var all []prometheus.Collector
	for c := range classes {
		s := &t.classes[c]
		read := func(n *int) func() float64 {
			return func() float64 {
				t.mu.Lock()
				defer t.mu.Unlock()
				return float64(*n)
			}
		}
		labels := prometheus.Labels{"class": c.String()}
		all = append(all,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "eventsvc_requests_working", Help: "Requests that are being worked on.", ConstLabels: labels,
			}, read(&s.working)),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "eventsvc_requests_waiting", Help: "Requests that wait for their client's turn.", ConstLabels: labels,
			}, read(&s.waiting)))
	}
	return all
}
