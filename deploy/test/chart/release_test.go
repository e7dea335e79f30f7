package chart_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// getter gives Helm the cluster of the test.
type getter struct{ *cluster }

// ToRESTConfig implements genericclioptions.RESTClientGetter, as the others do.
func (g getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	client, err := kubernetes.NewForConfig(g.config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(client.Discovery()), nil
}

func (g getter) ToRESTMapper() (meta.RESTMapper, error) {
	found, err := g.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return restmapper.NewDeferredDiscoveryRESTMapper(found), nil
}

func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*api.NewConfig(), &clientcmd.ConfigOverrides{Context: api.Context{Namespace: namespace}})
}

// exists reports whether the cluster has an object, and returns it.
func (c *cluster) exists(apiVersion, kind, in, name string) (*unstructured.Unstructured, bool) {
	c.t.Helper()
	objects, err := dynamic.NewForConfig(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	mapper, err := getter{c}.ToRESTMapper()
	if err != nil {
		c.t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	mapping, err := mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		c.t.Fatal(err)
	}
	from := dynamic.ResourceInterface(objects.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		from = objects.Resource(mapping.Resource).Namespace(in)
	}
	found, err := from.Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
	return found, err == nil
}

// compare returns which objects of a manifest the cluster lacks, and which it has.
func (c *cluster) compare(manifest string) (lacks, has []string) {
	c.t.Helper()
	for documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		var u unstructured.Unstructured
		err := documents.Decode(&u)
		switch {
		case errors.Is(err, io.EOF):
			return lacks, has
		case err != nil:
			c.t.Fatal(err)
		case len(u.Object) == 0:
			continue
		}
		in := u.GetNamespace()
		if in == "" {
			in = namespace
		}
		if _, ok := c.exists(u.GetAPIVersion(), u.GetKind(), in, u.GetName()); ok {
			has = append(has, u.GetKind()+" "+in+"/"+u.GetName())
		} else {
			lacks = append(lacks, u.GetKind()+" "+in+"/"+u.GetName())
		}
	}
}

