package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/client"
)

// Resource names a kind of objects whose changes become events.
type Resource struct {
	Group, Version, Name, Kind string // such as apps, v1, deployments, Deployment
	Namespaced                 bool
}

// String returns the resource as kubectl names it, such as deployments.apps.
func (r Resource) String() string {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}.String()
}

func (r Resource) apiVersion() string {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

// path returns the path of the objects of a namespace, of all objects if it is empty.
func (r Resource) path(namespace string) string {
	root := rootOf(schema.GroupVersion{Group: r.Group, Version: r.Version})
	if namespace != "" {
		root += "/namespaces/" + url.PathEscape(namespace)
	}
	return root + "/" + url.PathEscape(r.Name)
}

// rootOf returns the path of the resources of an apiVersion.
func rootOf(v schema.GroupVersion) string {
	if v.Group == "" {
		return "/api/" + url.PathEscape(v.Version)
	}
	return "/apis/" + url.PathEscape(v.Group) + "/" + url.PathEscape(v.Version)
}

// Workloads names the ready list of resources.
const Workloads = "workloads"

var workloads = []Resource{
	{"apps", "v1", "deployments", "Deployment", true}, {"apps", "v1", "statefulsets", "StatefulSet", true}, {"apps", "v1", "daemonsets", "DaemonSet", true},
	{"batch", "v1", "cronjobs", "CronJob", true}, {"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true},
	{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true}, {"", "v1", "services", "Service", true},
	{"networking.k8s.io", "v1", "ingresses", "Ingress", true}, {"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true},
	{"", "v1", "configmaps", "ConfigMap", true}, {"", "v1", "secrets", "Secret", true}, {"", "v1", "nodes", "Node", false},
	{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true},
}

// Resources returns the resources with these names: "workloads", one of that list, or NAME.GROUP as kubectl
// api-resources has it. Custom resources are looked up in the source, which is waited for.
func Resources(ctx context.Context, source *client.Client, names []string, log *slog.Logger) (all []Resource, err error) {
	var wait client.Backoff
	for _, name := range names {
		found := workloads
		if name != Workloads {
			r, err := resourceOf(ctx, source, name)
			for ; client.Retryable(err) && wait.Wait(ctx, err) == nil; r, err = resourceOf(ctx, source, name) {
				log.WarnContext(ctx, "a resource could not be looked up, trying again", "resource", name, "error", err)
			}
			if err != nil {
				return nil, err
			}
			found = []Resource{r}
		}
		for _, r := range found {
			if !slices.ContainsFunc(all, func(have Resource) bool { return have.String() == r.String() }) {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// CheckResource returns an error if a name cannot be that of a resource.
func CheckResource(name string) error {
	plural, group, _ := strings.Cut(name, ".")
	switch {
	case name == Workloads || slices.ContainsFunc(workloads, func(r Resource) bool { return r.String() == name || r.Name == name }):
	case len(validation.IsDNS1123Label(plural)) > 0 || group != "" && len(validation.IsDNS1123Subdomain(group)) > 0:
		return fmt.Errorf("%q is no resource: write %s, or names as kubectl api-resources has them, in plural and with their group, such as deployments.apps", name, Workloads)
	case name == "events" || strings.HasPrefix(name, "events."), name == "leases.coordination.k8s.io":
		return fmt.Errorf("%q changes all the time: leave the resource out", name)
	}
	return nil
}

func resourceOf(ctx context.Context, source *client.Client, name string) (Resource, error) {
	if i := slices.IndexFunc(workloads, func(r Resource) bool { return r.String() == name || r.Name == name }); i >= 0 {
		return workloads[i], nil
	}
	plural, group, _ := strings.Cut(name, ".")
	r := Resource{Group: group, Version: "v1", Name: plural}
	if group != "" {
		var g metav1.APIGroup
		if err := source.Do(ctx, client.Request{Path: "/apis/" + group}, &g); err != nil {
			return r, unknownResource(name, err)
		}
		r.Version = g.PreferredVersion.Version
	}
	var list metav1.APIResourceList
	if err := source.Do(ctx, client.Request{Path: rootOf(schema.GroupVersion{Group: r.Group, Version: r.Version})}, &list); err != nil {
		return r, unknownResource(name, err)
	}
	i := slices.IndexFunc(list.APIResources, func(a metav1.APIResource) bool { return a.Name == plural })
	if i < 0 {
		return r, unknownResource(name, nil)
	}
	if verbs := list.APIResources[i].Verbs; !slices.Contains(verbs, "list") || !slices.Contains(verbs, "watch") {
		return r, fmt.Errorf("%s cannot be listed and watched: leave the resource out", name)
	}
	r.Kind, r.Namespaced = list.APIResources[i].Kind, list.APIResources[i].Namespaced
	return r, nil
}

// unknownResource returns the error for a resource that the source does not have, or err if that is not known.
func unknownResource(name string, err error) error {
	if err != nil && client.Code(err) != http.StatusNotFound {
		return err
	}
	return fmt.Errorf("the cluster has no resource %s: write the name as kubectl api-resources has it, in plural and with the group, such as rollouts.argoproj.io", name)
}
