package conformance_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestList is about what lists look like (3.1, 3.3).
func TestList(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	t.Run("of nothing", func(t *testing.T) {
		a := s.get(t, in(eventsV1, "nowhere")).expect(http.StatusOK)
		if list := a.object(); list.text("kind") != "EventList" || list.text("apiVersion") != "events.k8s.io/v1" || list.version(t) == 0 {
			t.Errorf("answer %s", a.body)
		}
		if !strings.Contains(string(a.body), `"items":[]`) {
			t.Errorf("items are not empty: %s", a.body)
		}
	})
	for _, name := range []string{"b", "a", "c"} {
		s.create(t, ns, name)
	}
	s.post(t, in(coreV1, ns), oldEvent(ns, "Bad_Name")).expect(http.StatusCreated)
	s.create(t, ns+"0", "z")
	last := s.create(t, "aaa", "y")

	t.Run("order", func(t *testing.T) {
		list := s.get(t, eventsV1+"/events").expect(http.StatusOK).object()
		if got := strings.Join(list.names(), " "); got != "y Bad_Name a b c z" {
			t.Errorf("got %q", got)
		}
		if list.version(t) != last.version(t) {
			t.Errorf("version %d, want that of the newest write, %d", list.version(t), last.version(t))
		}
	})
	t.Run("items have no kind", func(t *testing.T) {
		item := object(s.get(t, in(coreV1, ns)).object().at("items.0").(map[string]any))
		if item["kind"] != nil || item["apiVersion"] != nil {
			t.Errorf("item %v", item)
		}
	})
	t.Run("a write elsewhere moves the version", func(t *testing.T) {
		before := s.get(t, in(eventsV1, ns)).object().version(t)
		ev := s.create(t, "elsewhere", "x")
		if got := s.get(t, in(eventsV1, ns)).object().version(t); got != ev.version(t) || got <= before {
			t.Errorf("version %d after %d, want %d", got, before, ev.version(t))
		}
	})
	t.Run("limit below one is none", func(t *testing.T) {
		for _, limit := range []string{"0", "-5"} {
			list := s.get(t, in(eventsV1, ns)+"?limit="+limit).expect(http.StatusOK).object()
			if len(list.names()) != 4 || list.at("metadata.continue") != nil {
				t.Errorf("limit %s: %v", limit, list["metadata"])
			}
		}
	})
	t.Run("watch that is false", func(t *testing.T) {
		for _, v := range []string{"false", "0", "False"} {
			if list := s.get(t, in(eventsV1, ns)+"?watch="+v).expect(http.StatusOK).object(); list.text("kind") != "EventList" {
				t.Errorf("watch=%s: %v", v, list)
			}
		}
	})
	t.Run("first of repeated parameters, unknown ones", func(t *testing.T) {
		list := s.get(t, in(eventsV1, ns)+"?limit=1&limit=2&whatever=1").expect(http.StatusOK).object()
		if len(list.names()) != 1 {
			t.Errorf("items %v", list.names())
		}
	})
	t.Run("pretty", func(t *testing.T) {
		indented := func(query, agent, accept string) bool {
			a := s.do(t, call{method: "GET", path: in(eventsV1, ns, "a") + query, accept: accept, header: map[string]string{"User-Agent": agent}}).expect(http.StatusOK)
			return strings.HasPrefix(string(a.body), "{\n  \"kind\"")
		}
		for _, c := range []struct {
			query, agent, accept string
			want                 bool
		}{
			{"", "wire/1", "", false}, {"?pretty=true", "wire/1", "", true}, {"?pretty=1", "wire/1", "", true},
			{"", "curl/8", "", true}, {"", "Wget/1", "", true}, {"", "Mozilla/5.0 (X)", "", true},
			{"?pretty=false", "curl/8", "", false}, {"", "wire/1", typeJSON + ";pretty=1", true},
		} {
			if got := indented(c.query, c.agent, c.accept); got != c.want {
				t.Errorf("%+v: indented %v", c, got)
			}
		}
	})
}

