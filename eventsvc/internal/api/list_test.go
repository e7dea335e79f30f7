package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
)

// TestListOptions is the table of resourceVersion ×
// resourceVersionMatch × limit × continue.
func TestListOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.create("a")
	second := w.create("b")
	third := w.create("c")
	after := strconv.FormatUint(w.db.Revision()+100, 10)
	token := w.do("GET", eventsPath+"?limit=1", "").must(200).at("metadata.continue").(string)

	invalid := func(text string) string { return `ListOptions.meta.k8s.io "" is invalid: ` + text }
	for _, c := range []struct {
		query string
		code  int
		names []string // with 200
		rv    string   // of the list; "": the newest
		text  string   // of the Status otherwise
	}{
		{"", 200, []string{"a", "b", "c"}, "", ""},
		{"resourceVersion=0", 200, []string{"a", "b", "c"}, "", ""},
		{"resourceVersion=0&limit=2", 200, []string{"a", "b"}, "", ""},
		{"resourceVersion=0&resourceVersionMatch=NotOlderThan", 200, []string{"a", "b", "c"}, "", ""},
		{"resourceVersion=" + first, 200, []string{"a", "b", "c"}, "", ""},
		{"resourceVersion=" + second + "&limit=5", 200, []string{"a", "b"}, second, ""},
		{"resourceVersion=" + second + "&limit=1", 200, []string{"a"}, second, ""},
		{"resourceVersion=" + first + "&resourceVersionMatch=NotOlderThan", 200, []string{"a", "b", "c"}, "", ""},
		{"resourceVersion=" + first + "&resourceVersionMatch=NotOlderThan&limit=2", 200, []string{"a", "b"}, "", ""},
		{"resourceVersion=" + first + "&resourceVersionMatch=Exact", 200, []string{"a"}, first, ""},
		{"resourceVersion=" + third + "&resourceVersionMatch=Exact", 200, []string{"a", "b", "c"}, third, ""},
		{"resourceVersion=" + after, 504, nil, "", "Timeout: Too large resource version: " + after + ", current: " + third},
		{"resourceVersion=" + after + "&resourceVersionMatch=NotOlderThan", 504, nil, "", "Timeout: Too large resource version: " + after + ", current: " + third},
		{"resourceVersion=" + after + "&resourceVersionMatch=Exact", 504, nil, "", "Timeout: Too large resource version: " + after + ", current: " + third},
		{"resourceVersion=0&resourceVersionMatch=Exact", 422, nil, "", invalid(`resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`)},
		{"resourceVersionMatch=Exact", 422, nil, "", invalid(`resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`)},
		{"resourceVersion=1&resourceVersionMatch=Foo", 422, nil, "", invalid(`resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""`)},
		{"resourceVersion=1&resourceVersionMatch=Exact&continue=" + token, 422, nil, "", invalid(`resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided`)},
		{"resourceVersion=1&continue=" + token, 400, nil, "", "specifying resource version is not allowed when using continue"},
		{"resourceVersion=0&continue=" + token, 200, []string{"b", "c"}, "", ""},
		{"continue=" + token, 200, []string{"b", "c"}, "", ""},
		{"continue=" + token + "&limit=1", 200, []string{"b"}, "", ""},
		{"resourceVersion=abc", 400, nil, "", `invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`},
		{"resourceVersion=-1", 400, nil, "", `invalid resource version: resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax`},
		{"sendInitialEvents=true", 422, nil, "", invalid(`sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`)},
		{"limit=abc", 400, nil, "", `strconv.ParseInt: parsing "abc": invalid syntax`},
		{"limit=", 400, nil, "", `strconv.ParseInt: parsing "": invalid syntax`},
		{"limit=-1", 200, []string{"a", "b", "c"}, "", ""},
		{"limit=0", 200, []string{"a", "b", "c"}, "", ""},
		{"limit=1&limit=2", 200, []string{"a"}, "", ""},
		{"unknown=1&limit=3", 200, []string{"a", "b", "c"}, "", ""},
		{"watch=false", 200, []string{"a", "b", "c"}, "", ""},
		{"watch=0", 200, []string{"a", "b", "c"}, "", ""},
		{"timeout=abc", 400, nil, "", `invalid timeout specified in the request URL - time: invalid duration "abc"`},
		{"timeout=0s", 200, []string{"a", "b", "c"}, "", ""},
		{"fieldSelector=", 200, []string{"a", "b", "c"}, "", ""},
		{"fieldSelector=metadata.name%3Db", 200, []string{"b"}, "", ""},
		{"fieldSelector=metadata.name%3Db&limit=1", 200, []string{"b"}, "", ""},
		{"fieldSelector=metadata.name!%3Db", 200, []string{"a", "c"}, "", ""},
		{"fieldSelector=metadata.namespace%3Dother", 200, []string{}, "", ""},
		{"fieldSelector=metadata.namespace%3Ddefault", 200, []string{"a", "b", "c"}, "", ""},
		{"fieldSelector=reportingController%3Dexample.com/ctl,type%3DNormal", 200, []string{"a", "b", "c"}, "", ""},
		{"fieldSelector=regarding.kind%3DNode", 200, []string{}, "", ""},
		{"fieldSelector=foo%3Dbar", 400, nil, "", "field label not supported: foo"},
		{"fieldSelector=involvedObject.kind%3DPod", 400, nil, "", "field label not supported: involvedObject.kind"},
		{"fieldSelector=bogus", 400, nil, "", "invalid selector: 'bogus'; can't understand 'bogus'"},
		{"labelSelector=app%3Da", 200, []string{"a"}, "", ""},
		{"labelSelector=app+in+(a,c)", 200, []string{"a", "c"}, "", ""},
		{"labelSelector=app!%3Da", 200, []string{"b", "c"}, "", ""},
		{"labelSelector=!app", 200, []string{}, "", ""},
		{"labelSelector=a+in+(", 400, nil, "", "unable to parse requirement: found '', expected: ',', ')' or identifier"},
	} {
		t.Run(c.query, func(t *testing.T) {
			w := *w
			w.t = t
			a := w.do("GET", eventsPath+"?"+c.query, "").must(c.code)
			if c.code != 200 {
				st := a.status()
				equal(t, st.Message, c.text)
				equal(t, int(st.Code), c.code)
				return
			}
			equal(t, a.names(), c.names)
			if c.rv == "" {
				c.rv = third
			}
			equal(t, a.at("metadata.resourceVersion"), any(c.rv))
		})
	}
}

func TestGetOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a")
	for _, c := range []struct {
		query string
		code  int
		text  string
	}{
		{"resourceVersion=", 200, ""},
		{"resourceVersion=0", 200, ""},
		{"resourceVersion=1", 200, ""},
		{"resourceVersion=" + rv, 200, ""},
		{"resourceVersion=9999", 504, "Timeout: Too large resource version: 9999, current: " + rv},
		{"resourceVersion=abc", 400, `invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`},
		{"watch=true", 200, ""},
		{"export=true", 400, "the export parameter, deprecated since v1.14, is no longer supported"},
		{"timeout=x", 400, `invalid timeout specified in the request URL - time: invalid duration "x"`},
	} {
		a := w.do("GET", eventsPath+"/a?"+c.query, "").must(c.code)
		if c.code != 200 {
			equal(t, a.status().Message, c.text)
		}
	}
}

// TestPages reads a list page by page while it is being changed: all pages
// show the moment of the first.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 10 {
		w.create(fmt.Sprintf("e%02d", i))
	}
	var names []string
	query := "limit=3"
	var rv any
	for page := 0; ; page++ {
		a := w.do("GET", eventsPath+"?"+query, "").must(200)
		names = append(names, a.names()...)
		if rv == nil {
			rv = a.at("metadata.resourceVersion")
		}
		equal(t, a.at("metadata.resourceVersion"), rv)
		token, more := a.at("metadata.continue").(string)
		if !more {
			equal(t, a.at("metadata.remainingItemCount"), nil)
			break
		}
		equal(t, a.at("metadata.remainingItemCount"), any(float64(10-3*(page+1))))
		query = "limit=3&continue=" + url.QueryEscape(token)
		w.do("DELETE", eventsPath+fmt.Sprintf("/e%02d", 9-page), "").must(200)
		w.create(fmt.Sprintf("e%02da", page))
	}
	equal(t, strings.Join(names, " "), "e00 e01 e02 e03 e04 e05 e06 e07 e08 e09")
}

// TestPagesOfOtherTokens goes on from a token as kube-apiserver makes them, and from one that
// follows an expired token: few events are counted.
func TestPagesOfOtherTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 10 {
		w.create(fmt.Sprintf("e%02d", i))
	}
	rv := w.do("GET", eventsPath+"?limit=1", "").must(200).at("metadata.resourceVersion").(string)
	w.do("DELETE", eventsPath+"/e09", "").must(200)
	for rv, want := range map[string]float64{rv: 5, "-1": 4} {
		token := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":` + rv + `,"start":"e02\u0000"}`))
		a := w.do("GET", eventsPath+"?limit=2&continue="+token, "").must(200)
		equal(t, a.names(), []string{"e03", "e04"})
		equal(t, a.at("metadata.remainingItemCount"), any(want))
	}
}

