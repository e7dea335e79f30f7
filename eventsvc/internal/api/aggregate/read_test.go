package aggregate

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"

	"tidings.example/shared/randtest"
	"tidings.example/shared/waittest"
)

// empty answers as an event server without events.
func empty(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"EventList","apiVersion":"`+group+`/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
}

// TestReviewed asks for events and compares what the cluster is asked.
func TestReviewed(t *testing.T) {
	t.Parallel()
	in := "/apis/" + group + "/v1/namespaces/shop/events"
	watched := strings.Replace(in, "/v1/", "/v1/watch/", 1)
	for path, want := range map[string]authorizationv1.ResourceAttributes{
		all:                                   {Verb: "list"},
		all + "/":                             {Verb: "list"},
		in + "?limit=5":                       {Verb: "list", Namespace: "shop"},
		in + "?watch=true":                    {Verb: "watch", Namespace: "shop"},
		in + "?watch=":                        {Verb: "watch", Namespace: "shop"},
		in + "?watch=false":                   {Verb: "list", Namespace: "shop"},
		in + "?watch=0":                       {Verb: "list", Namespace: "shop"},
		watched:                               {Verb: "watch", Namespace: "shop"},
		watched + "/e.1":                      {Verb: "watch", Namespace: "shop", Name: "e.1"},
		"/apis/" + group + "/v1/watch/events": {Verb: "watch"},
		in + "/e.1":                           {Verb: "get", Namespace: "shop", Name: "e.1"},
		in + "/e.1?watch=true":                {Verb: "get", Namespace: "shop", Name: "e.1"},
		in + "?fieldSelector=metadata.name%3De.1":                          {Verb: "list", Namespace: "shop", Name: "e.1"},
		in + "?fieldSelector=metadata.name%3De.1,type%3DNormal&watch=true": {Verb: "watch", Namespace: "shop", Name: "e.1"},
		in + "?fieldSelector=metadata.name!%3De.1":                         {Verb: "list", Namespace: "shop"},
	} {
		w := newWorld(t, empty, nil)
		want.Group, want.Version, want.Resource = group, "v1", "events"
		w.send(w.as(w.proxy), "GET", path, "X-Remote-User", "anna", "X-Remote-Uid", "7", "X-Remote-Group", "dev", "X-Remote-Group", "ops", "X-Remote-Extra-Scopes", "x").must(200)
		spec := authorizationv1.SubjectAccessReviewSpec{
			User: "anna", UID: "7", Groups: []string{"dev", "ops"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"x"}}, ResourceAttributes: &want,
		}
		if diff := cmp.Diff([]authorizationv1.SubjectAccessReviewSpec{spec}, w.cluster.asked()); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestDecisions has reviews that allow, deny, contradict themselves, fail, and are remembered.
func TestDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, empty, nil)
	now := time.Now()
	w.server.Reviewer.now = func() time.Time { return now }
	in := func(namespace string) string { return "/apis/" + group + "/v1/namespaces/" + namespace + "/events" }
	w.get(in("a")).must(200)
	w.get(in("a")).must(200)
	w.cluster.allow(false)
	w.get(in("a")).must(200)
	now = now.Add(keptFor - time.Millisecond)
	w.get(in("a")).must(200)
	now = now.Add(time.Millisecond)
	st := w.get(in("a")).must(403).status()
	if want := `events.events.tidings.example is forbidden: User "anna" cannot list resource "events" in API group "events.tidings.example" in the namespace "a": the rule`; st.Message != want {
		t.Error(st.Message)
	}
	w.cluster.allow(true)
	w.get(in("a")).must(403)
	if n := len(w.cluster.asked()); n != 2 {
		t.Errorf("%d reviews", n)
	}
	for i, review := range []func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int){
		func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, 500
		},
		func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, 403
		},
		func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
			panic(http.ErrAbortHandler)
		},
	} {
		w.cluster.decideBy(review)
		a := w.get(in(fmt.Sprint("b", i))).must(503)
		if a.status(); a.header.Get("Retry-After") != "1" {
			t.Error(a.header)
		}
		w.cluster.allow(true)
		w.get(in(fmt.Sprint("b", i))).must(200) // nothing was remembered
	}
	w.cluster.decideBy(func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, 201
	})
	w.get(in("c")).must(403)
	asked := len(w.cluster.asked())
	w.get(in("c"), "X-Remote-Group", masters).must(200)
	if n := len(w.cluster.asked()); n != asked {
		t.Error("system:masters were reviewed")
	}
	if n := strings.Count(w.said.String(), "does not answer, requests that need it are refused"); n != 3 {
		t.Errorf("failures were logged %d times: %s", n, w.said)
	}
	for result, want := range map[string]float64{reviewAllowed: 4, reviewDenied: 2, reviewFailed: 3, reviewKept: 4, reviewMasters: 1} {
		if got := w.metric("eventsvc_aggregate_reviews_total", result); got != want {
			t.Errorf("%s: %v, want %v", result, got, want)
		}
	}
}

