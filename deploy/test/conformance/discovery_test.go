package conformance_test

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi3"
)

// eventsResource is how discovery describes events, in both groups.
const eventsResource = `{"name":"events","singularName":"event","namespaced":true,"kind":"Event",
	"verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["ev"],"storageVersionHash":"r2yiGXH7wu8="}`

// TestDiscovery is about both forms of discovery (8.1, 8.2).
func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := start(t)
	version := `{"groupVersion":"events.k8s.io/v1","version":"v1"}`
	t.Run("groups", func(t *testing.T) {
		var found string
		for _, g := range s.get(t, "/apis").expect(http.StatusOK).object()["groups"].([]any) {
			if o := object(g.(map[string]any)); o.text("name") == "events.k8s.io" {
				found = marshal(t, o)
			}
		}
		equalJSON(t, "group", json.RawMessage(found), `{"name":"events.k8s.io","versions":[`+version+`],"preferredVersion":`+version+`}`)
		equalJSON(t, "/apis/events.k8s.io", s.get(t, "/apis/events.k8s.io").expect(http.StatusOK).object(),
			`{"kind":"APIGroup","apiVersion":"v1","name":"events.k8s.io","versions":[`+version+`],"preferredVersion":`+version+`}`)
	})
	t.Run("core", func(t *testing.T) {
		equalJSON(t, "/api", s.get(t, "/api").expect(http.StatusOK).object(),
			`{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"`+s.httpAddr+`"}]}`)
	})
	t.Run("resources", func(t *testing.T) {
		equalJSON(t, "events", s.get(t, eventsV1).expect(http.StatusOK).object(),
			`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"events.k8s.io/v1","resources":[`+eventsResource+`]}`)
		core := s.get(t, coreV1).expect(http.StatusOK).object()
		if core["apiVersion"] != nil || core.text("groupVersion") != "v1" {
			t.Errorf("core %v", core)
		}
		resources, _ := core["resources"].([]any)
		names := map[string]object{}
		for _, r := range resources {
			names[object(r.(map[string]any)).text("name")] = r.(map[string]any)
		}
		equalJSON(t, "core events", names["events"], eventsResource)
		if ns, ok := names["namespaces"]; ok {
			equalJSON(t, "verbs of namespaces", ns["verbs"], `["get","list","watch"]`)
		}
	})
	t.Run("aggregated", func(t *testing.T) {
		form := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		for path, group := range map[string]string{"/apis": "events.k8s.io", "/api": ""} {
			a := s.do(t, call{method: "GET", path: path, accept: form + ",application/json"}).expect(http.StatusOK)
			if a.header.Get("Content-Type") != form || a.header.Get("Vary") != "Accept" || a.header.Get("Cache-Control") != "public" {
				t.Errorf("headers %v", a.header)
			}
			if want := fmt.Sprintf(`"%X"`, sha512.Sum512(a.body)); a.header.Get("ETag") != want {
				t.Errorf("ETag %s, want %s", a.header.Get("ETag"), want)
			}
			s.do(t, call{method: "GET", path: path, accept: form, header: map[string]string{"If-None-Match": a.header.Get("ETag")}}).expect(http.StatusNotModified)
			var found object
			for _, g := range a.object()["items"].([]any) {
				if o := object(g.(map[string]any)); o.text("metadata.name") == group {
					found = o
				}
			}
			if found == nil || found.text("versions.0.version") != "v1" || found.text("versions.0.freshness") != "Current" {
				t.Fatalf("group %q: %s", group, a.body)
			}
			for _, r := range found.at("versions.0.resources").([]any) {
				if o := object(r.(map[string]any)); o.text("resource") == "events" {
					equalJSON(t, "events", o, `{"resource":"events","responseKind":{"group":"","version":"","kind":"Event"},"scope":"Namespaced","singularResource":"event",
						"verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["ev"]}`)
				}
			}
			if binary := s.do(t, call{method: "GET", path: path, accept: strings.Replace(form, typeJSON, typeProtobuf, 1)}).expect(http.StatusOK); !bytes.HasPrefix(binary.body, []byte("k8s\x00")) {
				t.Errorf("protobuf %q", binary.body)
			}
		}
		old := strings.Replace(form, "v=v2", "v=v2beta1", 1)
		s.do(t, call{method: "GET", path: "/apis", accept: old}).expect(http.StatusNotAcceptable)
		if a := s.do(t, call{method: "GET", path: "/apis", accept: old + ",application/json"}).expect(http.StatusOK); a.object().text("kind") != "APIGroupList" {
			t.Errorf("fallback %s", a.body)
		}
	})
	t.Run("client-go", func(t *testing.T) {
		client, err := discovery.NewDiscoveryClientForConfig(s.config())
		if err != nil {
			t.Fatal(err)
		}
		for _, legacy := range []bool{false, true} {
			client.UseLegacyDiscovery = legacy
			groups, resources, err := client.ServerGroupsAndResources()
			if err != nil {
				t.Fatal(err)
			}
			found := sets.New[string]()
			for _, g := range groups {
				if g.PreferredVersion.Version != "v1" && g.Name != "autoscaling" { // which is named at v2
					t.Errorf("preferred version %v", g.PreferredVersion)
				}
			}
			for _, list := range resources {
				for _, r := range list.APIResources {
					found.Insert(list.GroupVersion + " " + r.Name)
				}
			}
			if !found.HasAll("v1 events", "events.k8s.io/v1 events") {
				t.Errorf("legacy %v: found %v", legacy, sets.List(found))
			}
		}
		v, err := client.ServerVersion()
		if err != nil || v.Major != "1" || strings.Trim(strings.TrimSuffix(v.Minor, "+"), "0123456789") != "" || v.Minor == "" {
			t.Errorf("version %v, %v", v, err)
		}
	})
}

