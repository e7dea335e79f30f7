package apiserver_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"

	"tidings.example/shared/porttest"
	"tidings.example/shared/waittest"
)

const (
	historyGroup = "events.tidings.example"
	historyPath  = "/apis/" + historyGroup + "/v1"
)

var manyEvents = flag.Int("events", 100_000, "events that are recorded while the memory of controllers is measured")

// within waits until something is so that takes longer, on a busy machine beyond the limit.
func within(t *testing.T, limit time.Duration, what string, is func() bool) {
	t.Helper()
	waittest.Slowly(t, limit, func() error {
		if !is() {
			return errors.New(what)
		}
		return nil
	})
}

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key}
	made := &x509.Certificate{Subject: pkix.Name{CommonName: rand.Text()}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert = a.sign(made, made, key)
	return a
}

func (a *authority) sign(made, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	made.SerialNumber, made.NotBefore, made.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, made, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// pair returns a certificate and its key in PEM, for a front proxy and for a server.
func (a *authority) pair(name string) (cert, private string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	made := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.cert, key)
	bytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Raw})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes}))
}

// aggregated is a cluster with an APIService for the events of an eventsvc.
type aggregated struct {
	*cluster
	h     *history
	front *authority
	addr  string // of eventsvc aggregate
	args  []string
	*process
	admin string // listener of eventsvc aggregate
	http  *http.Client
}

// startAggregated starts all of it. Anna may read in the namespace shop and Carl everywhere; Berta may nothing.
func startAggregated(t *testing.T) *aggregated {
	t.Helper()
	dir := t.TempDir()
	a := &aggregated{cluster: &cluster{t: t, dir: dir}, front: newAuthority(t), addr: porttest.Addr(t)}
	cert, key := a.front.pair("front-proxy-client")
	a.start(
		"--proxy-client-cert-file="+a.file("front.crt", cert), "--proxy-client-key-file="+a.file("front.key", key),
		"--requestheader-client-ca-file="+a.file("front-ca.crt", a.front.pem()), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
	)
	trusted := x509.NewCertPool()
	own, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
	if err != nil || !trusted.AppendCertsFromPEM(own) {
		t.Fatal(err)
	}
	a.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true}}
	t.Cleanup(a.http.CloseIdleConnections)
	a.grant(nil)
	for _, name := range []string{"shop", "other"} {
		a.namespace(name, nil)
	}
	a.rights()
	a.h = startHistory(t, a.cluster, "--group-domain=tidings.example")
	return a
}

// rights are those of the process and of people.
func (a *aggregated) rights() {
	a.t.Helper()
	ctx, rbac := a.t.Context(), a.cluster.admin.RbacV1()
	var failed []error
	_, err := a.cluster.admin.CoreV1().ServiceAccounts(accountNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "aggregate"}}, metav1.CreateOptions{})
	failed = append(failed, err)
	process := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "aggregate", Namespace: accountNamespace}}
	person := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}
	}
	role := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	_, err = rbac.RoleBindings("kube-system").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "aggregate"}, Subjects: process, RoleRef: role("Role", "extension-apiserver-authentication-reader"),
	}, metav1.CreateOptions{})
	failed = append(failed, err)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "aggregate"}, Subjects: process, RoleRef: role("ClusterRole", "system:auth-delegator"),
	}, metav1.CreateOptions{})
	failed = append(failed, err)
	_, err = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "history-view"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{historyGroup}, Resources: []string{"events"}, Verbs: []string{"get", "list", "watch"}}},
	}, metav1.CreateOptions{})
	failed = append(failed, err)
	_, err = rbac.RoleBindings("shop").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "anna"}, Subjects: person("anna"), RoleRef: role("ClusterRole", "history-view"),
	}, metav1.CreateOptions{})
	failed = append(failed, err)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "carl"}, Subjects: person("carl"), RoleRef: role("ClusterRole", "history-view"),
	}, metav1.CreateOptions{})
	for _, err := range append(failed, err) {
		if err != nil {
			a.t.Fatal(err)
		}
	}
}

