package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWatchStarts is the matrix of how a watch begins (3.4).
func TestWatchStarts(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	path := in(eventsV1, ns)
	s.create(t, ns, "b")
	s.create(t, ns+"-2", "x")

	for i, c := range []struct {
		query string // OLD and NOW stand for versions
		want  []string
	}{
		{"watch=true", []string{"ADDED a", "ADDED b"}},
		{"watch=1&limit=1", []string{"ADDED a", "ADDED b"}},
		{"watch=true&limit=1&continue=xyz&resourceVersion=OLD", []string{"ADDED b"}},
		{"watch", []string{"ADDED a", "ADDED b"}},
		{"watch=foo", []string{"ADDED a", "ADDED b"}},
		{"watch=true&resourceVersion=0", []string{"ADDED a", "ADDED b"}},
		{"watch=true&allowWatchBookmarks=true", []string{"ADDED a", "ADDED b", bookmark}},
		{"watch=true&resourceVersion=0&allowWatchBookmarks=true", []string{"ADDED a", "ADDED b", bookmark}},
		{"watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", []string{"ADDED a", "ADDED b", bookmark}},
		{"watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", []string{"ADDED a", "ADDED b"}},
		{"watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=OLD", []string{"ADDED a", "ADDED b", bookmark}},
		{"watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", nil},
		{"watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0", nil},
		{"watch=true&resourceVersion=NOW", nil},
		{"watch=true&resourceVersion=OLD", []string{"ADDED b"}},
		{"watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=OLD", []string{"ADDED b"}},
		{"watch=true&fieldSelector=metadata.name%3Db&allowWatchBookmarks=true", []string{"ADDED b", bookmark}},
	} {
		t.Run(c.query, func(t *testing.T) {
			ns := fmt.Sprintf("starts-%d", i)
			old := s.create(t, ns, "a").text("metadata.resourceVersion")
			s.create(t, ns, "b")
			now := s.create(t, ns+"-2", "x")
			query := strings.NewReplacer("OLD", old, "NOW", now.text("metadata.resourceVersion")).Replace(c.query)
			w := s.watch(t, in(eventsV1, ns)+"?"+query)
			for _, got := range w.want(t, c.want...) {
				// The version of a bookmark belongs to the whole store.
				if got.kind == bookmark && (!got.initialEnd() || got.object.version(t) != now.version(t)) {
					t.Errorf("bookmark %v, want the annotation and version %d", got.object, now.version(t))
				}
			}
			// What comes next is the next write: nothing was there between.
			s.patch(t, in(eventsV1, ns, "b"), typeMerge, `{"metadata":{"labels":{"c":"d"}}}`).expect(http.StatusOK)
			w.want(t, "MODIFIED b")
		})
	}
	t.Run("timeoutSeconds", func(t *testing.T) {
		s.watch(t, path+"?watch=true&timeoutSeconds=1&resourceVersion="+s.get(t, path).object().text("metadata.resourceVersion")).end(t)
	})
	for name, query := range map[string]string{
		"a version to come":                  "?watch=true&resourceVersion=%d",
		"initial state of a version to come": "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=%d",
	} {
		t.Run(name, func(t *testing.T) {
			current := s.get(t, path).object().version(t)
			w := s.watch(t, fmt.Sprintf(path+query, current+1))
			c := w.want(t, "ERROR")[0]
			w.end(t)
			o := c.object
			if marshal(t, o["code"]) != "504" || o.text("reason") != "Timeout" ||
				o.text("message") != fmt.Sprintf("Timeout: Too large resource version: %d, current: %d", current+1, current) ||
				o.text("details.causes.0.reason") != "ResourceVersionTooLarge" || o.at("details.retryAfterSeconds") == nil {
				t.Errorf("error %v", o)
			}
		})
	}
	t.Run("old paths", func(t *testing.T) {
		s.watch(t, eventsV1+"/watch/namespaces/"+ns+"-2/events").want(t, "ADDED x")
		s.watch(t, eventsV1+"/watch/namespaces/"+ns+"/events/b").want(t, "ADDED b")
		s.watch(t, coreV1+"/watch/events?fieldSelector=metadata.namespace%3D"+ns+"-2").want(t, "ADDED x")
	})
	bad := func(query string) call { return call{method: "GET", path: path + "?watch=true&" + query} }
	invalid := `ListOptions.meta.k8s.io "" is invalid: `
	checkRefusals(t, s, []refusal{
		{name: "initial events without match", call: bad("sendInitialEvents=true"), code: 422, reason: metav1.StatusReasonInvalid,
			message: invalid + `resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`},
		{name: "match alone", call: bad("resourceVersion=1&resourceVersionMatch=NotOlderThan"), code: 422, reason: metav1.StatusReasonInvalid,
			message: invalid + `resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`},
		{name: "other match", call: bad("sendInitialEvents=true&resourceVersion=1&resourceVersionMatch=Exact"), code: 422, reason: metav1.StatusReasonInvalid,
			contains: `supported values: "NotOlderThan"`},
		{name: "match and continue", call: bad("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x"), code: 422, reason: metav1.StatusReasonInvalid,
			contains: `resourceVersionMatch is forbidden when continue is provided`},
		// 500 in the original.
		{name: "version that is no number", call: bad("resourceVersion=abc"), code: 400, reason: metav1.StatusReasonBadRequest, contains: `strconv.ParseUint: parsing "abc": invalid syntax`},
		{name: "selector", call: bad("fieldSelector=foo%3Dbar"), code: 400, reason: metav1.StatusReasonBadRequest},
	})
}

