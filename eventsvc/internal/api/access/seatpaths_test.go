package access_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/waittest"
)

// seatCounter is a store that counts the seats that are held while it is called,
// and then does what a test wants to happen there.
type seatCounter struct {
	store.Store
	w       *apitest.World
	trouble func() error // nil: none
	calls   int
}

// held checks how many requests hold a seat, and causes the trouble.
func (s *seatCounter) held(call string, want float64) error {
	s.calls++
	if n := s.w.Seats("eventsvc_requests_working"); n != want {
		s.w.T.Errorf("%v seats are held in %s, want %v", n, call, want)
	}
	if s.trouble != nil {
		return s.trouble()
	}
	return nil
}

func (s *seatCounter) Get(ctx context.Context, key store.Key, look func(*store.View) error) error {
	if err := s.held("Get", 1); err != nil {
		return err
	}
	return s.Store.Get(ctx, key, look)
}

func (s *seatCounter) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	if err := s.held("List", 1); err != nil {
		return store.Page{}, err
	}
	return s.Store.List(ctx, q, visit)
}

func (s *seatCounter) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	result, err := s.Store.Update(ctx, key, expect, func(current *store.Record) (store.Decision, error) {
		d, err := decide(current)
		return d, errors.Join(err, s.held("Update", 0)) // now the disk would come
	})
	return result, err
}

func (s *seatCounter) UpdateMany(
	ctx context.Context, keys []store.Key, expect func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	return s.Store.UpdateMany(ctx, keys, expect, func(i int, current *store.Record) (store.Decision, error) {
		d, err := decide(i, current)
		return d, errors.Join(err, s.held("UpdateMany", 0)) // now the disk would come
	})
}

func (s *seatCounter) Watch(ctx context.Context, q store.WatchQuery) (store.Watcher, error) {
	if err := s.held("Watch", 1); err != nil {
		return nil, err
	}
	return s.Store.Watch(ctx, q)
}