// aggregate starts eventsvc aggregate, for the first time or after it was killed.
func (a *aggregated) aggregate() {
	a.t.Helper()
	if a.args == nil {
		serving := newAuthority(a.t)
		cert, key := serving.pair("aggregate." + accountNamespace + ".svc")
		a.admin = porttest.Addr(a.t)
		kubeconfig := a.file("aggregate-kubeconfig", a.kubeconfig(a.tokenOf("aggregate", "")))
		a.args = []string{"aggregate", "--group-domain=tidings.example", "--server=" + a.h.url, "--token-file=" + a.file("aggregate-token", a.tokenOf("aggregate", audience)),
			"--kubeconfig=" + kubeconfig, "--tls-cert-file=" + a.file("aggregate.crt", cert), "--tls-key-file=" + a.file("aggregate.key", key),
			"--listen-https=" + a.addr, "--listen-admin=" + a.admin}
		_, err := a.cluster.admin.CoreV1().Services(accountNamespace).Create(a.t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "aggregate"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		}, metav1.CreateOptions{})
		if err != nil {
			a.t.Fatal(err)
		}
		a.register(serving)
	}
	a.process = start(a.t, exec.Command(filepath.Join(bin, "eventsvc"), a.args...))
	within(a.t, time.Minute, "the APIService is available", a.available)
}

const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices"

// register makes the APIService.
func (a *aggregated) register(serving *authority) {
	a.t.Helper()
	_, digits, _ := net.SplitHostPort(a.addr)
	port, _ := strconv.Atoi(digits)
	body, _ := json.Marshal(map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + historyGroup},
		"spec": map[string]any{
			"group": historyGroup, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100, "caBundle": []byte(serving.pem()),
			"service": map[string]any{"namespace": accountNamespace, "name": "aggregate", "port": port},
		},
	})
	if err := a.cluster.admin.RESTClient().Post().AbsPath(apiServices).Body(body).Do(a.t.Context()).Error(); err != nil {
		a.t.Fatal(err)
	}
}

// available reports whether kube-apiserver has found the server to answer.
func (a *aggregated) available() bool {
	_, body := a.ask("admin-token", "GET", apiServices+"/v1."+historyGroup, "")
	var service struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	_ = json.Unmarshal([]byte(body), &service)
	for _, c := range service.Status.Conditions {
		if c.Type == "Available" {
			return c.Status == "True"
		}
	}
	return false
}

// kubeconfig is one for a token.
func (a *aggregated) kubeconfig(token string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: u, user: {token: %q}}]\n", a.url, filepath.Join(a.dir, "apiserver.crt"), token)
}

// open sends a request to kube-apiserver, with headers in pairs.
func (a *aggregated) open(ctx context.Context, token, method, path, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	return a.http.Do(req)
}

