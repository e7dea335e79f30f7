package stream_test

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
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/waittest"
)

// TestWatchOptions is the table of what is refused before
// the stream begins.
func TestWatchOptions(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
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
		st := w.Do("GET", apitest.EventsPath+"?watch=1&"+c.query, "").Must(c.code).Status()
		apitest.Equal(t, st.Message, c.text)
	}
	for _, query := range []string{"type%3DNormal", "metadata.name%3Db"} {
		a := w.Do("GET", "/apis/events.k8s.io/v1/watch/namespaces/default/events/a?fieldSelector="+query, "").Must(400)
		apitest.Equal(t, a.Status().Message, "fieldSelector metadata.name doesn't match requested name")
	}
}

func TestWatchBeginsWithTheState(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("b", "a")
	last := w.Create("c")
	srv := w.Serve()
	for _, query := range []string{"?watch=true&allowWatchBookmarks=1", "?watch=1&resourceVersion=0&allowWatchBookmarks=true", apitest.WatchList} {
		s := w.Watch(srv, apitest.EventsPath+query)
		apitest.Equal(t, s.Resp.Header.Get("Content-Type"), "application/json")
		apitest.Equal(t, s.Take(3), []apitest.Change{{"ADDED", "a", "hello"}, {"ADDED", "b", "hello"}, {"ADDED", "c", "hello"}})
		kind, bookmark := s.Next()
		apitest.Equal(t, kind, "BOOKMARK")
		apitest.Equal(t, bookmark, map[string]any{
			"kind": "Event", "apiVersion": "events.k8s.io/v1", "eventTime": nil, "regarding": map[string]any{},
			"deprecatedSource": map[string]any{}, "deprecatedFirstTimestamp": nil, "deprecatedLastTimestamp": nil,
			"metadata": map[string]any{"resourceVersion": last, "annotations": map[string]any{apitest.InitialEnd: "true"}},
		})
	}
	none := w.Watch(srv, apitest.EventsPath+"?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	quiet := w.Watch(srv, apitest.EventsPath+"?watch=1")
	apitest.Equal(t, quiet.Take(3), []apitest.Change{{"ADDED", "a", "hello"}, {"ADDED", "b", "hello"}, {"ADDED", "c", "hello"}})
	w.Create("d")
	apitest.Equal(t, none.Take(1), []apitest.Change{{"ADDED", "d", "hello"}})
	apitest.Equal(t, quiet.Take(1), []apitest.Change{{"ADDED", "d", "hello"}}) // no bookmark for who allows none
}

func TestWatchDelivers(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a")
	srv := w.Serve()
	after := "&resourceVersion=" + rv
	all := w.Watch(srv, "/apis/events.k8s.io/v1/events?watch=1"+after)
	one := w.Watch(srv, apitest.EventsPath+"?watch=1&fieldSelector=metadata.name%3Db"+after)
	old := w.Watch(srv, "/apis/events.k8s.io/v1/watch/namespaces/default/events/b?resourceVersion="+rv)
	selected := w.Watch(srv, apitest.EventsPath+"?watch=1&labelSelector=app%3Din"+after)
	core := w.Watch(srv, "/api/v1/events?watch=1"+after)
	elsewhere := w.Watch(srv, "/api/v1/namespaces/other/events?watch=1"+after)

	w.Create("b")
	w.Relabel("b", "in")
	w.Do("PATCH", apitest.CorePath+"/b", `{"message":"new"}`, "Content-Type", "application/merge-patch+json").Must(200)
	w.Relabel("b", "out")
	w.Relabel("b", "in")
	w.Do("DELETE", apitest.EventsPath+"/b", "").Must(200)
	w.Do("POST", "/api/v1/namespaces/other/events", `{"metadata":{"name":"o"},"involvedObject":{"namespace":"other"}}`).Must(201)

	everything := []apitest.Change{
		{"ADDED", "b", "hello"}, {"MODIFIED", "b", "hello"}, {"MODIFIED", "b", "new"},
		{"MODIFIED", "b", "new"}, {"MODIFIED", "b", "new"}, {"DELETED", "b", "new"},
	}
	apitest.Equal(t, one.Take(6), everything)
	apitest.Equal(t, old.Take(6), everything)
	apitest.Equal(t, all.Take(7), append(everything, apitest.Change{"ADDED", "o", ""}))
	apitest.Equal(t, selected.Take(5), []apitest.Change{
		{"ADDED", "b", "hello"}, {"MODIFIED", "b", "new"}, {"DELETED", "b", "new"}, {"ADDED", "b", "new"}, {"DELETED", "b", "new"},
	})
	apitest.Equal(t, elsewhere.Take(1), []apitest.Change{{"ADDED", "o", ""}})
	last := 0
	for range 7 {
		_, object := core.Next()
		rv, err := strconv.Atoi(apitest.Field(object, "metadata.resourceVersion").(string))
		if err != nil || rv <= last {
			t.Errorf("version %d after %d, %v", rv, last, err)
		}
		last = rv
	}
}

func TestLeavingASelectorShowsTheOldState(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a")
	s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&labelSelector=app%3Da&resourceVersion="+rv)
	w.Relabel("a", "b")
	now := w.Do("GET", apitest.EventsPath+"/a", "").Must(200).At("metadata.resourceVersion")
	kind, object := s.Next()
	apitest.Equal(t, kind, "DELETED")
	apitest.Equal(t, apitest.Field(object, "metadata.labels.app"), any("a"))
	apitest.Equal(t, apitest.Field(object, "metadata.resourceVersion"), now)
}

func TestWatchOfVersionsThatAreNotThere(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a")
	future := strconv.FormatUint(w.DB.Revision()+1, 10)
	srv := w.Serve()

	for _, path := range []string{apitest.EventsPath + apitest.WatchList, apitest.EventsPath + "?watch=1", "/api/v1/namespaces?watch=1"} {
		s := w.Watch(srv, path+"&resourceVersion="+future)
		apitest.Equal(t, s.Resp.StatusCode, 200)
		kind, object := s.Next()
		apitest.Equal(t, kind, "ERROR")
		apitest.Equal(t, apitest.Field(object, "code"), any(504.0))
		apitest.Equal(t, apitest.Field(object, "reason"), any("Timeout"))
		cause := apitest.Field(object, "details").(map[string]any)["causes"].([]any)[0]
		apitest.Equal(t, cause, any(map[string]any{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}))
		if seconds := apitest.Field(object, "details.retryAfterSeconds").(float64); seconds < 1 || seconds > 4 {
			t.Error(seconds)
		}
		s.Ended()
	}
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	last := w.Create("a")
	srv := w.Serve()
	s := w.Watch(srv, apitest.EventsPath+"?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion="+last)
	kind, object := s.Next() // a last bookmark says where to go on
	apitest.Equal(t, kind, "BOOKMARK")
	apitest.Equal(t, object["metadata"], any(map[string]any{"resourceVersion": last}))
	s.Ended()
	s = w.Watch(srv, apitest.EventsPath+"?watch=1&timeoutSeconds=1&resourceVersion="+last)
	s.Ended()
}

func TestBookmarks(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Bookmarks = 20 * time.Millisecond })
	w.Create("a")
	s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&allowWatchBookmarks=true&labelSelector=app%3Dnone&resourceVersion=1")
	want := w.Create("b") // is not selected, but the bookmark moves past it
	for {
		kind, object := s.Next()
		apitest.Equal(t, kind, "BOOKMARK")
		if apitest.Field(object, "metadata.annotations") != nil {
			t.Fatal("not the end of initial events")
		}
		if apitest.Field(object, "metadata.resourceVersion") == want {
			return
		}
	}
}

