package api

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/policy"
)

// class is a kind of requests with a share of its own, so that a flood of one
// kind leaves the other alone.
type class int

const (
	reads class = iota
	writes
	watchStarts // until the state that a watch begins with is sent
	classes
)

func (c class) String() string { return [...]string{"read", "write", "watch"}[c] }

// classOf is the class of a verb.
func classOf(v policy.Verb) class {
	if v&(policy.Get|policy.List) != 0 {
		return reads
	}
	return writes
}

// turns lets only so many requests of a class work at once. When there are
// more, the clients take turns, however many requests each has waiting: a
// flood makes its own client wait. A request that waits for its client, to
// send a body or to read an answer, or for the disk, works not and holds up
// nobody.
type turns struct {
	max, maxPerClient int

	mu       sync.Mutex
	inFlight int
	clients  map[string]int // requests in flight
	classes  [classes]share
}

// share is what a class has.
type share struct {
	slots   int // requests that may work at once
	working int
	queues  map[string]*queue
	next    []*queue // those with requests that wait, in the order of their turns
	waiting int
}

// queue are the waiting requests of one client.
type queue struct {
	client  string
	waiting []chan struct{} // closed when it is the request's turn
}

func (t *turns) limit(all, perClient int) {
	t.max, t.maxPerClient = all, perClient
	t.clients = map[string]int{}
	// A request that works needs a processor all the time: while it waits for
	// its client or for the disk, it has no slot.
	for c := range t.classes {
		t.classes[c] = share{slots: max(4, 2*runtime.GOMAXPROCS(0)), queues: map[string]*queue{}}
	}
}

// turn is the place of one request.
type turn struct {
	*turns
	class  class
	client string
	works  bool
}

// enter counts a request in and waits for its turn. A client with nothing else
// in flight is never refused, so that others cannot shut it out.
func (t *turns) enter(ctx context.Context, c class, client string) (*turn, error) {
	t.mu.Lock()
	n := t.clients[client]
	var limit string
	switch {
	case n >= t.maxPerClient:
		limit = "client-requests"
	case t.inFlight >= t.max && n > 0:
		limit = "requests"
	}
	if limit != "" {
		t.mu.Unlock()
		// Nothing was done yet, so that the client may safely try again.
		return nil, beyond(limit, apierrors.NewTooManyRequests("too many requests are in flight, please try again", 1))
	}
	t.clients[client] = n + 1
	t.inFlight++
	t.mu.Unlock()
	u := &turn{turns: t, class: c, client: client}
	if err := u.resume(ctx); err != nil {
		u.leave()
		return nil, err
	}
	return u, nil
}

// begin waits for the turn of a watch to send the state that it begins with.
// How many watches there are is bounded elsewhere.
func (t *turns) begin(ctx context.Context, client string) (*turn, error) {
	u := &turn{turns: t, class: watchStarts, client: client}
	return u, u.resume(ctx)
}

// leave counts the request out.
func (u *turn) leave() {
	u.pause()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inFlight--
	if u.clients[u.client]--; u.clients[u.client] == 0 {
		delete(u.clients, u.client)
	}
}

// pause ends the request's work for a while. The next in turn goes on.
func (u *turn) pause() {
	if u == nil || !u.works {
		return
	}
	u.works = false
	u.mu.Lock()
	defer u.mu.Unlock()
	u.classes[u.class].release()
}

// resume waits for the request's turn.
func (u *turn) resume(ctx context.Context) error {
	if u == nil || u.works {
		return nil
	}
	s := &u.classes[u.class]
	u.mu.Lock()
	if s.working < s.slots {
		s.working++
		u.mu.Unlock()
		u.works = true
		return nil
	}
	ready := s.wait(u.client)
	u.mu.Unlock()
	select {
	case <-ready:
		u.works = true
		return nil
	case <-ctx.Done():
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !s.forget(u.client, ready) { // its turn has just come
		s.release()
	}
	return ctx.Err()
}

// wait puts a request of a client behind the client's others.
func (s *share) wait(client string) chan struct{} {
	q := s.queues[client]
	if q == nil {
		q = &queue{client: client}
		s.queues[client] = q
		s.next = append(s.next, q)
	}
	ready := make(chan struct{})
	q.waiting = append(q.waiting, ready)
	s.waiting++
	return ready
}

// forget takes a request away that no longer waits; false if it was let in.
func (s *share) forget(client string, ready chan struct{}) bool {
	q := s.queues[client]
	if q == nil {
		return false
	}
	i := slices.Index(q.waiting, ready)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	s.waiting--
	if len(q.waiting) == 0 {
		delete(s.queues, client)
		s.next = slices.DeleteFunc(s.next, func(other *queue) bool { return other == q })
	}
	return true
}

// release passes the slot of a request on to the client whose turn it is.
func (s *share) release() {
	if len(s.next) == 0 {
		s.working--
		return
	}
	q := s.next[0]
	s.next = s.next[1:]
	ready := q.waiting[0]
	q.waiting = q.waiting[1:]
	s.waiting--
	if len(q.waiting) == 0 {
		delete(s.queues, q.client)
	} else {
		s.next = append(s.next, q)
	}
	close(ready)
}

type turnKey struct{}

// turnOf is the turn of the request that ctx belongs to, nil if it has none.
func turnOf(ctx context.Context) *turn {
	u, _ := ctx.Value(turnKey{}).(*turn)
	return u
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
