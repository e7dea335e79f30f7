package api_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/store"
)

// broken is a store whose every operation fails in the same way.
type broken struct {
	store.Store
	err error
}

func (b *broken) Get(context.Context, store.Key, func(*store.View) error) error { return b.err }
func (b *broken) List(context.Context, store.Query, func(*store.View) bool) (store.Page, error) {
	return store.Page{}, b.err
}
func (b *broken) UpdateMany(
	_ context.Context, keys []store.Key, _ func(i int) store.Expect, _ func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	return slices.Repeat([]store.Outcome{{Err: b.err}}, len(keys))
}
func (b *broken) DeleteMany(context.Context, []store.Seen) (int, []store.Key, error) {
	return 0, nil, b.err
}
func (b *broken) Revision() uint64 { return 7 }
func (b *broken) Watch(context.Context, store.WatchQuery) (store.Watcher, error) {
	return nil, b.err
}

func (b *broken) Update(context.Context, store.Key, store.Expect, store.Decide) (store.Result, error) {
	return store.Result{}, b.err
}

// TestErrorsOfTheStore: the answer for each error of the store. It has a
// Retry-After only if nothing can have been written.
func TestErrorsOfTheStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		code   int
		reason metav1.StatusReason
		retry  string
	}{
		{store.ErrBusy, 429, metav1.StatusReasonTooManyRequests, "1"},
		{store.ErrUnwritable, 503, metav1.StatusReasonServiceUnavailable, ""},
		{store.ErrFull, 503, metav1.StatusReasonServiceUnavailable, ""},
		{store.ErrClosed, 503, metav1.StatusReasonServiceUnavailable, ""},
		{context.DeadlineExceeded, 504, metav1.StatusReasonTimeout, ""},
		{&store.CorruptError{Key: store.Key{Namespace: "default", Name: "a"}, Revision: 3, Reason: "secret"}, 500, metav1.StatusReasonInternalError, ""},
		{errors.New("secret"), 500, metav1.StatusReasonInternalError, ""},
	} {
		w := newWorld(t)
		w.config.Store = &broken{err: c.err}
		var err error
		if w.server, err = api.New(w.config); err != nil {
			t.Fatal(err)
		}
		for name, a := range map[string]*answer{
			"create":     w.do("POST", eventsPath, newEvent("a")),
			"get":        w.do("GET", eventsPath+"/a", ""),
			"list":       w.do("GET", eventsPath, ""),
			"put":        w.do("PUT", eventsPath+"/a", newEvent("a")),
			"patch":      w.do("PATCH", eventsPath+"/a", `{}`, "Content-Type", mergePatch),
			"delete":     w.do("DELETE", eventsPath+"/a", ""),
			"collection": w.do("DELETE", eventsPath, ""),
			"watch list": w.do("GET", eventsPath+watchList, ""),
			"namespaces": w.do("GET", namespacesPath, ""),
		} {
			st := a.must(c.code).status()
			if strings.Contains(st.Message, "secret") || st.Reason != c.reason || a.header.Get("Retry-After") != c.retry || st.Kind != "Status" {
				t.Errorf("%s, %v: %s %v", name, c.err, a.body, a.header)
			}
		}
	}
}

// TestWatchThatFails: the stream has begun, so an ERROR event says why it ends.
func TestWatchThatFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string // type and reason of the only event; "" for a clean end
	}{
		{&store.ExpiredError{Revision: 1, Oldest: 5}, "ERROR Expired"},
		{&store.CorruptError{}, "ERROR InternalError"},
		{store.ErrClosed, ""},
	} {
		w := newWorld(t)
		w.config.Store = &broken{err: c.err}
		var err error
		if w.server, err = api.New(w.config); err != nil {
			t.Fatal(err)
		}
		s := w.watch(w.serve(), eventsPath+"?watch=1&resourceVersion=5")
		equal(t, s.resp.StatusCode, 200)
		if c.want != "" {
			kind, object := s.next()
			equal(t, kind+" "+object["reason"].(string), c.want)
		}
		s.ended()
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, drop := range map[string]func(*api.Config){
		"Store": func(c *api.Config) { c.Store = nil }, "Codec": func(c *api.Config) { c.Codec = nil },
		"Verify": func(c *api.Config) { c.Verify = nil }, "Probe": func(c *api.Config) { c.Probe = nil },
		"Timeline": func(c *api.Config) { c.Timeline = nil }, "Policy": func(c *api.Config) { c.Policy = nil },
		"Withdrawn": func(c *api.Config) { c.Withdrawn = nil }, "Fresh": func(c *api.Config) { c.Fresh = nil },
	} {
		c := w.config
		drop(&c)
		if _, err := api.New(c); err == nil {
			t.Errorf("without %s there is no error", name)
		}
	}
}

// crowded is a store in which the first names that are tried are taken.
type crowded struct {
	store.Store
	taken, tried int
}

func (c *crowded) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	if c.tried++; c.tried <= c.taken {
		return store.Result{}, store.ErrExists
	}
	return c.Store.Update(ctx, key, expect, decide)
}

// TestGeneratedNamesThatAreTaken: eight names are tried.
func TestGeneratedNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	body := newEvent("", `"metadata":{"generateName":"g-"}`)
	for taken, code := range map[int]int{0: 201, 7: 201, 8: 409} {
		w := newWorld(t)
		s := &crowded{Store: w.db, taken: taken}
		w.config.Store = s
		var err error
		if w.server, err = api.New(w.config); err != nil {
			t.Fatal(err)
		}
		a := w.do("POST", eventsPath, body).must(code)
		equal(t, s.tried, min(taken+1, 8))
		if code == 409 {
			equal(t, a.header.Get("Retry-After"), "1")
			st := a.status()
			equal(t, st.Reason, metav1.StatusReasonAlreadyExists)
			if !strings.HasSuffix(st.Message, " already exists, the server was not able to generate a unique name for the object") {
				t.Error(st.Message)
			}
		}
	}
}

// meddler does something between the listing of a collection and its deletion.
type meddler struct {
	store.Store
	first func()
}

func (m *meddler) DeleteMany(ctx context.Context, seen []store.Seen) (int, []store.Key, error) {
	m.first()
	return m.Store.DeleteMany(ctx, seen)
}

// TestFinalizerDuringDeletionOfACollection: an event that gets a finalizer
// after it was listed is only marked, and one that changes otherwise goes.
func TestFinalizerDuringDeletionOfACollection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("plain", "changed", "held")
	direct := *w
	w.config.Store = &meddler{Store: w.db, first: func() {
		direct.do("PATCH", eventsPath+"/changed", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", mergePatch).must(200)
		direct.do("PATCH", eventsPath+"/held", `{"metadata":{"finalizers":["example.com/hold"]}}`, "Content-Type", mergePatch).must(200)
	}}
	var err error
	if w.server, err = api.New(w.config); err != nil {
		t.Fatal(err)
	}
	w.do("DELETE", eventsPath, "").must(200)
	left := w.do("GET", eventsPath, "").must(200).at("items").([]any)
	if len(left) != 1 {
		t.Fatalf("%d events are left, want the one that is held", len(left))
	}
	if got := w.do("GET", eventsPath+"/held", "").must(200).at("metadata.deletionTimestamp"); got == nil {
		t.Error("the event with a finalizer is not marked")
	}
}
