package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	discoveryv2 "k8s.io/api/apidiscovery/v2"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/codec"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func TestDiscovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type asked struct{ path, accept, contentType string }
	files := map[string]asked{
		"apis-beta.json": {"/apis", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", "application/json"},
	}
	for name, path := range map[string]string{
		"api": "/api", "apis": "/apis", "group": "/apis/events.k8s.io", "resources": "/apis/events.k8s.io/v1", "core": "/api/v1",
	} {
		files[name+".json"] = asked{path, "", "application/json"}
		files[name+".yaml"] = asked{path, "application/yaml", "application/yaml"}
		files[name+".protobuf"] = asked{path, protobuf, protobuf}
	}
	for name, path := range map[string]string{"api-aggregated": "/api", "apis-aggregated": "/apis"} {
		binary := strings.Replace(aggregated, "application/json", protobuf, 1)
		files[name+".json"] = asked{path, aggregated + ",application/json", aggregated}
		files[name+".protobuf"] = asked{path, binary + ",application/json", binary}
	}
	for name, c := range files {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			a := w.do("GET", c.path, "", "Accept", c.accept).must(200)
			equal(t, a.header.Get("Content-Type"), c.contentType)
			golden(t, name, a.body)
			slash := w.do("GET", c.path+"/", "", "Accept", c.accept).must(200)
			equal(t, string(slash.body), string(a.body))
		})
	}
	w.do("GET", "/apis", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList").must(406)
}

func TestAggregatedDiscoveryIsCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do("GET", "/apis", "", "Accept", aggregated).must(200)
	equal(t, a.header.Get("Vary"), "Accept")
	equal(t, a.header.Get("Cache-Control"), "public")
	etag := a.header.Get("ETag")
	if len(etag) != 130 || strings.ToUpper(etag) != etag {
		t.Error(etag)
	}
	again := w.do("GET", "/apis", "", "Accept", aggregated, "If-None-Match", etag).must(http.StatusNotModified)
	equal(t, len(again.body), 0)
	w.do("GET", "/apis", "", "Accept", aggregated, "If-None-Match", `"other"`).must(200)

	p := w.do("GET", "/apis", "", "Accept", strings.Replace(aggregated, "json", "vnd.kubernetes.protobuf", 1)).must(200)
	var list discoveryv2.APIGroupDiscoveryList
	equal(t, unwrap(t, p.body, &list).Kind, "APIGroupDiscoveryList")
	equal(t, list.Items[0].Versions[0].Resources[0].Resource, "events")
}

func TestOtherGroupDomain(t *testing.T) {
	t.Parallel()
	c, err := codec.New("example.org")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(config *api.Config) { config.Codec = c })
	equal(t, w.do("GET", "/apis/events.example.org", "").must(200).at("name"), any("events.example.org"))
	made := w.do("POST", "/apis/events.example.org/v1/namespaces/default/events", newEvent("a")).must(201)
	equal(t, made.at("apiVersion"), any("events.example.org/v1"))
	w.do("GET", eventsPath, "").must(404)
	st := w.do("GET", "/apis/events.example.org/v1/namespaces/default/events/b", "").must(404).status()
	equal(t, st.Message, `events.events.example.org "b" not found`)
	// Kinds stay in the groups in which Kubernetes has them.
	equal(t, w.do("GET", "/apis/apps/v1", "").must(200).at("groupVersion"), any("apps/v1"))
	w.do("GET", "/apis/apps/v1/namespaces/default/deployments", "").must(404)
	paths := w.do("GET", "/openapi/v3", "").must(200).at("paths").(map[string]any)
	if paths["apis/events.example.org/v1"] == nil {
		t.Error(paths)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do("GET", "/version", "", "Authorization", "").must(200)
	equal(t, a.at("major"), any("1"))
	equal(t, a.at("minor"), any("37"))
	if v := a.at("gitVersion").(string); !strings.HasPrefix(v, "v1.37.") {
		t.Error(v)
	}
	if !bytes.Contains(a.body, []byte("\n  \"major\"")) {
		t.Errorf("not indented: %s", a.body)
	}
}