// TestVersion is about /version (8.4).
func TestVersion(t *testing.T) {
	t.Parallel()
	s := start(t)
	a := s.do(t, call{method: "GET", path: "/version", anonymous: true}).expect(http.StatusOK)
	if !strings.HasPrefix(string(a.body), "{\n  \"major\": \"1\",\n  \"minor\": \"37\",") {
		t.Errorf("body %s", a.body)
	}
	for _, key := range []string{"emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor", "gitVersion", "goVersion", "compiler", "platform"} {
		if a.object().text(key) == "" {
			t.Errorf("no %s: %s", key, a.body)
		}
	}
	for _, key := range []string{"gitCommit", "gitTreeState", "buildDate"} {
		if _, ok := a.object()[key]; !ok {
			t.Errorf("no %s: %s", key, a.body)
		}
	}
}

// TestOpenAPI is about the documents behind explain and client-side checks (8.5).
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	s := start(t)
	root := s.get(t, "/openapi/v3").expect(http.StatusOK).object()
	paths, _ := root["paths"].(map[string]any)
	link := func(gv string) string {
		entry, _ := paths[gv].(map[string]any)
		u, _ := entry["serverRelativeURL"].(string)
		return u
	}
	t.Run("documents", func(t *testing.T) {
		for gv, prefix := range map[string]string{"apis/events.k8s.io/v1": "/openapi/v3/apis/events.k8s.io/v1?hash=", "api/v1": "/openapi/v3/api/v1?hash="} {
			url := link(gv)
			if !strings.HasPrefix(url, prefix) {
				t.Fatalf("%s at %q", gv, url)
			}
			a := s.get(t, url).expect(http.StatusOK)
			hash := strings.TrimPrefix(url, prefix)
			if a.header.Get("ETag") != `"`+hash+`"` || !strings.Contains(a.header.Get("Cache-Control"), "immutable") || a.header.Get("Expires") == "" || a.header.Get("Vary") != "Accept" {
				t.Errorf("headers %v", a.header)
			}
			s.do(t, call{method: "GET", path: url, header: map[string]string{"If-None-Match": a.header.Get("ETag")}}).expect(http.StatusNotModified)
		}
	})
	t.Run("wrong hash leads to the right one", func(t *testing.T) {
		once := *s.plain
		once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		res, err := once.Do(s.request(t, call{method: "GET", path: "/openapi/v3/apis/events.k8s.io/v1?hash=00"}))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusMovedPermanently || res.Header.Get("Location") != link("apis/events.k8s.io/v1") {
			t.Errorf("%s to %s", res.Status, res.Header.Get("Location"))
		}
	})
	t.Run("unknown group", func(t *testing.T) {
		s.get(t, "/openapi/v3/apis/other.example/v1").expect(http.StatusNotFound)
	})
	t.Run("protobuf", func(t *testing.T) {
		a := s.do(t, call{method: "GET", path: "/openapi/v3/apis/events.k8s.io/v1", accept: "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"}).expect(http.StatusOK)
		if !strings.Contains(a.header.Get("Content-Type"), "spec.v3") || len(a.body) == 0 || a.body[0] == '{' {
			t.Errorf("headers %v", a.header)
		}
	})
	t.Run("content", func(t *testing.T) {
		doc := s.get(t, link("apis/events.k8s.io/v1")).object()
		schemas, _ := doc.at("components.schemas").(map[string]any)
		ev, _ := schemas["io.k8s.api.events.v1.Event"].(map[string]any)
		equalJSON(t, "required", ev["required"], `["eventTime"]`)
		equalJSON(t, "kind", ev["x-kubernetes-group-version-kind"], `[{"group":"events.k8s.io","kind":"Event","version":"v1"}]`)
		series, _ := schemas["io.k8s.api.events.v1.EventSeries"].(map[string]any)
		equalJSON(t, "required of series", series["required"], `["count","lastObservedTime"]`)
		ref, _ := schemas["io.k8s.api.core.v1.ObjectReference"].(map[string]any)
		equalJSON(t, "reference", ref["x-kubernetes-map-type"], `"atomic"`)
		served, _ := doc["paths"].(map[string]any)
		one, _ := served["/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}"].(map[string]any)
		patch, _ := one["patch"].(map[string]any)
		equalJSON(t, "action", patch["x-kubernetes-action"], `"patch"`)
		equalJSON(t, "kind of patch", patch["x-kubernetes-group-version-kind"], `{"group":"events.k8s.io","kind":"Event","version":"v1"}`)
		names := sets.New[string]()
		parameters, _ := patch["parameters"].([]any)
		for _, p := range parameters {
			names.Insert(object(p.(map[string]any)).text("name"))
		}
		if !names.HasAll("dryRun", "fieldManager", "fieldValidation", "force") {
			t.Errorf("parameters of patch: %v", sets.List(names))
		}
		for _, path := range []string{"/apis/events.k8s.io/v1/events", "/apis/events.k8s.io/v1/namespaces/{namespace}/events"} {
			if served[path] == nil {
				t.Errorf("no path %s", path)
			}
		}
	})
	t.Run("parameters", func(t *testing.T) {
		// Those of Kubernetes 1.37, whether a path or its operation has them.
		reads := "allowWatchBookmarks continue fieldSelector labelSelector limit pretty resourceVersion resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds watch"
		writes := "dryRun fieldManager fieldValidation"
		deletes := "dryRun gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents pretty propagationPolicy"
		selects := " continue fieldSelector labelSelector limit resourceVersion resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds"
		want := map[string]string{
			"get /events":                                     reads,
			"get /namespaces/{namespace}/events":              "namespace " + reads,
			"post /namespaces/{namespace}/events":             "namespace pretty " + writes,
			"delete /namespaces/{namespace}/events":           "namespace " + deletes + selects,
			"get /namespaces/{namespace}/events/{name}":       "name namespace pretty",
			"put /namespaces/{namespace}/events/{name}":       "name namespace pretty " + writes,
			"patch /namespaces/{namespace}/events/{name}":     "name namespace pretty force " + writes,
			"delete /namespaces/{namespace}/events/{name}":    "name namespace " + deletes,
			"get /watch/events":                               reads,
			"get /watch/namespaces/{namespace}/events":        "namespace " + reads,
			"get /watch/namespaces/{namespace}/events/{name}": "name namespace " + reads,
		}
		for gv, prefix := range map[string]string{"apis/events.k8s.io/v1": eventsV1, "api/v1": coreV1} {
			served, _ := s.get(t, link(gv)).object()["paths"].(map[string]any)
			seen := 0
			for path, item := range served {
				item, _ := item.(map[string]any)
				for _, method := range []string{"get", "post", "put", "patch", "delete"} {
					op, ok := item[method].(map[string]any)
					if !ok || path == prefix+"/" {
						continue
					}
					seen++
					names := sets.New[string]()
					shared, _ := item["parameters"].([]any)
					own, _ := op["parameters"].([]any)
					for _, p := range append(slices.Clone(shared), own...) {
						names.Insert(object(p.(map[string]any)).text("name"))
					}
					key := method + " " + strings.TrimPrefix(path, prefix)
					if wanted := sets.New(strings.Fields(want[key])...); !names.Equal(wanted) {
						t.Errorf("%s: %s: parameters %v, want %v", gv, key, sets.List(names), sets.List(wanted))
					}
				}
			}
			if seen != len(want) {
				t.Errorf("%s: %d operations, want %d", gv, seen, len(want))
			}
		}
	})
	t.Run("second edition", func(t *testing.T) {
		a := s.get(t, "/openapi/v2").expect(http.StatusOK)
		if doc := a.object(); doc.text("swagger") != "2.0" || doc["definitions"].(map[string]any)["io.k8s.api.events.v1.Event"] == nil || a.header.Get("ETag") == "" {
			t.Errorf("headers %v", a.header)
		}
		binary := s.do(t, call{method: "GET", path: "/openapi/v2", accept: "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}).expect(http.StatusOK)
		if got := binary.header.Get("Content-Type"); got != "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" {
			t.Errorf("Content-Type %s", got)
		}
	})
	t.Run("client-go", func(t *testing.T) {
		client, err := discovery.NewDiscoveryClientForConfig(s.config())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.OpenAPISchema(); err != nil {
			t.Error(err)
		}
		v3 := openapi3.NewRoot(client.OpenAPIV3())
		versions, err := v3.GroupVersions()
		if err != nil || len(versions) < 2 {
			t.Fatalf("%v, %v", versions, err)
		}
		for _, gv := range versions {
			if _, err := v3.GVSpec(gv); err != nil {
				t.Errorf("%s: %v", gv, err)
			}
		}
		var _ openapi.Client = client.OpenAPIV3()
	})
}

// TestHealth is about the probes (8.6).
func TestHealth(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		a := s.do(t, call{method: "GET", path: path, anonymous: true}).expect(http.StatusOK)
		if string(a.body) != "ok" || a.header.Get("Content-Type") != "text/plain; charset=utf-8" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %q %v", path, a.body, a.header)
		}
		verbose := string(s.get(t, path+"?verbose").expect(http.StatusOK).body)
		if !strings.HasSuffix(verbose, strings.TrimPrefix(path, "/")+" check passed\n") || !strings.HasPrefix(verbose, "[+]") {
			t.Errorf("%s: %q", path, verbose)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(strings.SplitN(verbose, "\n", 2)[0], "[+]"), " ok")
		if got := s.get(t, path+"/"+name).expect(http.StatusOK); string(got.body) != "ok" {
			t.Errorf("%s/%s: %q", path, name, got.body)
		}
		if got := string(s.get(t, path+"?verbose&exclude="+name).expect(http.StatusOK).body); strings.Contains(got, "[+]"+name+" ok") {
			t.Errorf("%s without %s: %q", path, name, got)
		}
		s.get(t, path+"/none").expect(http.StatusNotFound)
	}
	if got := string(s.get(t, "/livez/ping").expect(http.StatusOK).body); got != "ok" {
		t.Errorf("ping: %q", got)
	}
	index := s.get(t, "/").expect(http.StatusOK).object()
	listed := sets.New[string]()
	for _, p := range index["paths"].([]any) {
		listed.Insert(p.(string))
	}
	if !listed.HasAll("/api", "/apis", "/version", "/livez", "/openapi/v3", eventsV1) {
		t.Errorf("paths %v", sets.List(listed))
	}
}

