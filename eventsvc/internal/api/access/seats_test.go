package access_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/waittest"
)

// slowStore lets reads wait until it is told to go on.
type slowStore struct {
	store.Store
	arrived chan string // the name of each get
	proceed chan struct{}
}

func (s *slowStore) Get(ctx context.Context, key store.Key, look func(*store.View) error) error {
	s.arrived <- key.Name
	<-s.proceed
	return s.Store.Get(ctx, key, look)
}

// newSlowWorld is a server over a store that waits.
func newSlowWorld(t *testing.T, changes ...func(*api.Config)) (*apitest.World, *slowStore) {
	t.Helper()
	w := apitest.New(t, append(changes, func(c *api.Config) { c.Verify = apitest.ByName })...)
	slow := &slowStore{Store: w.DB, arrived: make(chan string, 1000), proceed: make(chan struct{})}
	w.Config.Store, w.Config.Registry = slow, prometheus.NewRegistry()
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	return w, slow
}

// send sends a get in the background.
func send(ctx context.Context, w *apitest.World, wait *sync.WaitGroup, caller, name string) <-chan int {
	code := make(chan int, 1)
	wait.Go(func() {
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, apitest.EventsPath+"/"+name, nil)
		req.Header.Set("Authorization", "Bearer "+caller)
		rec := httptest.NewRecorder()
		w.Server.ServeHTTP(rec, req)
		code <- rec.Code
	})
	return code
}

// TestClientsTakeTurns: behind a flood of one client, another's request is next,
// and writes do not wait for reads at all.
func TestClientsTakeTurns(t *testing.T) {
	t.Parallel()
	w, slow := newSlowWorld(t)
	var wait sync.WaitGroup
	const flood = 200 // more than there are slots
	for range flood {
		send(t.Context(), w, &wait, "flood", "f")
	}
	waittest.Until(t, "all of the flood have arrived", func() bool {
		return w.Metric("eventsvc_requests_waiting", "read")+w.Metric("eventsvc_requests_working", "read") >= flood
	})
	working := int(w.Metric("eventsvc_requests_working", "read"))
	if working >= flood {
		t.Fatalf("%d requests work at once", working)
	}
	good := send(t.Context(), w, &wait, "good", "g")
	waittest.Until(t, "the good one waits", func() bool { return w.Metric("eventsvc_requests_waiting", "read") >= float64(flood-working+1) })
	w.As("writer", "POST", apitest.EventsPath, apitest.NewEvent("w")).Must(201)
	for range working {
		waittest.Within(t, slow.arrived)
	}
	slow.proceed <- struct{}{}
	if next := waittest.Within(t, slow.arrived); next != "g" {
		t.Errorf("the next is %s", next)
	}
	close(slow.proceed)
	if code := waittest.Within(t, good); code != http.StatusNotFound {
		t.Error(code)
	}
	waittest.Join(t, &wait)
	if n := w.Metric("eventsvc_requests_working", "read") + w.Metric("eventsvc_requests_waiting", "read"); n != 0 {
		t.Errorf("%v requests are still counted", n)
	}
}

// TestRequestsInFlightAreBounded: the limit of a client and the limit of all. A
// client with nothing in flight is always admitted.
func TestRequestsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	w, slow := newSlowWorld(t, func(c *api.Config) { c.MaxRequests, c.MaxClientRequests = 3, 2 })
	var wait sync.WaitGroup
	for _, caller := range []string{"a", "a", "b"} {
		send(t.Context(), w, &wait, caller, "x")
		waittest.Within(t, slow.arrived)
	}
	for caller, limit := range map[string]string{"a": "client-requests", "b": "requests"} {
		a := w.As(caller, "GET", apitest.EventsPath+"/x", "").Must(http.StatusTooManyRequests)
		if a.Header.Get("Retry-After") != "1" || w.Metric("eventsvc_requests_refused_total", limit) != 1 {
			t.Errorf("%s: %v", caller, a.Header)
		}
	}
	fresh := send(t.Context(), w, &wait, "c", "x")
	waittest.Within(t, slow.arrived)
	close(slow.proceed)
	if code := waittest.Within(t, fresh); code != http.StatusNotFound {
		t.Error(code)
	}
	waittest.Join(t, &wait)
	w.As("a", "GET", apitest.EventsPath+"/x", "").Must(404)
}

// TestWaitingRequestsCanLeave: a client that hangs up gives its place in the
// queue back.
func TestWaitingRequestsCanLeave(t *testing.T) {
	t.Parallel()
	w, slow := newSlowWorld(t)
	var wait sync.WaitGroup
	ctx, hangUp := context.WithCancel(t.Context())
	const flood = 250
	for range flood {
		send(ctx, w, &wait, "flood", "f")
	}
	waittest.Until(t, "all of the flood have arrived", func() bool {
		return w.Metric("eventsvc_requests_waiting", "read")+w.Metric("eventsvc_requests_working", "read") >= flood
	})
	hangUp()
	waittest.Until(t, "nobody waits", func() bool { return w.Metric("eventsvc_requests_waiting", "read") == 0 })
	close(slow.proceed)
	waittest.Join(t, &wait)
	w.As("good", "GET", apitest.EventsPath+"/x", "").Must(404)
	if n := w.Metric("eventsvc_requests_working", "read"); n != 0 {
		t.Errorf("%v requests are still counted", n)
	}
}