// TestRelease: Helm itself installs the chart, upgrades it with other values, rolls it back and uninstalls it, at a
// kube-apiserver. What a release no longer has is gone, also from the cluster and from kube-system; what eventsvc
// writes stays, and so do the volumes.
func TestRelease(t *testing.T) { // not parallel, because kube-apiserver has global state
	c := newCluster(t)
	c.namespace(namespace)
	c.namespace("shop")
	config := action.NewConfiguration()
	if err := config.Init(getter{c}, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	chart.Metadata.KubeVersion = "" // a kube-apiserver that a test builds has no version
	said := func(r any, err error) release.Accessor {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		a, err := release.NewAccessor(r)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	whole := func(r release.Accessor) {
		t.Helper()
		if lacks, has := c.compare(r.Manifest()); len(lacks) > 0 || len(has) < 10 || r.Status() != "deployed" {
			t.Errorf("release %d is %s, has %d objects and lacks %v", r.Version(), r.Status(), len(has), lacks)
		}
	}
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.serverCertificate()}))
	values := func(aggregated bool, retention string) map[string]any {
		return map[string]any{
			"eventsvc":   map[string]any{"groupDomain": "example.com", "retention": retention},
			"aggregated": map[string]any{"enabled": aggregated, "tls": map[string]any{"caBundle": authority}},
			"viewer":     map[string]any{"enabled": true},
		}
	}
	registered := func() bool {
		_, ok := c.exists("apiregistration.k8s.io/v1", "APIService", "", "v1.events.example.com")
		return ok
	}

	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.WaitStrategy = "tidings", namespace, kube.HookOnlyStrategy
	first := said(install.Run(chart, values(true, "720h")))
	whole(first)
	for _, text := range []string{"kubectl get history -n NAMESPACE", "kubectl delete apiservice v1.events.example.com"} {
		if !registered() || !strings.Contains(first.Notes(), text) {
			t.Errorf("the API is registered: %t; the notes lack %q:\n%s", registered(), text, first.Notes())
		}
	}
	// A second release in the namespace needs names of its own. When it goes, the first one lacks nothing.
	again := func(fullname string) (any, error) {
		install := action.NewInstall(config)
		install.ReleaseName, install.Namespace, install.WaitStrategy = "second", namespace, kube.HookOnlyStrategy
		return install.Run(chart, map[string]any{"fullnameOverride": fullname, "viewer": map[string]any{"enabled": true}})
	}
	if _, err := again(""); err == nil || !strings.Contains(err.Error(), "cannot be imported into the current release") {
		t.Errorf("a second release takes the names of the first: %v", err)
	}
	beside := said(again("second"))
	whole(beside)
	gone := action.NewUninstall(config)
	gone.WaitStrategy = kube.HookOnlyStrategy
	if _, err := gone.Run("second"); err != nil {
		t.Fatal(err)
	}
	if _, has := c.compare(beside.Manifest()); len(has) > 0 {
		t.Errorf("%v are left of the second release", has)
	}
	whole(first)

	// What runs does: eventsvc writes its authority, and a controller makes the claim.
	m, err := c.admin.CoreV1().ConfigMaps(namespace).Get(t.Context(), "eventsvc-ca", metav1.GetOptions{})
	if err == nil {
		m.Data = map[string]string{"ca.crt": authority}
		_, err = c.admin.CoreV1().ConfigMaps(namespace).Update(t.Context(), m, metav1.UpdateOptions{FieldManager: "eventsvc"})
	}
	if err == nil {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data-eventsvc-0", Labels: map[string]string{"app.kubernetes.io/name": "eventsvc"}},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{"storage": resource.MustParse("10Gi")},
			}},
		}
		_, err = c.admin.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}

	upgrade := func(values map[string]any) (any, error) {
		u := action.NewUpgrade(config)
		u.Namespace, u.WaitStrategy = namespace, kube.HookOnlyStrategy
		return u.Run("tidings", chart, values)
	}
	without := values(false, "90d")
	without["mirror"] = map[string]any{"namespaces": []any{"shop"}, "enrich": []any{}}
	second := said(upgrade(without))
	whole(second)
	retention := func() string {
		set, _ := c.exists("apps/v1", "StatefulSet", namespace, "eventsvc")
		text, err := set.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if !strings.Contains(retention(), `"EVENTSVC_RETENTION","value":"90d"`) {
		t.Errorf("the upgrade has changed nothing: %s", retention())
	}
	for _, gone := range [][3]string{
		{"rbac.authorization.k8s.io/v1 ClusterRoleBinding", "", "eventsvc-aggregate"}, {"rbac.authorization.k8s.io/v1 RoleBinding", "kube-system", "eventsvc-aggregate"},
		{"rbac.authorization.k8s.io/v1 ClusterRole", "", "tidings-history-view"}, {"rbac.authorization.k8s.io/v1 ClusterRole", "", "eventsvc-mirror"},
		{"apps/v1 Deployment", namespace, "eventsvc-aggregate"},
	} {
		version, kind, _ := strings.Cut(gone[0], " ")
		if _, ok := c.exists(version, kind, gone[1], gone[2]); ok || registered() {
			t.Errorf("%v is still there, and the API is registered: %t", gone, registered())
		}
	}

	// What cannot be is refused before anything changes, or by the cluster, in words, and the release before goes on.
	for text, wrong := range map[string]map[string]any{
		"/eventsvc/retention": {"eventsvc": map[string]any{"retention": "1.5.5d"}},
		"StatefulSet":         {"eventsvc": map[string]any{"storage": map[string]any{"size": "20Gi"}}},
	} {
		if _, err := upgrade(wrong); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, want %s", wrong, err, text)
		}
	}

	// After an upgrade that the cluster has refused, Helm knows no longer what the release before had besides: going
	// back to that one first leaves nothing behind.
	for _, version := range []int{2, 1} {
		back := action.NewRollback(config)
		back.Version, back.WaitStrategy = version, kube.HookOnlyStrategy
		if err := back.Run("tidings"); err != nil {
			t.Fatal(err)
		}
	}
	if lacks, _ := c.compare(first.Manifest()); len(lacks) > 0 || !registered() || !strings.Contains(retention(), `"EVENTSVC_RETENTION","value":"720h"`) {
		t.Errorf("after the rollback: lacks %v, the API is registered: %t\n%s", lacks, registered(), retention())
	}
	if m, _ := c.exists("v1", "ConfigMap", namespace, "eventsvc-ca"); fmt.Sprint(m.Object["data"]) != fmt.Sprint(map[string]any{"ca.crt": authority}) {
		t.Errorf("what eventsvc has written is gone: %v", m.Object["data"])
	}

	// The claims of a StatefulSet grow with one that takes its place, while its pods go on.
	orphan := metav1.DeletePropagationOrphan
	if err := c.admin.AppsV1().StatefulSets(namespace).Delete(t.Context(), "eventsvc", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the StatefulSet is gone", func(context.Context) error {
		if u, ok := c.exists("apps/v1", "StatefulSet", namespace, "eventsvc"); ok && len(u.GetFinalizers()) > 0 { // which a controller removes
			_, err := c.admin.AppsV1().StatefulSets(namespace).Patch(t.Context(), "eventsvc", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			return err
		} else if ok {
			return errors.New("it is there")
		}
		return nil
	})
	larger := values(true, "720h")
	larger["eventsvc"].(map[string]any)["storage"] = map[string]any{"size": "20Gi"}
	whole(said(upgrade(larger)))

	uninstall := action.NewUninstall(config)
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	if _, err := uninstall.Run("tidings"); err != nil {
		t.Fatal(err)
	}
	for _, manifest := range []string{first.Manifest(), second.Manifest()} {
		if _, has := c.compare(manifest); len(has) > 0 || registered() {
			t.Errorf("%v are left, and the API is registered: %t", has, registered())
		}
	}
	if _, ok := c.exists("v1", "PersistentVolumeClaim", namespace, "data-eventsvc-0"); !ok {
		t.Error("the volume with the events is gone")
	}
}

// serverCertificate is the certificate of kube-apiserver, which serves as any.
func (c *cluster) serverCertificate() []byte {
	block, _ := pem.Decode(bytes.TrimSpace(c.ca))
	return block.Bytes
}