// TestLongPage has a page that is too long for one buffer, in JSON and in
// protobuf. It is kept in several buffers until it is sent, or read a second
// time if there is no room.
func TestLongPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config) { c.Registry = prometheus.NewRegistry() })
	big := `"` + strings.Repeat("x", 400<<10) + `"` // so that 24 of them are many buffers
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("e%02d", i)
		w.do("POST", corePath, `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"default"},"message":`+big+`}`).must(201)
		want = append(want, name)
	}
	for _, room := range []bool{true, false} {
		undo := func() {}
		if !room {
			undo = w.readNothingAhead()
		}
		a := w.do("GET", corePath+"?limit=24", "").must(200)
		equal(t, a.names(), want[:24])
		equal(t, a.at("metadata.remainingItemCount"), any(float64(1)))
		rest := w.do("GET", corePath+"?limit=24&continue="+a.at("metadata.continue").(string), "").must(200)
		equal(t, rest.names(), want[24:])
		equal(t, w.do("GET", corePath, "").must(200).names(), want)
		var list protoList
		list.decode(t, w.do("GET", corePath, "", "Accept", "application/vnd.kubernetes.protobuf").must(200).body)
		equal(t, list.names, want)
		list.decode(t, w.do("GET", corePath+"?limit=24", "", "Accept", "application/vnd.kubernetes.protobuf").must(200).body)
		equal(t, list.names, want[:24])
		undo()
		equal(t, w.metric("eventsvc_answers_unread_bytes", ""), 0.0)
	}
	// A collection of many pages is shown whole after it was deleted.
	gone := w.do("DELETE", corePath, "", "Accept", "application/json"+asPartials).must(200)
	equal(t, gone.names(), want)
	equal(t, w.do("GET", corePath, "").must(200).names(), []string{})
}

// readNothingAhead takes the room that lists of the client have to be read ahead in, and
// returns what gives it back.
func (w *world) readNothingAhead() (undo func()) {
	room := w.server.Room(goodClient)
	for room.Spare(1 << 20) {
	}
	return room.Free
}

// TestLongestList has a list that is longer than what all lists together may
// keep.
func TestLongestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config) { c.Registry = prometheus.NewRegistry() })
	big := `"` + strings.Repeat("x", 400<<10) + `"`
	var want []string
	for i := range 50 {
		name := fmt.Sprintf("e%02d", i)
		w.do("POST", corePath, `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"default"},"message":`+big+`}`).must(201)
		want = append(want, name)
	}
	var lists sync.WaitGroup
	var answers [3]*answer
	for i := range answers {
		lists.Go(func() { answers[i] = w.do("GET", corePath, "", "Accept", "application/vnd.kubernetes.protobuf") })
	}
	lists.Wait()
	for _, a := range answers {
		var list protoList
		list.decode(t, a.must(200).body)
		equal(t, list.names, want)
	}
	equal(t, w.metric("eventsvc_answers_unread_bytes", ""), 0.0)
}

func TestOrderIsThatOfBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, key := range []string{"a/x", "a-b/x", "a/B", "b/x", "a/a1"} {
		namespace, name, _ := strings.Cut(key, "/")
		w.do("POST", "/api/v1/namespaces/"+namespace+"/events",
			`{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"`+namespace+`"}}`).must(201)
	}
	var keys []string
	query := "limit=2"
	for query != "" {
		a := w.do("GET", "/api/v1/events?"+query, "").must(200)
		for _, item := range a.at("items").([]any) {
			keys = append(keys, field(item, "metadata.namespace").(string)+"/"+field(item, "metadata.name").(string))
		}
		query = ""
		if token, ok := a.at("metadata.continue").(string); ok {
			query = "limit=2&continue=" + token
		}
	}
	equal(t, keys, []string{"a-b/x", "a/B", "a/a1", "a/x", "b/x"})
}

func TestBadContinueTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "b")
	encode := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	type token = map[string]any
	for name, text := range map[string]string{
		"not base64":     "%%%",
		"not JSON":       base64.RawURLEncoding.EncodeToString([]byte("{")),
		"version":        encode(token{"v": "v2", "rv": 1, "start": "a\x00"}),
		"zero rv":        encode(token{"v": "meta.k8s.io/v1", "rv": 0, "start": "a\x00"}),
		"no start":       encode(token{"v": "meta.k8s.io/v1", "rv": 1}),
		"other path":     encode(token{"v": "meta.k8s.io/v1", "rv": 1, "start": "../x\x00"}),
		"dots":           encode(token{"v": "meta.k8s.io/v1", "rv": 1, "start": "..\x00"}),
		"another folder": encode(token{"v": "meta.k8s.io/v1", "rv": 1, "start": "ns/a\x00"}),
		"NUL":            encode(token{"v": "meta.k8s.io/v1", "rv": 1, "start": "a\x00b\x00"}),
		"no end":         encode(token{"v": "meta.k8s.io/v1", "rv": 1, "start": "a"}),
		"remaining":      encode(token{"v": "meta.k8s.io/v1", "rv": 1, "start": "a\x00", "remaining": -1}),
	} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			st := w.do("GET", eventsPath+"?limit=1&continue="+url.QueryEscape(text), "").must(400).status()
			if !strings.HasPrefix(st.Message, "invalid continue token: continue key is not valid: ") {
				t.Error(st.Message)
			}
		})
	}
	// "The newest version" is what a token says that follows an expired one.
	newest := encode(token{"v": "meta.k8s.io/v1", "rv": -1, "start": "a\x00"})
	w.create("c")
	equal(t, w.do("GET", eventsPath+"?continue="+newest, "").must(200).names(), []string{"b", "c"})
}
