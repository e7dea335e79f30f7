package apiserver_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// The labels that copies get.
const (
	ownerKind    = "tidings.example/owner-kind"
	ownerName    = "tidings.example/owner-name"
	node         = "tidings.example/node"
	namespaceUID = "tidings.example/namespace-uid"
)

// namespace makes a namespace and returns its uid.
func (c *cluster) namespace(name string, labels map[string]string) types.UID {
	c.t.Helper()
	made, err := c.admin.CoreV1().Namespaces().Create(c.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return made.UID
}

// controlledBy returns the reference by which a controller owns an object.
func controlledBy(kind, apiVersion string, owner metav1.ObjectMeta) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner.Name, UID: owner.UID, Controller: &yes}}
}

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec}
}

var podSpec = corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/web:1"}}, RestartPolicy: corev1.RestartPolicyAlways}

// deployment makes a Deployment, as somebody who deploys does.
func (c *cluster) deployment(namespace, name string) *appsv1.Deployment {
	c.t.Helper()
	labels := map[string]string{"app.kubernetes.io/name": name, "team": "blue"}
	d, err := c.admin.AppsV1().Deployments(namespace).Create(c.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// replicaSet makes a ReplicaSet of a Deployment, as its controller does.
func (c *cluster) replicaSet(d *appsv1.Deployment, hash string) *appsv1.ReplicaSet {
	c.t.Helper()
	labels := maps.Clone(d.Labels)
	labels["pod-template-hash"] = hash
	rs, err := c.admin.AppsV1().ReplicaSets(d.Namespace).Create(c.t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name + "-" + hash, Labels: labels, OwnerReferences: controlledBy("Deployment", "apps/v1", d.ObjectMeta)},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return rs
}

// pod makes a pod of a controller.
func (c *cluster) pod(namespace, name string, labels map[string]string, owner []metav1.OwnerReference) *corev1.Pod {
	c.t.Helper()
	p, err := c.admin.CoreV1().Pods(namespace).Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: owner}, Spec: podSpec,
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// event records an event about an object, as a kubelet does.
func (c *cluster) event(kind, apiVersion string, about metav1.ObjectMeta, reason string) *corev1.Event {
	c.t.Helper()
	ev, err := c.admin.CoreV1().Events(about.Namespace).Create(c.t.Context(), newEvent(kind, apiVersion, about, reason), metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return ev
}

var numbers atomic.Int64

func newEvent(kind, apiVersion string, about metav1.ObjectMeta, reason string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", about.Name, numbers.Add(1)), Namespace: about.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: kind, APIVersion: apiVersion, Namespace: about.Namespace, Name: about.Name, UID: about.UID},
		Reason:         reason, Message: reason + " " + about.Name, Type: "Normal", Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: "node-1"},
	}
}

// reasons returns the reasons of events, sorted.
func reasons(events []corev1.Event) []string {
	var all []string
	for _, ev := range events {
		all = append(all, ev.Reason)
	}
	slices.Sort(all)
	return all
}

// copyOf waits for the copy of an event in some version.
func (h *history) copyOf(ev *corev1.Event) (found corev1.Event) {
	h.t.Helper()
	within(h.t, time.Minute, "the copy of "+ev.Name+" at "+ev.ResourceVersion, func() bool { // a mirror that was cut off asks again after 15 s at most
		for _, at := range h.events(url.Values{"fieldSelector": {"metadata.namespace=" + ev.Namespace + ",reason=" + ev.Reason + ",involvedObject.name=" + ev.InvolvedObject.Name}}) {
			if at.Annotations["mirror.tidings.example/uid"] == string(ev.UID) && at.Annotations["mirror.tidings.example/resource-version"] == ev.ResourceVersion {
				found = at
				return true
			}
		}
		return false
	})
	return found
}

// TestRollout follows a rollout from its creation to after its end, with the rights of the manifests and no others. One
// selector finds all of it, everywhere.
func TestRollout(t *testing.T) {
	c := startCluster(t)
	c.grant(nil)
	h := startHistory(t, c)
	shop := c.namespace("shop", map[string]string{"example.com/tenant": "acme"})
	m := startMirror(t, c, c.url, h, "--copy-labels=team", "--namespace-labels=example.com/tenant")
	ctx := t.Context()

	d := c.deployment("shop", "web")
	c.event("Deployment", "apps/v1", d.ObjectMeta, "ScalingReplicaSet")
	var want []string
	want = append(want, "ScalingReplicaSet")
	var pods []*corev1.Pod
	for _, hash := range []string{"5d4f7c9b8", "6b8cd5c97"} {
		rs := c.replicaSet(d, hash)
		c.event("ReplicaSet", "apps/v1", rs.ObjectMeta, "SuccessfulCreate")
		p := c.pod("shop", rs.Name+"-x7k2p", rs.Labels, controlledBy("ReplicaSet", "apps/v1", rs.ObjectMeta))
		c.event("Pod", "v1", p.ObjectMeta, "Started")
		pods = append(pods, p)
		want = append(want, "SuccessfulCreate", "Started")
	}
	minute := time.Now().Unix() / 60
	job, err := c.admin.BatchV1().Jobs("shop").Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("backup-%d", minute), OwnerReferences: controlledBy("CronJob", "batch/v1", metav1.ObjectMeta{Name: "backup", UID: "c"})},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: podSpec.Containers, RestartPolicy: corev1.RestartPolicyNever}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.event("Job", "batch/v1", job.ObjectMeta, "SuccessfulCreate")
	of := c.pod("shop", job.Name+"-abcde", nil, controlledBy("Job", "batch/v1", job.ObjectMeta))
	c.event("Pod", "v1", of.ObjectMeta, "Pulled")

	// Everything is deleted. Kubelets report the end of pods after that.
	now := int64(0)
	for _, p := range pods {
		if err := c.admin.CoreV1().Pods("shop").Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
		c.event("Pod", "v1", p.ObjectMeta, "Killing")
		want = append(want, "Killing")
	}
	if err := c.admin.AppsV1().Deployments("shop").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)

	var got []corev1.Event
	eventually(t, "the rollout is found", func() bool {
		got = h.labelled(ownerKind + "=Deployment," + ownerName + "=web")
		return slices.Equal(reasons(got), want)
	})
	for _, ev := range got {
		if ev.Labels["app.kubernetes.io/name"] != "web" || ev.Labels["team"] != "blue" || ev.Labels[node] != "node-1" ||
			ev.Labels[namespaceUID] != string(shop) || ev.Labels["namespace.tidings.example/example.com_tenant"] != "acme" || ev.Labels["pod-template-hash"] != "" {
			t.Errorf("%s has the labels %v", ev.Name, ev.Labels)
		}
	}
	eventually(t, "the CronJob is found", func() bool {
		return slices.Equal(reasons(h.labelled(ownerKind+"=CronJob,"+ownerName+"=backup")), []string{"Pulled", "SuccessfulCreate"})
	})
	c.sameOwner(h, "Deployment/web", int64(len(want)))
	if kinds := m.unread(); len(kinds) > 0 {
		t.Errorf("%v could not be read", kinds)
	}
}

