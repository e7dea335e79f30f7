package api_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/shared/waittest"
)

const (
	initialEnd = "k8s.io/initial-events-end"
	watchList  = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)

// relabel changes the label app of an event.
func (w *world) relabel(name, value string) {
	w.t.Helper()
	w.do("PATCH", eventsPath+"/"+name, `{"metadata":{"labels":{"app":"`+value+`"}}}`,
		"Content-Type", "application/merge-patch+json").must(200)
}

// TestWatchOptions is the table of what is refused before
// the stream begins.
func TestWatchOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	invalid := func(text string) string {
		return `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: ` + text
	}
	for _, c := range []struct {
		query string
		code  int
		text  string
	}{
		{"sendInitialEvents=true", 422, invalid("Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")},
		{"resourceVersionMatch=NotOlderThan", 422, invalid("Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")},
		{
			"sendInitialEvents=true&resourceVersionMatch=Foo", 422,
			`ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: sendInitialEvents requires setting ` +
				`resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: "Foo": supported values: "NotOlderThan"]`,
		},
		{
			"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x", 422,
			invalid("Forbidden: resourceVersionMatch is forbidden when continue is provided"),
		},
		{"resourceVersion=abc", 400, `invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`},
		{"timeoutSeconds=abc", 400, `strconv.ParseInt: parsing "abc": invalid syntax`},
		{"fieldSelector=foo%3Dbar", 400, "field label not supported: foo"},
	} {
		st := w.do("GET", eventsPath+"?watch=1&"+c.query, "").must(c.code).status()
		equal(t, st.Message, c.text)
	}
	for _, query := range []string{"type%3DNormal", "metadata.name%3Db"} {
		a := w.do("GET", "/apis/events.k8s.io/v1/watch/namespaces/default/events/a?fieldSelector="+query, "").must(400)
		equal(t, a.status().Message, "fieldSelector metadata.name doesn't match requested name")
	}
}

func TestWatchBeginsWithTheState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("b", "a")
	last := w.create("c")
	srv := w.serve()
	for _, query := range []string{"?watch=true&allowWatchBookmarks=1", "?watch=1&resourceVersion=0&allowWatchBookmarks=true", watchList} {
		s := w.watch(srv, eventsPath+query)
		equal(t, s.resp.Header.Get("Content-Type"), "application/json")
		equal(t, s.take(3), []change{{"ADDED", "a", "hello"}, {"ADDED", "b", "hello"}, {"ADDED", "c", "hello"}})
		kind, bookmark := s.next()
		equal(t, kind, "BOOKMARK")
		equal(t, bookmark, map[string]any{
			"kind": "Event", "apiVersion": "events.k8s.io/v1", "eventTime": nil, "regarding": map[string]any{},
			"deprecatedSource": map[string]any{}, "deprecatedFirstTimestamp": nil, "deprecatedLastTimestamp": nil,
			"metadata": map[string]any{"resourceVersion": last, "annotations": map[string]any{initialEnd: "true"}},
		})
	}
	none := w.watch(srv, eventsPath+"?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	quiet := w.watch(srv, eventsPath+"?watch=1")
	equal(t, quiet.take(3), []change{{"ADDED", "a", "hello"}, {"ADDED", "b", "hello"}, {"ADDED", "c", "hello"}})
	w.create("d")
	equal(t, none.take(1), []change{{"ADDED", "d", "hello"}})
	equal(t, quiet.take(1), []change{{"ADDED", "d", "hello"}}) // no bookmark for who allows none
}

func TestWatchDelivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a")
	srv := w.serve()
	after := "&resourceVersion=" + rv
	all := w.watch(srv, "/apis/events.k8s.io/v1/events?watch=1"+after)
	one := w.watch(srv, eventsPath+"?watch=1&fieldSelector=metadata.name%3Db"+after)
	old := w.watch(srv, "/apis/events.k8s.io/v1/watch/namespaces/default/events/b?resourceVersion="+rv)
	selected := w.watch(srv, eventsPath+"?watch=1&labelSelector=app%3Din"+after)
	core := w.watch(srv, "/api/v1/events?watch=1"+after)
	elsewhere := w.watch(srv, "/api/v1/namespaces/other/events?watch=1"+after)

	w.create("b")
	w.relabel("b", "in")
	w.do("PATCH", corePath+"/b", `{"message":"new"}`, "Content-Type", "application/merge-patch+json").must(200)
	w.relabel("b", "out")
	w.relabel("b", "in")
	w.do("DELETE", eventsPath+"/b", "").must(200)
	w.do("POST", "/api/v1/namespaces/other/events", `{"metadata":{"name":"o"},"involvedObject":{"namespace":"other"}}`).must(201)

	everything := []change{
		{"ADDED", "b", "hello"}, {"MODIFIED", "b", "hello"}, {"MODIFIED", "b", "new"},
		{"MODIFIED", "b", "new"}, {"MODIFIED", "b", "new"}, {"DELETED", "b", "new"},
	}
	equal(t, one.take(6), everything)
	equal(t, old.take(6), everything)
	equal(t, all.take(7), append(everything, change{"ADDED", "o", ""}))
	equal(t, selected.take(5), []change{
		{"ADDED", "b", "hello"}, {"MODIFIED", "b", "new"}, {"DELETED", "b", "new"}, {"ADDED", "b", "new"}, {"DELETED", "b", "new"},
	})
	equal(t, elsewhere.take(1), []change{{"ADDED", "o", ""}})
	last := 0
	for range 7 {
		_, object := core.next()
		rv, err := strconv.Atoi(field(object, "metadata.resourceVersion").(string))
		if err != nil || rv <= last {
			t.Errorf("version %d after %d, %v", rv, last, err)
		}
		last = rv
	}
}

func TestLeavingASelectorShowsTheOldState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a")
	s := w.watch(w.serve(), eventsPath+"?watch=1&labelSelector=app%3Da&resourceVersion="+rv)
	w.relabel("a", "b")
	now := w.do("GET", eventsPath+"/a", "").must(200).at("metadata.resourceVersion")
	kind, object := s.next()
	equal(t, kind, "DELETED")
	equal(t, field(object, "metadata.labels.app"), any("a"))
	equal(t, field(object, "metadata.resourceVersion"), now)
}

func TestWatchOfVersionsThatAreNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a")
	future := strconv.FormatUint(w.db.Revision()+1, 10)
	srv := w.serve()

	for _, path := range []string{eventsPath + watchList, eventsPath + "?watch=1", "/api/v1/namespaces?watch=1"} {
		s := w.watch(srv, path+"&resourceVersion="+future)
		equal(t, s.resp.StatusCode, 200)
		kind, object := s.next()
		equal(t, kind, "ERROR")
		equal(t, field(object, "code"), any(504.0))
		equal(t, field(object, "reason"), any("Timeout"))
		cause := field(object, "details").(map[string]any)["causes"].([]any)[0]
		equal(t, cause, any(map[string]any{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}))
		if seconds := field(object, "details.retryAfterSeconds").(float64); seconds < 1 || seconds > 4 {
			t.Error(seconds)
		}
		s.ended()
	}
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	last := w.create("a")
	srv := w.serve()
	s := w.watch(srv, eventsPath+"?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion="+last)
	kind, object := s.next() // a last bookmark says where to go on
	equal(t, kind, "BOOKMARK")
	equal(t, object["metadata"], any(map[string]any{"resourceVersion": last}))
	s.ended()
	s = w.watch(srv, eventsPath+"?watch=1&timeoutSeconds=1&resourceVersion="+last)
	s.ended()
}

func TestBookmarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config) { c.Bookmarks = 20 * time.Millisecond })
	w.create("a")
	s := w.watch(w.serve(), eventsPath+"?watch=1&allowWatchBookmarks=true&labelSelector=app%3Dnone&resourceVersion=1")
	want := w.create("b") // is not selected, but the bookmark moves past it
	for {
		kind, object := s.next()
		equal(t, kind, "BOOKMARK")
		if field(object, "metadata.annotations") != nil {
			t.Fatal("not the end of initial events")
		}
		if field(object, "metadata.resourceVersion") == want {
			return
		}
	}
}

