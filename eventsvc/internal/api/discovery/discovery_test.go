package discovery_test

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
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/codec"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func TestDiscovery(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	type asked struct{ path, accept, contentType string }
	files := map[string]asked{
		"apis-beta.json": {"/apis", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", "application/json"},
	}
	for name, path := range map[string]string{
		"api": "/api", "apis": "/apis", "group": "/apis/events.k8s.io", "resources": "/apis/events.k8s.io/v1", "core": "/api/v1",
	} {
		files[name+".json"] = asked{path, "", "application/json"}
		files[name+".yaml"] = asked{path, "application/yaml", "application/yaml"}
		files[name+".protobuf"] = asked{path, apitest.Protobuf, apitest.Protobuf}
	}
	for name, path := range map[string]string{"api-aggregated": "/api", "apis-aggregated": "/apis"} {
		binary := strings.Replace(aggregated, "application/json", apitest.Protobuf, 1)
		files[name+".json"] = asked{path, aggregated + ",application/json", aggregated}
		files[name+".protobuf"] = asked{path, binary + ",application/json", binary}
	}
	for name, c := range files {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.T = t
			a := w.Do("GET", c.path, "", "Accept", c.accept).Must(200)
			apitest.Equal(t, a.Header.Get("Content-Type"), c.contentType)
			apitest.Golden(t, name, a.Body)
			slash := w.Do("GET", c.path+"/", "", "Accept", c.accept).Must(200)
			apitest.Equal(t, string(slash.Body), string(a.Body))
		})
	}
	w.Do("GET", "/apis", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList").Must(406)
}

func TestAggregatedDiscoveryIsCached(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	a := w.Do("GET", "/apis", "", "Accept", aggregated).Must(200)
	apitest.Equal(t, a.Header.Get("Vary"), "Accept")
	apitest.Equal(t, a.Header.Get("Cache-Control"), "public")
	etag := a.Header.Get("ETag")
	if len(etag) != 130 || strings.ToUpper(etag) != etag {
		t.Error(etag)
	}
	again := w.Do("GET", "/apis", "", "Accept", aggregated, "If-None-Match", etag).Must(http.StatusNotModified)
	apitest.Equal(t, len(again.Body), 0)
	w.Do("GET", "/apis", "", "Accept", aggregated, "If-None-Match", `"other"`).Must(200)

	p := w.Do("GET", "/apis", "", "Accept", strings.Replace(aggregated, "json", "vnd.kubernetes.protobuf", 1)).Must(200)
	var list discoveryv2.APIGroupDiscoveryList
	apitest.Equal(t, apitest.Unwrap(t, p.Body, &list).Kind, "APIGroupDiscoveryList")
	apitest.Equal(t, list.Items[0].Versions[0].Resources[0].Resource, "events")
}

