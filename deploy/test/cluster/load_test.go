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

	mu           sync.Mutex
	token        string
	acknowledged map[string]uint64
	last         time.Time
	longest      time.Duration
}

// A watch is what one replica has shown.
type watch struct {
	replica string
	after   uint64            // under the mutex of load
	seen    map[string]uint64 // likewise
}

func newLoad(t testing.TB, c *cluster) *load {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l := &load{t: t, c: c, cancel: cancel, acknowledged: map[string]uint64{}, last: time.Now()}
	testenv.Eventually(t, "a token", time.Minute, func() error { return l.renew(ctx) })
	var list object
	if code := l.call(ctx, "GET", c.events+collection+"?limit=1", "", &list); code != http.StatusOK {
		t.Fatalf("the first list: %d", code)
	}
	for _, replica := range []string{"eventsvc1", "eventsvc2"} {
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
		if l.call(ctx, "POST", l.c.events+collection, body, &event) != http.StatusCreated {
			continue
		}
		l.mu.Lock()
		now := time.Now()
		l.longest, l.last = max(l.longest, now.Sub(l.last)), now
		l.acknowledged[name] = event.revision()
		l.mu.Unlock()
		if l.call(ctx, "GET", l.c.events+collection+"?limit=1", "", &list) == http.StatusOK && list.revision() < event.revision() {
			l.t.Errorf("a list is of revision %d after a write of revision %d was acknowledged", list.revision(), event.revision())
		}
	}
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
		l.t.Errorf("a watch of %s after revision %d is answered 410", w.replica, w.after)
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
		revision := e.Object.revision()
		l.mu.Lock()
		switch {
		case e.Type != "ADDED":
			if e.Object.Code == http.StatusGone {
				l.t.Errorf("a watch of %s after revision %d ends with 410", w.replica, w.after)
			}
		case revision <= w.after:
			l.t.Errorf("%s shows revision %d after %d", w.replica, revision, w.after)
		default:
			w.after, w.seen[e.Object.Metadata.Name] = revision, revision
		}
		l.mu.Unlock()
	}
}

// more waits until n more writes are acknowledged, and both watches have shown them.
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

// gap returns the longest time without an acknowledged write since the last call.
func (l *load) gap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.longest = 0 }()
	return l.longest
}

// verify compares what was acknowledged with the lists of both replicas, and with what their watches have shown.
func (l *load) verify() {
	l.t.Helper()
	ctx := context.WithoutCancel(l.t.Context())
	for _, w := range l.watches {
		var list object
		testenv.Eventually(l.t, "a list of "+w.replica, time.Minute, func() error {
			if code := l.call(ctx, "GET", l.c.address(w.replica)+collection, "", &list); code != http.StatusOK {
				return fmt.Errorf("status %d", code)
			}
			return nil
		})
		ended, cancel := context.WithTimeout(ctx, 5*time.Second) // what the watch had not shown when it was stopped
		l.read(ended, w, l.c.address(w.replica))
		cancel()
		listed := map[string]uint64{}
		for _, e := range list.Items {
			listed[e.Metadata.Name] = e.revision()
			if w.seen[e.Metadata.Name] != e.revision() {
				l.t.Errorf("%s lists %s of revision %d, and its watch has shown it under %d", w.replica, e.Metadata.Name, e.revision(), w.seen[e.Metadata.Name])
			}
		}
		for name, revision := range l.acknowledged {
			if listed[name] != revision {
				l.t.Errorf("%s was acknowledged under revision %d, and %s lists it under %d", name, revision, w.replica, listed[name])
			}
		}
	}
	l.t.Logf("%d acknowledged writes are there, and were shown once by each watch", len(l.acknowledged))
}
