package apiserver_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
)

// What this binary does instead of tests: it informs itself of an API server's objects, and says what that takes. With
// trim, it keeps nothing but their metadata.
const informersOf, informersCA, informersTrim = "INFORMERS_OF", "INFORMERS_CA", "INFORMERS_TRIM"

// followedKinds are the kinds of the objects of TestInformers.
var followedKinds = []schema.GroupVersionResource{{Group: "apps", Version: "v1", Resource: "deployments"}, {Version: "v1", Resource: "configmaps"}}

func inform(url string) {
	client, err := dynamic.NewForConfig(&rest.Config{Host: url, BearerToken: "admin-token", QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: os.Getenv(informersCA)}})
	if err != nil {
		panic(err)
	}
	began, all := time.Now(), dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for _, kind := range followedKinds {
		informer := all.ForResource(kind).Informer()
		if os.Getenv(informersTrim) == "" {
			continue
		}
		if err := informer.SetTransform(func(o any) (any, error) {
			u := o.(*unstructured.Unstructured)
			kept := &unstructured.Unstructured{}
			kept.SetName(u.GetName())
			kept.SetNamespace(u.GetNamespace())
			kept.SetUID(u.GetUID())
			kept.SetResourceVersion(u.GetResourceVersion())
			return kept, nil
		}); err != nil {
			panic(err)
		}
	}
	all.Start(make(chan struct{}))
	all.WaitForCacheSync(make(chan struct{}))
	n := 0
	for _, kind := range followedKinds {
		n += len(all.ForResource(kind).Informer().GetStore().ListKeys())
	}
	fmt.Printf("%d objects, %s, after %s", n, memoryOf(os.Getpid()), time.Since(began).Round(time.Second/10))
}

// memoryOf says how much memory a process has and had at most.
func memoryOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // what cannot be read is not told
	var most, now int
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmHWM: %d", &most)
		_, _ = fmt.Sscanf(line, "VmRSS: %d", &now)
	}
	return fmt.Sprintf("%d MiB, %d MiB at most", now>>10, most>>10)
}

// TestInformers measures what 20,000 objects take that a mirror follows, and informers of client-go over the dynamic
// client beside it: as they are, and if they keep nothing but names and versions. Neither can tell what a field was
// before.
func TestInformers(t *testing.T) {
	const n = 20_000
	c := startCluster(t)
	c.grant(func(r *rbacv1.ClusterRole) {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"deployments", "configmaps"}, Verbs: []string{"list", "watch"}})
	})
	c.namespace("shop", nil)
	c.kubectl(changeable, "apply", "-f", "-")
	get := metav1.GetOptions{}
	d, err := c.admin.AppsV1().Deployments("shop").Get(t.Context(), "web", get)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.admin.CoreV1().ConfigMaps("shop").Get(t.Context(), "web", get)
	if err != nil {
		t.Fatal(err)
	}
	d.TypeMeta, m.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	for i := range 20 {
		d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", i), Value: fmt.Sprint("value of setting ", i)})
		m.Data[fmt.Sprint("setting-", i)] = strings.Repeat("a line of some length\n", 8)
	}
	c.store(n, func(i int) (string, runtime.Object) {
		name, uid := fmt.Sprintf("web-%05d", i), types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		if i%2 == 0 {
			var d appsv1.Deployment = *d
			d.Name, d.UID, d.ResourceVersion = name, uid, ""
			return "deployments/shop/" + name, &d
		}
		var m corev1.ConfigMap = *m
		m.Name, m.UID, m.ResourceVersion = name, uid, ""
		return "configmaps/shop/" + name, &m
	})
	h := startHistory(t, c)
	began := time.Now()
	of := launchMirror(t, c, c.url, h, "--changes=deployments,configmaps", "--changes-state="+filepath.Join(t.TempDir(), "changes.db"), "--enrich=")
	for _, name := range []string{"deployments.apps", "configmaps"} {
		eventually(t, name+" are followed", func() bool {
			version := of.metric(fmt.Sprintf(`eventsvc_mirror_version{namespace="objects/%s"}`, name))
			return version != "" && version != "0"
		})
	}
	t.Logf("mirror: %d objects, %s, after %s", n, memoryOf(of.cmd.Process.Pid), time.Since(began).Round(time.Second/10))
	of.kill()
	for name, trim := range map[string]string{"informers": "", "informers that keep metadata": "yes"} {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), informersOf+"="+c.url, informersCA+"="+filepath.Join(c.dir, "apiserver.crt"), informersTrim+"="+trim)
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("%s: %s", name, out)
	}
}