func TestOtherGroupDomain(t *testing.T) {
	t.Parallel()
	c, err := codec.New("example.org")
	if err != nil {
		t.Fatal(err)
	}
	w := apitest.New(t, func(config *api.Config) { config.Codec = c })
	apitest.Equal(t, w.Do("GET", "/apis/events.example.org", "").Must(200).At("name"), any("events.example.org"))
	made := w.Do("POST", "/apis/events.example.org/v1/namespaces/default/events", apitest.NewEvent("a")).Must(201)
	apitest.Equal(t, made.At("apiVersion"), any("events.example.org/v1"))
	w.Do("GET", apitest.EventsPath, "").Must(404)
	st := w.Do("GET", "/apis/events.example.org/v1/namespaces/default/events/b", "").Must(404).Status()
	apitest.Equal(t, st.Message, `events.events.example.org "b" not found`)
	// Kinds stay in the groups in which Kubernetes has them.
	apitest.Equal(t, w.Do("GET", "/apis/apps/v1", "").Must(200).At("groupVersion"), any("apps/v1"))
	w.Do("GET", "/apis/apps/v1/namespaces/default/deployments", "").Must(404)
	paths := w.Do("GET", "/openapi/v3", "").Must(200).At("paths").(map[string]any)
	if paths["apis/events.example.org/v1"] == nil {
		t.Error(paths)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	a := w.Do("GET", "/version", "", "Authorization", "").Must(200)
	apitest.Equal(t, a.At("major"), any("1"))
	apitest.Equal(t, a.At("minor"), any("37"))
	if v := a.At("gitVersion").(string); !strings.HasPrefix(v, "v1.37.") {
		t.Error(v)
	}
	if !bytes.Contains(a.Body, []byte("\n  \"major\"")) {
		t.Errorf("not indented: %s", a.Body)
	}
}

func TestOpenAPIV3(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	index := w.Do("GET", "/openapi/v3", "").Must(200).At("paths").(map[string]any)
	apitest.Equal(t, len(index), 4)
	for path, schema := range map[string]string{"apis/events.k8s.io/v1": "io.k8s.api.events.v1.Event", "api/v1": "io.k8s.api.core.v1.Event"} {
		url := index[path].(map[string]any)["serverRelativeURL"].(string)
		a := w.Do("GET", url, "").Must(200)
		apitest.Equal(t, a.Header.Get("Cache-Control"), "public, immutable")
		if a.Header.Get("Expires") == "" || !strings.Contains(url, strings.Trim(a.Header.Get("ETag"), `"`)) {
			t.Error(url, a.Header)
		}
		doc := a.Object()
		one := apitest.Field(doc, "paths").(map[string]any)["/"+path+"/namespaces/{namespace}/events/{name}"].(map[string]any)
		apitest.Equal(t, len(apitest.Field(doc, "paths").(map[string]any)), 7)
		discovery := apitest.Field(doc, "paths").(map[string]any)["/"+path+"/"].(map[string]any)
		if id := apitest.Field(discovery, "get.operationId").(string); !strings.HasSuffix(id, "V1APIResources") {
			t.Error(path, "has discovery", id)
		}
		w.Do("GET", "/"+path+"/", "").Must(200)
		var parameters []string
		for _, p := range apitest.Field(one, "patch.parameters").([]any) {
			parameters = append(parameters, p.(map[string]any)["name"].(string))
		}
		apitest.Equal(t, parameters, []string{"dryRun", "fieldManager", "fieldValidation", "force"})
		schemas := apitest.Field(doc, "components.schemas").(map[string]any)
		if schemas[schema] == nil {
			t.Error(schema, "is missing")
		}
		apitest.EveryReference(t, doc, "#/components/schemas/", schemas)

		plain := w.Do("GET", "/openapi/v3/"+path, "").Must(200)
		apitest.Equal(t, string(plain.Body), string(a.Body))
		apitest.Equal(t, plain.Header.Get("Cache-Control"), "no-cache, private")
		w.Do("GET", "/openapi/v3/"+path, "", "If-None-Match", a.Header.Get("ETag")).Must(304)
		wrong := w.Do("GET", "/openapi/v3/"+path+"?hash=ABC", "").Must(301)
		apitest.Equal(t, wrong.Header.Get("Location"), url)

		p := w.Do("GET", url, "", "Accept", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf").Must(200)
		apitest.Equal(t, p.Header.Get("Content-Type"), "application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
		var parsed openapiv3.Document
		if err := proto.Unmarshal(p.Body, &parsed); err != nil {
			t.Fatal(err)
		}
		apitest.Equal(t, len(parsed.GetPaths().GetPath()), 7)
	}
	w.Do("GET", "/openapi/v3/apis/other/v1", "").Must(404)
}

func TestOpenAPIV2(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	a := w.Do("GET", "/openapi/v2", "").Must(200)
	doc := a.Object()
	apitest.Equal(t, len(apitest.Field(doc, "paths").(map[string]any)), 14)
	apitest.EveryReference(t, doc, "#/definitions/", apitest.Field(doc, "definitions").(map[string]any))
	p := w.Do("GET", "/openapi/v2", "", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf").Must(200)
	apitest.Equal(t, p.Header.Get("Content-Type"), "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
	var parsed openapiv2.Document
	if err := proto.Unmarshal(p.Body, &parsed); err != nil {
		t.Fatal(err)
	}
	w.Do("GET", "/openapi/v2", "", "Accept", "text/html").Must(406)
}

func TestIndex(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	var index struct{ Paths []string }
	if err := json.Unmarshal(w.Do("GET", "/", "").Must(200).Body, &index); err != nil {
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
		w.Do("GET", path+parameters, "").Must(200)
	}
	if len(index.Paths) < 10 {
		t.Error(index.Paths)
	}
}
