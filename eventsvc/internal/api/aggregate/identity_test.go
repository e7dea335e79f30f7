package aggregate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/shared/waittest"
)

// refuse fails a test whose request must not reach the event server.
func refuse(t *testing.T) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s reached the event server", r.Method, r.URL)
	}
}

// TestIdentity asks with each certificate that is not the front proxy's, and without a user.
func TestIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refuse(t), nil)
	other := newAuthority(t)
	usage := func(u ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = u }
	}
	within := func(from, to time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to) }
	}
	for name, c := range map[string]struct {
		certificate *tls.Certificate
		user        string
		reason      string
	}{
		"none":             {nil, "anna", reasonMissing},
		"other authority":  {other.client("front-proxy", nil), "anna", reasonAuthority},
		"expired":          {w.ca.client("front-proxy", within(-2*time.Hour, -time.Hour)), "anna", reasonExpired},
		"not valid yet":    {w.ca.client("front-proxy", within(time.Hour, 2*time.Hour)), "anna", reasonExpired},
		"of a server":      {w.ca.client("front-proxy", usage(x509.ExtKeyUsageServerAuth)), "anna", reasonUsage},
		"name not allowed": {w.ca.client("kubelet", nil), "anna", reasonName},
		"no user":          {w.proxy, "", reasonNoUser},
		"no UTF-8":         {w.proxy, "anna\xff", reasonNoUser},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{all, "/apis", "/openapi/v2", "/openapi/v3", "/version", "/apis/" + group + "/v1"} {
				for _, masquerade := range [][]string{{}, {"X-Remote-Group", masters}, {"Authorization", "Bearer token"}} {
					before := w.metric("eventsvc_aggregate_unidentified_total", c.reason)
					headers := masquerade
					if c.user != "" {
						headers = append(headers, "X-Remote-User", c.user)
					}
					if st := w.send(w.as(c.certificate), "GET", path, headers...).must(401).status(); st.Reason != "Unauthorized" {
						t.Errorf("%s: %+v", path, st)
					}
					if after := w.metric("eventsvc_aggregate_unidentified_total", c.reason); after != before+1 {
						t.Errorf("%s was counted %v times", c.reason, after-before)
					}
				}
			}
		})
	}
	if said := w.said.String(); !strings.Contains(said, `refused="name-not-allowed: common name \"kubelet\""`) {
		t.Error("the access log does not tell the reason", said[len(said)-500:])
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if got := w.send(w.as(nil), "GET", path).must(200).body; got != "ok" {
			t.Error(path, got)
		}
	}
}

// TestAuthorityRotation changes the ConfigMap under an open connection.
func TestAuthorityRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {}, nil)
	next := newAuthority(t)
	before, after := w.as(w.proxy), w.as(next.client("anything", nil))
	code := func(c *http.Client) int { return w.send(c, "GET", "/apis", "X-Remote-User", "anna").code }
	if code(before) != 200 || code(after) != 401 {
		t.Fatal("the first authority does not count")
	}
	both := front(w.ca)
	both["requestheader-client-ca-file"] += next.pem()
	w.cluster.configure(both)
	waittest.Until(t, "both authorities count", func() bool { return code(after) == 200 })
	if code(before) != 200 {
		t.Error("the old one does not count any more")
	}
	w.cluster.configure(front(next))
	waittest.Until(t, "the old authority counts no more", func() bool { return code(before) == 401 })
	w.cluster.configure(nil)
	waittest.Until(t, "the loss is told", func() bool { return strings.Contains(w.said.String(), "there is no ConfigMap") })
	for _, bad := range []func(map[string]string){
		func(data map[string]string) { data["requestheader-client-ca-file"] = "" },
		func(data map[string]string) { data["requestheader-allowed-names"] = "front-proxy" },
		func(data map[string]string) { data["requestheader-username-headers"] = "[]" },
		func(data map[string]string) { data["client-ca-file"] = next.pem() },
	} {
		data := front(next)
		bad(data)
		told := strings.Count(w.said.String(), "the ConfigMap of the front proxy is bad")
		w.cluster.configure(data)
		waittest.Until(t, "the mistake is told", func() bool {
			return strings.Count(w.said.String(), "the ConfigMap of the front proxy is bad") == told+1
		})
		if code(after) != 200 || code(before) != 401 {
			t.Error("the last good version does not count")
		}
	}
}