// unseated waits until no request holds a seat. Any goroutine may call it, so it tells of a lost wait and goes on.
func unseated(w *apitest.World) {
	lost, cancel := waittest.Context(w.T)
	defer cancel()
	for w.Seats("eventsvc_requests_working") > 0 {
		select {
		case <-lost.Done():
			w.T.Errorf("a seat is held:\n%s", waittest.Stacks())
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// slowClient takes an answer only when no seat is held any more.
type slowClient struct {
	*httptest.ResponseRecorder
	w *apitest.World
}

func (c *slowClient) Write(b []byte) (int, error) {
	unseated(c.w)
	return c.ResponseRecorder.Write(b)
}

// goneClient takes no answer.
type goneClient struct{ *httptest.ResponseRecorder }

func (goneClient) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// watcher hangs up when a watch has sent its initial state, or the header if that
// is all, and holds no seat any more.
type watcher struct {
	*httptest.ResponseRecorder
	w       *apitest.World
	initial bool
	hangUp  context.CancelFunc
	once    sync.Once
}

func (c *watcher) leave() {
	unseated(c.w)
	c.hangUp()
}

func (c *watcher) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "initial-events-end") {
		c.once.Do(func() { go c.leave() })
	}
	return c.ResponseRecorder.Write(b)
}

func (c *watcher) Flush() {
	if c.ResponseRecorder.Flush(); !c.initial {
		c.once.Do(func() { go c.leave() })
	}
}

// brokenBody ends before it is complete.
type brokenBody struct{ io.Reader }

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestEveryPathGivesItsSeatBack: however a request of any verb ends, it holds a
// seat while it computes, none while it waits, and nothing at the end. The
// client may have only one request in flight, so a seat that is not given back
// makes the next request fail.
func TestEveryPathGivesItsSeatBack(t *testing.T) {
	t.Parallel()
	const (
		reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
		initial = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
		apply   = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a","labels":{"applied":"yes"}}}`
	)
	for verb, request := range map[string]struct{ method, path, content, body string }{
		"get":              {"GET", apitest.EventsPath + "/a", "", ""},
		"list":             {"GET", apitest.EventsPath, "", ""},
		"list in pieces":   {"GET", apitest.EventsPath, "", ""},
		"watch":            {"GET", apitest.EventsPath + initial, "", ""},
		"watch from then":  {"GET", apitest.EventsPath + "?watch=1&resourceVersion=2", "", ""},
		"create":           {"POST", apitest.EventsPath, "application/json", apitest.NewEvent("", `"metadata":{"generateName":"g-"}`)},
		"update":           {"PUT", apitest.EventsPath + "/a", "application/json", apitest.NewEvent("a", `"metadata":{"name":"a","labels":{"updated":"yes"}}`)},
		"patch":            {"PATCH", apitest.EventsPath + "/a", apitest.MergePatch, `{"metadata":{"labels":{"patched":"yes"}}}`},
		"apply":            {"PATCH", apitest.EventsPath + "/a?fieldManager=m&force=true", "application/apply-patch+yaml", apply},
		"dry run":          {"POST", apitest.EventsPath + "?dryRun=All", "application/json", apitest.NewEvent("new")},
		"bulk":             {"POST", "/bulk/v1/events", "application/x-ndjson", apitest.CoreEvent("default", "new")},
		"delete":           {"DELETE", apitest.EventsPath + "/a", "", ""},
		"deletecollection": {"DELETE", apitest.EventsPath, "", ""},
		"get namespace":    {"GET", "/api/v1/namespaces/other", "", ""},
		"list namespaces":  {"GET", "/api/v1/namespaces", "", ""},
		"watch namespaces": {"GET", "/api/v1/namespaces" + initial, "", ""},
		"review":           {"POST", reviews, "application/json", "{}"},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			w := apitest.New(t, func(c *api.Config) {
				c.Verify, c.MaxClientRequests, c.MaxBody = apitest.ByName, 1, 200<<10
			})
			counter := &seatCounter{Store: w.DB, w: w}
			w.Config.Store, w.Config.Registry = counter, prometheus.NewRegistry()
			var err error
			if w.Server, err = api.New(w.Config); err != nil {
				t.Fatal(err)
			}
			w.As("setup", "POST", strings.Replace(apitest.EventsPath, "default", "other", 1), apitest.NewEvent("a")).Must(201)
			if verb == "list in pieces" {
				for _, name := range []string{"b", "c"} {
					w.As("setup", "POST", apitest.EventsPath, apitest.NewEvent(name, `"metadata":{"name":"`+name+`","annotations":{"a":"`+strings.Repeat("x", 100<<10)+`"}}`)).Must(201)
				}
			}
			same := func(*http.Request) {}
			watch := strings.HasPrefix(verb, "watch")

			// try sends the request and expects a class of codes, 0 for any, and
			// that nothing is held afterwards.
			try := func(name string, code int, change func(*http.Request), trouble func(context.CancelFunc) error) {
				t.Helper()
				w.As("setup", "POST", apitest.EventsPath, apitest.NewEvent("a")) // or it is there already; the caller is not alone
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				req := httptest.NewRequestWithContext(ctx, request.method, request.path, strings.NewReader(request.body))
				req.Header.Set("Authorization", "Bearer caller")
				req.Header.Set("Content-Type", request.content)
				change(req)
				rec := httptest.NewRecorder()
				var client http.ResponseWriter = rec
				if watch {
					client = &watcher{ResponseRecorder: rec, w: w, initial: strings.Contains(request.path, "sendInitialEvents"), hangUp: cancel}
				}
				switch name {
				case "slow client":
					client = &slowClient{rec, w}
				case "gone client":
					client = &goneClient{rec}
				case "has left":
					cancel()
				}
				if trouble != nil {
					counter.trouble = func() error { return trouble(cancel) }
				}
				func() {
					defer func() {
						counter.trouble = nil
						if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
							panic(p)
						}
					}()
					w.Server.ServeHTTP(client, req)
				}()
				if code != 0 && rec.Code/100 != code || rec.Code == http.StatusTooManyRequests && name != "too many writes" {
					t.Errorf("%s: %d, want %dxx: %s", name, rec.Code, code, rec.Body)
				}
				if working, waiting := w.Seats("eventsvc_requests_working"), w.Seats("eventsvc_requests_waiting"); working+waiting > 0 {
					t.Errorf("%s: %v seats are held, %v are waited for", name, working, waiting)
				}
			}

			counter.calls = 0
			try("success", 2, same, nil)
			if counter.calls <= 1 && verb != "review" { // the first is that of the setup
				t.Error("the request did not call the store")
			}
			refused := 4
			if verb == "bulk" { // which refuses lines, and answers in one format
				refused = 2
			}
			try("no such format", refused, func(r *http.Request) { r.Header.Set("Accept", "image/png") }, nil)
			try("no token", 4, func(r *http.Request) { r.Header.Set("Authorization", "Bearer") }, nil)
			try("has left", 0, same, nil)
			if verb != "watch from then" { // which need not send anything
				try("gone client", 2, same, nil)
			}
			if !watch {
				try("slow client", 2, same, nil)
			}
			if verb != "review" {
				try("store fails", 0, same, func(context.CancelFunc) error { return errors.New("no disk") })
				try("too many writes", 0, same, func(context.CancelFunc) error { return store.ErrBusy })
				try("leaves", 0, same, func(leave context.CancelFunc) error { leave(); return context.Canceled })
				try("panic", 0, same, func(context.CancelFunc) error { panic(http.ErrAbortHandler) })
			}
			if request.body == "" {
				return
			}
			body := func(r io.Reader) func(*http.Request) {
				return func(req *http.Request) { req.Body = io.NopCloser(r) }
			}
			large := request.body + strings.Repeat(" ", 150<<10)
			for range 5 { // one more than may be in memory at once
				try("large body", 2, body(strings.NewReader(large)), nil)
				try("broken large body", 4, body(brokenBody{strings.NewReader(large)}), nil)
				try("body too large", 4, body(strings.NewReader(large+large)), nil)
			}
			try("bad body", refused, body(strings.NewReader("{")), nil)
			try("broken body", 4, body(brokenBody{strings.NewReader("{")}), nil)
		})
	}
}
