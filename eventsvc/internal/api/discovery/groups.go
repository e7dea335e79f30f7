package discovery

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"path"

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
// them. Kinds without a resource here are named beside the core API only, the one
// through which kubectl events reads.
func Groups(c *codec.Codec, coreAPI bool) []Group {
	// What is stored is the same object in both views, so the storage hash is too.
	events := resource("events", "event", event.Kind, "/v1/Event", true, "ev",
		"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
	namespaces := resource("namespaces", "namespace", "Namespace", "/v1/Namespace", false, "ns", "get", "list", "watch")
	var groups []Group
	if coreAPI {
		groups = []Group{{c.Group.GroupVersion(event.CoreV1), append([]metav1.APIResource{events, namespaces}, coreKinds()...)}}
	}
	groups = append(groups,
		Group{c.Group.GroupVersion(event.EventsV1), []metav1.APIResource{events}},
		Group{authenticationv1.SchemeGroupVersion, []metav1.APIResource{
			review("selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview"),
		}},
		Group{authorizationv1.SchemeGroupVersion, []metav1.APIResource{
			review("selfsubjectaccessreviews", "selfsubjectaccessreview", "SelfSubjectAccessReview"),
			review("selfsubjectrulesreviews", "selfsubjectrulesreview", "SelfSubjectRulesReview"),
		}})
	if coreAPI {
		groups = append(groups, kindGroups()...)
	}
	return groups
}

// resource describes a resource that is stored. Its storage hash tells clients which
// resources are one in the store.
func resource(plural, singular, kind, stored string, namespaced bool, short string, verbs ...string) metav1.APIResource {
	sum := sha256.Sum256([]byte(stored))
	return metav1.APIResource{
		Name: plural, SingularName: singular, Namespaced: namespaced, Kind: kind, Verbs: verbs,
		ShortNames: []string{short}, StorageVersionHash: base64.StdEncoding.EncodeToString(sum[:8]),
	}
}

// review describes a resource that is answered and not stored.
func review(plural, singular, kind string) metav1.APIResource {
	return metav1.APIResource{Name: plural, SingularName: singular, Kind: kind, Verbs: metav1.Verbs{"create"}}
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
		kind("componentstatuses", "ComponentStatus", "componentstatus", false, "cs"),
		kind("configmaps", "ConfigMap", "configmap", true, "cm"),
		kind("endpoints", "Endpoints", "endpoints", true, "ep"),
		kind("limitranges", "LimitRange", "limitrange", true, "limits"),
		kind("nodes", "Node", "node", false, "no"),
		kind("persistentvolumeclaims", "PersistentVolumeClaim", "persistentvolumeclaim", true, "pvc"),
		kind("persistentvolumes", "PersistentVolume", "persistentvolume", false, "pv"),
		kind("pods", "Pod", "pod", true, "po"),
		kind("podtemplates", "PodTemplate", "podtemplate", true),
		kind("replicationcontrollers", "ReplicationController", "replicationcontroller", true, "rc"),
		kind("resourcequotas", "ResourceQuota", "resourcequota", true, "quota"),
		kind("secrets", "Secret", "secret", true),
		kind("serviceaccounts", "ServiceAccount", "serviceaccount", true, "sa"),
		kind("services", "Service", "service", true, "svc"),
	}
}

// kindGroups are the groups that have named kinds only.
func kindGroups() []Group {
	return []Group{
		{schema.GroupVersion{Group: "apps", Version: "v1"}, []metav1.APIResource{
			kind("controllerrevisions", "ControllerRevision", "controllerrevision", true),
			kind("daemonsets", "DaemonSet", "daemonset", true, "ds"),
			kind("deployments", "Deployment", "deployment", true, "deploy"),
			kind("replicasets", "ReplicaSet", "replicaset", true, "rs"),
			kind("statefulsets", "StatefulSet", "statefulset", true, "sts"),
		}},
		{schema.GroupVersion{Group: "autoscaling", Version: "v2"}, []metav1.APIResource{
			kind("horizontalpodautoscalers", "HorizontalPodAutoscaler", "horizontalpodautoscaler", true, "hpa"),
		}},
		{schema.GroupVersion{Group: "batch", Version: "v1"}, []metav1.APIResource{
			kind("cronjobs", "CronJob", "cronjob", true, "cj"),
			kind("jobs", "Job", "job", true),
		}},
		{schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}, []metav1.APIResource{
			kind("ingressclasses", "IngressClass", "ingressclass", false),
			kind("ingresses", "Ingress", "ingress", true, "ing"),
			kind("ipaddresses", "IPAddress", "ipaddress", false, "ip"),
			kind("networkpolicies", "NetworkPolicy", "networkpolicy", true, "netpol"),
			kind("servicecidrs", "ServiceCIDR", "servicecidr", false),
		}},
		{schema.GroupVersion{Group: "policy", Version: "v1"}, []metav1.APIResource{
			kind("poddisruptionbudgets", "PodDisruptionBudget", "poddisruptionbudget", true, "pdb"),
		}},
		{schema.GroupVersion{Group: "storage.k8s.io", Version: "v1"}, []metav1.APIResource{
			kind("csidrivers", "CSIDriver", "csidriver", false),
			kind("csinodes", "CSINode", "csinode", false),
			kind("csistoragecapacities", "CSIStorageCapacity", "csistoragecapacity", true),
			kind("storageclasses", "StorageClass", "storageclass", false, "sc"),
			kind("volumeattachments", "VolumeAttachment", "volumeattachment", false),
			kind("volumeattributesclasses", "VolumeAttributesClass", "volumeattributesclass", false, "vac"),
		}},
	}
}

// kind describes a resource that is named only. Verbs is empty but not nil:
// the member is required in JSON.
func kind(plural, kind, singular string, namespaced bool, shortNames ...string) metav1.APIResource {
	return metav1.APIResource{
		Name: plural, SingularName: singular, Namespaced: namespaced, Kind: kind,
		Verbs: metav1.Verbs{}, ShortNames: shortNames,
	}
}

// routeKinds refuses every method on resources that are only named.
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

// refuseKind answers 405 with the reason. The empty Allow header says that the
// resource allows no method (RFC 9110 sections 10.2.1 and 15.5.6).
func refuseKind(of schema.GroupResource) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAllow, "")
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
			Message: fmt.Sprintf("%s are not stored here: this server stores events only, "+
				"and names the resources that events are about so that \"kubectl events --for\" finds their events", of),
			Details: &metav1.StatusDetails{Group: of.Group, Kind: of.Resource},
		}}
	}
}