// ask sends a request and returns the answer; code 0: there was none.
func (a *aggregated) ask(token, method, path, body string, headers ...string) (code int, answer string) {
	resp, err := a.open(a.t.Context(), token, method, path, body, headers...)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// post sends a body to the event server and returns the answer; code 0: there was none.
func (h *history) post(path, media, body string) (code int, answer string) {
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Content-Type", media)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// record records an event at the event server.
func (h *history) record(namespace, name string) {
	h.t.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":%q},"involvedObject":{"kind":"Pod","namespace":%q,"name":"web-0"},"reason":"Killing","message":"m","type":"Normal"}`, name, namespace)
	if code, answer := h.post("/api/v1/namespaces/"+namespace+"/events", "application/json", body); code != http.StatusCreated {
		h.t.Fatalf("%d %s", code, answer)
	}
}

// recordMany records n events in one request.
func (h *history) recordMany(namespace string, first, n int) {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"metadata":{"namespace":%q,"name":"m.%d"},"involvedObject":{"kind":"Pod","namespace":%q,"name":"web-0"},"reason":"Killing","message":"m","type":"Normal"}`+"\n",
			namespace, first+i, namespace)
	}
	if code, answer := h.post("/bulk/v1/events", "application/x-ndjson", lines.String()); strings.Count(answer, `"code":201,`) != n {
		h.t.Errorf("not all of %d events are created: %d %.300s", n, code, answer)
	}
}

// control runs the namespace controller and the garbage collector of kube-controller-manager.
func (a *aggregated) control() {
	a.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	a.t.Cleanup(func() { cancel(); running.Wait() })
	objects, err := metadata.NewForConfig(a.config)
	if err != nil {
		a.t.Fatal(err)
	}
	typed, untyped := informers.NewSharedInformerFactory(a.cluster.admin, 0), metadatainformer.NewSharedInformerFactory(objects, 0)
	deleter := namespace.NewNamespaceController(ctx, a.cluster.admin, objects, a.cluster.admin.Discovery().ServerPreferredNamespacedResources,
		typed.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	started := make(chan struct{})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(a.cluster.admin.Discovery()))
	collector, err := garbagecollector.NewGarbageCollector(ctx, a.cluster.admin, objects, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(typed, untyped), started)
	if err != nil {
		a.t.Fatal(err)
	}
	running.Go(func() { deleter.Run(ctx, 2) })
	running.Go(func() { collector.Run(ctx, 2, 30*time.Second) })
	running.Go(func() { collector.Sync(ctx, a.cluster.admin.Discovery(), 5*time.Second) })
	typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	close(started)
}

// remove deletes a namespace and waits until it is gone. Its history is still there.
func (a *aggregated) remove(name string, limit time.Duration) {
	a.t.Helper()
	a.deleteNamespace(name)
	within(a.t, limit, "the namespace "+name+" is gone", func() bool { return a.phase(name) == "gone" })
}

func (a *aggregated) deleteNamespace(name string) {
	a.t.Helper()
	if err := a.cluster.admin.CoreV1().Namespaces().Delete(a.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// phase returns the phase of a namespace, with the reasons why it is not deleted.
func (a *aggregated) phase(name string) string {
	ns, err := a.cluster.admin.CoreV1().Namespaces().Get(a.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return "gone"
	}
	phase := string(ns.Status.Phase)
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			phase += " " + string(c.Type)
		}
	}
	return phase
}

// names are those of the events of a list.
func names(t *testing.T, body string) (all []string) {
	t.Helper()
	var list corev1.EventList
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, ev := range list.Items {
		all = append(all, ev.Name)
	}
	slices.Sort(all)
	return all
}

// TestAggregate lets people read history through kube-apiserver, while the controllers of a cluster run.
func TestAggregate(t *testing.T) {
	a := startAggregated(t)
	for _, name := range []string{"e.1", "e.2", "e.3"} {
		a.h.record("shop", name)
	}
	a.h.record("other", "o.1")
	before := a.index(t)
	a.control()
	a.aggregate()
	t.Run("People", a.testPeople)
	t.Run("Kubectl", a.testKubectl)
	t.Run("Discovery", a.testDiscovery)
	t.Run("OpenAPI", func(t *testing.T) { a.testOpenAPI(t, before) })
	lost := a.watchThenLose(t)
	t.Run("Watches", a.testWatches)
	t.Run("Memory", a.testMemory)
	t.Run("MetricsThatAreAskedFor", a.testMetrics)
	t.Run("RightTakenAway", func(t *testing.T) { a.testTakenAway(t, lost) })
	t.Run("NamespacesGo", a.testNamespaces)
	t.Run("AuthorityRotates", a.testRotation)
	t.Run("OwnAuthority", a.testOwnAuthority)
	t.Run("EventServerAway", a.testEventServerAway)
	t.Run("Away", a.testAway)
}

// testPeople asks as each of three people, with each verb, in a namespace and in all.
func (a *aggregated) testPeople(t *testing.T) {
	const in, out, one = historyPath + "/namespaces/shop/events", historyPath + "/namespaces/other/events", historyPath + "/namespaces/shop/events/e.1"
	watch := "?watch=1&timeoutSeconds=1"
	reads := map[string]map[string]int{
		"anna-token":  {in: 200, one: 200, in + watch: 200, out: 403, historyPath + "/events": 403, historyPath + "/events" + watch: 403, out + watch: 403, out + "/o.1": 403},
		"berta-token": {in: 403, one: 403, in + watch: 403, historyPath + "/events": 403},
		"carl-token":  {in: 200, one: 200, in + watch: 200, out: 200, out + "/o.1": 200, historyPath + "/events": 200, historyPath + "/events" + watch: 200, in + "/none": 404},
		"nobody":      {in: 401, historyPath: 401},
	}
	for token, paths := range reads {
		for path, want := range paths {
			if code, body := a.ask(token, "GET", path, ""); code != want {
				t.Errorf("%s GET %s: %d, want %d: %s", token, path, code, want, body)
			}
		}
	}
	_, body := a.ask("anna-token", "GET", in, "")
	if got := names(t, body); !slices.Equal(got, []string{"e.1", "e.2", "e.3"}) {
		t.Error(got)
	}
	event := `{"apiVersion":"` + historyGroup + `/v1","kind":"Event","metadata":{"name":"e.1","namespace":"shop"}}`
	for token, want := range map[string]int{"anna-token": 403, "berta-token": 403, "carl-token": 403, "admin-token": 405} {
		for _, w := range [][2]string{{"POST", in}, {"PUT", one}, {"PATCH", one}, {"DELETE", one}, {"DELETE", in}, {"DELETE", one + "?dryRun=All"}} {
			headers := []string{}
			if w[0] == "PATCH" {
				headers = []string{"Content-Type", "application/merge-patch+json"}
			}
			if code, body := a.ask(token, w[0], w[1], event, headers...); code != want {
				t.Errorf("%s %s %s: %d, want %d: %s", token, w[0], w[1], code, want, body)
			}
		}
	}
	// Whatever a client claims, kube-apiserver says who it is.
	if code, _ := a.ask("anna-token", "GET", out, "", "X-Remote-User", "carl", "X-Remote-Group", "system:masters"); code != 403 {
		t.Errorf("forged headers: %d", code)
	}
	if code, _ := a.ask("admin-token", "GET", out, "", "Impersonate-User", "anna"); code != 403 {
		t.Errorf("as anna: %d", code)
	}
	if code, _ := a.ask("admin-token", "GET", in, "", "Impersonate-User", "anna"); code != 200 {
		t.Errorf("as anna: %d", code)
	}
	// Past kube-apiserver, nothing is served: without a certificate, and with one of another authority.
	cert, key := newAuthority(t).pair("front-proxy-client")
	other, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	for what, certificate := range map[string]*tls.Certificate{"no certificate": {}, "another authority": &other} {
		if code := a.direct(t, certificate); code != 401 {
			t.Errorf("%s: %d", what, code)
		}
	}
}

// direct asks for history past kube-apiserver, as Carl with his token, and returns the status.
func (a *aggregated) direct(t *testing.T, certificate *tls.Certificate) int {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil },
	}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.addr+historyPath+"/namespaces/shop/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Remote-User", "carl")
	req.Header.Set("Authorization", "Bearer carl-token")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// kubectls are the paths of two kubectls: the newest, and this machine's.
func kubectls() map[string]string {
	all := map[string]string{"newest": filepath.Join(bin, "kubectl")}
	if path, err := exec.LookPath("kubectl"); err == nil {
		all["installed"] = path
	}
	return all
}

// kubectl runs one as the user of a token.
func (a *aggregated) kubectl(t *testing.T, program, token string, args ...string) (said string, code int) {
	t.Helper()
	file := a.file("kubeconfig-"+token, a.kubeconfig(token))
	cmd := exec.CommandContext(t.Context(), program, append([]string{"--kubeconfig=" + file, "--cache-dir=" + t.TempDir()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (a *aggregated) testKubectl(t *testing.T) {
	for version, program := range kubectls() {
		t.Run(version, func(t *testing.T) {
			for _, c := range []struct {
				token, args, want string
				code              int
			}{
				{"anna-token", "get history -n shop", "pod/web-0", 0},
				{"anna-token", "get history -n shop --field-selector metadata.name=e.2", "pod/web-0", 0},
				{"anna-token", "get history e.2 -n shop -o yaml", "apiVersion: " + historyGroup + "/v1", 0},
				{"anna-token", "describe history e.2 -n shop", "Killing", 0},
				{"anna-token", "get events.events.tidings -n shop -o name", "e.2", 0},
				{"anna-token", "auth can-i list history -n shop", "yes", 0},
				{"anna-token", "auth can-i list history -n other", "no", 1},
				{"anna-token", "get history -A", "is forbidden", 1},
				{"carl-token", "get history -A -o name", "o.1", 0},
				{"carl-token", "get history -A --chunk-size=1 -o name", "o.1", 0},
				{"carl-token", "wait history/e.2 -n shop --for=jsonpath={.reason}=Killing --timeout=10s", "condition met", 0},
				{"carl-token", "explain history", "GROUP:      " + historyGroup, 0},
				{"carl-token", "explain history.regarding.name", "FIELD: name", 0},
				{"carl-token", "explain pod", "KIND:       Pod", 0},
				{"carl-token", "explain events --api-version=events.k8s.io/v1", "GROUP:      events.k8s.io", 0},
				{"admin-token", "get events -n other", "No resources found", 0},
				{"carl-token", "api-resources --api-group=" + historyGroup, "history", 0},
				{"admin-token", "get history -n shop --as=anna -o name", "e.2", 0},
				{"admin-token", "get history -n other --as=anna", "is forbidden", 1},
				{"admin-token", "delete history e.2 -n shop", "history is read-only through the aggregation layer", 1},
				{"admin-token", "delete history --all -n shop", "history is read-only through the aggregation layer", 1},
				{"admin-token", "label history e.2 -n shop a=b", "history is read-only through the aggregation layer", 1},
			} {
				said, code := a.kubectl(t, program, c.token, strings.Fields(c.args)...)
				if code != c.code || !strings.Contains(said, c.want) || strings.Contains(said, "short name") {
					t.Errorf("%s %s: exit code %d, want %d and %q:\n%s", c.token, c.args, code, c.code, c.want, said)
				}
			}
			said, code := a.kubectl(t, program, "admin-token", "api-resources", "--verbs=list", "-o", "name")
			if code != 0 || strings.Contains(said, historyGroup) || !strings.Contains(said, "events.events.k8s.io") {
				t.Errorf("exit code %d: %s", code, said)
			}
			watch := exec.CommandContext(t.Context(), program, "--kubeconfig="+a.file("watch-"+version, a.kubeconfig("anna-token")), "--cache-dir="+t.TempDir(), "get", "history", "-n", "shop", "-w")
			seen := start(t, watch)
			eventually(t, "the watch shows what there is", func() bool { return strings.Contains(seen.out.String(), "pod/web-0") })
			shown := strings.Count(seen.out.String(), "\n")
			a.h.record("shop", "later."+version)
			eventually(t, "the watch shows what is recorded", func() bool { return strings.Count(seen.out.String(), "\n") > shown })
			seen.kill()
		})
	}
}

// testDiscovery asks what controllers ask.
func (a *aggregated) testDiscovery(t *testing.T) {
	preferred, err := a.cluster.admin.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, list := range preferred {
		for _, r := range list.APIResources {
			if strings.HasPrefix(list.GroupVersion, historyGroup) {
				found = true
				if r.Name != "events" || !slices.Equal(r.Verbs, metav1.Verbs{"get"}) {
					t.Errorf("%+v", r)
				}
			}
		}
	}
	if !found {
		t.Error("the group is not in discovery")
	}
	deletable, err := garbagecollector.GetDeletableResources(t.Context(), discovery.ToServerResourcesInterfaceWithContext(a.cluster.admin.Discovery()))
	if err != nil {
		t.Fatal(err)
	}
	quotable, err := resourcequota.GetQuotableResources(a.cluster.admin.Discovery().ServerPreferredNamespacedResources)
	if err != nil {
		t.Fatal(err)
	}
	for resource := range maps.Keys(deletable) {
		if resource.Group == historyGroup {
			t.Error("the garbage collector would watch", resource)
		}
	}
	for resource := range maps.Keys(quotable) {
		if resource.Group == historyGroup {
			t.Error("quota would count", resource)
		}
	}
	if len(deletable) < 20 || len(quotable) < 20 {
		t.Error(len(deletable), len(quotable))
	}
}

// index reads the cluster's index of OpenAPI.
func (a *aggregated) index(t *testing.T) map[string]string {
	t.Helper()
	code, body := a.ask("admin-token", "GET", "/openapi/v3", "")
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(body), &index); err != nil || code != 200 {
		t.Fatalf("%v %d %s", err, code, body)
	}
	all := map[string]string{}
	for path, at := range index.Paths {
		all[path] = at.ServerRelativeURL
	}
	return all
}

// testOpenAPI reads the index and the document of the cluster's pods a thousand times, as kubectl explain pod does
// after discovery.
func (a *aggregated) testOpenAPI(t *testing.T, before map[string]string) {
	within(t, time.Minute, "OpenAPI has the group", func() bool { return a.index(t)["apis/"+historyGroup+"/v1"] != "" })
	const own = "io.k8s.api.core.v1.Pod\""
	for n := range 1000 {
		now := a.index(t)
		delete(now, "apis/"+historyGroup+"/v1")
		if !maps.Equal(before, now) {
			t.Fatalf("read %d: the index has changed:\n%v\n%v", n, before, now)
		}
		path := now["api/v1"]
		if n%2 == 0 { // not the one whose hash the index names
			path = "/openapi/v3/api/v1"
		}
		if code, body := a.ask("admin-token", "GET", path, ""); code != 200 || !strings.Contains(body, own) {
			t.Fatalf("read %d of %s: %d %.200s", n, path, code, body)
		}
	}
	if code, body := a.ask("admin-token", "GET", "/openapi/v2", ""); code != 200 || !strings.Contains(body, own) || !strings.Contains(body, historyPath+"/namespaces/{namespace}/events") {
		t.Errorf("%d %.200s", code, body)
	}
}

// watchThenLose opens a watch of Anna and takes her right away.
func (a *aggregated) watchThenLose(t *testing.T) *http.Response {
	t.Helper()
	resp, err := a.open(a.t.Context(), "anna-token", "GET", historyPath+"/namespaces/shop/events?watch=1", "")
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	if err := a.cluster.admin.RbacV1().RoleBindings("shop").Delete(t.Context(), "anna", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return resp
}

// testTakenAway reads the end of that watch.
func (a *aggregated) testTakenAway(t *testing.T, watch *http.Response) {
	defer func() { _ = watch.Body.Close() }()
	limit := time.AfterFunc(90*time.Second, func() { _ = watch.Body.Close() })
	defer limit.Stop()
	all, err := io.ReadAll(watch.Body)
	lines := bytes.Split(bytes.TrimSpace(all), []byte("\n"))
	last := string(lines[len(lines)-1])
	if err != nil || !strings.Contains(last, `"type":"ERROR"`) || !strings.Contains(last, `"code":403`) {
		t.Errorf("%v %s", err, last)
	}
}

// testWatches has a thousand watches of many users, which all see an event.
func (a *aggregated) testWatches(t *testing.T) {
	const many = 1000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watching, saw sync.WaitGroup
	saw.Add(many)
	watching.Add(many)
	failed := make(chan error, many)
	for n := range many {
		go func() {
			var resp *http.Response
			var err error
			for { // a busy machine answers some of them 503, within five seconds, and clients try again
				resp, err = a.open(ctx, "admin-token", "GET", historyPath+"/namespaces/many/events?watch=1", "",
					"Impersonate-User", fmt.Sprint("user-", n/50), "Impersonate-Group", "system:masters")
				if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
					break
				}
				_ = resp.Body.Close()
			}
			if err == nil && resp.StatusCode != 200 {
				err = fmt.Errorf("watch: %s", resp.Status)
			}
			watching.Done()
			if err == nil {
				defer func() { _ = resp.Body.Close() }()
				_, err = bufio.NewReader(resp.Body).ReadString('\n')
			}
			if err != nil {
				failed <- err
			}
			saw.Done()
		}()
	}
	watching.Wait()
	a.h.record("many", "for.all")
	waittest.Join(t, &saw)
	close(failed)
	for err := range failed {
		t.Fatal(err)
	}
	t.Logf("with %d watches, eventsvc aggregate has %s bytes", many, a.metric("process_resident_memory_bytes"))
}

// metric returns a metric of eventsvc aggregate, "" if there is none of that name.
func (a *aggregated) metric(name string) string {
	return (&mirror{t: a.t, admin: a.admin}).metric(name)
}

// testMetrics checks that this process has its part of the metrics that the alerts use.
func (a *aggregated) testMetrics(t *testing.T) {
	alerts, err := os.ReadFile("../../observability/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\beventsvc_aggregate_[a-z_]+\b`).FindAllString(string(alerts), -1)
	if len(names) == 0 {
		t.Error("the alerts ask for nothing")
	}
	told := (&mirror{t: a.t, admin: a.admin}).metrics()
	for _, name := range names {
		if !strings.Contains(told, "# TYPE "+name+" ") {
			t.Errorf("the alerts ask for %s, which aggregate does not tell", name)
		}
	}
}