// unread are the kinds of objects that the mirror could not read, one for each line of its log that says so. A busy
// kube-apiserver records events about its own Service, which the rights of the manifests leave out, and so does this.
func (m *mirror) unread() (kinds []string) {
	for _, line := range regexp.MustCompile(`does not let these be read","kind":"([^"]*)"`).FindAllStringSubmatch(m.out.String(), -1) {
		if kind := line[1]; kind != "/v1, Kind=Service" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// sameOwner finds the events of an owner in queries, facets, groups and LogQL.
func (c *cluster) sameOwner(h *history, owner string, n int64) {
	c.t.Helper()
	var events struct{ Items []corev1.Event }
	h.get("/query/v1/events", url.Values{"fieldSelector": {"owner=" + owner}, "limit": {"100"}}, &events)
	if int64(len(events.Items)) != n {
		c.t.Errorf("a query finds %d of %d events", len(events.Items), n)
	}
	var facets struct {
		Facets map[string][]struct {
			Value string
			Count int64
		}
	}
	h.get("/query/v1/facets", url.Values{"by": {"owner"}, "fieldSelector": {"namespace=shop"}}, &facets)
	if all := facets.Facets["owner"]; len(all) == 0 || all[0].Value != owner || all[0].Count != n {
		c.t.Errorf("facets of the owner are %v", all)
	}
	var groups struct {
		Groups []struct {
			By    map[string]any
			Count int64
		}
	}
	h.get("/query/v1/groups", url.Values{"by": {"owner"}, "search": {"owner:*/web"}}, &groups)
	if len(groups.Groups) != 1 || groups.Groups[0].By["owner"] != owner || groups.Groups[0].Count != n {
		c.t.Errorf("groups by owner are %v", groups.Groups)
	}
	var loki struct {
		Data struct{ Result []struct{ Value []any } }
	}
	h.get("/loki/api/v1/query", url.Values{"query": {fmt.Sprintf("sum by (owner) (count_over_time({owner=%q}[1h]))", owner)}}, &loki)
	if r := loki.Data.Result; len(r) != 1 || r[0].Value[1] != strconv.FormatInt(n, 10) {
		c.t.Errorf("LogQL counts %v", r)
	}
}

// gate is a proxy before a cluster that can hold back what its watches of pods tell, and cut connections.
type gate struct {
	*httptest.Server
	mu   sync.Mutex
	open chan struct{} // is closed while nothing is held back
}

func newGate(t *testing.T, c *cluster) *gate {
	t.Helper()
	to, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(&rest.Config{Host: c.url, TLSClientConfig: c.config.TLSClientConfig})
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{open: make(chan struct{})}
	close(g.open)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // no answer
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path == "/api/v1/pods" && r.Request.URL.Query().Get("watch") != "" {
			r.Body = &held{r.Body, g}
		}
		return nil
	}
	g.Server = httptest.NewServer(proxy)
	t.Cleanup(func() { g.CloseClientConnections(); g.Close() })
	return g
}

// held is a body that passes while its gate is open.
type held struct {
	io.ReadCloser
	gate *gate
}

func (h *held) Read(b []byte) (int, error) {
	n, err := h.ReadCloser.Read(b)
	h.gate.mu.Lock()
	open := h.gate.open
	h.gate.mu.Unlock()
	<-open
	return n, err
}

// hold holds back what watches of pods tell until the returned function is called.
func (g *gate) hold() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	open := make(chan struct{})
	g.open = open
	return sync.OnceFunc(func() { close(open) })
}

