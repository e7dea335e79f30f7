package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	memory "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"
)

// aboutKinds are the resources that "kubectl events --for" must find, by group.
var aboutKinds = map[schema.GroupVersion]string{
	{Version: "v1"}: "pods nodes services endpoints persistentvolumeclaims persistentvolumes replicationcontrollers " +
		"serviceaccounts configmaps secrets resourcequotas limitranges podtemplates componentstatuses",
	{Group: "apps", Version: "v1"}:              "deployments replicasets statefulsets daemonsets controllerrevisions",
	{Group: "batch", Version: "v1"}:             "jobs cronjobs",
	{Group: "autoscaling", Version: "v2"}:       "horizontalpodautoscalers",
	{Group: "policy", Version: "v1"}:            "poddisruptionbudgets",
	{Group: "networking.k8s.io", Version: "v1"}: "ingresses ingressclasses networkpolicies servicecidrs ipaddresses",
	{Group: "storage.k8s.io", Version: "v1"}: "storageclasses volumeattachments csinodes csidrivers csistoragecapacities " +
		"volumeattributesclasses",
}

// named are the resources that discovery names without verbs.
func named(t *testing.T, client discovery.DiscoveryInterface) []metav1.APIResource {
	t.Helper()
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var all []metav1.APIResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if len(r.Verbs) == 0 {
				r.Group, r.Version = gv.Group, gv.Version
				all = append(all, r)
			}
		}
	}
	return all
}

// forms are the names by which kubectl knows a resource.
func forms(r metav1.APIResource) []string {
	full := r.Name + "." + r.Group
	if r.Group == "" {
		full = r.Name + "." + r.Version + "."
	}
	return append([]string{r.Name, r.SingularName, full}, r.ShortNames...)
}

// TestKindsByName: client-go resolves every name of every kind that events are
// about, over both forms of discovery, and enumerates none of them as something
// that it could list or delete.
func TestKindsByName(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, legacy := range []bool{false, true} {
		t.Run(fmt.Sprintf("legacy %v", legacy), func(t *testing.T) {
			client, err := discovery.NewDiscoveryClientForConfig(s.config())
			if err != nil {
				t.Fatal(err)
			}
			client.UseLegacyDiscovery = legacy
			cached := memory.NewMemCacheClient(client)
			mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
			found := map[schema.GroupVersion]map[string]bool{}
			for _, r := range named(t, cached) {
				want := schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
				if found[want.GroupVersion()] == nil {
					found[want.GroupVersion()] = map[string]bool{}
				}
				found[want.GroupVersion()][r.Name] = true
				if plural, singular := meta.UnsafeGuessKindToResource(want); !scheme.Scheme.Recognizes(want) || plural.Resource != r.Name || singular.Resource != r.SingularName {
					t.Errorf("Kubernetes has no kind %v with the names %q and %q", want, r.Name, r.SingularName)
				}
				for _, name := range forms(r) {
					// As kubectl does: what may be resource.version.group is tried first.
					got, err := schema.GroupVersionKind{}, error(nil)
					full, short := schema.ParseResourceArg(name)
					if full != nil {
						got, err = mapper.KindFor(*full)
					}
					if full == nil || err != nil {
						got, err = mapper.KindFor(short.WithVersion(""))
					}
					if err != nil || got != want {
						t.Errorf("%s is %v, %v; want %v", name, got, err, want)
					}
				}
			}
			for gv, names := range aboutKinds {
				for name := range strings.FieldsSeq(names) {
					if !found[gv][name] {
						t.Errorf("%s of %s is not named", name, gv)
					}
				}
			}
			preferred, err := cached.ServerPreferredResources()
			if err != nil {
				t.Fatal(err)
			}
			for _, verbs := range [][]string{{"list"}, {"delete"}, {"deletecollection"}, {"list", "watch"}, {"delete", "list", "watch"}} {
				for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: verbs}, preferred) {
					for _, r := range list.APIResources {
						if r.Name != "events" && r.Name != "namespaces" {
							t.Errorf("%v is possible with %s of %s", verbs, r.Name, list.GroupVersion)
						}
					}
				}
			}
		})
	}
}