func TestOpenAPIV3(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	index := w.do("GET", "/openapi/v3", "").must(200).at("paths").(map[string]any)
	equal(t, len(index), 4)
	for path, schema := range map[string]string{"apis/events.k8s.io/v1": "io.k8s.api.events.v1.Event", "api/v1": "io.k8s.api.core.v1.Event"} {
		url := index[path].(map[string]any)["serverRelativeURL"].(string)
		a := w.do("GET", url, "").must(200)
		equal(t, a.header.Get("Cache-Control"), "public, immutable")
		if a.header.Get("Expires") == "" || !strings.Contains(url, strings.Trim(a.header.Get("ETag"), `"`)) {
			t.Error(url, a.header)
		}
		doc := a.object()
		one := field(doc, "paths").(map[string]any)["/"+path+"/namespaces/{namespace}/events/{name}"].(map[string]any)
		equal(t, len(field(doc, "paths").(map[string]any)), 7)
		discovery := field(doc, "paths").(map[string]any)["/"+path+"/"].(map[string]any)
		if id := field(discovery, "get.operationId").(string); !strings.HasSuffix(id, "V1APIResources") {
			t.Error(path, "has discovery", id)
		}
		w.do("GET", "/"+path+"/", "").must(200)
		var parameters []string
		for _, p := range field(one, "patch.parameters").([]any) {
			parameters = append(parameters, p.(map[string]any)["name"].(string))
		}
		equal(t, parameters, []string{"dryRun", "fieldManager", "fieldValidation", "force"})
		schemas := field(doc, "components.schemas").(map[string]any)
		if schemas[schema] == nil {
			t.Error(schema, "is missing")
		}
		everyReference(t, doc, "#/components/schemas/", schemas)

		plain := w.do("GET", "/openapi/v3/"+path, "").must(200)
		equal(t, string(plain.body), string(a.body))
		equal(t, plain.header.Get("Cache-Control"), "no-cache, private")
		w.do("GET", "/openapi/v3/"+path, "", "If-None-Match", a.header.Get("ETag")).must(304)
		wrong := w.do("GET", "/openapi/v3/"+path+"?hash=ABC", "").must(301)
		equal(t, wrong.header.Get("Location"), url)

		p := w.do("GET", url, "", "Accept", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf").must(200)
		equal(t, p.header.Get("Content-Type"), "application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
		var parsed openapiv3.Document
		if err := proto.Unmarshal(p.body, &parsed); err != nil {
			t.Fatal(err)
		}
		equal(t, len(parsed.GetPaths().GetPath()), 7)
	}
	w.do("GET", "/openapi/v3/apis/other/v1", "").must(404)
}

func TestOpenAPIV2(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do("GET", "/openapi/v2", "").must(200)
	doc := a.object()
	equal(t, len(field(doc, "paths").(map[string]any)), 14)
	everyReference(t, doc, "#/definitions/", field(doc, "definitions").(map[string]any))
	p := w.do("GET", "/openapi/v2", "", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf").must(200)
	equal(t, p.header.Get("Content-Type"), "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
	var parsed openapiv2.Document
	if err := proto.Unmarshal(p.body, &parsed); err != nil {
		t.Fatal(err)
	}
	w.do("GET", "/openapi/v2", "", "Accept", "text/html").must(406)
}

// everyReference finds references that lead nowhere.
func everyReference(t *testing.T, v any, prefix string, schemas map[string]any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			name, ok := strings.CutPrefix(ref, prefix)
			if !ok || schemas[name] == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, value := range v {
			everyReference(t, value, prefix, schemas)
		}
	case []any:
		for _, value := range v {
			everyReference(t, value, prefix, schemas)
		}
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var index struct{ Paths []string }
	if err := json.Unmarshal(w.do("GET", "/", "").must(200).body, &index); err != nil {
		t.Fatal(err)
	}
	for _, path := range index.Paths {
		parameters := "?timeoutSeconds=1"
		switch path {
		case "/":
			continue
		case "/query/v1/groups":
			parameters = "?by=type"
		case "/query/v1/object":
			parameters = "?uid=none"
		default:
			if strings.HasPrefix(path, "/loki/") {
				continue // they have required parameters
			}
			if strings.HasPrefix(path, "/query/") {
				parameters = "" // others are errors there
			}
		}
		w.do("GET", path+parameters, "").must(200)
	}
	if len(index.Paths) < 10 {
		t.Error(index.Paths)
	}
}