// TestEarlyEvents records events before the mirror knows their pod. They are stored without labels, and a later version
// brings them. Labels that are there do not follow the pod.
func TestEarlyEvents(t *testing.T) {
	c := startCluster(t)
	c.grant(nil)
	c.namespace("shop", nil)
	h, g := startHistory(t, c), newGate(t, c)
	release := g.hold()
	defer release()
	m := startMirror(t, c, g.URL, h)
	owner := controlledBy("DaemonSet", "apps/v1", metav1.ObjectMeta{Name: "log", UID: "d"})
	p := c.pod("shop", "log-x7k2p", map[string]string{"app": "log"}, owner)
	ev := c.event("Pod", "v1", p.ObjectMeta, "Pulling")
	if l := h.copyOf(ev).Labels; l[ownerName] != "" || l["app"] != "" || l[namespaceUID] == "" {
		t.Errorf("labels before the pod is known: %v", l)
	}
	if n := m.metric(`eventsvc_mirror_enriched_total{result="late"}`); n == "" || n == "0" {
		t.Errorf("%q events are counted as late", n)
	}
	release()
	again := func(count int32) map[string]string {
		t.Helper()
		ev.Count, ev.LastTimestamp = count, metav1.Now()
		var err error
		if ev, err = c.admin.CoreV1().Events("shop").Update(t.Context(), ev, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return h.copyOf(ev).Labels
	}
	count := int32(1)
	eventually(t, "a later version brings the labels", func() bool {
		count++
		l := again(count)
		return l[ownerKind] == "DaemonSet" && l[ownerName] == "log" && l["app"] == "log"
	})
	if _, err := c.admin.CoreV1().Pods("shop").Patch(t.Context(), p.Name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app":"other","k8s-app":"new"},"ownerReferences":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	fresh := c.event("Pod", "v1", p.ObjectMeta, "Pulled")
	for h.copyOf(fresh).Labels["app"] != "other" { // until the mirror knows the change
		fresh = c.event("Pod", "v1", p.ObjectMeta, "Pulled")
	}
	if l := again(count + 1); l[ownerKind] != "DaemonSet" || l[ownerName] != "log" || l["app"] != "log" {
		t.Errorf("labels have followed the pod: %v", l)
	}
}

// TestRightsTakenAway takes the rights to read pods away, gives them back, and looks for the lines of the log.
func TestRightsTakenAway(t *testing.T) {
	c := startCluster(t)
	eventsOnly := func(r *rbacv1.ClusterRole) { r.Rules = r.Rules[:1] }
	c.grant(eventsOnly)
	c.namespace("shop", nil)
	h, g := startHistory(t, c), newGate(t, c)
	m := startMirror(t, c, g.URL, h)
	owner := controlledBy("DaemonSet", "apps/v1", metav1.ObjectMeta{Name: "log", UID: "d"})
	made := 0
	owned := func() bool {
		made++
		p := c.pod("shop", fmt.Sprint("log-", made), nil, owner)
		return h.copyOf(c.event("Pod", "v1", p.ObjectMeta, "Pulled")).Labels[ownerName] == "log"
	}
	off := func() int { return len(m.unread()) } // of pods and of namespaces
	on := func() int { return strings.Count(m.out.String(), "get the labels of their objects again") }
	progress := func(what string, want bool, lines func() int, n int) {
		t.Helper()
		within(t, time.Minute, what, func() bool { // it asks again after 15 s at most, and RBAC takes a moment
			return lines() == n && owned() == want
		})
	}
	progress("there is no right", false, off, 2)
	if n := m.metric(`eventsvc_mirror_enriched_total{result="off"}`); n == "" || n == "0" {
		t.Errorf("%q events are counted of which the objects could not be read", n)
	}
	c.grant(nil)
	progress("the right is given", true, on, 2)
	c.grant(eventsOnly)
	eventually(t, "the right is taken away", func() bool {
		if off() == 4 {
			return true
		}
		g.CloseClientConnections() // a watch that runs goes on
		time.Sleep(200 * time.Millisecond)
		return false
	})
	progress("the right is taken away", false, off, 4)
	c.grant(nil)
	progress("the right is given back", true, on, 4)
	if n := m.metric(`eventsvc_mirror_events_total{namespace="*",result="refused"}`); n != "0" {
		t.Errorf("%s events are refused", n)
	}
}

// requests is the metric of the requests that the API server has answered.
const requests = "apiserver_request_total"

// counted returns what a metric of the API server counts of a resource and a verb.
func (c *cluster) counted(t *testing.T, metric, resource, verb string) (n float64) {
	t.Helper()
	body, err := c.admin.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, metric+"{") && strings.Contains(line, `resource="`+resource+`"`) && strings.Contains(line, `verb="`+verb+`"`) {
			value, _ := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
			n += value
		}
	}
	return n
}

