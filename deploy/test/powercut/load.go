//go:build linux

package powercut

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A load is a kind of load, with the settings of the service that go with it.
type load struct {
	name  string
	flags []string

	large       float64  // share of events with 60 to 200 KiB, the others have up to 2 KiB
	keep        int      // events that each writer keeps, about
	create      float64  // share of requests that create; the others put, patch and delete
	collections float64  // share of requests that delete a whole collection
	bytes       int64    // so many are written fast; after them writers go slowly
	commands    []string // of eventsvc that run meanwhile

	retention time.Duration // of events; 0: they do not expire
	history   time.Duration // of old versions; 0: they stay
	evicts    bool          // the oldest events go for lack of room
}

var loads = []load{
	{name: "mixed", large: 0.1, keep: 40, create: 0.5, collections: 0.01, bytes: 20 << 20, commands: []string{"check", "backup"}},
	{name: "small", keep: 300, create: 0.55, collections: 0.004, bytes: 20 << 20},
	{name: "many", keep: 1 << 20, create: 0.97, bytes: 20 << 20},
	{name: "few", keep: 3, create: 0.1, collections: 0.01, bytes: 20 << 20},
	{name: "large", large: 0.8, keep: 12, create: 0.5, collections: 0.01, bytes: 40 << 20},
	{name: "delete", large: 0.3, keep: 20, create: 0.6, collections: 0.01, bytes: 30 << 20,
		commands: []string{"compact"}, history: 100 * time.Millisecond, flags: []string{"--history=100ms", "--compress-after=0s"}},
	{name: "expire", large: 0.4, keep: 30, create: 0.7, collections: 0.002, bytes: 30 << 20,
		commands: []string{"compact", "compact", "backup", "check"}, retention: time.Second, history: 500 * time.Millisecond,
		flags: []string{"--retention=1s", "--history=500ms", "--compress-after=0s"}},
	{name: "die", large: 0.6, keep: 60, create: 0.9, collections: 0.001, bytes: 30 << 20,
		commands: []string{"compact"}, retention: 300 * time.Millisecond, history: 100 * time.Millisecond,
		flags: []string{"--retention=300ms", "--history=100ms"}},
	{name: "full", large: 0.6, keep: 200, create: 0.8, collections: 0.001, bytes: 110 << 20,
		commands: []string{"compact"}, evicts: true, history: time.Nanosecond, flags: []string{"--max-bytes=220MiB", "--compress-after=0s"}},
}

// mayBeGone reports whether the service may have deleted a version by itself.
func (l *load) mayBeGone(c change) bool {
	return l.evicts || l.retention > 0 && c.request.age() >= l.retention
}

// writers is how many clients write at the same time, each in its own namespace.
const writers = 8

// clients use a service until its power is cut.
type clients struct {
	*load
	service *service
	model   *model
	ctx     context.Context // ends with the service
	written atomic.Int64    // bytes
	running sync.WaitGroup
	fail    func(format string, args ...any)
}

// startClients starts writers, and sometimes a watch and commands.
func startClients(ctx context.Context, l *load, s *service, m *model, rng *rand.Rand, fail func(string, ...any)) *clients {
	c := &clients{load: l, service: s, model: m, ctx: ctx, fail: fail}
	for i := range writers {
		w := newWriter(c, fmt.Sprintf("w%d", i), rand.New(rand.NewPCG(rng.Uint64(), 0)))
		c.running.Go(w.run)
	}
	if rng.IntN(2) == 0 {
		c.running.Go(func() {
			_ = s.watch(ctx, m.revision, func(change change) bool { m.told(change); return true })
		})
	}
	if len(l.commands) > 0 {
		commands := rand.New(rand.NewPCG(rng.Uint64(), 0))
		c.running.Go(func() { c.runCommands(commands) })
	}
	return c
}

// runCommands runs commands of eventsvc while the service is at work.
func (c *clients) runCommands(rng *rand.Rand) {
	for !c.service.ended() {
		command, args := c.commands[rng.IntN(len(c.commands))], []string(nil)
		if command == "backup" {
			args = []string{"-"}
		}
		p, err := c.service.start(append([]string{command}, args...)...)
		if err != nil {
			c.fail("%s: %v", command, err)
			return
		}
		select {
		case <-p.done:
		case <-c.service.done:
			p.kill()
		}
		if command == "check" && strings.Contains(p.output.String(), "problems found") {
			c.fail("check of the running service: %s", &p.output)
		}
	}
}

// A writer writes the events of one namespace, one request after the other. So
// each event has at most one request without an answer.
type writer struct {
	*clients
	namespace string
	rng       *rand.Rand
	alive     []string
	dead      []string // names that can be used again
	unknown   []string // names of requests without an answer
	created   int
}

func newWriter(c *clients, namespace string, rng *rand.Rand) *writer {
	w := &writer{clients: c, namespace: namespace, rng: rng}
	for _, key := range slices.Sorted(maps.Keys(c.model.state)) {
		if in, name, _ := strings.Cut(key, "/"); in == namespace {
			w.alive = append(w.alive, name)
		}
	}
	return w
}

