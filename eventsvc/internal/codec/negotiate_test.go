package codec_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/request"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	kubectlGet   = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	metadataOnly = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// TestNegotiate: which Accept header gets which format, and which gets 406.
func TestNegotiate(t *testing.T) {
	t.Parallel()
	protobuf := codec.Format{Media: request.Protobuf}
	table := codec.Format{As: codec.Table, TableVersion: "v1"}
	for _, tt := range []struct {
		name   string
		scope  codec.Scope
		accept string
		want   codec.Format
	}{
		{"no header", codec.ScopeObject, "", codec.Format{}},
		{"anything", codec.ScopeList, "*/*", codec.Format{}},
		{"any application type beside one that is served", codec.ScopeList, "text/html,application/json;q=0.1,application/*;q=0.5", codec.Format{}},
		{"case and blanks", codec.ScopeList, " Application/JSON ; Charset=utf-8 ", codec.Format{}},
		{"client-go", codec.ScopeObject, protobufType + ",application/json", protobuf},
		{"old recorder", codec.ScopeObject, "application/json, */*", codec.Format{}},
		{"quality", codec.ScopeObject, "application/json;q=0.5," + protobufType + ";q=0.9,application/yaml;q=0.7", protobuf},
		{"the definite before the wildcard", codec.ScopeObject, "*/*," + protobufType, protobuf},
		{"quality zero is a refusal", codec.ScopeObject, protobufType + ";q=0,application/yaml", codec.Format{Media: request.YAML}},
		{"unknown types are passed over", codec.ScopeObject, "text/html,application/cbor,application/yaml;q=0.1", codec.Format{Media: request.YAML}},
		{"kubectl get", codec.ScopeList, kubectlGet, table},
		{"kubectl get, one", codec.ScopeObject, kubectlGet, table},
		{"kubectl get -w", codec.ScopeWatch, kubectlGet, table},
		{"older table", codec.ScopeList, "application/json;as=Table;v=v1beta1;g=meta.k8s.io", codec.Format{As: codec.Table, TableVersion: "v1beta1"}},
		{"table as YAML", codec.ScopeList, "application/yaml;as=Table;v=v1;g=meta.k8s.io", codec.Format{Media: request.YAML, As: codec.Table, TableVersion: "v1"}},
		{"a table of unknown version falls through", codec.ScopeList, "application/json;as=Table;v=v9;g=meta.k8s.io,application/yaml", codec.Format{Media: request.YAML}},
		{"a protobuf table falls through", codec.ScopeList, protobufType + ";as=Table;v=v1;g=meta.k8s.io,application/json", codec.Format{}},
		{"metadata in JSON", codec.ScopeObject, "application/json" + metadataOnly, codec.Format{As: codec.Partial}},
		{"metadata in protobuf", codec.ScopeObject, protobufType + metadataOnly, codec.Format{Media: request.Protobuf, As: codec.Partial}},
		{"metadata of a list", codec.ScopeList, protobufType + metadataList, codec.Format{Media: request.Protobuf, As: codec.Partial}},
		{"metadata in a watch", codec.ScopeWatch, protobufType + metadataOnly, codec.Format{Media: request.Protobuf, As: codec.Partial}},
		{"watch", codec.ScopeWatch, "application/json;stream=watch", codec.Format{}},
		{"protobuf watch", codec.ScopeWatch, protobufType + ";stream=watch", protobuf},
		{"yaml is no stream", codec.ScopeWatch, "application/yaml,application/json", codec.Format{}},
		{"another stream", codec.ScopeObject, "application/json;stream=other," + protobufType, protobuf},
		{"another server version", codec.ScopeObject, "application/json;sv=v2," + protobufType, protobuf},
		{"this server version", codec.ScopeObject, "application/json;sv=v1;profile=x;unknown=y", codec.Format{}},
		{"pretty", codec.ScopeObject, "application/json;pretty=1", codec.Format{Pretty: true}},
		{"discovery passes over transforms", codec.ScopeOther, kubectlGet, codec.Format{}},
		{"aggregated discovery elsewhere", codec.ScopeObject, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", codec.Format{}},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if tt.accept != "" {
			r.Header.Set("Accept", tt.accept)
		}
		got, err := codec.Negotiate(r, tt.scope)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestNegotiateErrors(t *testing.T) {
	t.Parallel()
	const types = "only the following media types are accepted: "
	const routed = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	const streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
	for _, tt := range []struct {
		scope         codec.Scope
		accept, query string
		code          int32
		want          string
	}{
		{codec.ScopeObject, "text/html", "", 406, routed},
		{codec.ScopeOther, "text/html", "", 406, routed},
		{codec.ScopeList, "text/html", "", 406, routed + streams},
		{codec.ScopeWatch, "text/html", "", 406, routed + streams},
		{codec.ScopeObject, "*", "", 406, routed},
		{codec.ScopeObject, "application/*", "", 406, routed},
		{codec.ScopeObject, "application/*;as=Table;v=v1;g=meta.k8s.io", "", 406, routed},
		{codec.ScopeList, "application/*;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,text/html", "", 406, routed + streams},
		{codec.ScopeObject, "*/*;as=Other;v=v1;g=meta.k8s.io", "", 406, types + "application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{codec.ScopeList, "application/json;q=0", "", 406, types + "application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{codec.ScopeObject, "application/cbor", "", 406, routed},
		{codec.ScopeWatch, "application/yaml", "", 406, types + "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"},
		{codec.ScopeList, protobufType + ";as=Table;v=v1;g=meta.k8s.io", "", 406, types + "application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{codec.ScopeOther, "application/json;as=Table;v=v1;g=meta.k8s.io", "", 406, types + "application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{codec.ScopeList, "application/json" + metadataOnly, "", 406, "you requested PartialObjectMetadata, but the requested object is a list (*core.EventList)"},
		{codec.ScopeObject, "application/json" + metadataList, "", 406, "you requested PartialObjectMetadataList, but the requested object is not a list (*core.Event)"},
		{codec.ScopeList, kubectlGet, "?includeObject=Foo", 400, `Unable to convert to Table as requested: includeObject: Invalid value: "Foo": must be 'Metadata', 'Object', 'None', or empty`},
	} {
		r := httptest.NewRequest("GET", "/"+tt.query, nil)
		r.Header.Set("Accept", tt.accept)
		_, err := codec.Negotiate(r, tt.scope)
		status, ok := err.(apierrors.APIStatus)
		if !ok || status.Status().Code != tt.code || err.Error() != tt.want {
			t.Errorf("%s%s: %v, want %d %s", tt.accept, tt.query, err, tt.code, tt.want)
		} else if details := status.Status().Details; (details != nil) != strings.HasPrefix(tt.want, routed) {
			t.Errorf("%s%s: details %v", tt.accept, tt.query, details)
		}
	}
}

// Browsers, curl and wget get indented JSON, and whoever asks with pretty.
func TestPretty(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query, agent, accept string
		scope                codec.Scope
		want                 bool
	}{
		{"", "kubectl/v1.37", "", codec.ScopeList, false},
		{"", "curl/8.5.0", "", codec.ScopeList, true},
		{"", "Wget/1.21", "", codec.ScopeList, true},
		{"", "Mozilla/5.0 (X11)", "", codec.ScopeList, true},
		{"?pretty=true", "", "", codec.ScopeList, true},
		{"?pretty=1", "", "", codec.ScopeOther, true},
		{"?pretty=false", "curl/8.5.0", "", codec.ScopeList, false},
		{"?pretty=", "curl/8.5.0", "", codec.ScopeList, true},
		{"", "curl/8.5.0", "", codec.ScopeWatch, false},
		{"?pretty=true", "", protobufType, codec.ScopeList, false},
	} {
		r := httptest.NewRequest("GET", "/"+tt.query, nil)
		r.Header.Set("User-Agent", tt.agent)
		r.Header.Set("Accept", tt.accept)
		f, err := codec.Negotiate(r, tt.scope)
		if err != nil || f.Pretty != tt.want {
			t.Errorf("%q by %q: pretty %v, %v", tt.query, tt.agent, f.Pretty, err)
		}
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		media request.Media
		watch bool
		want  string
	}{
		{request.JSON, false, "application/json"}, {request.JSON, true, "application/json"},
		{request.YAML, false, "application/yaml"}, {request.Protobuf, false, protobufType},
		{request.Protobuf, true, protobufType + ";stream=watch"},
	} {
		if got := (codec.Format{Media: tt.media}).ContentType(tt.watch); got != tt.want {
			t.Errorf("%v, watch %v: %q", tt.media, tt.watch, got)
		}
	}
}