// storePods makes pods of some workloads, and returns their metadata. They are written to etcd as the API server would:
// to ask it for each would take minutes.
func (c *cluster) storePods(n, workloads int) (all []metav1.ObjectMeta) {
	c.t.Helper()
	made, now := c.pod("shop", "first", nil, nil), int64(0)
	if err := c.admin.CoreV1().Pods("shop").Delete(c.t.Context(), "first", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		c.t.Fatal(err)
	}
	made.APIVersion, made.Kind = "v1", "Pod"
	c.store(n, func(i int) (string, runtime.Object) {
		w := fmt.Sprint("workload-", i%workloads)
		rs := metav1.ObjectMeta{Name: w + "-5d4f7c9b8", UID: types.UID(w)}
		made.Name, made.UID, made.ResourceVersion = fmt.Sprintf("%s-%05d", rs.Name, i), types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), ""
		made.OwnerReferences = controlledBy("ReplicaSet", "apps/v1", rs)
		made.Labels = map[string]string{"pod-template-hash": "5d4f7c9b8", "app.kubernetes.io/name": w, "app.kubernetes.io/instance": w, "app.kubernetes.io/part-of": "shop"}
		all = append(all, *made.ObjectMeta.DeepCopy())
		return "pods/shop/" + made.Name, made
	})
	return all
}