// TestLargeReviews are not kept, so that nobody fills the memory.
func TestLargeReviews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, empty, nil)
	for range 2 {
		w.get(all, "X-Remote-Group", strings.Repeat("g", keptSpec)).must(200)
	}
	if n := len(w.cluster.asked()); n != 2 {
		t.Errorf("%d reviews", n)
	}
}

// TestEqualReviews asks the cluster once for requests that are alike and come together, of which the first is given up.
func TestEqualReviews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, empty, nil)
	asked, answered := make(chan struct{}, 20), make(chan struct{})
	w.cluster.decideBy(func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		asked <- struct{}{}
		<-answered
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, 201
	})
	var together sync.WaitGroup
	for range 10 {
		together.Go(func() { w.get(all).must(200) })
	}
	waittest.Within(t, asked)
	waittest.Until(t, "all wait", func() bool { return w.server.requests.of("anna") == 10 })
	close(answered)
	waittest.Join(t, &together)
	if n := len(w.cluster.asked()); n != 1 {
		t.Errorf("%d reviews", n)
	}
}

// TestForward compares what reaches the event server, and what comes back.
func TestForward(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r
		h := w.Header()
		h.Set("Content-Type", "application/vnd.kubernetes.protobuf")
		h.Set("Content-Encoding", "gzip")
		h.Set("Vary", "Accept-Encoding")
		h.Set("Warning", `299 - "w"`)
		h.Set("Set-Cookie", "a=b")
		h.Set("X-Request-Id", "other")
		_, _ = w.Write([]byte("zipped"))
	}, nil)
	a := w.get("/apis/"+group+"/v1/namespaces/shop/events?limit=5&continue=c&labelSelector=a%3Db", "Accept", "application/vnd.kubernetes.protobuf", "Accept-Encoding", "gzip",
		"Authorization", "Bearer theirs", "X-Remote-Group", "dev", "Cookie", "c=d", "Audit-Id", "audit-1", "X-Request-Id", "request-1").must(200)
	r := waittest.Within(t, got)
	if r.URL.Path != "/apis/"+group+"/v1/namespaces/shop/events" || r.URL.RawQuery != "continue=c&labelSelector=a%3Db&limit=5" {
		t.Error(r.URL)
	}
	want := http.Header{
		"Accept": {"application/vnd.kubernetes.protobuf"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer own"}, "User-Agent": {"eventsvc/test"},
		"Audit-Id": {"audit-1"}, "X-Request-Id": {"request-1"},
	}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Error(diff)
	}
	if a.body != "zipped" || a.header.Get("Content-Encoding") != "gzip" || a.header.Get("Warning") == "" || a.header.Get("Set-Cookie") != "" || a.header.Get("X-Request-Id") != "request-1" {
		t.Error(a)
	}
	if sent := w.metric("eventsvc_aggregate_sent_bytes_total", "anna"); sent != 6 {
		t.Error(sent)
	}
	w.send(w.as(w.proxy), "HEAD", all, "X-Remote-User", "anna").must(200)
	if r := waittest.Within(t, got); r.Method != "GET" || r.Header.Get("Accept-Encoding") != "identity" {
		t.Error(r)
	}
	w.get(all + "?limit=%zz").must(400)
	w.get(all + "?limit=x").must(400)
	w.get(all + "?a=" + strings.Repeat("b", maxQuery)).must(400)
}