func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.MaxClientWatches, c.MaxWatches = 1, 2 })
	srv := w.Serve()
	first := w.Watch(srv, apitest.EventsPath+"?watch=1")
	refused := w.Watch(srv, apitest.EventsPath+"?watch=1")
	apitest.Equal(t, refused.Resp.StatusCode, http.StatusTooManyRequests)
	apitest.Equal(t, refused.Resp.Header.Get("Retry-After"), "1")
	other := w.Watch(srv, apitest.EventsPath+"?watch=1", "Authorization", "Bearer other")
	apitest.Equal(t, other.Resp.StatusCode, 200)

	w.Server.Drain(context.Background())
	first.Ended()
	other.Ended()
	late := w.Watch(srv, apitest.EventsPath+"?watch=1")
	apitest.Equal(t, late.Resp.StatusCode, http.StatusTooManyRequests)
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{}) // lists are still answered
}

// TestWatchInProtobuf reads the frames that typed clients get.
func TestWatchInProtobuf(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a")
	s := w.Watch(w.Serve(), apitest.EventsPath+apitest.WatchList, "Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	apitest.Equal(t, s.Resp.Header.Get("Content-Type"), "application/vnd.kubernetes.protobuf;stream=watch")
	kind, ev := frame(s)
	apitest.Equal(t, kind+" "+ev.Name+" "+ev.ResourceVersion, "ADDED a "+rv)
	kind, ev = frame(s)
	apitest.Equal(t, kind, "BOOKMARK")
	apitest.Equal(t, ev.ObjectMeta, metav1.ObjectMeta{ResourceVersion: rv, Annotations: map[string]string{apitest.InitialEnd: "true"}})
	w.Relabel("a", "x")
	kind, ev = frame(s)
	apitest.Equal(t, kind+" "+ev.Labels["app"], "MODIFIED x")
	w.Do("DELETE", apitest.EventsPath+"/a", "").Must(200)
	kind, ev = frame(s)
	apitest.Equal(t, kind+" "+ev.Labels["app"], "DELETED x")
	apitest.Equal(t, ev.ResourceVersion, fmt.Sprint(w.DB.Revision()))
}

// frame reads an event of a protobuf watch.
func frame(s *apitest.Stream) (string, *eventsv1.Event) {
	s.T.Helper()
	var size [4]byte
	if _, err := io.ReadFull(s.Resp.Body, size[:]); err != nil {
		s.T.Fatal(err)
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(s.Resp.Body, b); err != nil {
		s.T.Fatal(err)
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(b); err != nil {
		s.T.Fatal(err)
	}
	ev := &eventsv1.Event{}
	apitest.Unwrap(s.T, event.Object.Raw, ev)
	return event.Type, ev
}

// TestWatchInTables reads what kubectl get --watch shows.
func TestWatchInTables(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a")
	s := w.Watch(w.Serve(), apitest.EventsPath+apitest.WatchList, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	kind, table := s.Next()
	apitest.Equal(t, kind, "ADDED")
	apitest.Equal(t, table["kind"], any("Table"))
	apitest.Equal(t, len(table["columnDefinitions"].([]any)), 10)
	kind, table = s.Next()
	apitest.Equal(t, kind, "BOOKMARK")
	apitest.Equal(t, table["columnDefinitions"], nil)
	row := table["rows"].([]any)[0].(map[string]any)
	apitest.Equal(t, row["cells"], any([]any{"<unknown>", "", "", "", "", "", "", "<unknown>", 1.0, ""}))
	apitest.Equal(t, apitest.Field(row, "object.metadata.annotations"), any(map[string]any{apitest.InitialEnd: "true"}))
}

func TestWatchRefusesYAML(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Do("GET", apitest.EventsPath+"?watch=1", "", "Accept", "application/yaml").Must(http.StatusNotAcceptable)
}

// TestListThenWatch writes while it lists and watches from the list's version:
// nothing is missed and nothing comes twice.
func TestListThenWatch(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	const n = 200
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			w.Create(fmt.Sprintf("e%03d", i))
		}
	}()
	list := w.Do("GET", apitest.EventsPath, "").Must(200)
	seen := map[string]int{}
	for _, name := range list.Names() {
		seen[name]++
	}
	s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&resourceVersion="+list.At("metadata.resourceVersion").(string))
	for _, c := range s.Take(n - len(seen)) {
		seen[c[1]]++
	}
	waittest.Within(t, done)
	apitest.Equal(t, len(seen), n)
	for name, times := range seen {
		if times != 1 {
			t.Errorf("%s came %d times", name, times)
		}
	}
}
