package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
)

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
		w := apitest.New(t)
		w.Config.Store = &apitest.Broken{Err: c.err}
		var err error
		if w.Server, err = api.New(w.Config); err != nil {
			t.Fatal(err)
		}
		for name, a := range map[string]*apitest.Answer{
			"create":     w.Do("POST", apitest.EventsPath, apitest.NewEvent("a")),
			"get":        w.Do("GET", apitest.EventsPath+"/a", ""),
			"list":       w.Do("GET", apitest.EventsPath, ""),
			"put":        w.Do("PUT", apitest.EventsPath+"/a", apitest.NewEvent("a")),
			"patch":      w.Do("PATCH", apitest.EventsPath+"/a", `{}`, "Content-Type", apitest.MergePatch),
			"delete":     w.Do("DELETE", apitest.EventsPath+"/a", ""),
			"collection": w.Do("DELETE", apitest.EventsPath, ""),
			"watch list": w.Do("GET", apitest.EventsPath+apitest.WatchList, ""),
			"namespaces": w.Do("GET", apitest.NamespacesPath, ""),
		} {
			st := a.Must(c.code).Status()
			if strings.Contains(st.Message, "secret") || st.Reason != c.reason || a.Header.Get("Retry-After") != c.retry || st.Kind != "Status" {
				t.Errorf("%s, %v: %s %v", name, c.err, a.Body, a.Header)
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
		w := apitest.New(t)
		w.Config.Store = &apitest.Broken{Err: c.err}
		var err error
		if w.Server, err = api.New(w.Config); err != nil {
			t.Fatal(err)
		}
		s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&resourceVersion=5")
		apitest.Equal(t, s.Resp.StatusCode, 200)
		if c.want != "" {
			kind, object := s.Next()
			apitest.Equal(t, kind+" "+object["reason"].(string), c.want)
		}
		s.Ended()
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for name, drop := range map[string]func(*api.Config){
		"Store": func(c *api.Config) { c.Store = nil }, "Codec": func(c *api.Config) { c.Codec = nil },
		"Verify": func(c *api.Config) { c.Verify = nil }, "Probe": func(c *api.Config) { c.Probe = nil },
		"Timeline": func(c *api.Config) { c.Timeline = nil }, "Policy": func(c *api.Config) { c.Policy = nil },
		"Withdrawn": func(c *api.Config) { c.Withdrawn = nil }, "Fresh": func(c *api.Config) { c.Fresh = nil },
	} {
		c := w.Config
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
	body := apitest.NewEvent("", `"metadata":{"generateName":"g-"}`)
	for taken, code := range map[int]int{0: 201, 7: 201, 8: 409} {
		w := apitest.New(t)
		s := &crowded{Store: w.DB, taken: taken}
		w.Config.Store = s
		var err error
		if w.Server, err = api.New(w.Config); err != nil {
			t.Fatal(err)
		}
		a := w.Do("POST", apitest.EventsPath, body).Must(code)
		apitest.Equal(t, s.tried, min(taken+1, 8))
		if code == 409 {
			apitest.Equal(t, a.Header.Get("Retry-After"), "1")
			st := a.Status()
			apitest.Equal(t, st.Reason, metav1.StatusReasonAlreadyExists)
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
	w := apitest.New(t)
	w.Create("plain", "changed", "held")
	direct := *w
	w.Config.Store = &meddler{Store: w.DB, first: func() {
		direct.Do("PATCH", apitest.EventsPath+"/changed", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", apitest.MergePatch).Must(200)
		direct.Do("PATCH", apitest.EventsPath+"/held", `{"metadata":{"finalizers":["example.com/hold"]}}`, "Content-Type", apitest.MergePatch).Must(200)
	}}
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	w.Do("DELETE", apitest.EventsPath, "").Must(200)
	left := w.Do("GET", apitest.EventsPath, "").Must(200).At("items").([]any)
	if len(left) != 1 {
		t.Fatalf("%d events are left, want the one that is held", len(left))
	}
	if got := w.Do("GET", apitest.EventsPath+"/held", "").Must(200).At("metadata.deletionTimestamp"); got == nil {
		t.Error("the event with a finalizer is not marked")
	}
}