// TestEventServerFails has an event server that is away, and one that does not accept this process.
func TestEventServerFails(t *testing.T) {
	t.Parallel()
	var code atomic.Int32
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		if code.Load() == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(int(code.Load()))
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"User \"aggregate\" cannot"}`)
	}, nil)
	one := "/apis/" + group + "/v1/namespaces/shop/events/e"
	for _, c := range []struct {
		theirs int32
		path   string
		want   int
	}{
		{0, all, 503}, {401, all, 503}, {403, all, 503}, {403, one, 503}, {404, all, 503}, {404, all + "?watch=1", 503}, {404, one, 404},
		{410, all, 410}, {429, all, 429}, {406, one, 406}, {504, all + "?watch=1", 504},
	} {
		code.Store(c.theirs)
		a := w.get(c.path).must(c.want)
		if a.code == 503 && (a.header.Get("Retry-After") != "" || strings.Contains(a.body, "aggregate\\\"")) {
			t.Errorf("%+v: %v %s", c, a.header, a.body)
		}
	}
	w.get("/apis/" + group + "/v1").must(200)
	if got := w.metric("eventsvc_aggregate_forwarded_total", forwardAway); got != 1 {
		t.Error(got)
	}
	if got := w.metric("eventsvc_aggregate_forwarded_total", forwardRefused); got != 5 {
		t.Error(got)
	}
}

// TestNoAnswer: an event server that takes a question and says nothing is given up, unless it says that it is ready.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	asked := make(chan bool, 1)
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/readyz" && ready.Load(): // in the middle of a long list
			if !waittest.Within(t, asked) {
				t.Error("a server without room is taken for one that is dead")
			}
			_, _ = io.WriteString(w, "{}")
		case ready.Load():
			asked <- r.URL.RawQuery == "exclude=room"
		default:
			<-r.Context().Done()
		}
	}, nil)
	if longest := w.server.patience + w.server.look; longest > 5*time.Second {
		t.Errorf("kubectl hears after %s that nobody answers", longest)
	}
	w.server.patience, w.server.look = 100*time.Millisecond, 100*time.Millisecond
	for _, path := range []string{all, all + "?watch=1", "/apis/" + group + "/v1/namespaces/shop/events/e"} {
		a := w.get(path).must(503)
		if st := a.status(); a.header.Get("Retry-After") != "" || !strings.Contains(st.Message, "the event server does not answer") {
			t.Errorf("%s: %v %s", path, a.header, a.body)
		}
	}
	ready.Store(true)
	w.server.look = time.Minute // however busy the machine is
	w.get(all).must(200)
}

// TestCluster limits what is shown to one cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 2)
	var fails atomic.Bool
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() && strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		got <- r
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"Event","metadata":{"name":"e","labels":{"tidings.example/cluster":%q}}}`, map[bool]string{true: "here", false: "there"}[strings.HasSuffix(r.URL.Path, "/mine")])
	}, func(c *Config) { c.Cluster = "here" })
	for query, want := range map[string]string{
		"": "tidings.example/cluster=here", "?labelSelector=a": "a,tidings.example/cluster=here",
		"?labelSelector=a&labelSelector=b": "a,tidings.example/cluster=here", "?watch=1&labelSelector=a,tidings.example/cluster%3Dthere": "a,tidings.example/cluster=there,tidings.example/cluster=here",
	} {
		w.get(all + query).must(200)
		if r := waittest.Within(t, got); !cmp.Equal(r.URL.Query()["labelSelector"], []string{want}) {
			t.Errorf("%s: %s", query, r.URL)
		}
	}
	in := "/apis/" + group + "/v1/namespaces/shop/events/"
	w.get(in + "mine").must(200)
	if first, second := waittest.Within(t, got), waittest.Within(t, got); !strings.Contains(first.Header.Get("Accept"), "PartialObjectMetadata") || second.URL.Path != in+"mine" {
		t.Error(first, second)
	}
	fails.Store(true)
	w.get(in + "mine").must(503) // whose event it is, is not known
	fails.Store(false)
	if st := w.get(in + "theirs").must(404).status(); st.Reason != "NotFound" || strings.Contains(st.Message, "there") && !strings.Contains(st.Message, "theirs") {
		t.Error(st)
	}
}

