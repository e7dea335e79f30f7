package events_test

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
	"tidings.example/eventsvc/internal/api/apitest"
)

// TestListOptions is the table of resourceVersion ×
// resourceVersionMatch × limit × continue.
func TestListOptions(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	first := w.Create("a")
	second := w.Create("b")
	third := w.Create("c")
	after := strconv.FormatUint(w.DB.Revision()+100, 10)
	token := w.Do("GET", apitest.EventsPath+"?limit=1", "").Must(200).At("metadata.continue").(string)

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
			w.T = t
			a := w.Do("GET", apitest.EventsPath+"?"+c.query, "").Must(c.code)
			if c.code != 200 {
				st := a.Status()
				apitest.Equal(t, st.Message, c.text)
				apitest.Equal(t, int(st.Code), c.code)
				return
			}
			apitest.Equal(t, a.Names(), c.names)
			if c.rv == "" {
				c.rv = third
			}
			apitest.Equal(t, a.At("metadata.resourceVersion"), any(c.rv))
		})
	}
}

func TestGetOptions(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a")
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
		a := w.Do("GET", apitest.EventsPath+"/a?"+c.query, "").Must(c.code)
		if c.code != 200 {
			apitest.Equal(t, a.Status().Message, c.text)
		}
	}
}

// TestPages reads a list page by page while it is being changed: all pages
// show the moment of the first.
func TestPages(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for i := range 10 {
		w.Create(fmt.Sprintf("e%02d", i))
	}
	var names []string
	query := "limit=3"
	var rv any
	for page := 0; ; page++ {
		a := w.Do("GET", apitest.EventsPath+"?"+query, "").Must(200)
		names = append(names, a.Names()...)
		if rv == nil {
			rv = a.At("metadata.resourceVersion")
		}
		apitest.Equal(t, a.At("metadata.resourceVersion"), rv)
		token, more := a.At("metadata.continue").(string)
		if !more {
			apitest.Equal(t, a.At("metadata.remainingItemCount"), nil)
			break
		}
		apitest.Equal(t, a.At("metadata.remainingItemCount"), any(float64(10-3*(page+1))))
		query = "limit=3&continue=" + url.QueryEscape(token)
		w.Do("DELETE", apitest.EventsPath+fmt.Sprintf("/e%02d", 9-page), "").Must(200)
		w.Create(fmt.Sprintf("e%02da", page))
	}
	apitest.Equal(t, strings.Join(names, " "), "e00 e01 e02 e03 e04 e05 e06 e07 e08 e09")
}

// TestPagesOfOtherTokens goes on from a token as kube-apiserver makes them, and from one that
// follows an expired token: few events are counted.
func TestPagesOfOtherTokens(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for i := range 10 {
		w.Create(fmt.Sprintf("e%02d", i))
	}
	rv := w.Do("GET", apitest.EventsPath+"?limit=1", "").Must(200).At("metadata.resourceVersion").(string)
	w.Do("DELETE", apitest.EventsPath+"/e09", "").Must(200)
	for rv, want := range map[string]float64{rv: 5, "-1": 4} {
		token := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":` + rv + `,"start":"e02\u0000"}`))
		a := w.Do("GET", apitest.EventsPath+"?limit=2&continue="+token, "").Must(200)
		apitest.Equal(t, a.Names(), []string{"e03", "e04"})
		apitest.Equal(t, a.At("metadata.remainingItemCount"), any(want))
	}
}

// TestLongestList has a list that is longer than what all lists together may
// keep.
func TestLongestList(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Registry = prometheus.NewRegistry() })
	big := `"` + strings.Repeat("x", 400<<10) + `"`
	var want []string
	for i := range 50 {
		name := fmt.Sprintf("e%02d", i)
		w.Do("POST", apitest.CorePath, `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"default"},"message":`+big+`}`).Must(201)
		want = append(want, name)
	}
	var lists sync.WaitGroup
	var answers [3]*apitest.Answer
	for i := range answers {
		lists.Go(func() {
			answers[i] = w.Do("GET", apitest.CorePath, "", "Accept", "application/vnd.kubernetes.protobuf")
		})
	}
	lists.Wait()
	for _, a := range answers {
		var list apitest.ProtoList
		list.Decode(t, a.Must(200).Body)
		apitest.Equal(t, list.Names, want)
	}
	apitest.Equal(t, w.Metric("eventsvc_answers_unread_bytes"), 0.0)
}

func TestOrderIsThatOfBytes(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for _, key := range []string{"a/x", "a-b/x", "a/B", "b/x", "a/a1"} {
		namespace, name, _ := strings.Cut(key, "/")
		w.Do("POST", "/api/v1/namespaces/"+namespace+"/events",
			`{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"`+namespace+`"}}`).Must(201)
	}
	var keys []string
	query := "limit=2"
	for query != "" {
		a := w.Do("GET", "/api/v1/events?"+query, "").Must(200)
		for _, item := range a.At("items").([]any) {
			keys = append(keys, apitest.Field(item, "metadata.namespace").(string)+"/"+apitest.Field(item, "metadata.name").(string))
		}
		query = ""
		if token, ok := a.At("metadata.continue").(string); ok {
			query = "limit=2&continue=" + token
		}
	}
	apitest.Equal(t, keys, []string{"a-b/x", "a/B", "a/a1", "a/x", "b/x"})
}

func TestBadContinueTokens(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a", "b")
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
			w.T = t
			st := w.Do("GET", apitest.EventsPath+"?limit=1&continue="+url.QueryEscape(text), "").Must(400).Status()
			if !strings.HasPrefix(st.Message, "invalid continue token: continue key is not valid: ") {
				t.Error(st.Message)
			}
		})
	}
	// "The newest version" is what a token says that follows an expired one.
	newest := encode(token{"v": "meta.k8s.io/v1", "rv": -1, "start": "a\x00"})
	w.Create("c")
	apitest.Equal(t, w.Do("GET", apitest.EventsPath+"?continue="+newest, "").Must(200).Names(), []string{"b", "c"})
}
