package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/client"
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

// TestBulkUnderKills kills the server while bulk requests are made. Every line that was acknowledged is there afterwards.
func TestBulkUnderKills(t *testing.T) {
	t.Parallel()
	i, addr := newIssuer(t), freeAddress(t)
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

// TestMirrorBatches copies a thousand events in few requests: through answers that are lost, to a target that asks to wait, and one
// by one to a target that has no bulk requests.
func TestMirrorBatches(t *testing.T) {
	t.Parallel()
	const n = 1100
	i := newIssuer(t)
	source := start(t, t.TempDir(), i, "--log-level=warn")
	if names, err := sendBulk(t, source.url("--listen-http"), source.token, bulkLines("a", n/2)); err != nil || len(names) != n/2 {
		t.Fatal(len(names), err)
	}
	if names, err := sendBulk(t, source.url("--listen-http"), source.token, bulkLines("b", n/2)); err != nil || len(names) != n/2 {
		t.Fatal(len(names), err)
	}
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, nth int64, pass http.Handler)
		bulk   int64 // requests
		single bool
	}{
		"all is well": {func(w http.ResponseWriter, r *http.Request, _ int64, pass http.Handler) { pass.ServeHTTP(w, r) }, 3, false},
		"each second answer is lost": {func(w http.ResponseWriter, r *http.Request, nth int64, pass http.Handler) {
			rec := httptest.NewRecorder()
			pass.ServeHTTP(rec, r)
			if nth%2 == 1 {
				_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		}, 6, false},
		"a busy target": {func(w http.ResponseWriter, r *http.Request, nth int64, pass http.Handler) {
			if nth == 1 {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			pass.ServeHTTP(w, r)
		}, 4, false},
		"a target that does not get the body in time": {func(w http.ResponseWriter, r *http.Request, nth int64, pass http.Handler) {
			if nth == 2 {
				w.WriteHeader(http.StatusRequestTimeout)
				return
			}
			pass.ServeHTTP(w, r)
		}, 4, false},
		"a target without": {func(w http.ResponseWriter, _ *http.Request, _ int64, _ http.Handler) {
			w.WriteHeader(http.StatusNotFound)
		}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := start(t, t.TempDir(), i, "--log-level=warn")
			to, err := url.Parse(target.url("--listen-http"))
			if err != nil {
				t.Fatal(err)
			}
			proxy := httputil.NewSingleHostReverseProxy(to)
			var bulk, single atomic.Int64
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/bulk/v1/events":
					body, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(bytes.NewReader(body))
					c.answer(w, r, bulk.Add(1), proxy)
					return
				case r.Method == http.MethodPost:
					single.Add(1)
				}
				proxy.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			admin, stop := runMirror(t, "--kubeconfig="+kubeconfigFor(t, source.url("--listen-http"), source.token), "--cluster=a",
				"--server="+front.URL, "--token-file="+file(t, source.token), "--enrich=")
			waittest.Reaches(t, "everything is copied", n, func() (copied int64) {
				for _, result := range []string{"created", "unchanged"} { // unchanged: an answer was lost
					n, _ := strconv.ParseInt(metric(t, admin, fmt.Sprintf(`eventsvc_mirror_events_total{namespace="*",result=%q}`, result)), 10, 64)
					copied += n
				}
				return copied
			})
			waittest.Until(t, "nothing is to be copied", func() bool { return metric(t, admin, `eventsvc_mirror_lag_seconds{namespace="*"}`) == "0" })
			stop()
			copies := bySource(t, coreEvents(t, target.url("--listen-http"), target.token, "labelSelector=cluster=a"))
			if len(copies) != n || bulk.Load() != c.bulk || (single.Load() > 0) != c.single {
				t.Errorf("%d copies by %d bulk requests, want %d, and %d single ones", len(copies), bulk.Load(), c.bulk, single.Load())
			}
		})
	}
}

// TestMirrorChanges copies many changes of events in few requests: each version arrives, in its order. A version with other labels is
// written alone, because the labels of a copy stay as they are in a bulk request.
func TestMirrorChanges(t *testing.T) {
	t.Parallel()
	const n = 300
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
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/bulk/v1/events":
			bulk.Add(1)
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
	for range 3 {
		source.repeat(n, "")
	}
	arrived("the changes", 4*n)
	if puts.Load() > 0 || bulk.Load()-before > 3*n/50 {
		t.Errorf("%d changes took %d bulk requests and %d single ones", 3*n, bulk.Load()-before, puts.Load())
	}
	for step, c := range []struct {
		label string
		puts  int64
	}{{"x", 2}, {"x", 2}, {"y", 4}, {"y", 4}} {
		source.repeat(2, c.label)
		arrived("labels", int64(4*n+2*(step+1)))
		if puts.Load() != c.puts {
			t.Errorf("step %d: %d single requests, want %d", step, puts.Load(), c.puts)
		}
	}
	if copies := coreEvents(t, to.String(), target.token, "labelSelector=app=y"); len(copies) != 2 {
		t.Errorf("%d copies have the last label", len(copies))
	}
}