// testMemory records events while controllers run. Nobody but people reads them, and the memory of the controllers
// stays.
func (a *aggregated) testMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	asked := func() string { return a.metric(`eventsvc_aggregate_forwarded_total{result="answered"}`) }
	before, requests := heap(), asked()
	var writing sync.WaitGroup
	const together = 1000
	for w := range 2 {
		writing.Go(func() {
			for n := w * together; n < *manyEvents; n += 2 * together {
				a.h.recordMany("many", n, min(together, *manyEvents-n))
			}
		})
	}
	writing.Wait()
	http.DefaultClient.CloseIdleConnections()
	after := heap()
	t.Logf("heap of the controllers and this test: %d before and %d after %d events", before, after, *manyEvents)
	if after > before+20<<20 {
		t.Errorf("the heap has grown from %d to %d", before, after)
	}
	if now := asked(); now != requests {
		t.Errorf("somebody has read events: %s requests before, %s after", requests, now)
	}
}

// testNamespaces deletes namespaces while all is well, while the event server is full or away, and while this server
// restarts.
func (a *aggregated) testNamespaces(t *testing.T) {
	t.Run("Full", a.testFull)
	for _, name := range []string{"well", "away", "restart"} {
		a.namespace(name, nil)
		a.h.record(name, name+".1")
		a.h.record(name, name+".2")
	}
	a.remove("well", 30*time.Second)
	a.h.server.kill()
	a.remove("away", 30*time.Second)
	if code, body := a.ask("carl-token", "GET", historyPath+"/namespaces/away/events", ""); code != 503 || !strings.Contains(body, "the event server does not answer") {
		t.Errorf("%d %s", code, body)
	}
	for version, program := range kubectls() {
		if said, code := a.kubectl(t, program, "admin-token", "api-resources"); code != 0 || !strings.Contains(said, "history") {
			t.Errorf("%s: exit code %d: %s", version, code, said)
		}
	}
	if !a.available() {
		t.Error("the APIService depends on the event server")
	}
	a.h.server = a.h.server.again(a.t)
	a.h.ready()
	a.process.kill()
	a.deleteNamespace("restart")
	a.aggregate()
	within(t, time.Minute, "the namespace is gone after the restart", func() bool { return a.phase("restart") == "gone" })
	for _, name := range []string{"well", "away", "restart"} {
		within(t, time.Minute, "history is answered", func() bool {
			code, _ := a.ask("carl-token", "GET", historyPath+"/namespaces/"+name+"/events", "")
			return code == 200
		})
		_, body := a.ask("carl-token", "GET", historyPath+"/namespaces/"+name+"/events", "")
		if got := names(t, body); !slices.Equal(got, []string{name + ".1", name + ".2"}) {
			t.Errorf("of %s there is %v", name, got)
		}
	}
}