// TestWatchChanges is about what a watch delivers (4.1, 4.2).
func TestWatchChanges(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	path := in(eventsV1, ns)
	from := s.get(t, path).object().text("metadata.resourceVersion")
	all := s.watch(t, path+"?watch=true&resourceVersion="+from)
	red := s.watch(t, path+"?watch=true&labelSelector=color%3Dred&resourceVersion="+from)
	core := s.watch(t, in(coreV1, ns)+"?watch=true&resourceVersion="+from)
	if got := all.res.Header.Get("Content-Type"); got != typeJSON {
		t.Errorf("Content-Type %s", got)
	}
	if got := all.res.TransferEncoding; len(got) != 1 || got[0] != "chunked" {
		t.Errorf("Transfer-Encoding %v", got)
	}

	created := s.create(t, ns, "a", `{"metadata":{"labels":{"color":"red"}}}`)
	toBlue := s.patch(t, path+"/a", typeMerge, `{"metadata":{"labels":{"color":"blue"}}}`).expect(http.StatusOK).object()
	stillBlue := s.patch(t, path+"/a", typeMerge, `{"metadata":{"annotations":{"x":"1"}}}`).expect(http.StatusOK).object()
	toRed := s.patch(t, path+"/a", typeMerge, `{"metadata":{"labels":{"color":"red"}}}`).expect(http.StatusOK).object()
	stillRed := s.patch(t, path+"/a", typeMerge, `{"metadata":{"annotations":{"x":"2"}}}`).expect(http.StatusOK).object()
	s.put(t, path+"/a", marshal(t, stillRed)).expect(http.StatusOK) // changes nothing
	s.create(t, ns, "b", `{"metadata":{"labels":{"color":"blue"}}}`)
	s.delete(t, path+"/b", "").expect(http.StatusOK)
	s.delete(t, path+"/a", "").expect(http.StatusOK)

	t.Run("everything", func(t *testing.T) {
		got := all.want(t, "ADDED a", "MODIFIED a", "MODIFIED a", "MODIFIED a", "MODIFIED a", "ADDED b", "DELETED b", "DELETED a")
		var before uint64
		for i, c := range got {
			if rv := c.object.version(t); rv <= before {
				t.Errorf("version %d after %d", rv, before)
			} else {
				before = rv
			}
			if c.object.text("kind") != "Event" || c.object.text("apiVersion") != "events.k8s.io/v1" {
				t.Errorf("object %v", c.object)
			}
			if answers := []object{created, toBlue, stillBlue, toRed, stillRed}; i < len(answers) {
				equalJSON(t, c.String(), c.object, marshal(t, answers[i]))
			}
		}
		if got[7].object.version(t) <= stillRed.version(t) || got[7].object.text("metadata.labels.color") != "red" {
			t.Errorf("DELETED %v, want the last state under a new version", got[7].object)
		}
	})
	t.Run("a selection", func(t *testing.T) {
		got := red.want(t, "ADDED a", "DELETED a", "ADDED a", "MODIFIED a", "DELETED a")
		left := got[1].object
		if left.text("metadata.labels.color") != "red" || left.version(t) != toBlue.version(t) {
			t.Errorf("left: %v, want the state before under version %d", left["metadata"], toBlue.version(t))
		}
		if got[2].object.version(t) != toRed.version(t) {
			t.Errorf("entered again: %v", got[2].object["metadata"])
		}
	})
	t.Run("the other view", func(t *testing.T) {
		c := core.want(t, "ADDED a")[0]
		if c.object.text("apiVersion") != "v1" || c.object.text("message") != "hello" || c.object.version(t) != created.version(t) {
			t.Errorf("object %v", c.object)
		}
	})
	t.Run("leaving by finalizer", func(t *testing.T) {
		s.create(t, ns, "f", `{"metadata":{"finalizers":["example.com/f"]}}`)
		s.delete(t, path+"/f", "").expect(http.StatusOK)
		s.patch(t, path+"/f", typeMerge, `{"metadata":{"finalizers":null}}`).expect(http.StatusOK)
		got := all.want(t, "ADDED f", "MODIFIED f", "DELETED f")
		if got[1].object.text("metadata.deletionTimestamp") == "" {
			t.Errorf("object %v", got[1].object)
		}
	})
	t.Run("the collection", func(t *testing.T) {
		s.create(t, ns, "c1")
		s.create(t, ns, "c2")
		all.want(t, "ADDED c1", "ADDED c2")
		s.delete(t, path, "").expect(http.StatusOK)
		got := map[string]bool{all.next(t).String(): true, all.next(t).String(): true}
		if !got["DELETED c1"] || !got["DELETED c2"] {
			t.Errorf("got %v", got)
		}
	})
	t.Run("bookmark", func(t *testing.T) {
		w := s.watch(t, path+"?watch=true&allowWatchBookmarks=true")
		c := w.want(t, bookmark)[0]
		rv := c.object.text("metadata.resourceVersion")
		equalJSON(t, "bookmark", c.object, `{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"resourceVersion":"`+rv+`",
			"annotations":{"k8s.io/initial-events-end":"true"}},"eventTime":null,"regarding":{},"deprecatedSource":{},
			"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}`)
	})
	t.Run("two watchers see one order", func(t *testing.T) {
		one, two := s.watch(t, path+"?watch=true&resourceVersion="+from), s.watch(t, eventsV1+"/events?watch=true&resourceVersion="+from)
		for range 15 {
			a, b := one.next(t), two.next(t)
			if a.String() != b.String() || a.object.version(t) != b.object.version(t) {
				t.Fatalf("%s at %d, %s at %d", a, a.object.version(t), b, b.object.version(t))
			}
		}
	})
	t.Run("from before a restart", func(t *testing.T) {
		open := s.watch(t, path+"?watch=true&resourceVersion="+s.get(t, path).object().text("metadata.resourceVersion"))
		s.restart(t)
		open.end(t)
		w := s.watch(t, path+"?watch=true&resourceVersion="+from)
		w.want(t, "ADDED a", "MODIFIED a", "MODIFIED a", "MODIFIED a", "MODIFIED a", "ADDED b", "DELETED b", "DELETED a")
	})
}

// TestUpgradeIsIgnored: whoever asks for a watch over a WebSocket gets the watch like any other.
func TestUpgradeIsIgnored(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	s.create(t, ns, "a")
	s.watchBy(t, call{method: "GET", path: in(eventsV1, ns) + "?watch=true", header: map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
	}}).want(t, "ADDED a")
}