func (w *writer) run() {
	for !w.service.ended() && w.ctx.Err() == nil {
		w.step()
		if w.written.Load() > w.bytes {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func (w *writer) step() {
	switch {
	case w.rng.Float64() < w.collections:
		w.deleteCollection()
	case len(w.alive) == 0 || len(w.alive) < 2*w.keep && w.rng.Float64() < w.create:
		w.createOne()
	default:
		name := w.alive[w.rng.IntN(len(w.alive))]
		switch k := w.rng.IntN(10); {
		case k < 4:
			w.write(http.MethodPut, name)
		case k < 7:
			w.write(http.MethodPatch, name)
		default:
			w.delete(name)
		}
	}
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// text is where the data of events is taken from.
var text = func() string {
	b, rng := make([]byte, 1<<20), rand.New(rand.NewPCG(1, 1))
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return string(b)
}()

func (w *writer) data() string {
	n := 10 + w.rng.IntN(2000)
	if w.rng.Float64() < w.large {
		n = 60_000 + w.rng.IntN(140_000)
	}
	w.written.Add(int64(n))
	at := w.rng.IntN(len(text) - n)
	return text[at : at+n]
}

func (w *writer) path(name string) string { return "namespaces/" + w.namespace + "/events" + name }

// request makes a request about one event and notes how it has ended.
func (w *writer) request(method, name, path, contentType string, body []byte, r *request) (status int, answer []byte) {
	status, answer, err := w.service.call(w.ctx, method, path, contentType, body)
	switch {
	case err == nil && (status == http.StatusOK || status == http.StatusCreated):
		r.acknowledged = true
		if !r.deleted {
			r.revision = revisionIn(answer)
		}
	case err == nil && status < 500: // refused: it has not happened
		if status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusBadRequest {
			w.fail("%s %s is answered %d: %.300s", method, path, status, answer)
		}
		return status, answer
	default:
		w.unknown = append(w.unknown, name)
		w.alive = without(w.alive, name)
	}
	w.model.note(*r)
	return status, answer
}

func (w *writer) newRequest(name string) *request {
	return &request{change: change{key: w.namespace + "/" + name, request: newRequestID()}}
}

func (w *writer) createOne() {
	var name string
	if n := len(w.dead); n > 0 && w.rng.IntN(3) == 0 {
		name, w.dead = w.dead[n-1], w.dead[:n-1]
	} else {
		w.created++
		name = fmt.Sprintf("e%d-%d", w.model.revision, w.created) // no load before has used it
	}
	data, r := w.data(), w.newRequest(name)
	r.sum = sum(data)
	if status, answer := w.request(http.MethodPost, name, w.path(""), "application/json", event(w.namespace, name, r.request, data), r); r.acknowledged {
		w.alive = append(w.alive, name)
	} else if status == http.StatusConflict {
		w.fail("a create of %s, which is not there, is answered %s", r.key, answer)
	}
}

// write puts or patches an event.
func (w *writer) write(method, name string) {
	data, r := w.data(), w.newRequest(name)
	r.sum = sum(data)
	body, contentType := event(w.namespace, name, r.request, data), "application/json"
	if method == http.MethodPatch {
		body, contentType = patch(r.request, data), "application/merge-patch+json"
	}
	if status, _ := w.request(method, name, w.path("/"+name), contentType, body, r); status == http.StatusNotFound {
		w.gone(method, name)
	}
}

func (w *writer) delete(name string) {
	r := w.newRequest(name)
	r.deleted = true
	switch status, _ := w.request(http.MethodDelete, name, w.path("/"+name), "", nil, r); {
	case status == http.StatusNotFound:
		w.gone(http.MethodDelete, name)
	case r.acknowledged:
		w.alive, w.dead = without(w.alive, name), append(w.dead, name)
	}
}

// gone records that an event no longer existed.
func (w *writer) gone(method, name string) {
	if last := w.model.last(w.namespace + "/" + name); !w.mayBeGone(last) {
		w.fail("LOST: %s finds nothing where there must be %v", method, last)
	}
	w.alive, w.dead = without(w.alive, name), append(w.dead, name)
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

// deleteCollection deletes all events of the writer, or those with one label.
func (w *writer) deleteCollection() {
	path, in := w.path(""), func(string) bool { return true }
	if w.rng.IntN(2) == 0 {
		n := w.rng.IntN(buckets)
		path, in = fmt.Sprintf("%s?labelSelector=bucket%%3D%d", path, n), func(name string) bool { return bucket(name) == n }
	}
	id := newRequestID()
	status, _, err := w.service.call(w.ctx, http.MethodDelete, path, "", nil)
	done := err == nil && status == http.StatusOK
	if err == nil && status != http.StatusOK && status < 500 {
		return
	}
	var left []string
	for _, name := range w.alive {
		if !in(name) {
			left = append(left, name)
			continue
		}
		w.model.note(request{change{key: w.namespace + "/" + name, request: id, deleted: true}, done})
		if done {
			w.dead = append(w.dead, name)
		} else {
			w.unknown = append(w.unknown, name)
		}
	}
	w.alive = left
	for _, name := range w.unknown { // these may be there or not
		w.model.note(request{change{key: w.namespace + "/" + name, request: id, deleted: true}, false})
	}
}
