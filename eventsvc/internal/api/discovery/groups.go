package discovery

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
)

// Group is an API group as discovery shows it. Every group has one version.
type Group struct {
	schema.GroupVersion
	Resources []metav1.APIResource
}

// Path is where the group's version is served.
func (g Group) Path() string {
	if g.Group == "" {
		return "/api/" + g.Version
	}
	return "/apis/" + g.Group + "/" + g.Version
}

// Folders are the paths below which groups are served.
func Folders(groups []Group) []string {
	var folders []string
	for _, g := range groups {
		folders = append(folders, path.Dir(g.Path()))
	}
	return folders
}

// Groups returns the API groups of the server, in the order in which clients prefer
// them.
func Groups(c *codec.Codec) []Group {
	// What is stored is the same object in both views, so the storage hash is too.
	events := stored("events", event.Kind, true, "ev", "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
	namespaces := stored("namespaces", "Namespace", false, "ns", "get", "list", "watch")
	groups := []Group{
		{c.Group.GroupVersion(event.CoreV1), append([]metav1.APIResource{events, namespaces}, coreKinds()...)},
		{c.Group.GroupVersion(event.EventsV1), []metav1.APIResource{events}},
		{authenticationv1.SchemeGroupVersion, []metav1.APIResource{
			resource("selfsubjectreviews", "SelfSubjectReview", false, metav1.Verbs{"create"}),
		}},
		{authorizationv1.SchemeGroupVersion, []metav1.APIResource{
			resource("selfsubjectaccessreviews", "SelfSubjectAccessReview", false, metav1.Verbs{"create"}),
			resource("selfsubjectrulesreviews", "SelfSubjectRulesReview", false, metav1.Verbs{"create"}),
		}},
	}
	return append(groups, kindGroups()...)
}

// Aggregated returns the one group of an aggregated API server, which only reads. Its discovery has the verbs that are
// given, because controllers act on those. The short name differs from the one of the cluster's own events.
func Aggregated(c *codec.Codec, verbs []string) []Group {
	events := resource("events", event.Kind, true, verbs, "history")
	return []Group{{c.Group.GroupVersion(event.EventsV1), []metav1.APIResource{events}}}
}

// resource describes a resource.
func resource(plural, kind string, namespaced bool, verbs metav1.Verbs, shortNames ...string) metav1.APIResource {
	return metav1.APIResource{
		Name: plural, SingularName: strings.ToLower(kind), Namespaced: namespaced, Kind: kind, Verbs: verbs, ShortNames: shortNames,
	}
}

// stored describes a resource that is stored. Its storage hash tells clients which
// resources are one in the store.
func stored(plural, kind string, namespaced bool, short string, verbs ...string) metav1.APIResource {
	r := resource(plural, kind, namespaced, verbs, short)
	sum := sha256.Sum256([]byte("/v1/" + kind))
	r.StorageVersionHash = base64.StdEncoding.EncodeToString(sum[:8])
	return r
}

// Discovery names the kinds that events are usually about, because "kubectl
// events --for pod/x" asks discovery what a pod is before it lists events. They
// are named at the versions that controllers write into
// involvedObject.apiVersion, which kubectl selects by.
//
// They have no verbs: kubectl api-resources leaves such resources out, and so do
// clients that look for everything that they can list or delete. They have no
// categories, so that "kubectl get all" does not ask for them.

// coreKinds are the named kinds of the core group.
func coreKinds() []metav1.APIResource {
	return []metav1.APIResource{
		kind("componentstatuses", "ComponentStatus", false, "cs"),
		kind("configmaps", "ConfigMap", true, "cm"),
		kind("endpoints", "Endpoints", true, "ep"),
		kind("limitranges", "LimitRange", true, "limits"),
		kind("nodes", "Node", false, "no"),
		kind("persistentvolumeclaims", "PersistentVolumeClaim", true, "pvc"),
		kind("persistentvolumes", "PersistentVolume", false, "pv"),
		kind("pods", "Pod", true, "po"),
		kind("podtemplates", "PodTemplate", true),
		kind("replicationcontrollers", "ReplicationController", true, "rc"),
		kind("resourcequotas", "ResourceQuota", true, "quota"),
		kind("secrets", "Secret", true),
		kind("serviceaccounts", "ServiceAccount", true, "sa"),
		kind("services", "Service", true, "svc"),
	}
}

// kindGroups are the groups that have named kinds only.
func kindGroups() []Group {
	return []Group{
		{schema.GroupVersion{Group: "apps", Version: "v1"}, []metav1.APIResource{
			kind("controllerrevisions", "ControllerRevision", true),
			kind("daemonsets", "DaemonSet", true, "ds"),
			kind("deployments", "Deployment", true, "deploy"),
			kind("replicasets", "ReplicaSet", true, "rs"),
			kind("statefulsets", "StatefulSet", true, "sts"),
		}},
		{schema.GroupVersion{Group: "autoscaling", Version: "v2"}, []metav1.APIResource{
			kind("horizontalpodautoscalers", "HorizontalPodAutoscaler", true, "hpa"),
		}},
		{schema.GroupVersion{Group: "batch", Version: "v1"}, []metav1.APIResource{
			kind("cronjobs", "CronJob", true, "cj"),
			kind("jobs", "Job", true),
		}},
		{schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}, []metav1.APIResource{
			kind("ingressclasses", "IngressClass", false),
			kind("ingresses", "Ingress", true, "ing"),
			kind("ipaddresses", "IPAddress", false, "ip"),
			kind("networkpolicies", "NetworkPolicy", true, "netpol"),
			kind("servicecidrs", "ServiceCIDR", false),
		}},
		{schema.GroupVersion{Group: "policy", Version: "v1"}, []metav1.APIResource{
			kind("poddisruptionbudgets", "PodDisruptionBudget", true, "pdb"),
		}},
		{schema.GroupVersion{Group: "storage.k8s.io", Version: "v1"}, []metav1.APIResource{
			kind("csidrivers", "CSIDriver", false),
			kind("csinodes", "CSINode", false),
			kind("csistoragecapacities", "CSIStorageCapacity", true),
			kind("storageclasses", "StorageClass", false, "sc"),
			kind("volumeattachments", "VolumeAttachment", false),
			kind("volumeattributesclasses", "VolumeAttributesClass", false, "vac"),
		}},
	}
}

