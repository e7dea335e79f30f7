package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/shared/porttest"
	"tidings.example/shared/waittest"
)

// bulkLines makes events of core/v1, one a line.
func bulkLines(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"metadata":{"namespace":"shop","name":"%s-%d"},"involvedObject":{"kind":"Pod","namespace":"shop","name":"web"},"reason":"R","type":"Normal"}`+"\n", prefix, i)
	}
	return b.String()
}

// sendBulk sends lines and returns the names that the answer acknowledges, as far as it comes.
func sendBulk(t *testing.T, base, token, lines string) (names []string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/bulk/v1/events", strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	for answers := json.NewDecoder(resp.Body); ; {
		var line struct {
			Code int
			Name string
		}
		if err := answers.Decode(&line); err == io.EOF {
			return names, nil
		} else if err != nil {
			return names, err
		}
		if line.Code == http.StatusCreated {
			names = append(names, line.Name)
		}
	}
}

// TestBulkUnderKills kills the server while bulk requests are made. Every line that was acknowledged is there
// afterwards.
func TestBulkUnderKills(t *testing.T) {
	t.Parallel()
	i, addr := newIssuer(t), porttest.Addr(t)
	token := i.token(t, nil)
	server := &child{t: t, args: []string{"serve", "--listen-http=" + addr, "--listen-admin=", "--issuer=" + i.URL, "--data-dir=" + t.TempDir()}}
	server.start()
	t.Cleanup(func() {
		server.kill()
		if t.Failed() {
			t.Log(server.log.String())
		}
	})
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var stopped atomic.Bool
	var writers sync.WaitGroup
	for writer := range 3 {
		writers.Go(func() {
			for n := 0; !stopped.Load(); n++ {
				names, _ := sendBulk(t, "http://"+addr, token, bulkLines(fmt.Sprintf("w%d-%d", writer, n), 40)) // it is killed meanwhile
				mu.Lock()
				for _, name := range names {
					acknowledged[name] = true
				}
				mu.Unlock()
			}
		})
	}
	count := func() int64 {
		mu.Lock()
		defer mu.Unlock()
		return int64(len(acknowledged))
	}
	for range 4 {
		before := count()
		waittest.Reaches(t, "more is acknowledged", before+400, count)
		server.kill()
		server.start()
	}
	stopped.Store(true)
	writers.Wait()
	waittest.Until(t, "it answers", func() bool {
		_, err := sendBulk(t, "http://"+addr, token, bulkLines("last", 1))
		return err == nil
	})
	stored := coreEvents(t, "http://"+addr, token, "")
	for name := range acknowledged {
		if _, there := stored["shop/"+name]; !there {
			t.Fatalf("%s was acknowledged, and is not there: %d of %d events", name, len(stored), len(acknowledged))
		}
	}
	t.Logf("%d lines were acknowledged, %d events are there", len(acknowledged), len(stored))
}

// TestMirrorChanges copies many changes of events in few requests: each version arrives, in its order, also with other
// labels.
func TestMirrorChanges(t *testing.T) {
	t.Parallel()
	const n = 80 // of three changes each, which all fit in what the mirror reads on while a request waits
	i := newIssuer(t)
	source := &simulated{name: "a"}
	source.startOver("a", "shop", slices.Repeat([]string{"BackOff"}, n)...)
	cluster := httptest.NewServer(source)
	target := start(t, t.TempDir(), i, "--log-level=warn")
	to, err := url.Parse(target.url("--listen-http"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	var bulk, puts atomic.Int64
	var hold sync.RWMutex // bulk requests, which wait meanwhile
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/bulk/v1/events":
			bulk.Add(1)
			hold.RLock()
			defer hold.RUnlock()
		case r.Method == http.MethodPut && !strings.HasSuffix(r.URL.Path, "/eventsvc-mirror.a"):
			puts.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	watched, err := client.New(client.Config{Server: to.String(), Tokens: client.StaticToken(target.token)})
	if err != nil {
		t.Fatal(err)
	}
	seen := &arrivals{t: t, versions: map[string]int{}, newest: map[string]int{}}
	begin, err := watched.Version(t.Context(), "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() {
		_ = watched.Follow(ctx, "/api/v1/events", begin, nil, client.Follower{Connected: func() {}, Interrupted: func(error) {}, Change: seen.change}) // until it is stopped
	})
	t.Cleanup(func() { stop(); waittest.Join(t, &following) })
	_, stopped := runMirror(t, "--kubeconfig="+kubeconfigFor(t, cluster.URL, "t"), "--cluster=a", "--server="+front.URL, "--token-file="+file(t, target.token), "--enrich=")
	t.Cleanup(func() { stopped(); cluster.CloseClientConnections(); cluster.Close() })
	arrived := func(step string, versions int64) {
		t.Helper()
		waittest.Reaches(t, step, versions, seen.n.Load)
		if got := seen.n.Load(); got != versions || seen.missing(source) != "" {
			t.Errorf("%s: %d versions have arrived, want %d; %s", step, got, versions, seen.missing(source))
		}
	}
	arrived("the list", n)
	before := bulk.Load()
	hold.Lock() // so that how many requests there are does not depend on the order in which goroutines run
	for range 3 {
		source.repeat(n, "")
	}
	waittest.Reaches(t, "the changes are sent", 4*n, source.sent.Load)
	hold.Unlock()
	arrived("the changes", 4*n)
	if puts.Load() > 0 || bulk.Load()-before > 3*n/50 {
		t.Errorf("%d changes took %d bulk requests and %d single ones", 3*n, bulk.Load()-before, puts.Load())
	}
	for step, label := range []string{"x", "x", "y", "y"} {
		source.repeat(2, label)
		arrived("labels", int64(4*n+2*(step+1)))
	}
	if puts.Load() > 0 {
		t.Errorf("%d single requests for changed labels", puts.Load())
	}
	if copies := coreEvents(t, to.String(), target.token, "labelSelector=app=y"); len(copies) != 2 {
		t.Errorf("%d copies have the last label", len(copies))
	}
}