func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config) { c.MaxClientWatches, c.MaxWatches = 1, 2 })
	srv := w.serve()
	first := w.watch(srv, eventsPath+"?watch=1")
	refused := w.watch(srv, eventsPath+"?watch=1")
	equal(t, refused.resp.StatusCode, http.StatusTooManyRequests)
	equal(t, refused.resp.Header.Get("Retry-After"), "1")
	other := w.watch(srv, eventsPath+"?watch=1", "Authorization", "Bearer other")
	equal(t, other.resp.StatusCode, 200)

	w.server.Drain(context.Background())
	first.ended()
	other.ended()
	late := w.watch(srv, eventsPath+"?watch=1")
	equal(t, late.resp.StatusCode, http.StatusTooManyRequests)
	equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{}) // lists are still answered
}

// TestWatchInProtobuf reads the frames that typed clients get.
func TestWatchInProtobuf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a")
	s := w.watch(w.serve(), eventsPath+watchList, "Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	equal(t, s.resp.Header.Get("Content-Type"), "application/vnd.kubernetes.protobuf;stream=watch")
	kind, ev := s.frame()
	equal(t, kind+" "+ev.Name+" "+ev.ResourceVersion, "ADDED a "+rv)
	kind, ev = s.frame()
	equal(t, kind, "BOOKMARK")
	equal(t, ev.ObjectMeta, metav1.ObjectMeta{ResourceVersion: rv, Annotations: map[string]string{initialEnd: "true"}})
	w.relabel("a", "x")
	kind, ev = s.frame()
	equal(t, kind+" "+ev.Labels["app"], "MODIFIED x")
	w.do("DELETE", eventsPath+"/a", "").must(200)
	kind, ev = s.frame()
	equal(t, kind+" "+ev.Labels["app"], "DELETED x")
	equal(t, ev.ResourceVersion, fmt.Sprint(w.db.Revision()))
}

// frame reads an event of a protobuf watch.
func (s *stream) frame() (string, *eventsv1.Event) {
	s.t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(s.resp.Body, size[:]); err != nil {
		s.t.Fatal(err)
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(s.resp.Body, b); err != nil {
		s.t.Fatal(err)
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(b); err != nil {
		s.t.Fatal(err)
	}
	ev := &eventsv1.Event{}
	unwrap(s.t, event.Object.Raw, ev)
	return event.Type, ev
}

// TestWatchInTables reads what kubectl get --watch shows.
func TestWatchInTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a")
	s := w.watch(w.serve(), eventsPath+watchList, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	kind, table := s.next()
	equal(t, kind, "ADDED")
	equal(t, table["kind"], any("Table"))
	equal(t, len(table["columnDefinitions"].([]any)), 10)
	kind, table = s.next()
	equal(t, kind, "BOOKMARK")
	equal(t, table["columnDefinitions"], nil)
	row := table["rows"].([]any)[0].(map[string]any)
	equal(t, row["cells"], any([]any{"<unknown>", "", "", "", "", "", "", "<unknown>", 1.0, ""}))
	equal(t, field(row, "object.metadata.annotations"), any(map[string]any{initialEnd: "true"}))
}

func TestWatchRefusesYAML(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do("GET", eventsPath+"?watch=1", "", "Accept", "application/yaml").must(http.StatusNotAcceptable)
}

// TestListThenWatch writes while it lists and watches from the list's version:
// nothing is missed and nothing comes twice.
func TestListThenWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 200
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			w.create(fmt.Sprintf("e%03d", i))
		}
	}()
	list := w.do("GET", eventsPath, "").must(200)
	seen := map[string]int{}
	for _, name := range list.names() {
		seen[name]++
	}
	s := w.watch(w.serve(), eventsPath+"?watch=1&resourceVersion="+list.at("metadata.resourceVersion").(string))
	for _, c := range s.take(n - len(seen)) {
		seen[c.Name]++
	}
	waittest.Within(t, done)
	equal(t, len(seen), n)
	for name, times := range seen {
		if times != 1 {
			t.Errorf("%s came %d times", name, times)
		}
	}
}