// stream is an event server whose watches send what the test sends.
func stream(contentType string, frames <-chan string, ended chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case f := <-frames:
				if f == "" {
					return
				}
				_, _ = io.WriteString(w, f)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				ended <- struct{}{}
				return
			}
		}
	}
}

// TestWatchLosesRight takes the right away while a watch is open.
func TestWatchLosesRight(t *testing.T) {
	t.Parallel()
	for accept, code := range map[string]int32{"application/json": 403, "application/vnd.kubernetes.protobuf": 503} {
		t.Run(accept, func(t *testing.T) {
			t.Parallel()
			frames, ended := make(chan string, 1), make(chan struct{}, 1)
			w := newWorld(t, stream(accept+";stream=watch", frames, ended), nil)
			w.server.reviewEvery = 10 * time.Millisecond
			var now atomic.Int64
			now.Store(time.Now().UnixNano())
			w.server.Reviewer.now = func() time.Time { return time.Unix(0, now.Add(int64(keptFor))) } // nothing is kept
			resp := w.open(w.as(w.proxy), "GET", all+"?watch=1", "X-Remote-User", "anna", "Accept", accept)
			defer func() { _ = resp.Body.Close() }()
			first := `{"type":"ADDED","object":{}}` + "\n"
			if accept != "application/json" {
				first = string(binary.BigEndian.AppendUint32(nil, 3)) + "abc"
			}
			frames <- first
			read := make([]byte, len(first))
			if _, err := io.ReadFull(resp.Body, read); err != nil || string(read) != first {
				t.Fatal(err, string(read))
			}
			asked := len(w.cluster.asked())
			waittest.Until(t, "the right is reviewed again", func() bool { return len(w.cluster.asked()) > asked })
			if code == 403 {
				w.cluster.allow(false)
			} else {
				w.cluster.decideBy(func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
					return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, 500
				})
			}
			rest, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			waittest.Within(t, ended)
			if accept != "application/json" {
				if int(binary.BigEndian.Uint32(rest)) != len(rest)-4 || !strings.Contains(string(rest), "ERROR") || !strings.Contains(string(rest), "did not say") {
					t.Errorf("%q", rest)
				}
				return
			}
			var frame struct {
				Type   string
				Object struct{ Code int32 }
			}
			if err := json.Unmarshal(rest, &frame); err != nil || frame.Type != "ERROR" || frame.Object.Code != code {
				t.Errorf("%v %s", err, rest)
			}
		})
	}
}

// TestWatchEnds ends watches in each other way.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	frames, ended := make(chan string), make(chan struct{}, 1)
	w := newWorld(t, stream("application/json", frames, ended), nil)
	begin := func() (*http.Response, *bufio.Reader) {
		resp := w.open(w.as(w.proxy), "GET", all+"?watch=1", "X-Remote-User", "anna")
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp, bufio.NewReader(resp.Body)
	}
	_, r := begin()
	frames <- "{}\n"
	frames <- ""
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "{}\n" {
		t.Error("the event server ends it:", err, string(rest))
	}
	resp, _ := begin()
	_ = resp.Body.Close()
	waittest.Within(t, ended) // the client leaves
	_, r = begin()
	frames <- "{}\n{"
	if line, err := r.ReadString('\n'); err != nil || line != "{}\n" {
		t.Error(err, line)
	}
	w.server.Drain(t.Context()) // within a frame
	if _, err := io.ReadAll(r); err == nil {
		t.Error("half a frame was passed off as the end")
	}
	waittest.Within(t, ended)
	a := w.get(all + "?watch=1") // after that each ends at once
	if a.code != 503 {
		t.Error(a)
	}
}