// store writes objects to etcd, under the keys that the API server has for them.
func (c *cluster) store(n int, object func(int) (key string, o runtime.Object)) {
	c.t.Helper()
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{c.etcd}})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	encoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	const most = 100 // of one transaction
	var puts []clientv3.Op
	for i := range n {
		key, o := object(i)
		text, err := runtime.Encode(encoder, o)
		if err != nil {
			c.t.Fatal(err)
		}
		if puts = append(puts, clientv3.OpPut("/registry/"+key, string(text))); len(puts) == most || i == n-1 {
			if _, err := store.Txn(c.t.Context()).Then(puts...).Commit(); err != nil {
				c.t.Fatal(err)
			}
			puts = nil
		}
	}
}

// TestManyPods counts the requests that events cause, about 5,000 pods and about other objects. The memory of many pods
// is measured in package mirror.
func TestManyPods(t *testing.T) {
	const n, workloads, pageOfPods = 5_000, 200, 500
	c := startCluster(t)
	c.grant(nil)
	c.namespace("shop", nil)
	pods := c.storePods(n, workloads)
	d := c.deployment("shop", "web")
	h := startHistory(t, c)
	startMirror(t, c, c.url, h)
	eventually(t, "the mirror knows the pods, and watches them", func() bool { return c.counted(t, "apiserver_longrunning_requests", "pods", "WATCH") > 0 })
	var told []*corev1.Event
	for at := 0; at < n; at += 10 {
		told = append(told, c.event("Pod", "v1", pods[at], "Pulled"))
	}
	for _, ev := range told {
		if l := h.copyOf(ev).Labels; !strings.HasPrefix(l[ownerName], "workload-") {
			t.Fatalf("a pod's event has %v", l)
		}
	}
	for range 50 {
		h.copyOf(c.event("Deployment", "apps/v1", d.ObjectMeta, "ScalingReplicaSet"))
	}
	if lists := c.counted(t, requests, "pods", "LIST"); lists > n/pageOfPods+1 {
		t.Errorf("%v pages of lists of pods: they are listed once, %d a page", lists, pageOfPods)
	}
	if got := c.counted(t, requests, "pods", "GET"); got != 0 {
		t.Errorf("events about pods cause %v requests", got)
	}
	if got := c.counted(t, requests, "deployments", "GET"); got != 1 {
		t.Errorf("50 events about one Deployment cause %v requests", got)
	}
}

// recorder records what pods come to, and what became of that, while programs around it are killed.
type recorder struct {
	t        *testing.T
	c        *cluster
	all      map[types.UID]string // versions by uid
	pods     []*corev1.Pod
	dropped  int64 // changes that the rule drops
	progress atomic.Int64
}

