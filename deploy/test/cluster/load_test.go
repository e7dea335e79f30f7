package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
)

const collection = "/apis/events.k8s.io/v1/namespaces/cluster/events"

// object is what the test reads of events, lists and errors.
type object struct {
	Metadata struct{ Name, ResourceVersion string }
	Items    []object
	Code     int
}

func (o object) revision() uint64 {
	n, _ := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
	return n
}

// load is clients that write through the load balancer, and a watch of each replica.
type load struct {
	t       testing.TB
	c       *cluster
	cancel  context.CancelFunc
	clients sync.WaitGroup
	watches []*watch

	loses bool // commits are lost on purpose: watches that end with 410 begin again with a list

	mu           sync.Mutex
	token        string
	acknowledged map[string]uint64
	given        map[uint64]string // the event that a revision was given to, also if it was lost
	refused      map[string]bool   // events whose writes were answered 503
	last         time.Time
	longest      time.Duration
}

// A watch is what one replica has shown.
type watch struct {
	replica string
	after   uint64            // under the mutex of load
	seen    map[string]uint64 // likewise
	gone    int               // likewise: how often it began again
}

var replicas = []string{"eventsvc1", "eventsvc2"}

func newLoad(t testing.TB, c *cluster, loses bool) *load {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l := &load{t: t, c: c, cancel: cancel, loses: loses, acknowledged: map[string]uint64{}, given: map[uint64]string{}, refused: map[string]bool{}, last: time.Now()}
	testenv.Eventually(t, "a token", time.Minute, func() error { return l.renew(ctx) })
	var list object
	if code := l.call(ctx, "GET", c.events+collection+"?limit=1", "", &list); code != http.StatusOK {
		t.Fatalf("the first list: %d", code)
	}
	for _, replica := range replicas {
		w := &watch{replica: replica, after: list.revision(), seen: map[string]uint64{}}
		l.watches = append(l.watches, w)
		l.clients.Go(func() { l.follow(ctx, w) })
	}
	for writer := range 4 {
		l.clients.Go(func() { l.write(ctx, writer) })
	}
	l.clients.Go(func() {
		for pause(ctx, time.Minute) { // tokens live for minutes
			_ = l.renew(ctx)
		}
	})
	return l
}

// pause waits, and reports whether the test goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *load) stop() {
	l.cancel()
	l.clients.Wait()
}

// renew fetches a token.
func (l *load) renew(ctx context.Context) error {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"demo"}, "client_secret": {"demo-secret"}}
	r, err := http.NewRequestWithContext(ctx, "POST", l.c.tokens+"/oauth2/token", bytes.NewBufferString(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var granted struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&granted); err != nil || granted.Token == "" {
		return fmt.Errorf("no token: %s, %w", answer.Status, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token = granted.Token
	return nil
}

// open sends a request with a token.
func (l *load) open(ctx context.Context, method, url, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	r.Header.Set("Authorization", "Bearer "+l.token)
	l.mu.Unlock()
	r.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(r)
}

// call returns the status of an answer, 0 without one.
func (l *load) call(ctx context.Context, method, url, body string, into *object) int {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	answer, err := l.open(ctx, method, url, body)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return 0
	}
	return answer.StatusCode
}

// write creates events under new names. After each, a list through the load balancer must not be older.
func (l *load) write(ctx context.Context, writer int) {
	for i := 0; pause(ctx, 10*time.Millisecond); i++ {
		name := fmt.Sprintf("w%d-%d", writer, i)
		body := fmt.Sprintf(`{"metadata":{"name":%q},"eventTime":%q,"type":"Normal","reason":"Written","action":"Writing",
			"regarding":{"kind":"Pod","name":"web-0","namespace":"cluster"},"reportingController":"example.com/load","reportingInstance":"load-1"}`,
			name, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
		var event, list object
		switch l.call(ctx, "POST", l.c.events+collection, body, &event) {
		case http.StatusServiceUnavailable:
			l.mu.Lock()
			l.refused[name] = true
			l.mu.Unlock()
			continue
		default:
			continue
		case http.StatusCreated:
		}
		l.mu.Lock()
		now := time.Now()
		l.longest, l.last = max(l.longest, now.Sub(l.last)), now
		l.acknowledged[name] = event.revision()
		l.give(event)
		l.mu.Unlock()
		if l.call(ctx, "GET", l.c.events+collection+"?limit=1", "", &list) == http.StatusOK && list.revision() < event.revision() {
			l.t.Errorf("a list is of revision %d after a write of revision %d was acknowledged", list.revision(), event.revision())
		}
	}
}

// give notes which event a revision was given to.
func (l *load) give(event object) {
	name, revision := event.Metadata.Name, event.revision()
	if other := l.given[revision]; other != "" && other != name {
		l.t.Errorf("revision %d was given to %s and to %s", revision, other, name)
	}
	l.given[revision] = name
}

// follow watches a replica, and resumes where the watch has ended.
func (l *load) follow(ctx context.Context, w *watch) {
	for pause(ctx, 50*time.Millisecond) {
		if at := l.c.address(w.replica); at != "" {
			l.read(ctx, w, at)
		}
	}
}

// read reads one watch to its end.
func (l *load) read(ctx context.Context, w *watch, at string) {
	answer, err := l.open(ctx, "GET", fmt.Sprintf("%s%s?watch=true&timeoutSeconds=30&resourceVersion=%d", at, collection, w.after), "")
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusGone {
		l.gone(ctx, w, at)
	}
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, answer.Body)
		return
	}
	for in := json.NewDecoder(answer.Body); ; {
		var e struct {
			Type   string
			Object object
		}
		if in.Decode(&e) != nil {
			return
		}
		if e.Object.Code == http.StatusGone {
			l.gone(ctx, w, at)
			return
		}
		revision := e.Object.revision()
		l.mu.Lock()
		switch {
		case e.Type != "ADDED":
		case revision <= w.after:
			l.t.Errorf("%s shows revision %d after %d", w.replica, revision, w.after)
		default:
			w.after, w.seen[e.Object.Metadata.Name] = revision, revision
			l.give(e.Object)
		}
		l.mu.Unlock()
	}
}