// TestKindsAreAbsent: client-go reads of kinds that are only named fail as in a cluster
// without them, and writes as what is not allowed.
func TestKindsAreAbsent(t *testing.T) {
	t.Parallel()
	s := start(t)
	client, ctx := must(kubernetes.NewForConfig(s.config())).or(t), t.Context()
	pods, deployments := client.CoreV1().Pods("default"), client.AppsV1().Deployments("default")
	for name, read := range map[string]func() error{
		"get":              func() error { _, err := pods.Get(ctx, "x", metav1.GetOptions{}); return err },
		"list":             func() error { _, err := pods.List(ctx, metav1.ListOptions{}); return err },
		"watch":            func() error { _, err := pods.Watch(ctx, metav1.ListOptions{}); return err },
		"log":              func() error { _, err := pods.GetLogs("x", &corev1.PodLogOptions{}).DoRaw(ctx); return err },
		"proxy":            func() error { _, err := pods.ProxyGet("http", "x", "80", "healthz", nil).DoRaw(ctx); return err },
		"scale":            func() error { _, err := deployments.GetScale(ctx, "x", metav1.GetOptions{}); return err },
		"list of nodes":    func() error { _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); return err },
		"list everywhere":  func() error { _, err := client.BatchV1().Jobs("").List(ctx, metav1.ListOptions{}); return err },
		"watch everywhere": func() error { _, err := client.AppsV1().Deployments("").Watch(ctx, metav1.ListOptions{}); return err },
	} {
		if err := read(); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, write := range map[string]func() error{
		"create": func() error {
			_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
			return err
		},
		"delete": func() error { return pods.Delete(ctx, "x", metav1.DeleteOptions{}) },
		"patch": func() error {
			_, err := deployments.Patch(ctx, "x", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			return err
		},
	} {
		if err := write(); !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKubectlEventsFor: kubectl shows the events of any object, by every name
// of its kind; what it does with other resources is as before or says why not.
func TestKubectlEventsFor(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		client, err := discovery.NewDiscoveryClientForConfig(s.config())
		if err != nil {
			t.Fatal(err)
		}
		resources := named(t, client)
		for _, r := range resources {
			gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
			s.do(t, call{method: "POST", path: in(coreV1, "default"), body: fmt.Sprintf(
				`{"metadata":{"name":"x.%s"},"involvedObject":{"kind":%q,"apiVersion":%q,"name":"x"},"reason":"R","type":"Normal","message":"about %s","firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z","count":1}`,
				strings.ToLower(r.Kind), r.Kind, gv, r.Kind)}).expect(http.StatusCreated)
		}
		t.Run("every kind by every name", func(t *testing.T) {
			for _, r := range resources {
				for _, name := range forms(r) {
					out := k.want(t, args("events --namespace=default --no-headers --for "+name+"/x"), "about "+r.Kind+"\n")
					if n := strings.Count(out, "\n"); n != 1 {
						t.Errorf("%d events for %s/x:\n%s", n, name, out)
					}
				}
			}
		})
		t.Run("only what is stored is listed", func(t *testing.T) {
			for line := range strings.Lines(k.run(t, args("api-resources --no-headers -o name")...)) {
				switch name, _, _ := strings.Cut(strings.TrimSpace(line), "."); name {
				case "events", "namespaces", "selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews":
				default:
					t.Errorf("api-resources shows %s", line)
				}
			}
			k.want(t, args("api-versions"), "apps/v1\n", "events.k8s.io/v1\n", "v1\n")
			if out := k.run(t, args("auth can-i --list")...); strings.Contains(out, "pods") || strings.Contains(out, "apps") {
				t.Errorf("auth can-i --list:\n%s", out)
			}
			if out, _, code := k.try(t, args("auth can-i get pods")...); code == 0 || out != "no\n" && !strings.HasPrefix(out, "no - ") {
				t.Errorf("auth can-i get pods: %q", out)
			}
			if _, stderr, code := k.try(t, args("get all")...); code != 1 || !strings.Contains(stderr, `the server doesn't have a resource type "all"`) {
				t.Errorf("get all: code %d: %s", code, stderr)
			}
		})
		t.Run("namespaces are described", func(t *testing.T) {
			// quotas and limits, for which kubectl asks, are as in a cluster without these kinds: left out
			k.want(t, args("describe namespace default"), "Name:         default\n", "Status:       Active\n")
		})
		t.Run("the others say why not", func(t *testing.T) {
			why := "are not stored here: this server stores events only"
			pod := k.file(t, "pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")
			for _, line := range []string{
				"get pods", "get pod x", "get deploy -A", "get pods -w", "describe sts/x", "delete job x", "logs pod/x", "get nodes",
				"create --validate=ignore -f " + pod, "scale --replicas=2 deploy/x", "label pod x a=b",
			} {
				// kubectl answers for a namespace first, if it is neither there nor "default"
				if _, stderr, code := k.try(t, args(line+" --namespace=default")...); code != 1 || !strings.Contains(stderr, why) {
					t.Errorf("kubectl %s: code %d: %s", line, code, stderr)
				}
			}
			if out, stderr, code := k.try(t, args("get pod x --ignore-not-found --namespace=default")...); code != 0 || out != "" {
				t.Errorf("code %d: %s%s", code, out, stderr)
			}
		})
	})
}