// insist calls a request until the API server answers, which may be killed meanwhile.
func insist[T any](r *recorder, do func() (T, error)) T {
	for {
		made, err := do()
		if err == nil {
			return made
		}
		if _, answered := err.(apierrors.APIStatus); answered && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsInternalError(err) {
			r.t.Error(err)
			return made
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// event records an event of a name, once although the answer may be lost.
func (r *recorder) event(about metav1.ObjectMeta, reason string) *corev1.Event {
	ev, events := newEvent("Pod", "v1", about, reason), r.c.admin.CoreV1().Events("shop")
	return insist(r, func() (*corev1.Event, error) {
		made, err := events.Create(r.t.Context(), ev, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return events.Get(r.t.Context(), ev.Name, metav1.GetOptions{})
		}
		return made, err
	})
}

// round records the events of one more pod.
func (r *recorder) round(owner []metav1.OwnerReference) {
	ctx, n := r.t.Context(), r.progress.Load()
	pods, events := r.c.admin.CoreV1().Pods("shop"), r.c.admin.CoreV1().Events("shop")
	p := insist(r, func() (*corev1.Pod, error) {
		name := fmt.Sprint("log-", n)
		made, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owner}, Spec: podSpec}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return pods.Get(ctx, name, metav1.GetOptions{})
		}
		return made, err
	})
	for _, reason := range []string{"Scheduled", "Pulled", "Noise", "Started"} {
		ev := r.event(p.ObjectMeta, reason)
		switch reason {
		case "Noise":
			r.dropped++
			continue
		case "Pulled":
			ev.Count = 2
			ev = insist(r, func() (*corev1.Event, error) {
				made, err := events.Update(ctx, ev, metav1.UpdateOptions{})
				if apierrors.IsConflict(err) { // the answer was lost
					return events.Get(ctx, ev.Name, metav1.GetOptions{})
				}
				return made, err
			})
		}
		r.all[ev.UID] = ev.ResourceVersion
		if n%3 == 0 && reason == "Scheduled" {
			_ = events.Delete(ctx, ev.Name, metav1.DeleteOptions{})
		}
	}
	r.pods = append(r.pods, p)
	r.progress.Add(1)
}

// rulesFile has a rule that drops one reason of what tests record, and one that fits nothing.
func (c *cluster) rulesFile() string {
	return c.file("rules.yaml", "- {name: never, where: \"reason=Never,kind in (Pod,Job)\", drop: true}\n- {name: noise, where: \"type=Normal,reason=Noise\", namespaces: [\"sh*\"], drop: true}\n")
}

// TestPromises kills the mirror, the API server and the history server in turn, while events are made, changed and
// deleted about pods that come and go, with enrichment and rules. Each event has one copy in its last state, none has
// more, what the rule drops is counted once, and there is no gap. No version of a copy is behind a newer one. The
// copies have the owner of their pod, but for a few whose pod a busy machine did not show in time.
func TestPromises(t *testing.T) {
	c := startCluster(t)
	c.grant(nil)
	c.namespace("shop", nil)
	h := startHistory(t, c)
	m := startMirror(t, c, c.url, h, "--rules-file="+c.rulesFile())
	owner := controlledBy("DaemonSet", "apps/v1", metav1.ObjectMeta{Name: "log", UID: "d"})
	r := &recorder{t: t, c: c, all: map[types.UID]string{}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			r.round(owner)
		}
	})
	defer writer.Wait()
	defer stop()
	for n := range 6 {
		before := r.progress.Load()
		eventually(t, "something is written", func() bool { return r.progress.Load() > before+10 })
		switch n % 3 {
		case 0:
			m.kill()
			m.start()
		case 1:
			h.server = h.server.again(t)
			h.ready()
		case 2:
			c.server = c.server.again(t)
			c.ready()
		}
		m.current()
	}
	stop()
	writer.Wait()
	now := int64(0)
	for _, p := range r.pods {
		if err := c.admin.CoreV1().Pods("shop").Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Error(err)
		}
		ev := c.event("Pod", "v1", p.ObjectMeta, "Killing")
		r.all[ev.UID] = ev.ResourceVersion
	}
	var copies []corev1.Event
	eventually(t, "every event has its copy", func() bool {
		copies = h.events(url.Values{"fieldSelector": {"metadata.namespace=shop"}})
		n := 0
		for _, ev := range copies {
			if r.all[types.UID(ev.Annotations["mirror.tidings.example/uid"])] == ev.Annotations["mirror.tidings.example/resource-version"] {
				n++
			}
		}
		return n == len(r.all)
	})
	if len(copies) != len(r.all) {
		t.Errorf("%d copies of %d events", len(copies), len(r.all))
	}
	h.inOrder(len(r.all))
	if gaps := h.events(url.Values{"fieldSelector": {"reason=MirrorGap"}}); len(gaps) > 0 {
		t.Errorf("gaps: %v", gaps)
	}
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // it reports what it has counted
	_ = m.cmd.Wait()
	counted := int64(0)
	for _, ev := range h.events(url.Values{"fieldSelector": {"reason=EventsDropped"}}) {
		n, _ := strconv.ParseInt(ev.Annotations["mirror.tidings.example/dropped-count"], 10, 64)
		counted += n
	}
	if counted != r.dropped {
		t.Errorf("%d changes are counted as dropped, %d were", counted, r.dropped)
	}
	bare := 0
	for _, ev := range copies {
		if ev.Labels[ownerName] != "log" {
			bare++
		}
	}
	t.Logf("%d events of %d pods, %d dropped; %d copies have no owner", len(r.all), len(r.pods), r.dropped, bare)
	if bare > len(r.all)/20 {
		t.Errorf("%d of %d copies have no owner", bare, len(r.all))
	}
}