// TestWatchTimes has a watch that asks for no time end within an hour, at random.
func TestWatchTimes(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) { got <- r; empty(w, r) }, nil)
	w.get(all + "?watch=1&timeoutSeconds=7").must(200)
	if r := waittest.Within(t, got); r.URL.Query().Get("timeoutSeconds") != "7" {
		t.Error(r.URL)
	}
	w.get(all + "?watch=1&allowWatchBookmarks=true").must(200)
	r := waittest.Within(t, got)
	var seconds int
	if _, err := fmt.Sscan(r.URL.Query().Get("timeoutSeconds"), &seconds); err != nil || seconds < 1800 || seconds > 3600 || r.URL.Query().Get("allowWatchBookmarks") != "true" {
		t.Error(r.URL)
	}
}

// of returns what a user has in flight.
func (o *open) of(user string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byUser[user]
}

// TestLimits fills what one user may have, and leaves the others alone.
func TestLimits(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "1" || r.URL.Query().Get("watch") != "" {
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-hold:
			case <-r.Context().Done():
			}
			return
		}
		empty(w, r)
	}, nil)
	c := w.as(w.proxy)
	var held sync.WaitGroup
	in := map[string]*open{"?limit=1": w.server.requests, "?watch=1": w.server.watches}
	for kind, most := range map[string]int{"?limit=1": maxUserRequests, "?watch=1": maxUserWatches} {
		for range most {
			held.Go(func() { w.send(c, "GET", all+kind, "X-Remote-User", "anna").must(200) })
		}
		waittest.Until(t, "all are in flight", func() bool { return in[kind].of("anna") == most })
		a := w.get(all + kind).must(429)
		if st := a.status(); a.header.Get("Retry-After") != "1" || !strings.Contains(st.Message, fmt.Sprint(most)) {
			t.Error(st)
		}
	}
	w.send(c, "GET", all, "X-Remote-User", "berta").must(200)
	w.get("/apis/" + group + "/v1").must(200) // discovery has no limit
	for _, limit := range []string{"client-requests", "client-watches"} {
		if n := w.metric("eventsvc_requests_refused_total", limit); n != 1 {
			t.Errorf("%s: %v", limit, n)
		}
	}
	close(hold)
	waittest.Join(t, &held)
	waittest.Until(t, "all are counted out", func() bool { return in["?limit=1"].of("anna")+in["?watch=1"].of("anna") == 0 })
	together := newOpen("requests", 2, 2)
	leave, _ := together.enter("a")
	_, _ = together.enter("b")
	if _, err := together.enter("c"); err == nil {
		t.Error("there is no limit in all")
	}
	leave()
	if _, err := together.enter("c"); err != nil || len(together.byUser) != 2 {
		t.Error(err, together.byUser)
	}
}

// TestFrames finds the ends of frames however they are cut.
func TestFrames(t *testing.T) {
	t.Parallel()
	random := randtest.New(t)
	for range 200 {
		for _, binaryFrames := range []bool{false, true} {
			var stream []byte
			ends := []int{0}
			for range 1 + random.IntN(5) {
				body := strings.Repeat("x", random.IntN(20))
				if binaryFrames {
					stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(body))), body...)
				} else {
					stream = append(stream, body+"\n"...)
				}
				ends = append(ends, len(stream))
			}
			f := &frames{binary: binaryFrames}
			for at := 0; at < len(stream); {
				n := 1 + random.IntN(len(stream)-at)
				f.pass(stream[at : at+n])
				at += n
				if got, want := f.whole(), slices.Contains(ends, at); got != want {
					t.Fatalf("at %d of %q: %v", at, stream, got)
				}
			}
		}
	}
}

// TestSentBytes bounds what is remembered of users.
func TestSentBytes(t *testing.T) {
	t.Parallel()
	s := newSentBytes()
	for i := range 3 * sentUsers {
		s.add(fmt.Sprint("user", i), 1)
		s.add("busy", 1)
	}
	if s.by["busy"] != 3*sentUsers || len(s.by) > sentUsers {
		t.Error(s.by["busy"], len(s.by))
	}
}