// gone begins a watch again that was answered 410, with a list.
func (l *load) gone(ctx context.Context, w *watch, at string) {
	if !l.loses {
		l.t.Errorf("a watch of %s after revision %d ends with 410", w.replica, w.after)
		return
	}
	var list object
	if l.call(ctx, "GET", at+collection, "", &list) != http.StatusOK {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if list.revision() <= w.after {
		l.t.Errorf("%s lists revision %d, but its watch has shown revision %d", w.replica, list.revision(), w.after)
	}
	for _, e := range list.Items {
		if shown := w.seen[e.Metadata.Name]; shown != 0 && shown != e.revision() {
			l.t.Errorf("%s lists %s of revision %d, and its watch has shown it under %d", w.replica, e.Metadata.Name, e.revision(), shown)
		}
		w.seen[e.Metadata.Name] = e.revision()
		l.give(e)
	}
	w.after = list.revision()
	w.gone++
}

// more waits until n more writes are acknowledged.
func (l *load) more(n int) {
	l.t.Helper()
	l.mu.Lock()
	want := len(l.acknowledged) + n
	l.mu.Unlock()
	testenv.Eventually(l.t, "writes go on", 4*time.Minute, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if got := len(l.acknowledged); got < want {
			return fmt.Errorf("%d writes are acknowledged, want %d", got, want)
		}
		return nil
	})
}

// refusals waits until n more writes are refused.
func (l *load) refusals(n int) {
	l.t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.refused)
	}
	want := count() + n
	testenv.Eventually(l.t, "writes are refused", 4*time.Minute, func() error {
		if got := count(); got < want {
			return fmt.Errorf("%d writes are refused, want %d", got, want)
		}
		return nil
	})
}

// clock returns the longest time without an acknowledged write since the last call.
func (l *load) clock() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	longest := l.longest
	l.longest, l.last = 0, time.Now()
	return longest
}

// verify compares what was acknowledged with the lists of both replicas, and with what their watches have shown.
func (l *load) verify() {
	l.t.Helper()
	ctx := context.WithoutCancel(l.t.Context())
	for _, w := range l.watches {
		listed := l.list(w.replica)
		ended, cancel := context.WithTimeout(ctx, 5*time.Second) // what the watch had not shown when it was stopped
		l.read(ended, w, l.c.address(w.replica))
		cancel()
		for name, revision := range listed {
			if w.seen[name] != revision {
				l.t.Errorf("%s lists %s of revision %d, and its watch has shown it under %d", w.replica, name, revision, w.seen[name])
			}
			if l.refused[name] {
				l.t.Errorf("%s was refused with 503, and %s lists it", name, w.replica)
			}
		}
		for name, revision := range l.acknowledged {
			if listed[name] != revision {
				l.t.Errorf("%s was acknowledged under revision %d, and %s lists it under %d", name, revision, w.replica, listed[name])
			}
		}
	}
	l.t.Logf("%d acknowledged writes are there, and were shown once by each watch; %d refused ones are not", len(l.acknowledged), len(l.refused))
}

// list returns the revisions of the events that a replica lists.
func (l *load) list(replica string) map[string]uint64 {
	l.t.Helper()
	var list object
	testenv.Eventually(l.t, "a list of "+replica, time.Minute, func() error {
		if code := l.call(context.WithoutCancel(l.t.Context()), "GET", l.c.address(replica)+collection, "", &list); code != http.StatusOK {
			return fmt.Errorf("status %d", code)
		}
		return nil
	})
	listed := map[string]uint64{}
	for _, e := range list.Items {
		listed[e.Metadata.Name] = e.revision()
	}
	return listed
}
