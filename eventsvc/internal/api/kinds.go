package api

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
func kindGroups() []apiGroup {
	return []apiGroup{
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

// routeKinds refuses every method on what is named only.
func (s *Server) routeKinds(e *echo.Echo) {
	for _, g := range s.groups {
		for _, r := range g.resources {
			if len(r.Verbs) > 0 {
				continue
			}
			collections := []string{g.path() + "/" + r.Name}
			if r.Namespaced {
				collections = append(collections, g.path()+"/namespaces/:namespace/"+r.Name)
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