// TestPages is about limit and continue (3.3).
func TestPages(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	for i := range 10 {
		s.create(t, ns, fmt.Sprintf("e%d", i), fmt.Sprintf(`{"metadata":{"labels":{"odd":"%d"}}}`, i%2))
	}
	path := in(eventsV1, ns)
	t.Run("one moment over all pages", func(t *testing.T) {
		var got []string
		first := s.get(t, path+"?limit=4").expect(http.StatusOK).object()
		equalJSON(t, "remaining", first.at("metadata.remainingItemCount"), `6`)
		s.create(t, ns, "e35") // behind the first page, and after it
		s.delete(t, path+"/e7", "").expect(http.StatusOK)
		page := first
		for {
			got = append(got, page.names()...)
			if page.version(t) != first.version(t) {
				t.Errorf("a page at version %d, the first is at %d", page.version(t), first.version(t))
			}
			token := page.text("metadata.continue")
			if token == "" {
				break
			}
			page = s.get(t, path+"?limit=4&continue="+token).expect(http.StatusOK).object()
		}
		if page.at("metadata.remainingItemCount") != nil {
			t.Errorf("the last page has a count: %v", page["metadata"])
		}
		if text := strings.Join(got, " "); text != "e0 e1 e2 e3 e4 e5 e6 e7 e8 e9" {
			t.Errorf("got %s", text)
		}
		s.create(t, ns, "e7", `{"metadata":{"labels":{"odd":"1"}}}`)
		s.delete(t, path+"/e35", "").expect(http.StatusOK)
	})
	t.Run("pages are full despite a selector", func(t *testing.T) {
		page := s.get(t, path+"?limit=3&labelSelector=odd%3D1").expect(http.StatusOK).object()
		if got := strings.Join(page.names(), " "); got != "e1 e3 e5" {
			t.Errorf("got %s", got)
		}
		if page.at("metadata.remainingItemCount") != nil || page.text("metadata.continue") == "" {
			t.Errorf("metadata %v", page["metadata"])
		}
		rest := s.get(t, path+"?limit=3&labelSelector=odd%3D1&continue="+page.text("metadata.continue")).expect(http.StatusOK).object()
		if got := strings.Join(rest.names(), " "); got != "e7 e9" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("over namespaces", func(t *testing.T) {
		s.create(t, ns+"-2", "e0")
		page := s.get(t, eventsV1+"/events?limit=10").expect(http.StatusOK).object()
		equalJSON(t, "remaining", page.at("metadata.remainingItemCount"), `1`)
		rest := s.get(t, eventsV1+"/events?limit=10&continue="+page.text("metadata.continue")).expect(http.StatusOK).object()
		// A dash comes before the slash behind the other namespace's name.
		if page.text("items.0.metadata.namespace") != ns+"-2" || strings.Join(rest.names(), " ") != "e9" {
			t.Errorf("second page %v", rest)
		}
	})
	t.Run("version 0 honours the limit", func(t *testing.T) {
		page := s.get(t, path+"?limit=2&resourceVersion=0").expect(http.StatusOK).object()
		if len(page.names()) != 2 || page.text("metadata.continue") == "" {
			t.Errorf("page %v of %v", page["metadata"], page.names())
		}
		next := s.get(t, path+"?limit=2&resourceVersion=0&continue="+page.text("metadata.continue")).expect(http.StatusOK).object()
		if got := strings.Join(next.names(), " "); got != "e2 e3" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("metadata in pages", func(t *testing.T) {
		page := s.do(t, call{method: "GET", path: path + "?limit=2", accept: typeJSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}).expect(http.StatusOK).object()
		item := object(page.at("items.0").(map[string]any))
		if item.text("kind") != "PartialObjectMetadata" || item.text("apiVersion") != "meta.k8s.io/v1" || page.text("metadata.continue") == "" || page.at("metadata.remainingItemCount") == nil {
			t.Errorf("page %v", page)
		}
	})
	t.Run("a single event is not continued", func(t *testing.T) {
		list := s.get(t, path+"?fieldSelector=metadata.name%3De3&limit=1&continue=nonsense").expect(http.StatusOK).object()
		if got := strings.Join(list.names(), " "); got != "e3" || list.at("metadata.continue") != nil {
			t.Errorf("list %v", list)
		}
	})
	token := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for name, bad := range map[string]string{
		"not base64": "!!!", "not JSON": token("{"), "other version": token(`{"v":"v9","rv":3,"start":"e1\u0000"}`),
		"version 0": token(`{"v":"meta.k8s.io/v1","rv":0,"start":"e1\u0000"}`), "no start": token(`{"v":"meta.k8s.io/v1","rv":3,"start":""}`),
		"leaves the range": token(`{"v":"meta.k8s.io/v1","rv":3,"start":"../other/e1\u0000"}`),
	} {
		t.Run("token "+name, func(t *testing.T) {
			refusal{call: call{method: "GET", path: path + "?limit=2&continue=" + url.QueryEscape(bad)}, code: 400, reason: metav1.StatusReasonBadRequest,
				contains: "continue key is not valid: "}.check(t, s)
		})
	}
}

// TestListVersions is the matrix of resourceVersion, its match, limit and
// continue (3.2, 3.3).
func TestListVersions(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	path := in(eventsV1, ns)
	first := s.create(t, ns, "a")
	s.create(t, ns, "b")
	last := s.create(t, ns, "c")
	old, now := first.text("metadata.resourceVersion"), last.text("metadata.resourceVersion")
	page := s.get(t, path+"?limit=1").object().text("metadata.continue")

	for _, c := range []struct{ query, names, version string }{
		{"", "a b c", now},
		{"resourceVersion=0", "a b c", now},
		{"resourceVersion=0&resourceVersionMatch=NotOlderThan", "a b c", now},
		{"resourceVersion=" + old, "a b c", now},
		{"resourceVersion=" + old + "&resourceVersionMatch=NotOlderThan", "a b c", now},
		{"resourceVersion=" + old + "&limit=5", "a", old}, // the old rule: exact
		{"resourceVersion=" + old + "&limit=2&resourceVersionMatch=NotOlderThan", "a b", now},
		{"resourceVersion=" + old + "&resourceVersionMatch=Exact", "a", old},
		{"resourceVersion=" + now + "&resourceVersionMatch=Exact&limit=2", "a b", now},
	} {
		t.Run("list "+strings.ReplaceAll(strings.ReplaceAll(c.query, "="+old, "=old"), "="+now, "=now"), func(t *testing.T) {
			list := s.get(t, path+"?"+c.query).expect(http.StatusOK).object()
			if got := strings.Join(list.names(), " "); got != c.names || list.text("metadata.resourceVersion") != c.version {
				t.Errorf("got %q at %s, want %q at %s", got, list.text("metadata.resourceVersion"), c.names, c.version)
			}
		})
	}
	for _, query := range []string{"", "?resourceVersion=", "?resourceVersion=0", "?resourceVersion=" + old, "?resourceVersion=" + now, "?watch=true"} {
		if ev := s.get(t, in(eventsV1, ns, "c")+query).expect(http.StatusOK).object(); ev.text("metadata.resourceVersion") != now || ev.text("kind") != "Event" {
			t.Errorf("get%s: %v", query, ev)
		}
	}
	list := func(query string) call { return call{method: "GET", path: path + "?" + query} }
	get := func(query string) call { return call{method: "GET", path: in(eventsV1, ns, "c") + "?" + query} }
	invalid := `ListOptions.meta.k8s.io "" is invalid: `
	tooLarge := fmt.Sprintf(`Timeout: Too large resource version: 99999999, current: %s`, now)
	future := `{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}`
	checkRefusals(t, s, []refusal{
		{name: "0 exactly", call: list("resourceVersion=0&resourceVersionMatch=Exact"), code: 422, reason: metav1.StatusReasonInvalid,
			message: invalid + `resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`},
		{name: "match alone", call: list("resourceVersionMatch=Exact"), code: 422, reason: metav1.StatusReasonInvalid,
			message: invalid + `resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`,
			details: `{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided","field":"resourceVersionMatch"}]}`},
		{name: "unknown match", call: list("resourceVersion=1&resourceVersionMatch=Foo"), code: 422, reason: metav1.StatusReasonInvalid,
			message: invalid + `resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""`},
		{name: "match with continue", call: list("resourceVersion=1&resourceVersionMatch=Exact&continue=" + page), code: 422, reason: metav1.StatusReasonInvalid,
			contains: `resourceVersionMatch is forbidden when continue is provided`},
		{name: "version with continue", call: list("resourceVersion=" + old + "&limit=1&continue=" + page), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `specifying resource version is not allowed when using continue`},
		{name: "version that is no number", call: list("resourceVersion=abc"), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`},
		{name: "negative version", call: list("resourceVersion=-1"), code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "initial events of a list", call: list("sendInitialEvents=true"), code: 422, reason: metav1.StatusReasonInvalid,
			message: invalid + `sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`},
		{name: "limit that is no number", call: list("limit=abc"), code: 400, reason: metav1.StatusReasonBadRequest, contains: `strconv.ParseInt: parsing "abc": invalid syntax`},
		{name: "empty limit", call: list("limit="), code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "timeoutSeconds", call: list("timeoutSeconds=x"), code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "timeout", call: list("timeout=abc"), code: 400, reason: metav1.StatusReasonBadRequest, message: `invalid timeout specified in the request URL - time: invalid duration "abc"`},
		{name: "future", call: list("resourceVersion=99999999"), code: 504, reason: metav1.StatusReasonTimeout, message: tooLarge, details: future},
		{name: "future exactly", call: list("resourceVersion=99999999&resourceVersionMatch=Exact"), code: 504, reason: metav1.StatusReasonTimeout},
		{name: "future not older", call: list("resourceVersion=99999999&resourceVersionMatch=NotOlderThan"), code: 504, reason: metav1.StatusReasonTimeout},
		{name: "get future", call: get("resourceVersion=99999999"), code: 504, reason: metav1.StatusReasonTimeout, message: tooLarge, details: future},
		{name: "get version that is no number", call: get("resourceVersion=abc"), code: 400, reason: metav1.StatusReasonBadRequest,
			message: `invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`},
		{name: "export", call: get("export=true"), code: 400, reason: metav1.StatusReasonBadRequest, message: `the export parameter, deprecated since v1.14, is no longer supported`},
	})
	t.Run("no Retry-After for a future version", func(t *testing.T) {
		if a := s.get(t, path+"?resourceVersion=99999999"); a.header.Get("Retry-After") != "" {
			t.Errorf("Retry-After %s", a.header.Get("Retry-After"))
		}
	})
	t.Run("timeouts that are accepted", func(t *testing.T) {
		for _, q := range []string{"timeout=0s", "timeout=32s", "timeout=24h", "timeoutSeconds=5"} {
			s.get(t, path+"?"+q).expect(http.StatusOK)
		}
	})
	t.Run("exact versions across a restart", func(t *testing.T) {
		s.restart(t)
		if got := s.get(t, path+"?resourceVersionMatch=Exact&resourceVersion="+old).expect(http.StatusOK).object().names(); len(got) != 1 {
			t.Errorf("items %v", got)
		}
		if got := s.get(t, path+"?limit=5&continue="+page).expect(http.StatusOK).object(); strings.Join(got.names(), " ") != "b c" || got.text("metadata.resourceVersion") != now {
			t.Errorf("second page %v", got)
		}
		if ev := s.create(t, ns, "d"); ev.version(t) <= last.version(t) {
			t.Errorf("version %d after the restart, %d before", ev.version(t), last.version(t))
		}
	})
}
