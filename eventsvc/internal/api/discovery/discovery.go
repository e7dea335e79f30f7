// Package discovery serves what clients of a Kubernetes API server ask for beside events: its
// API groups and their resources, the OpenAPI documents and its version; what a caller may do;
// and the read-only namespaces.
//
// The descriptions are made from [Groups] and never change: OpenAPI documents when they are
// first asked for, all others when the service starts. A new API group is listed there;
// routes that are no API group need no description here.
package discovery

import (
	"crypto/sha512"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/request"
)

// server answers with the descriptions.
type server struct {
	codec *codec.Codec
	io    *httpio.IO
}

// Route serves the description of groups, and refuses every request for resources that
// are only named.
func Route(e *echo.Echo, c *codec.Codec, io *httpio.IO, groups []Group, more map[string]func() ([]byte, error)) {
	s := &server{c, io}
	s.routeDocuments(e, groups)
	routeKinds(e, groups)
	s.routeOpenAPI(e, groups, more)
}

// routeDocuments serves discovery and the version.
func (s *server) routeDocuments(e *echo.Echo, groups []Group) {
	e.GET("/version", serveVersion)
	e.GET("/version/", serveVersion) // as the Python client asks for it
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	var named []Group
	for _, g := range groups {
		resources := &metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: g.String(), APIResources: g.Resources,
		}
		if g.Group == "" {
			resources.APIVersion = "" // as in kube-apiserver
			s.routeObject(e, g.Path(), resources)
			s.routeAggregated(e, "/api", []Group{g}, s.apiVersions)
			continue
		}
		s.routeObject(e, g.Path(), resources)
		named = append(named, g)
		v := metav1.GroupVersionForDiscovery{GroupVersion: g.String(), Version: g.Version}
		group := metav1.APIGroup{Name: g.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
		list.Groups = append(list.Groups, group)
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		s.routeObject(e, "/apis/"+g.Group, &group)
	}
	s.routeAggregated(e, "/apis", named, func(c echo.Context) error { return s.io.Negotiated(c, http.StatusOK, list) })
}

// routeObject serves an object that never changes.
func (s *server) routeObject(e *echo.Echo, path string, obj runtime.Object) {
	e.GET(path, func(c echo.Context) error { return s.io.Negotiated(c, http.StatusOK, obj) })
}

// apiVersions describes the core group in the legacy form.
func (s *server) apiVersions(c echo.Context) error {
	return s.io.Negotiated(c, http.StatusOK, &metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
		Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
			{ClientCIDR: "0.0.0.0/0", ServerAddress: c.Request().Host},
		},
	})
}

// routeAggregated serves a discovery root: all groups with their resources at
// once for clients that ask for it, else the legacy list.
func (s *server) routeAggregated(e *echo.Echo, path string, groups []Group, legacy echo.HandlerFunc) {
	doc := aggregate(groups)
	e.GET(path, func(c echo.Context) error {
		c.Response().Header().Set("Vary", "Accept")
		if media, ok := wantsAggregated(c.Request().Header.Get("Accept")); ok {
			return s.aggregated(c, doc, media)
		}
		return legacy(c)
	})
}

// aggregatedParams are the Accept parameters that ask for aggregated discovery.
const aggregatedParams = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated finds the first clause of an Accept header that can be
// served, and whether it asks for the aggregated form. Other forms and
// versions of it are passed over: clients name a fallback after them.
func wantsAggregated(accept string) (request.Media, bool) {
	for clause := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		if params["as"] != "" && (params["as"] != "APIGroupDiscoveryList" || params["g"] != "apidiscovery.k8s.io" || params["v"] != "v2") {
			continue
		}
		switch media {
		case "application/json", "application/*", "*/*":
			return codec.JSON, params["as"] != ""
		case "application/vnd.kubernetes.protobuf":
			return codec.Protobuf, params["as"] != ""
		case "application/yaml":
			return codec.YAML, params["as"] != ""
		}
	}
	return codec.JSON, false
}

// aggregated answers with the aggregated form. Its ETag lets clients keep what
// they have.
func (s *server) aggregated(c echo.Context, doc *discoveryv2.APIGroupDiscoveryList, media request.Media) error {
	b, err := codec.AppendRuntime(nil, codec.Format{Media: media}, doc)
	if err != nil {
		return err
	}
	etag := fmt.Sprintf("%q", hashOf(b))
	h := c.Response().Header()
	h.Set("ETag", etag)
	h.Set("Cache-Control", "public")
	if slices.Contains(strings.Split(c.Request().Header.Get("If-None-Match"), ", "), etag) {
		return c.NoContent(http.StatusNotModified)
	}
	return s.io.Writer(c, http.StatusOK, request.MediaTypes[media]+aggregatedParams).Send(b)
}

// hashOf names a document by its content, as kube-apiserver does.
func hashOf(b []byte) string { return fmt.Sprintf("%X", sha512.Sum512(b)) }

// aggregate describes groups in the aggregated form.
func aggregate(groups []Group) *discoveryv2.APIGroupDiscoveryList {
	list := &discoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
	}
	for _, g := range groups {
		version := discoveryv2.APIVersionDiscovery{Version: g.Version, Freshness: discoveryv2.DiscoveryFreshnessCurrent}
		for _, r := range g.Resources {
			scope := discoveryv2.ScopeCluster
			if r.Namespaced {
				scope = discoveryv2.ScopeNamespace
			}
			version.Resources = append(version.Resources, discoveryv2.APIResourceDiscovery{
				Resource: r.Name, SingularResource: r.SingularName, Scope: scope,
				ResponseKind: &metav1.GroupVersionKind{Kind: r.Kind},
				Verbs:        r.Verbs, ShortNames: r.ShortNames,
			})
		}
		list.Items = append(list.Items, discoveryv2.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: g.Group},
			Versions:   []discoveryv2.APIVersionDiscovery{version},
		})
	}
	return list
}

// Index lists the paths of routers that can be read and have no parameters.
func Index(all ...*echo.Echo) echo.HandlerFunc {
	return func(c echo.Context) error {
		var paths []string
		for _, e := range all {
			for _, r := range e.Routes() {
				if r.Method == http.MethodGet && !strings.ContainsAny(r.Path, ":*") && !strings.HasSuffix(r.Path, "/") {
					paths = append(paths, r.Path)
				}
			}
		}
		slices.Sort(paths)
		return c.JSON(http.StatusOK, metav1.RootPaths{Paths: slices.Compact(paths)})
	}
}
