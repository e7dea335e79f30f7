// Package apiserver_test runs eventsvc mirror and eventsvc aggregate beside a real kube-apiserver, on an etcd in this
// process, with controllers of kube-controller-manager.
//
// It has a module of its own, because the two have hundreds of dependencies. The first build takes about twenty minutes
// of one core.
package apiserver_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"go.etcd.io/etcd/server/v3/embed"
	"sigs.k8s.io/yaml"

	"tidings.example/shared/porttest"
	"tidings.example/shared/waittest"
)

// bin has the programs that are tested.
var bin string

func TestMain(m *testing.M) {
	if url := os.Getenv(informersOf); url != "" {
		inform(url)
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "apiserver-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin = dir
	for _, build := range []*exec.Cmd{
		exec.Command("go", "build", "-o", dir+"/", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kubectl"),
		exec.Command("go", "build", "-C", "../../../eventsvc", "-o", dir+"/eventsvc", "."),
	} {
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s", build, err, out)
			return 1
		}
	}
	return m.Run()
}

// cluster is a kube-apiserver with RBAC, and nothing else of a cluster: tests write what controllers and kubelets
// would.
type cluster struct {
	t      *testing.T
	dir    string
	url    string
	etcd   string                // its address
	admin  *kubernetes.Clientset // of the group system:masters
	config *rest.Config
	server *process
}

// eventually waits until something is so, for longer on a machine that others keep busy. What waits for work of unknown
// length asks for progress instead.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	waittest.Until(t, what, is)
}

// startCluster starts etcd and kube-apiserver.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	return (&cluster{t: t, dir: t.TempDir()}).start()
}

// start starts both, with more flags of kube-apiserver.
func (c *cluster) start(flags ...string) *cluster {
	t := c.t
	t.Helper()
	c.etcd = startEtcd(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	accounts := c.file("accounts.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	tokens := c.file("tokens.csv", "admin-token,admin,1,system:masters\nanna-token,anna,2\nberta-token,berta,3\ncarl-token,carl,4\n")
	addr := porttest.Addr(t)
	_, port, _ := net.SplitHostPort(addr)
	c.url = "https://" + addr
	c.server = start(t, exec.Command(filepath.Join(bin, "kube-apiserver"), append(flags,
		"--etcd-servers="+c.etcd, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+c.dir,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+accounts, "--service-account-signing-key-file="+accounts,
		"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none", "--v=0")...))
	c.config = &rest.Config{
		Host: c.url, BearerToken: "admin-token", QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(c.dir, "apiserver.crt")},
	}
	c.ready()
	return c
}

// ready waits until the API server is.
func (c *cluster) ready() {
	c.t.Helper()
	deadline := time.Now().Add(2 * time.Minute) // on a busy machine
	for {
		admin, err := kubernetes.NewForConfig(c.config)
		if err == nil {
			if _, err = admin.RESTClient().Get().AbsPath("/readyz").DoRaw(c.t.Context()); err == nil {
				if c.admin == nil {
					c.admin = admin
				}
				return
			}
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("kube-apiserver is not ready: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func startEtcd(t *testing.T) string {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.UnsafeNoFsync = t.TempDir(), "fatal", true // its end is an error to it
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls, c.AdvertisePeerUrls = free, free, free, free
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	etcd, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	<-etcd.Server.ReadyNotify()
	return "http://" + etcd.Clients[0].Addr().String()
}

// file writes a file and returns its path.
func (c *cluster) file(name, text string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// output is what a process has said.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// process is a program that runs until the test ends, or until it is killed.
type process struct {
	cmd *exec.Cmd
	out *output
}

func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd, &output{}}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if text := p.out.String(); t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), text[max(0, len(text)-6000):])
		}
	})
	return p
}