// testFull deletes a namespace while the disk of the event server is full. Its history can be read.
func (a *aggregated) testFull(t *testing.T) {
	usual, dir := a.h.server, t.TempDir()
	mounted := func(script string, args ...string) *exec.Cmd { // in a mount namespace of the process alone
		script = `mount -t tmpfs -o size=200m none "$0" && ` + script
		return exec.Command("unshare", append([]string{"--mount", "--map-root-user", "sh", "-c", script, dir}, args...)...)
	}
	if out, err := mounted("true").CombinedOutput(); err != nil {
		t.Fatalf("this machine lets nobody mount: %v %s", err, out)
	}
	usual.kill()
	a.h.server = start(a.t, mounted(`exec "$@" --data-dir="$0"`, usual.cmd.Args...))
	a.h.ready()
	a.namespace("full", nil)
	a.h.record("full", "full.1")
	a.h.record("full", "full.2")
	disk := fmt.Sprintf("/proc/%d/root%s/rest", a.h.server.cmd.Process.Pid, dir)
	rest, err := os.Create(disk)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1<<20); err == nil; {
		_, err = rest.Write(block)
	}
	_ = rest.Close() // the disk is full
	within(t, time.Minute, "the event server is full", a.h.refusesWrites)
	a.remove("full", 30*time.Second)
	_, body := a.ask("carl-token", "GET", historyPath+"/namespaces/full/events", "")
	if got := names(t, body); !slices.Equal(got, []string{"full.1", "full.2"}) {
		t.Errorf("while the event server is full there is %v", got)
	}
	a.h.server.kill()
	a.h.server = usual.again(a.t)
	a.h.ready()
}

