package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/waittest"
)

// clock is a clock that tests turn.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// forget makes the store give up the history of everything before now.
func (w *world) forget(c *clock) {
	w.t.Helper()
	c.add(2 * time.Hour)
	w.create("after-a-while") // the newest version is always held
	c.add(2 * time.Hour)
	w.create("after-a-while-more")
	if err := w.db.Maintain(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Now()}
	w := newWorldAt(t, c)
	old := w.create("a", "b")
	page := w.do("GET", eventsPath+"?limit=1", "").must(200).at("metadata.continue").(string)
	w.relabel("a", "x")
	w.create("c")
	w.forget(c)

	st := w.do("GET", eventsPath+"?resourceVersionMatch=Exact&resourceVersion="+old, "").must(410).status()
	equal(t, st, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 410, Reason: "Expired",
		Message: "The resourceVersion for the provided list is too old.",
	})
	w.do("GET", eventsPath+"?limit=1&resourceVersion="+old, "").must(410)
	w.do("GET", eventsPath+"?resourceVersion="+old, "").must(200)

	expired := w.do("GET", eventsPath+"?limit=1&continue="+page, "").must(410).status()
	equal(t, string(expired.Reason), "Expired")
	if !strings.HasPrefix(expired.Message, "The provided continue parameter is too old to display a consistent list result.") {
		t.Error(expired.Message)
	}
	rest := w.do("GET", eventsPath+"?limit=2&continue="+expired.Continue, "").must(200)
	equal(t, rest.names(), []string{"after-a-while", "after-a-while-more"})
	w.create("d") // is not in the list that is being read
	rest = w.do("GET", eventsPath+"?continue="+rest.at("metadata.continue").(string), "").must(200)
	equal(t, rest.names(), []string{"b", "c"})

	srv := w.serve()
	s := w.watch(srv, eventsPath+"?watch=1&resourceVersion="+old)
	equal(t, s.resp.StatusCode, 200)
	if !s.lines.Scan() {
		t.Fatal("an empty answer")
	}
	equal(t, s.lines.Text(), `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",`+
		`"message":"The resourceVersion for the provided watch is too old.","reason":"Expired","code":410}}`)
	s.ended()
	whole := w.watch(srv, eventsPath+watchList+"&resourceVersion="+old)
	equal(t, len(whole.take(6)), 6)
	kind, _ := whole.next()
	equal(t, kind, "BOOKMARK")
	w.do("GET", namespacesPath+"?resourceVersionMatch=Exact&resourceVersion="+old, "").must(410)
}

// TestExpiryLooksLikeADelete: an event that is past its retention goes with an
// ordinary change, and a write that changes something renews its life.
func TestExpiryLooksLikeADelete(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Now()}
	w := newWorldAt(t, c)
	w.create("a")
	rv := w.create("b")
	s := w.watch(w.serve(), eventsPath+"?watch=1&resourceVersion="+rv)
	c.add(40 * time.Hour)
	w.relabel("b", "renewed")
	w.relabel("a", "a") // changes nothing
	c.add(20 * time.Hour)
	if err := w.db.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, s.take(2), []change{{"MODIFIED", "b", "hello"}, {"DELETED", "a", "hello"}})
	equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{"b"})
}

// A collection is deleted to its end although the state that it is listed at is
// given up meanwhile.
func TestDeleteCollectionOutlivesHistory(t *testing.T) {
	t.Parallel()
	w := openWorld(t, bolt.Options{History: time.Nanosecond, SegmentBytes: 1 << 20})
	long := strings.Repeat("x", 300<<10)
	for i := range 40 { // many pages
		w.do("POST", corePath, fmt.Sprintf(`{"metadata":{"name":"long-%02d"},"involvedObject":{"namespace":"default"},"message":"%s"}`, i, long)).must(201)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var forgetting sync.WaitGroup
	forgetting.Go(func() {
		for ctx.Err() == nil {
			if err := w.db.Maintain(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	w.do("DELETE", corePath, "").must(200)
	cancel()
	waittest.Join(t, &forgetting)
	if left := w.db.Stats().Events; left > 0 {
		t.Errorf("%d events are left", left)
	}
}