// TestImpersonation: a header that asks for the rights of another user is refused, as the event server does.
// kube-apiserver never passes one on, so it comes from something else that has the front proxy's certificate, or that
// kube-apiserver does not know.
func TestImpersonation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refuse(t), nil)
	for _, path := range []string{all, "/apis", "/openapi/v2", "/version", "/apis/" + group + "/v1", "/nothing"} {
		st := w.get(path, "Impersonate-User", "root", "Impersonate-Group", masters).must(403).status()
		if !strings.Contains(st.Message, `users "root" is forbidden: User "anna" cannot impersonate`) {
			t.Errorf("%s: %s", path, st.Message)
		}
		for _, name := range []string{"Impersonate-Group", "impersonate-uid", "Impersonate-Extra-a", "IMPERSONATE-ROLE"} {
			w.get(path, name, "x").must(400)
		}
	}
}

// TestNotReady asks before the ConfigMap was read.
func TestNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refuse(t), nil)
	w.server.FrontProxy.current.Store(nil)
	a := w.get(all).must(503)
	if a.header.Get("Retry-After") != "1" {
		t.Error(a.header)
	}
	w.send(w.as(nil), "GET", "/readyz").must(500)
	w.send(w.as(nil), "GET", "/livez").must(200)
}

// TestRefusesSharedAuthority begins where other client certificates of the cluster would be taken for the front
// proxy's.
func TestRefusesSharedAuthority(t *testing.T) {
	t.Parallel()
	shared, own := newAuthority(t), newAuthority(t)
	data := front(own)
	data["client-ca-file"] = shared.pem()
	data["requestheader-client-ca-file"] += shared.pem()
	c := newCluster(t)
	c.configure(data)
	api, err := client.New(client.Config{Server: c.URL})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- NewFrontProxy(api, slog.New(slog.DiscardHandler)).Run(context.Background()) }()
	if err := waittest.Within(t, done); !errors.Is(err, errShared) {
		t.Error(err)
	}
	data["requestheader-allowed-names"] = `["front-proxy-client"]`
	if _, err := parseConfig(data); err != nil {
		t.Error("with allowed names:", err)
	}
	below := newAuthority(t)
	below.cert = own.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "below"}, IsCA: true, BasicConstraintsValid: true}, &below.key.PublicKey, own.cert)
	data = front(own)
	data["client-ca-file"] = below.pem()
	if _, err := parseConfig(data); !errors.Is(err, errShared) {
		t.Error("an authority that is signed by the front proxy's:", err)
	}
}