// version is one version of a copy.
type version struct {
	Revision string
	Event    struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
}

func (v version) number() uint64 {
	n, _ := strconv.ParseUint(v.Revision, 10, 64)
	return n
}

// inOrder reads the history of every copy: its versions rise.
func (h *history) inOrder(events int) {
	h.t.Helper()
	var found struct{ Items []version }
	last, versions := map[string]uint64{}, 0
	for _, p := range h.pods() {
		found.Items = nil
		h.get("/query/v1/object", url.Values{"kind": {"Pod"}, "name": {p}, "namespace": {"shop"}, "limit": {"1000"}}, &found)
		slices.SortStableFunc(found.Items, func(a, b version) int { return cmp.Compare(a.number(), b.number()) })
		for _, item := range found.Items {
			of := item.Event.Metadata
			copied, _ := strconv.ParseUint(of.Annotations["mirror.tidings.example/resource-version"], 10, 64)
			if copied < last[of.Name] {
				h.t.Errorf("%s has version %d behind %d", of.Name, copied, last[of.Name])
			}
			last[of.Name] = copied
			versions++
		}
	}
	if len(last) != events {
		h.t.Errorf("%d events have a history of %d versions, want %d", len(last), versions, events)
	}
}

// pods returns the names of the pods that copies are about.
func (h *history) pods() []string {
	h.t.Helper()
	names := map[string]bool{}
	for _, ev := range h.events(url.Values{"fieldSelector": {"metadata.namespace=shop"}}) {
		names[ev.InvolvedObject.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// TestBacklog copies events that were there before the mirror, with enrichment and rules, and says how fast that was.
func TestBacklog(t *testing.T) {
	const n, pods = 20_000, 500
	c := startCluster(t)
	c.grant(nil)
	c.namespace("shop", nil)
	var made []metav1.ObjectMeta
	for i := range pods {
		owner := controlledBy("DaemonSet", "apps/v1", metav1.ObjectMeta{Name: fmt.Sprint("log-", i%20), UID: "d"})
		made = append(made, c.pod("shop", fmt.Sprint("pod-", i), map[string]string{"app": "log"}, owner).ObjectMeta)
	}
	var work sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		work.Go(func() {
			for i := next.Add(1); i <= n && !t.Failed(); i = next.Add(1) {
				ev := newEvent("Pod", "v1", made[i%pods], "Pulled")
				if _, err := c.admin.CoreV1().Events("shop").Create(t.Context(), ev, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	h := startHistory(t, c)
	m := launchMirror(t, c, c.url, h, "--rules-file="+c.rulesFile())
	created := func() float64 {
		v, _ := strconv.ParseFloat(m.metric(`eventsvc_mirror_events_total{namespace="*",result="created"}`), 64)
		return v
	}
	eventually(t, "the mirror begins", func() bool { return created() > 0 })
	began, first := time.Now(), created()
	for last := first; last < n; {
		eventually(t, "more is copied", func() bool { return created() > last })
		last = created()
	}
	t.Logf("%.0f events a second", (n-first)/time.Since(began).Seconds())
	if owned := len(h.labelled(ownerKind + "=DaemonSet")); owned != n {
		t.Errorf("%d of %d copies have an owner", owned, n)
	}
}
