package events_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/waittest"
)

// newWorldAt has a clock that the test turns, keeps events for 48 hours and
// history for one.
func newWorldAt(t *testing.T, c *apitest.Clock) *apitest.World {
	t.Helper()
	return apitest.Open(t, bolt.Options{Retention: 48 * time.Hour, History: time.Hour, Now: c.Read, SegmentBytes: 1 << 10})
}

// forget makes the store give up the history of everything before now.
func forget(w *apitest.World, c *apitest.Clock) {
	w.T.Helper()
	c.Add(2 * time.Hour)
	w.Create("after-a-while") // the newest version is always held
	c.Add(2 * time.Hour)
	w.Create("after-a-while-more")
	if err := w.DB.Maintain(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	c := &apitest.Clock{Now: time.Now()}
	w := newWorldAt(t, c)
	old := w.Create("a", "b")
	page := w.Do("GET", apitest.EventsPath+"?limit=1", "").Must(200).At("metadata.continue").(string)
	w.Relabel("a", "x")
	w.Create("c")
	forget(w, c)

	st := w.Do("GET", apitest.EventsPath+"?resourceVersionMatch=Exact&resourceVersion="+old, "").Must(410).Status()
	apitest.Equal(t, st, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 410, Reason: "Expired",
		Message: "The resourceVersion for the provided list is too old.",
	})
	w.Do("GET", apitest.EventsPath+"?limit=1&resourceVersion="+old, "").Must(410)
	w.Do("GET", apitest.EventsPath+"?resourceVersion="+old, "").Must(200)

	expired := w.Do("GET", apitest.EventsPath+"?limit=1&continue="+page, "").Must(410).Status()
	apitest.Equal(t, string(expired.Reason), "Expired")
	if !strings.HasPrefix(expired.Message, "The provided continue parameter is too old to display a consistent list result.") {
		t.Error(expired.Message)
	}
	rest := w.Do("GET", apitest.EventsPath+"?limit=2&continue="+expired.Continue, "").Must(200)
	apitest.Equal(t, rest.Names(), []string{"after-a-while", "after-a-while-more"})
	w.Create("d") // is not in the list that is being read
	rest = w.Do("GET", apitest.EventsPath+"?continue="+rest.At("metadata.continue").(string), "").Must(200)
	apitest.Equal(t, rest.Names(), []string{"b", "c"})

	srv := w.Serve()
	s := w.Watch(srv, apitest.EventsPath+"?watch=1&resourceVersion="+old)
	apitest.Equal(t, s.Resp.StatusCode, 200)
	if !s.Lines.Scan() {
		t.Fatal("an empty answer")
	}
	apitest.Equal(t, s.Lines.Text(), `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",`+
		`"message":"The resourceVersion for the provided watch is too old.","reason":"Expired","code":410}}`)
	s.Ended()
	whole := w.Watch(srv, apitest.EventsPath+apitest.WatchList+"&resourceVersion="+old)
	apitest.Equal(t, len(whole.Take(6)), 6)
	kind, _ := whole.Next()
	apitest.Equal(t, kind, "BOOKMARK")
	w.Do("GET", apitest.NamespacesPath+"?resourceVersionMatch=Exact&resourceVersion="+old, "").Must(410)
}

// TestExpiryLooksLikeADelete: an event that is past its retention goes with an
// ordinary change, and a write that changes something renews its life.
func TestExpiryLooksLikeADelete(t *testing.T) {
	t.Parallel()
	c := &apitest.Clock{Now: time.Now()}
	w := newWorldAt(t, c)
	w.Create("a")
	rv := w.Create("b")
	s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&resourceVersion="+rv)
	c.Add(40 * time.Hour)
	w.Relabel("b", "renewed")
	w.Relabel("a", "a") // changes nothing
	c.Add(20 * time.Hour)
	if err := w.DB.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	apitest.Equal(t, s.Take(2), []apitest.Change{{"MODIFIED", "b", "hello"}, {"DELETED", "a", "hello"}})
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{"b"})
}

// A collection is deleted to its end although the state that it is listed at is
// given up meanwhile.
func TestDeleteCollectionOutlivesHistory(t *testing.T) {
	t.Parallel()
	w := apitest.Open(t, bolt.Options{History: time.Nanosecond, SegmentBytes: 1 << 20})
	long := strings.Repeat("x", 300<<10)
	for i := range 40 { // many pages
		w.Do("POST", apitest.CorePath, fmt.Sprintf(`{"metadata":{"name":"long-%02d"},"involvedObject":{"namespace":"default"},"message":"%s"}`, i, long)).Must(201)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var forgetting sync.WaitGroup
	forgetting.Go(func() {
		for ctx.Err() == nil {
			if err := w.DB.Maintain(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	w.Do("DELETE", apitest.CorePath, "").Must(200)
	cancel()
	waittest.Join(t, &forgetting)
	if left := w.DB.Stats().Events; left > 0 {
		t.Errorf("%d events are left", left)
	}
}