// again kills the program and starts it again.
func (p *process) again(t *testing.T) *process {
	t.Helper()
	p.kill()
	return start(t, exec.Command(p.cmd.Path, p.cmd.Args[1:]...))
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// account is the namespace and name of the mirror's service account in the manifests.
const accountNamespace, account = "tidings", "eventsvc-mirror"

// token returns a token of the mirror's service account.
func (c *cluster) token(audience string) string {
	c.t.Helper()
	return c.tokenOf(account, audience)
}

// tokenOf returns a token of a service account.
func (c *cluster) tokenOf(account, audience string) string {
	c.t.Helper()
	hour := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	answer, err := c.admin.CoreV1().ServiceAccounts(accountNamespace).CreateToken(c.t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.Status.Token
}

// grant applies the account and the rights of the manifests. change may take rights away.
func (c *cluster) grant(change func(*rbacv1.ClusterRole)) {
	c.t.Helper()
	ctx := c.t.Context()
	_, _ = c.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: accountNamespace}}, metav1.CreateOptions{}) // may be there
	manifest, err := os.ReadFile("../../kubernetes/mirror/rbac.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var kind metav1.TypeMeta
		var role rbacv1.ClusterRole
		var binding rbacv1.ClusterRoleBinding
		into := map[string]any{"ClusterRole": &role, "ClusterRoleBinding": &binding}
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			c.t.Fatal(err)
		}
		if kind.Kind == "ServiceAccount" {
			_, _ = c.admin.CoreV1().ServiceAccounts(accountNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), into[kind.Kind]); err != nil {
			c.t.Fatalf("%s: %v", kind.Kind, err)
		}
		switch kind.Kind {
		case "ClusterRole":
			if change != nil {
				change(&role)
			}
			if _, err = c.admin.RbacV1().ClusterRoles().Create(ctx, &role, metav1.CreateOptions{}); err != nil {
				_, err = c.admin.RbacV1().ClusterRoles().Update(ctx, &role, metav1.UpdateOptions{})
			}
		case "ClusterRoleBinding":
			_, _ = c.admin.RbacV1().ClusterRoleBindings().Create(ctx, &binding, metav1.CreateOptions{})
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// history is an eventsvc that trusts the tokens of the cluster.
type history struct {
	t          *testing.T
	url, token string
	data       string // its directory
	server     *process
}

const audience = "eventsvc"

func startHistory(t *testing.T, c *cluster, args ...string) *history {
	t.Helper()
	issuers := c.file("issuers.yaml", fmt.Sprintf("- {issuer: \"https://kubernetes.default.svc\", audiences: [%s], jwksURL: %q, caFile: %q, bearerTokenFile: %q}\n",
		audience, c.url+"/openid/v1/jwks", filepath.Join(c.dir, "apiserver.crt"), c.file("jwks-token", "admin-token")))
	h := &history{t: t, url: "http://" + porttest.Addr(t), token: c.token(audience), data: t.TempDir()}
	h.server = start(t, exec.Command(filepath.Join(bin, "eventsvc"), append([]string{"serve", "--issuers-file=" + issuers, "--data-dir=" + h.data,
		"--listen-http=" + strings.TrimPrefix(h.url, "http://"), "--listen-admin=", "--log-level=warn"}, args...)...))
	h.ready()
	return h
}

// ready waits until the server is.
func (h *history) ready() {
	h.t.Helper()
	eventually(h.t, "eventsvc is ready", func() bool {
		resp, err := http.Get(h.url + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// get decodes an answer of the history server.
func (h *history) get(path string, query url.Values, into any) {
	h.t.Helper()
	if err := h.try(path, query, into); err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) try(path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(context.WithoutCancel(h.t.Context()), http.MethodGet, h.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s?%s: %s %s", path, query.Encode(), resp.Status, body)
	}
	return json.Unmarshal(body, into)
}

// events lists copies.
func (h *history) events(query url.Values) []corev1.Event {
	h.t.Helper()
	var all []corev1.Event
	for {
		var list corev1.EventList
		h.get("/api/v1/events", query, &list)
		all = append(all, list.Items...)
		if list.Continue == "" {
			return all
		}
		query.Set("continue", list.Continue)
	}
}

// labelled lists the copies that a label selector selects.
func (h *history) labelled(selector string) []corev1.Event {
	h.t.Helper()
	return h.events(url.Values{"labelSelector": {selector}})
}

// mirror is eventsvc mirror, with the rights of its service account.
type mirror struct {
	*process
	t     *testing.T
	args  []string
	admin string
}

// startMirror starts one, and waits until it has everything. source is the cluster, or a proxy before it.
func startMirror(t *testing.T, c *cluster, source string, h *history, args ...string) *mirror {
	t.Helper()
	m := launchMirror(t, c, source, h, args...)
	m.current()
	return m
}

func launchMirror(t *testing.T, c *cluster, source string, h *history, args ...string) *mirror {
	t.Helper()
	kubeconfig := c.file("kubeconfig-"+rand.Text(), fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: u, user: {token: %q}}]\n", source, filepath.Join(c.dir, "apiserver.crt"), c.token("")))
	if source != c.url {
		kubeconfig = c.file("kubeconfig-"+rand.Text(), fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
			"clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: %q}}]\n", source, c.token("")))
	}
	m := &mirror{t: t, admin: porttest.Addr(t)}
	m.args = append([]string{"mirror", "--kubeconfig=" + kubeconfig, "--cluster=test", "--server=" + h.url,
		"--token-file=" + c.file("history-token", h.token), "--listen-admin=" + m.admin}, args...)
	m.start()
	return m
}

func (m *mirror) start() {
	m.t.Helper()
	m.process = start(m.t, exec.Command(filepath.Join(bin, "eventsvc"), m.args...))
}

// current waits until the mirror has everything. Before it begins it reads the pods, for which it takes up to 10 s.
func (m *mirror) current() {
	m.t.Helper()
	has := func() bool { return m.metric(`eventsvc_mirror_lag_seconds{namespace="*"}`) == "0" }
	for deadline := time.Now().Add(10 * time.Second); !has() && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
	}
	eventually(m.t, "the mirror has everything", has)
}

// metric returns the value of a metric of the mirror, "" if it does not answer.
func (m *mirror) metric(name string) string {
	for line := range strings.Lines(m.metrics()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// metrics returns everything that the admin listener tells Prometheus, or "".
func (m *mirror) metrics() string {
	resp, err := http.Get("http://" + m.admin + "/metrics")
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}
