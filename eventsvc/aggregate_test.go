package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"tidings.example/shared/certtest"
	"tidings.example/shared/waittest"
)

// clusterFor plays what eventsvc aggregate asks of a kube-apiserver, whose front proxy has the certificate of a
// directory. Its RBAC lets people read in the namespace shop.
func clusterFor(t *testing.T, dir string) string {
	t.Helper()
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{map[string]any{
			"data": map[string]string{
				"requestheader-client-ca-file": string(authority), "requestheader-username-headers": `["X-Remote-User"]`,
				"requestheader-group-headers": `["X-Remote-Group"]`, "requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
			},
		}}})
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Status.Allowed = review.Spec.ResourceAttributes.Namespace == "shop"
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// TestAggregate reads the events of a server as kube-apiserver does for people.
func TestAggregate(t *testing.T) {
	t.Parallel()
	i, dir := newIssuer(t), t.TempDir()
	certtest.Write(t, dir, "127.0.0.1")
	events := start(t, t.TempDir(), i, "--group-domain=tidings.example")
	create := func(namespace, name string) {
		body := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"tidings.example/cluster":"here"}},"involvedObject":{"kind":"Pod","namespace":%q,"name":"web-0"},"reason":"Killing","message":"m","type":"Normal"}`, name, namespace)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, events.url("--listen-http")+"/api/v1/namespaces/"+namespace+"/events", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+events.token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
	}
	create("shop", "web-0.1")
	create("other", "web-0.2")

	ctx, cancel := context.WithCancel(context.Background())
	p := &process{t: t, addrs: map[string]string{}}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	audited := filepath.Join(t.TempDir(), "audit.log")
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{
			"aggregate", "--group-domain=tidings.example", "--server=" + events.url("--listen-http"), "--token-file=" + file(t, events.token),
			"--kubeconfig=" + kubeconfigFor(t, clusterFor(t, dir), "x"), "--tls-cert-file=" + dir + "/tls.crt", "--tls-key-file=" + dir + "/tls.key",
			"--listen-https=127.0.0.1:0", "--listen-admin=127.0.0.1:0", "--cluster=here", "--audit-file=" + audited, "--log-format=json",
		}, io.Discard, log, p.listening)
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := waittest.Within(t, done); err != nil {
			t.Error(err)
		}
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("aggregate said:\n%s", said)
		}
	})
	t.Cleanup(stop)
	waittest.Until(t, "aggregate is ready", func() bool {
		admin := p.url("--listen-admin")
		if admin == "" {
			return false
		}
		resp, err := http.Get(admin + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode == http.StatusOK
	})
	if code := statusFor(t, p.url("--listen-admin")+"/metrics", "evil.example"); code != http.StatusForbidden {
		t.Errorf("the admin listener answers for another host: %d", code)
	}
	proxy, err := tls.LoadX509KeyPair(dir+"/tls.crt", dir+"/tls.key")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{proxy}}}
	defer transport.CloseIdleConnections()
	open := func(path, accept string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(p.url("--listen-https"), "http://", "https://", 1)+"/apis/events.tidings.example/v1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Remote-User", "anna")
		req.Header.Set("Accept", accept)
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	for _, c := range []struct {
		path, accept, want string
		code               int
	}{
		{"/namespaces/shop/events", "application/json", `"name":"web-0.1"`, 200},
		{"/namespaces/shop/events/web-0.1", "application/yaml", "name: web-0.1", 200},
		{"/namespaces/shop/events", "application/json;as=Table;v=v1;g=meta.k8s.io", `"kind":"Table"`, 200},
		{"/namespaces/shop/events?watch=1&timeoutSeconds=1", "application/json", `"type":"ADDED"`, 200},
		{"/namespaces/shop/events/web-0.2", "application/json", `not found`, 404},
		{"/namespaces/other/events", "application/json", `no rule of the cluster`, 403},
		{"/events", "application/json", `cannot list resource`, 403},
	} {
		resp := open(c.path, c.accept)
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.code || !strings.Contains(string(body), c.want) || strings.Contains(string(body), "web-0.2\",\"n") {
			t.Errorf("%+v: %v %d %s", c, err, resp.StatusCode, body)
		}
	}
	watch := open("/namespaces/shop/events?watch=1", "application/json")
	defer func() { _ = watch.Body.Close() }()
	stop() // ends the watch, too
	lines, err := os.ReadFile(audited)
	if err != nil || !strings.Contains(string(lines), `"user":"anna","auth":"front-proxy","verb":"get","group":"events.tidings.example","resource":"events","namespace":"shop","name":"web-0.1"`) {
		t.Errorf("%v %s", err, lines)
	}
}

func TestAggregateSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certtest.Write(t, dir, "127.0.0.1")
	good := []string{"--group-domain=tidings.example", "--kubeconfig=" + kubeconfigFor(t, "http://127.0.0.1:1", "x"), "--tls-cert-file=" + dir + "/tls.crt", "--tls-key-file=" + dir + "/tls.key"}
	for want, args := range map[string][]string{
		"--group-domain is not set":                         {"--group-domain="},
		"--group-domain k8s.io is served by kube-apiserver": {"--group-domain=k8s.io"},
		"--group-domain: group domain \"a_b\"":              {"--group-domain=a_b"},
		"--advertise get,delete":                            {"--advertise=get,delete"},
		"--advertise list":                                  {"--advertise=list"},
		"--advertise get,list,watch":                        {"--advertise=get,list,watch"},
		`--cluster "a b"`:                                   {"--cluster=a b"},
		"--listen-https is empty":                           {"--listen-https="},
		"--audit-max-bytes 1024 is too small":               {"--audit-max-bytes=1KiB"},
		"--tls-cert-file and --tls-key-file":                {"--tls-key-file="},
		"--kubeconfig is not set, and this is no pod":       {"--kubeconfig="},
		"--context has no effect without --kubeconfig":      {"--kubeconfig=", "--context=x"},
		"--token-url is not":                                {"--assertion-file=x"},
		"--server \"x\" is no http(s) URL":                  {"--server=x"},
	} {
		_, said, code := use(t, append(append([]string{"aggregate"}, good...), args...)...)
		if code != 2 || !strings.Contains(said, want) {
			t.Errorf("%v: exit code %d: %s", args, code, said)
		}
	}
}
