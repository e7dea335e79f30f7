package chart_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"tidings.example/shared/porttest"
)

// TestHelmTest runs the containers of "helm test" beside a whole release whose names have a prefix: an event is written
// and read, one of the cluster comes through the mirror, and history is read through kube-apiserver with the rights of
// an account. Each fails if what it looks for is not there.
func TestHelmTest(t *testing.T) { // not parallel, because kube-apiserver has global state
	c := newCluster(t)
	c.namespace(namespace)
	const prefix = "second-"
	all := objects(t, map[string]any{
		"fullnameOverride": strings.TrimSuffix(prefix, "-"), "cluster": "edge-1",
		"eventsvc": map[string]any{"groupDomain": "example.com"}, "aggregated": map[string]any{"enabled": true},
	})
	c.install(namespace, all, false)
	if t.Failed() {
		t.FailNow()
	}
	server, copier := &find[*appsv1.StatefulSet](t, all, prefix+"eventsvc").Spec.Template.Spec, &find[*appsv1.Deployment](t, all, prefix+"eventsvc-mirror").Spec.Template.Spec
	proxy := &find[*appsv1.Deployment](t, all, prefix+"eventsvc-aggregate").Spec.Template.Spec
	address, history := porttest.Addr(t), porttest.Addr(t)
	c.kubelet(all, server, server.Containers[0], "EVENTSVC_LISTEN_HTTPS="+address, "EVENTSVC_LISTEN_ADMIN=", "EVENTSVC_DATA_DIR="+t.TempDir())
	_, trusted := c.authority(prefix + "eventsvc-ca")
	reach := []string{"EVENTSVC_SERVER=https://" + address, "EVENTSVC_CA_FILE=" + trusted}
	c.kubelet(all, copier, copier.Containers[0], append(reach, "EVENTSVC_LISTEN_ADMIN=")...)
	c.kubelet(all, proxy, proxy.Containers[0], append(reach, "EVENTSVC_LISTEN_ADMIN=", "EVENTSVC_LISTEN_HTTPS="+history, "EVENTSVC_TLS_OWN_DIR="+t.TempDir())...)
	c.lead(prefix+"eventsvc-aggregate", "v1.events.example.com", history)

	pod := &find[*corev1.Pod](t, all, prefix+"tidings-test").Spec
	ends := func(container corev1.Container, more ...string) bool {
		p := c.kubelet(all, pod, container, more...)
		_ = p.cmd.Wait()
		t.Logf("%s: %s", container.Name, p.said())
		return p.cmd.ProcessState.Success()
	}
	for _, container := range pod.Containers {
		if ends(impatient(container), reach...) {
			t.Errorf("%s finds what nobody wrote", container.Name)
		}
	}
	scheduled := &corev1.Event{ // by a scheduler, which is not here
		ObjectMeta:     metav1.ObjectMeta{Name: "tidings-test.1", Namespace: namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: prefix + "tidings-test"},
		Reason:         "Scheduled", Type: "Normal", Message: "assigned", FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
	}
	if _, err := c.admin.CoreV1().Events(namespace).Create(t.Context(), scheduled, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, container := range append(pod.InitContainers, pod.Containers...) {
		if !ends(container, reach...) {
			t.Errorf("helm test fails: %s", container.Name)
		}
	}
	pod = &find[*corev1.Pod](t, all, prefix+"tidings-test-aggregated").Spec
	account := filepath.Join(t.TempDir(), "account")
	writeFile(t, filepath.Join(account, "ca.crt"), string(c.ca))
	writeFile(t, filepath.Join(account, "token"), c.token(namespace, pod.ServiceAccountName, "", 3600))
	reach = []string{"EVENTSVC_SERVER=" + c.config.Host, "EVENTSVC_CA_FILE=" + filepath.Join(account, "ca.crt"), "EVENTSVC_TOKEN_FILE=" + filepath.Join(account, "token")}
	eventually(t, "kube-apiserver has found the API", func(context.Context) error {
		if u, _ := c.exists("apiregistration.k8s.io/v1", "APIService", "", "v1.events.example.com"); !strings.Contains(fmt.Sprint(u.Object["status"]), "status:True") {
			return fmt.Errorf("it says %v", u.Object["status"])
		}
		return nil
	})
	if !ends(pod.Containers[0], reach...) {
		t.Error("helm test fails: history is not read through kube-apiserver")
	}
	writeFile(t, filepath.Join(account, "token"), c.token(namespace, prefix+"eventsvc", "", 3600))
	if ends(impatient(pod.Containers[0]), reach...) {
		t.Error("an account without rights reads history")
	}
}

// impatient is a container that does not wait for what it looks for.
func impatient(c corev1.Container) corev1.Container {
	c.Args = slices.Clone(c.Args)
	c.Args[slices.Index(c.Args, "--wait")+1] = "1ms"
	return c
}

// lead leads an API that is registered to an address of this machine: what services do needs nodes.
func (c *cluster) lead(service, api, address string) {
	c.t.Helper()
	ctx := c.t.Context()
	services := c.admin.CoreV1().Services(namespace)
	err := services.Delete(ctx, service, metav1.DeleteOptions{})
	if err == nil {
		_, err = services.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	_, digits, err := net.SplitHostPort(address)
	if err != nil {
		c.t.Fatal(err)
	}
	port, err := strconv.Atoi(digits)
	if err != nil {
		c.t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(c.config)
	if err == nil {
		_, err = objects.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).Patch(ctx, api,
			types.MergePatchType, []byte(`{"spec":{"service":{"port":`+strconv.Itoa(port)+`}}}`), metav1.PatchOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