// refusesWrites reports whether the event server has no space left for an event.
func (h *history) refusesWrites() bool {
	code, answer := h.post("/api/v1/namespaces/more/events", "application/json",
		`{"metadata":{"generateName":"more-"},"involvedObject":{"kind":"Pod","namespace":"more","name":"web-0"},"reason":"Killing","type":"Normal"}`)
	return code == http.StatusServiceUnavailable && strings.Contains(answer, "no space left")
}

// testRotation changes the authority of the front proxy, as an administrator does: both, the new certificate, the new
// one alone.
func (a *aggregated) testRotation(t *testing.T) {
	before, err := tls.LoadX509KeyPair(filepath.Join(a.dir, "front.crt"), filepath.Join(a.dir, "front.key"))
	if err != nil {
		t.Fatal(err)
	}
	if code := a.direct(t, &before); code != 200 {
		t.Fatalf("the first certificate: %d", code)
	}
	next := newAuthority(t)
	refused := 0
	asks := func() bool {
		code, _ := a.ask("carl-token", "GET", historyPath+"/namespaces/shop/events?limit=1", "")
		if code != 200 {
			refused++
		}
		return code == 200
	}
	trusts := func(want ...*authority) func() bool {
		return func() bool {
			asks()
			m, err := a.cluster.admin.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
			if err != nil {
				return false
			}
			for _, w := range want {
				if !strings.Contains(m.Data["requestheader-client-ca-file"], strings.TrimSpace(w.pem())) {
					return false
				}
			}
			return true
		}
	}
	a.file("front-ca.crt", a.front.pem()+next.pem())
	within(t, 2*time.Minute, "both authorities are in the ConfigMap", trusts(a.front, next))
	cert, key := next.pair("front-proxy-client")
	a.file("front.key", key)
	a.file("front.crt", cert)
	a.file("front-ca.crt", next.pem())
	// kube-apiserver adds authorities to the ConfigMap and never removes them: it is made again.
	maps := a.cluster.admin.CoreV1().ConfigMaps("kube-system")
	deleted := time.Time{}
	within(t, 3*time.Minute, "only the new authority is trusted", func() bool {
		if !asks() {
			return false
		}
		m, err := maps.Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
		if err == nil && !strings.Contains(m.Data["requestheader-client-ca-file"], strings.TrimSpace(a.front.pem())) {
			return true
		}
		if err == nil && time.Since(deleted) > 5*time.Second {
			deleted = time.Now()
			_ = maps.Delete(t.Context(), m.Name, metav1.DeleteOptions{}) // or it is gone already
		}
		return false
	})
	eventually(t, "the old certificate counts no more", func() bool { return a.direct(t, &before) == 401 })
	for range 20 {
		asks()
	}
	if refused > 0 {
		t.Errorf("%d requests were refused while the authority changed", refused)
	}
}