// TestUser reads the headers of a front proxy.
func TestUser(t *testing.T) {
	t.Parallel()
	data := front(newAuthority(t))
	data["requestheader-username-headers"] = `["x-first", "X-Remote-User"]`
	data["requestheader-group-headers"] = `["X-Remote-Group","x-more-groups"]`
	c, err := parseConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	got, refusal := c.user(http.Header{
		"X-First": {""}, "X-Remote-User": {"anna", "other"}, "X-Remote-Uid": {"7"}, "X-Remote-Group": {"a", "", "b,c"}, "X-More-Groups": {"d"},
		"X-Remote-Extra-Acme.com%2fproject": {"x", "y"}, "X-Remote-Extra-Bad%zz": {"z"}, "Impersonate-User": {"root"},
	})
	want := &authenticationv1.UserInfo{
		Username: "anna", UID: "7", Groups: []string{"a", "b,c", "d"},
		Extra: map[string]authenticationv1.ExtraValue{"acme.com/project": {"x", "y"}, "bad%zz": {"z"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || refusal != nil {
		t.Error(refusal, diff)
	}
	delete(data, "requestheader-uid-headers") // as before Kubernetes 1.33
	if c, err = parseConfig(data); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.user(http.Header{"X-Remote-User": {"anna"}, "X-Remote-Uid": {"0"}}); got.UID != "" {
		t.Error("a uid is believed that nobody vouches for")
	}
}

// FuzzConfig parses what may stand in the ConfigMap.
func FuzzConfig(f *testing.F) {
	f.Add("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", `["a"]`, `["X-Remote-User"]`)
	f.Fuzz(func(t *testing.T, bundle, names, users string) {
		c, err := parseConfig(map[string]string{
			"requestheader-client-ca-file": bundle, "requestheader-allowed-names": names, "requestheader-username-headers": users,
		})
		if err == nil && (c.roots.Equal(nil) || len(c.users) == 0) {
			t.Error("accepted without an authority or a header")
		}
	})
}

// TestDocuments reads discovery and OpenAPI while the event server does not answer.
func TestDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refuse(t), nil)
	v2 := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for path, has := range map[string]string{
		"/apis":                             `"name":"` + group + `"`,
		"/apis/" + group:                    `"preferredVersion"`,
		"/apis/" + group + "/v1":            `"verbs":["get"],"shortNames":["history"]`,
		"/openapi/v2":                       `"/apis/` + group + `/v1/namespaces/{namespace}/events/{name}"`,
		"/openapi/v3":                       `{"paths":{"apis/` + group + `/v1":{"serverRelativeURL":"/openapi/v3/apis/` + group + `/v1?hash=`,
		"/openapi/v3/apis/" + group + "/v1": `"x-kubernetes-action":"list"`,
		"/version":                          `"major": "1"`,
	} {
		a := w.get(path).must(200)
		if !strings.Contains(a.body, has) {
			t.Errorf("%s lacks %s: %.300s", path, has, a.body)
		}
		for _, wrong := range []string{`"delete"`, `"post"`, `"put"`, `"patch"`, `"/api/v1`, `"/query`, "DeleteOptions"} {
			if strings.Contains(a.body, wrong) {
				t.Errorf("%s has %s", path, wrong)
			}
		}
		w.get(path + "/").must(200)
		if strings.HasPrefix(path, "/openapi") {
			w.get(path, "If-None-Match", a.header.Get("ETag")).must(304)
		}
	}
	a := w.get("/apis", "Accept", v2).must(200)
	if !strings.Contains(a.body, `"verbs":["get"]`) || strings.Count(a.body, `"resource":`) != 1 {
		t.Error(a.body)
	}
	w.get("/apis", "Accept", v2, "If-None-Match", a.header.Get("ETag")).must(304)
	if n := len(w.cluster.asked()); n != 0 {
		t.Errorf("discovery was reviewed %d times", n)
	}
	for _, path := range []string{
		"/", "/api", "/api/v1", "/api/v1/events", "/apis/events.k8s.io/v1", "/apis/events.k8s.io/v1/events", "/apis/" + group + "/v2", "/query/v1/search",
		"/console/", "/mcp", "/metrics", "/loki/api/v1/labels", "/openapi/v3/api/v1", "/openapi/v3/query/v1", "/apis/" + group + "/v1/pods", all + "/x",
		"/apis/" + group + "/v1/namespaces", "/apis/" + group + "/v1/namespaces/shop", "/apis/" + group + "/v1/namespaces/shop/events/e/status",
		"/apis/" + group + "/v1/namespaces//events", "/apis/" + group + "/v1/namespaces/shop/events/%2e%2e", "/apis/" + group + "/v1/namespaces/../events",
		"/apis/" + group + "/v1/namespaces/a%2fb/events", "/apis/" + group + "/v1/namespaces/shop/events/a%2fb", "//apis/" + group + "/v1/events",
		"/apis/" + group + "/v1/namespaces/%2e%2e/events/e", "/apis/" + group + "/v1/namespaces/shop/events/a%25b",
	} {
		w.get(path).must(404)
	}
}

// TestWrites sends what would change an event.
func TestWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refuse(t), nil)
	one := "/apis/" + group + "/v1/namespaces/shop/events"
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		for _, path := range []string{all, one, one + "/e", one + "/e?dryRun=All", one + "/e?watch=true", strings.Replace(one, "/v1/", "/v1/watch/", 1)} {
			a := w.send(w.as(w.proxy), method, path, "X-Remote-User", "anna", "X-Remote-Group", masters).must(405)
			if st := a.status(); st.Reason != "MethodNotAllowed" || st.Message != "history is read-only through the aggregation layer" || a.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %+v %v", method, path, st, a.header)
			}
		}
	}
	w.send(w.as(w.proxy), "OPTIONS", all, "X-Remote-User", "anna").must(405)
	w.send(w.as(w.proxy), "GET", all+"?watch=1", "X-Remote-User", "anna", "Upgrade", "websocket", "Connection", "Upgrade").must(400)
	if n := len(w.cluster.asked()); n != 0 {
		t.Errorf("%d reviews", n)
	}
}