// kind describes a resource that is named only. Verbs is empty but not nil: the member
// is required in JSON.
func kind(plural, kind string, namespaced bool, shortNames ...string) metav1.APIResource {
	return resource(plural, kind, namespaced, metav1.Verbs{}, shortNames...)
}

// routeKinds refuses every request for resources that are only named.
func routeKinds(e *echo.Echo, groups []Group) {
	for _, g := range groups {
		for _, r := range g.Resources {
			if len(r.Verbs) > 0 {
				continue
			}
			collections := []string{g.Path() + "/" + r.Name}
			if r.Namespaced {
				collections = append(collections, g.Path()+"/namespaces/:namespace/"+r.Name)
			}
			refuse := refuseKind(schema.GroupResource{Group: g.Group, Resource: r.Name})
			for _, path := range collections {
				e.RouteNotFound(path, refuse)
				e.RouteNotFound(path+"/*", refuse)
			}
		}
	}
}

// refuseKind answers with the reason: reads with 404, as in a cluster without the
// resource, because clients go on after nothing else ("kubectl describe namespace" asks for
// quotas and limits); writes with 405. The empty Allow header says that the resource
// allows no method (RFC 9110 sections 10.2.1 and 15.5.6).
func refuseKind(of schema.GroupResource) echo.HandlerFunc {
	return func(c echo.Context) error {
		status := metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Message: fmt.Sprintf("%s are not stored here: this server stores events only, "+
				"and names the resources that events are about so that \"kubectl events --for\" finds their events", of),
			Details: &metav1.StatusDetails{Group: of.Group, Kind: of.Resource},
		}
		if method := c.Request().Method; method != http.MethodGet && method != http.MethodHead {
			status.Code, status.Reason = http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed
			c.Response().Header().Set(echo.HeaderAllow, "")
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
}