// TestErrors is about answers that every client meets (9.1, 8.6).
func TestErrors(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	s.create(t, ns, "a")
	notAllowed := `the server does not allow this method on the requested resource`
	checkRefusals(t, s, []refusal{
		{name: "no token", call: call{method: "GET", path: in(eventsV1, ns), anonymous: true}, code: 401, reason: metav1.StatusReasonUnauthorized, message: "Unauthorized"},
		{name: "Bearer alone", call: call{method: "GET", path: in(eventsV1, ns), anonymous: true, header: map[string]string{"Authorization": "Bearer"}}, code: 401, reason: metav1.StatusReasonUnauthorized, message: "Unauthorized"},
		{name: "empty token", call: call{method: "GET", path: in(eventsV1, ns), anonymous: true, header: map[string]string{"Authorization": "Bearer "}}, code: 401, reason: metav1.StatusReasonUnauthorized, message: "Unauthorized"},
		{name: "blanks before the token", call: call{method: "GET", path: in(eventsV1, ns), anonymous: true, header: map[string]string{"Authorization": "Bearer  " + s.token}}, code: 401, reason: metav1.StatusReasonUnauthorized, message: "Unauthorized"},
		{name: "token in header and query", call: call{method: "GET", path: in(eventsV1, ns) + "?access_token=x"}, code: 401, reason: metav1.StatusReasonUnauthorized, message: "Unauthorized"},
		{name: "bad token", call: call{method: "GET", path: in(eventsV1, ns), anonymous: true, header: map[string]string{"Authorization": "Bearer a.b.c"}}, code: 401, reason: metav1.StatusReasonUnauthorized, message: "Unauthorized"},
		{name: "no event", call: call{method: "GET", path: in(eventsV1, ns, "x")}, code: 404, reason: metav1.StatusReasonNotFound,
			message: `events.events.k8s.io "x" not found`, details: `{"name":"x","group":"events.k8s.io","kind":"events"}`},
		{name: "no event, core", call: call{method: "GET", path: in(coreV1, ns, "x")}, code: 404, reason: metav1.StatusReasonNotFound, message: `events "x" not found`, details: `{"name":"x","kind":"events"}`},
		{name: "unknown resource", call: call{method: "GET", path: eventsV1 + "/namespaces/" + ns + "/pods"}, code: 404, reason: metav1.StatusReasonNotFound,
			message: `the server could not find the requested resource`, details: `{}`},
		{name: "unknown version", call: call{method: "GET", path: "/apis/events.k8s.io/v1beta1/events"}, code: 404, reason: metav1.StatusReasonNotFound, message: `the server could not find the requested resource`},
		{name: "subresource", call: call{method: "GET", path: in(eventsV1, ns, "a") + "/status"}, code: 404, reason: metav1.StatusReasonNotFound},
		{name: "POST on all namespaces", call: call{method: "POST", path: eventsV1 + "/events", body: "{}"}, code: 405, reason: metav1.StatusReasonMethodNotAllowed, message: notAllowed, details: `{}`},
		{name: "PUT on all namespaces", call: call{method: "PUT", path: eventsV1 + "/events", body: "{}"}, code: 405, reason: metav1.StatusReasonMethodNotAllowed, message: notAllowed},
		{name: "POST on an event", call: call{method: "POST", path: in(eventsV1, ns, "a"), body: "{}"}, code: 405, reason: metav1.StatusReasonMethodNotAllowed, message: notAllowed},
		{name: "PUT on a collection", call: call{method: "PUT", path: in(eventsV1, ns), body: "{}"}, code: 405, reason: metav1.StatusReasonMethodNotAllowed},
		{name: "OPTIONS", call: call{method: "OPTIONS", path: in(eventsV1, ns)}, code: 405, reason: metav1.StatusReasonMethodNotAllowed},
	})
	t.Run("HEAD", func(t *testing.T) {
		s.do(t, call{method: "HEAD", path: in(eventsV1, ns, "a")}).expect(http.StatusMethodNotAllowed)
	})
	t.Run("order of members", func(t *testing.T) {
		a := s.get(t, in(eventsV1, ns, "x"))
		wantOrder(t, a.body, "kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code")
	})
	t.Run("slash at the end", func(t *testing.T) {
		s.get(t, in(eventsV1, ns, "a/")).expect(http.StatusOK)
		s.get(t, in(coreV1, ns, "a/")).expect(http.StatusOK)
		for _, path := range []string{in(eventsV1, ns, ""), eventsV1 + "/events/", coreV1 + "/namespaces/", coreV1 + "/namespaces/" + ns + "/", "/apis/", "/apis/events.k8s.io/", eventsV1 + "/"} {
			s.get(t, path).expect(http.StatusOK)
		}
		s.post(t, in(eventsV1, ns, ""), newEvent(ns, "slash")).expect(http.StatusCreated)
		s.do(t, call{method: "PUT", path: in(eventsV1, ns, ""), body: "{}"}).expect(http.StatusMethodNotAllowed)
		s.patch(t, in(eventsV1, ns, "slash/"), typeMerge, `{}`).expect(http.StatusOK)
		s.delete(t, in(eventsV1, ns, "slash/"), "").expect(http.StatusOK)
	})
	t.Run("paths outside", func(t *testing.T) {
		for _, path := range []string{"/nowhere", "/apis/other.example/v1/things"} {
			a := s.get(t, path).expect(http.StatusNotFound)
			if string(a.body) != "404 page not found\n" || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
				t.Errorf("%s: %q %v", path, a.body, a.header)
			}
		}
	})
	t.Run("challenge", func(t *testing.T) {
		for authorization, want := range map[string]string{
			"":             `Bearer `,
			"Basic YTpi":   `Bearer `,
			"Bearer":       `Bearer error="invalid_request", error_description="empty token", `,
			"Bearer a.b.c": `Bearer error="invalid_token", `,
		} {
			want += `resource_metadata="http://` + s.httpAddr + `/.well-known/oauth-protected-resource"`
			a := s.do(t, call{method: "GET", path: in(eventsV1, ns), anonymous: true, header: map[string]string{"Authorization": authorization}})
			if got := a.header.Get("WWW-Authenticate"); got != want {
				t.Errorf("Authorization %q: WWW-Authenticate %q, want %q", authorization, got, want)
			}
		}
	})
}