// testOwnAuthority starts the aggregated server with a certificate of its own making: kube-apiserver trusts it by
// itself.
func (a *aggregated) testOwnAuthority(t *testing.T) {
	ctx, rbac := t.Context(), a.cluster.admin.RbacV1()
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "authority"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apiregistration.k8s.io"}, Resources: []string{"apiservices"}, ResourceNames: []string{"v1." + historyGroup}, Verbs: []string{"get", "update"}},
	}}, metav1.CreateOptions{})
	if err == nil {
		_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "authority"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "aggregate", Namespace: accountNamespace}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "authority"},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	a.process.kill()
	args := slices.DeleteFunc(slices.Clone(a.args), func(arg string) bool { return strings.HasPrefix(arg, "--tls-") })
	a.process = start(a.t, exec.Command(filepath.Join(bin, "eventsvc"), append(args, "--tls-own-dir="+filepath.Join(a.dir, "own"), "--tls-hosts=aggregate."+accountNamespace+".svc")...))
	eventually(t, "people read again", func() bool {
		code, _ := a.ask("carl-token", "GET", historyPath+"/namespaces/shop/events", "")
		return code == http.StatusOK
	})
}

// testEventServerAway: kubectl says soon that an event server hangs, or is not there. It would wait for a minute if it
// were asked to try again.
func (a *aggregated) testEventServerAway(t *testing.T) {
	for _, how := range []func() error{
		func() error { return a.h.server.cmd.Process.Signal(syscall.SIGSTOP) },
		func() error { a.h.server.kill(); return nil },
	} {
		if err := how(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), "--kubeconfig="+a.file("kubeconfig-away", a.kubeconfig("carl-token")), "--cache-dir="+t.TempDir(), "get", "history", "-n", "shop")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "the event server does not answer") {
			t.Errorf("%v: %s", err, out)
		}
	}
	a.h.server = a.h.server.again(a.t)
	a.h.ready()
}

