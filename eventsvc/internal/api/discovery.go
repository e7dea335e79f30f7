package api

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/wire"
	"tidings.example/eventsvc/internal/event"
)

// apiGroup is one group as discovery shows it; every group has one version.
type apiGroup struct {
	schema.GroupVersion
	resources []metav1.APIResource
}

// path is where the group's version is served.
func (g apiGroup) path() string {
	if g.Group == "" {
		return "/api/" + g.Version
	}
	return "/apis/" + g.Group + "/" + g.Version
}

// apiGroups are the API groups of a server, in the order in which clients
// prefer them. Kinds without a resource here are named beside the core API only,
// the one through which kubectl events reads.
func (s *Server) apiGroups() []apiGroup {
	var groups []apiGroup
	for _, r := range s.resources {
		g := apiGroup{GroupVersion: r.groupVersion, resources: []metav1.APIResource{eventResource()}}
		if r.view == event.CoreV1 {
			g.resources = append(append(g.resources, namespaceResource()), coreKinds()...)
		}
		groups = append(groups, g)
	}
	groups = append(groups, reviewGroups()...)
	if s.CoreAPI {
		groups = append(groups, kindGroups()...)
	}
	return groups
}

// eventResource describes events, in both views alike: what is stored is the
// same object, so the storage hash is too.
func eventResource() metav1.APIResource {
	return metav1.APIResource{
		Name: "events", SingularName: "event", Namespaced: true, Kind: event.Kind,
		Verbs:              metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		ShortNames:         []string{"ev"},
		StorageVersionHash: storageHash("/v1/Event"),
	}
}

// storageHash tells clients which resources are one in the store.
func storageHash(groupVersionKind string) string {
	sum := sha256.Sum256([]byte(groupVersionKind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

func (g apiGroup) forDiscovery() metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: g.String(), Version: g.Version}
	return metav1.APIGroup{Name: g.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

// routeDocuments routes what describes the server rather than events.
func (s *Server) routeDocuments(e *echo.Echo) {
	e.GET("/", s.index)
	e.GET("/version", s.version)
	e.GET("/version/", s.version) // as the Python client asks for it
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	var core, named []apiGroup
	for _, g := range s.groups {
		resources := &metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: g.String(), APIResources: g.resources,
		}
		if g.Group == "" {
			resources.APIVersion = "" // as in the original
		}
		s.routeObject(e, g.path(), resources)
		if g.Group == "" {
			core = append(core, g)
			continue
		}
		named = append(named, g)
		group := g.forDiscovery()
		list.Groups = append(list.Groups, group)
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		s.routeObject(e, "/apis/"+g.Group, &group)
	}
	if len(core) > 0 {
		s.routeAggregated(e, "/api", core, s.apiVersions)
	}
	s.routeAggregated(e, "/apis", named, func(c echo.Context) error { return s.other(c, http.StatusOK, list) })
	s.routeOpenAPI(e)
}

// routeObject serves an object that never changes.
func (s *Server) routeObject(e *echo.Echo, path string, obj runtime.Object) {
	e.GET(path, func(c echo.Context) error { return s.other(c, http.StatusOK, obj) })
}

// apiVersions describes the core group in the legacy form.
func (s *Server) apiVersions(c echo.Context) error {
	return s.other(c, http.StatusOK, &metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
		Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
			{ClientCIDR: "0.0.0.0/0", ServerAddress: c.Request().Host},
		},
	})
}

// routeAggregated serves a discovery root: all groups with their resources at
// once for clients that ask for it, else the legacy list.
func (s *Server) routeAggregated(e *echo.Echo, path string, groups []apiGroup, legacy echo.HandlerFunc) {
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
// versions of it are passed over: clients name a fallback behind them.
func wantsAggregated(accept string) (wire.Media, bool) {
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
			return wire.JSON, params["as"] != ""
		case "application/vnd.kubernetes.protobuf":
			return wire.Protobuf, params["as"] != ""
		case "application/yaml":
			return wire.YAML, params["as"] != ""
		}
	}
	return wire.JSON, false
}

// aggregated answers with the aggregated form. Its ETag lets clients keep what
// they have.
func (s *Server) aggregated(c echo.Context, doc *discoveryv2.APIGroupDiscoveryList, media wire.Media) error {
	f := codec.Format{Media: media}
	b, err := s.codec.AppendRuntime(nil, f, doc)
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
	return s.send(c, http.StatusOK, f.ContentType(false)+aggregatedParams, b)
}

// hashOf names a document by its content, as the original does.
func hashOf(b []byte) string { return fmt.Sprintf("%X", sha512.Sum512(b)) }

// aggregate describes groups in the aggregated form.
func aggregate(groups []apiGroup) *discoveryv2.APIGroupDiscoveryList {
	list := &discoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
	}
	for _, g := range groups {
		version := discoveryv2.APIVersionDiscovery{Version: g.Version, Freshness: discoveryv2.DiscoveryFreshnessCurrent}
		for _, r := range g.resources {
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

// index lists the paths that there are.
func (s *Server) index(c echo.Context) error {
	var paths []string
	for _, r := range s.echo.Routes() {
		if r.Method == http.MethodGet && !strings.ContainsAny(r.Path, ":*") && !strings.HasSuffix(r.Path, "/") {
			paths = append(paths, r.Path)
		}
	}
	slices.Sort(paths)
	return c.JSON(http.StatusOK, metav1.RootPaths{Paths: slices.Compact(paths)})
}