// TestSlowSendersHoldNobodyUp: a request holds no seat while it waits for its
// body.
func TestSlowSendersHoldNobodyUp(t *testing.T) {
	t.Parallel()
	w, _ := newSlowWorld(t, func(c *api.Config) { c.MaxRequests = 2 }) // one write at once
	r, body := io.Pipe()
	done := make(chan int, 1)
	go func() {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, apitest.EventsPath, r)
		req.Header.Set("Authorization", "Bearer slow")
		rec := httptest.NewRecorder()
		w.Server.ServeHTTP(rec, req)
		done <- rec.Code
	}()
	text := apitest.NewEvent("slow")
	if _, err := io.Copy(body, strings.NewReader(text[:10])); err != nil { // is being read
		t.Fatal(err)
	}
	w.As("good", "POST", apitest.EventsPath, apitest.NewEvent("a")).Must(201)
	if _, err := io.Copy(body, strings.NewReader(text[10:])); err != nil {
		t.Fatal(err)
	}
	_ = body.Close()
	if code := waittest.Within(t, done); code != http.StatusCreated {
		t.Error(code)
	}
}

// pieces is a body that another client's requests are made beside: one at each
// of its reads.
type pieces struct {
	io.Reader
	beside  func()
	n, most int // reads, and the largest
}

func (p *pieces) Read(b []byte) (int, error) {
	p.beside()
	p.n++
	n, err := p.Reader.Read(b)
	p.most = max(p.most, n)
	return n, err
}

// TestLargeBodiesAreReadInPieces: between any two pieces of the largest allowed
// body, another client is answered.
func TestLargeBodiesAreReadInPieces(t *testing.T) {
	t.Parallel()
	const size, piece = 3 << 20, 64 << 10
	w := apitest.New(t, func(c *api.Config) { c.Verify, c.Registry = apitest.ByName, prometheus.NewRegistry() })
	text := apitest.NewEvent("large")
	body := &pieces{Reader: strings.NewReader(text + strings.Repeat(" ", size-len(text))), beside: func() {
		if n := w.Metric("eventsvc_requests_working", "write"); n != 0 {
			t.Errorf("%v writes work while a body is read", n)
		}
		w.As("good", "POST", apitest.EventsPath+"?dryRun=All", apitest.NewEvent("small")).Must(201)
	}}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, apitest.EventsPath, body)
	req.Header.Set("Authorization", "Bearer sender")
	req.ContentLength = size
	rec := httptest.NewRecorder()
	w.Server.ServeHTTP(rec, req)
	if rec.Code != http.StatusCreated || body.most > piece || body.n < size/piece {
		t.Errorf("%d after %d reads of at most %d bytes: %s", rec.Code, body.n, body.most, rec.Body)
	}
}

// slowLists is a store whose lists of a namespace wait until they are told to
// go on.
type slowLists struct {
	store.Store
	arrived chan string
	proceed chan struct{}
}

func (s *slowLists) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	if q.Namespace != "" {
		s.arrived <- q.Namespace
		<-s.proceed
	}
	return s.Store.List(ctx, q, visit)
}

// TestWatchesBeginInTurn: a client that opens many watches with initial events
// at once delays its own watches. It does not delay the watches of others, nor
// reads and writes.
func TestWatchesBeginInTurn(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Verify = apitest.ByName })
	slow := &slowLists{Store: w.DB, arrived: make(chan string, 1000), proceed: make(chan struct{})}
	w.Config.Store, w.Config.Registry = slow, prometheus.NewRegistry()
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	open := func(caller string) {
		wait.Go(func() {
			path := "/apis/events.k8s.io/v1/namespaces/" + caller + "/events?watch=1"
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			req.Header.Set("Authorization", "Bearer "+caller)
			w.Server.ServeHTTP(httptest.NewRecorder(), req)
		})
	}
	waiting := func(n int) {
		waittest.Until(t, "the watches have arrived", func() bool {
			return w.Metric("eventsvc_requests_waiting", "watch")+w.Metric("eventsvc_requests_working", "watch") >= float64(n)
		})
	}
	const flood = 50
	for range flood {
		open("flood")
	}
	waiting(flood)
	working := int(w.Metric("eventsvc_requests_working", "watch"))
	for range working {
		waittest.Within(t, slow.arrived)
	}
	open("good")
	waiting(flood + 1)
	w.As("writer", "POST", apitest.EventsPath, apitest.NewEvent("a")).Must(201)
	w.As("reader", "GET", apitest.EventsPath+"/a", "").Must(200)
	slow.proceed <- struct{}{}
	if next := waittest.Within(t, slow.arrived); next != "good" {
		t.Errorf("the next is %s", next)
	}
	hangUp()
	close(slow.proceed)
	waittest.Join(t, &wait)
	if n := w.Metric("eventsvc_requests_working", "watch") + w.Metric("eventsvc_requests_waiting", "watch"); n != 0 {
		t.Errorf("%v beginnings are still counted", n)
	}
}