// testAway has no aggregated server at all: the harm that the manual tells, and the one command that ends it.
func (a *aggregated) testAway(t *testing.T) {
	a.namespace("stuck", nil)
	a.h.record("stuck", "stuck.1")
	a.process.kill()
	within(t, 2*time.Minute, "the APIService is unavailable", func() bool { return !a.available() })
	a.deleteNamespace("stuck")
	within(t, time.Minute, "the namespace is stuck", func() bool { return strings.Contains(a.phase("stuck"), "NamespaceDeletionDiscoveryFailure") })
	for version, program := range kubectls() {
		said, code := a.kubectl(t, program, "admin-token", "api-resources")
		if !strings.Contains(said, "deployments") || strings.Contains(said, "history") {
			t.Errorf("%s: exit code %d: %s", version, code, said)
		}
	}
	if said, code := a.kubectl(t, filepath.Join(bin, "kubectl"), "admin-token", "delete", "apiservice", "v1."+historyGroup); code != 0 {
		t.Fatal(said)
	}
	within(t, 2*time.Minute, "the namespace is gone", func() bool { return a.phase("stuck") == "gone" })
	var list corev1.EventList
	a.h.get("/api/v1/namespaces/stuck/events", nil, &list)
	if len(list.Items) != 1 {
		t.Errorf("%d events are left", len(list.Items))
	}
}
