package access_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/audit"
)

const leaveOut = "impersonation is not supported here: leave out --as"

// impersonations are headers, as lines of HTTP/1.1, and the answers of kube-apiserver to a caller without the right.
// Answers to requests with a user name the verb impersonate, as kube-apiserver does before 1.36; the other answers are
// from 1.37. The last two rows are ours: kube-apiserver ignores such headers. The test of the chart asks
// kube-apiserver's own filters.
var impersonations = []struct {
	name    string
	lines   []string
	code    int32
	message string
	details *metav1.StatusDetails
}{
	{
		"user",
		[]string{"Impersonate-User: nobody"},
		403, `users "nobody" is forbidden: User "good" cannot impersonate resource "users" in API group "" at the cluster scope: ` + leaveOut,
		&metav1.StatusDetails{Name: "nobody", Kind: "users"},
	},
	{
		"lower case, with a group",
		[]string{"impersonate-user: a b", "impersonate-group: system:masters"},
		403, `users "a b" is forbidden: User "good" cannot impersonate resource "users" in API group "" at the cluster scope: ` + leaveOut,
		&metav1.StatusDetails{Name: "a b", Kind: "users"},
	},
	{
		"twice, in two cases",
		[]string{"IMPERSONATE-USER: first", "iMPERSONATE-uSER: second"},
		403, `users "first" is forbidden: User "good" cannot impersonate resource "users" in API group "" at the cluster scope: ` + leaveOut,
		&metav1.StatusDetails{Name: "first", Kind: "users"},
	},
	{
		"the caller itself",
		[]string{"Impersonate-User: good"},
		403, `users "good" is forbidden: User "good" cannot impersonate resource "users" in API group "" at the cluster scope: ` + leaveOut,
		&metav1.StatusDetails{Name: "good", Kind: "users"},
	},
	{
		"service account",
		[]string{"Impersonate-User: system:serviceaccount:shop:builder"},
		403, `serviceaccounts "builder" is forbidden: User "good" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop": ` + leaveOut,
		&metav1.StatusDetails{Name: "builder", Kind: "serviceaccounts"},
	},
	{
		"no service account",
		[]string{"Impersonate-User: system:serviceaccount:shop:a:b"},
		403, `users "system:serviceaccount:shop:a:b" is forbidden: User "good" cannot impersonate resource "users" in API group "" at the cluster scope: ` + leaveOut,
		&metav1.StatusDetails{Name: "system:serviceaccount:shop:a:b", Kind: "users"},
	},
	{
		"groups",
		[]string{"Impersonate-Group: system:masters", `impersonate-group: a"b\c`},
		400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"system:masters", "a\"b\\c"}, Extra:map[string][]string(nil)} without impersonating a user name`, nil,
	},
	{
		"uid",
		[]string{"Impersonate-UID: u-1", "impersonate-uid: u-2"},
		400, `requested &user.DefaultInfo{Name:"", UID:"u-1", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name`, nil,
	},
	{
		"extra",
		[]string{"Impersonate-Extra-Scopes: a", "impersonate-extra-scopes: b", "Impersonate-Extra-Acme.com%2fproject: p", "Impersonate-Extra-Bad%zz: q"},
		400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{` +
			`"acme.com/project":[]string{"p"}, "bad%zz":[]string{"q"}, "scopes":[]string{"a", "b"}}} without impersonating a user name`, nil,
	},
	{
		"the first user is empty",
		[]string{"Impersonate-User:", "Impersonate-User: second", "Impersonate-Group: g"},
		400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without impersonating a user name`, nil,
	},
	{
		"an empty user alone",
		[]string{"Impersonate-User:"},
		400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name`, nil,
	},
	{
		"a header that nobody knows",
		[]string{"Impersonate-Role: admin"},
		400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name`, nil,
	},
}

// TestImpersonationIsRefused: over HTTP/1.1 and HTTP/2, a request with such headers is answered as kube-apiserver would
// answer it, and does nothing.
func TestImpersonationIsRefused(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Registry = prometheus.NewRegistry() })
	w.Create("a")
	one, two := httptest.NewServer(w.Handler()), httptest.NewUnstartedServer(w.Handler())
	two.EnableHTTP2 = true
	two.StartTLS()
	t.Cleanup(one.Close)
	t.Cleanup(two.Close)
	for _, c := range impersonations {
		want := metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: c.code, Message: c.message, Details: c.details,
			Reason: map[int32]metav1.StatusReason{400: metav1.StatusReasonBadRequest, 403: metav1.StatusReasonForbidden}[c.code],
		}
		t.Run(c.name, func(t *testing.T) {
			check := func(res *http.Response) {
				t.Helper()
				defer func() { _ = res.Body.Close() }()
				var got metav1.Status
				if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
					t.Fatal(err)
				}
				apitest.Equal(t, got, want)
				apitest.Equal(t, res.StatusCode, int(c.code))
			}
			conn, err := net.Dial("tcp", one.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, err = fmt.Fprintf(conn, "DELETE %s/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n%s\r\n\r\n", apitest.EventsPath, strings.Join(c.lines, "\r\n"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			check(res)

			req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, two.URL+apitest.EventsPath+"/a", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer good")
			for _, line := range c.lines {
				name, value, _ := strings.Cut(line, ":")
				req.Header.Add(name, strings.TrimSpace(value))
			}
			if res, err = two.Client().Do(req); err != nil {
				t.Fatal(err)
			}
			apitest.Equal(t, res.ProtoMajor, 2)
			check(res)
		})
	}
	w.Do("GET", apitest.EventsPath+"/a", "").Must(200)
	if n, want := w.Metric("eventsvc_requests_refused_total", "impersonation"), float64(2*len(impersonations)); n != want {
		t.Errorf("%v refusals are counted, want %v", n, want)
	}
}

// TestImpersonationIsRefusedEverywhere: on every path that needs a token, those that do not exist too, the answer is
// 403.
// A caller without a good token gets 401 first.
func TestImpersonationIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), apitest.WithMCP)
	asked := forms()
	for _, path := range []string{
		"/", "/api", "/apis", "/apis/events.k8s.io/v1", "/openapi/v3", "/openapi/v2", "/readyz/log", "/nowhere", "/api/v1/pods", "/api//v1",
		"/query/v1/events", "/query/v1/histogram", "/query/v1/nothing", "/loki/api/v1/query_range", "/loki/api/v1/labels", "/loki/api/v1/tail",
		"/mcp", "/mcp/x", "/bulk/v1/events",
	} {
		asked = append(asked, form{method: "GET", path: path}, form{method: "POST", path: path}, form{method: "OPTIONS", path: path})
	}
	for _, resource := range []string{"authentication.k8s.io/v1/selfsubjectreviews", "authorization.k8s.io/v1/selfsubjectaccessreviews"} {
		asked = append(asked, form{method: "POST", path: "/apis/" + resource, body: "{}"})
	}
	fill := strings.NewReplacer("{ns}", "default", "{name}", "a", "{continue}", "x")
	for _, f := range asked {
		headers := append(slices.Clone(f.headers), "Impersonate-User", "nobody")
		if a := w.As("root", f.method, fill.Replace(f.path), fill.Replace(f.body), headers...); a.Code != 403 || !strings.Contains(string(a.Body), leaveOut) {
			t.Errorf("%s %s: %d %s", f.method, f.path, a.Code, a.Body)
		}
	}
	w.As("root", "GET", "/version", "", "Impersonate-User", "nobody").Must(200)
	apitest.Equal(t, w.As("root", "GET", apitest.EventsPath, "").Must(200).Names(), []string{})
	w.As("nobody", "GET", apitest.EventsPath, "", "X-Remote-User", "root", "X-Remote-Group", "system:masters").Must(403) // headers of a front proxy have no effect

	w.Config.Verify = apitest.Verify
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	w.As("bad", "GET", apitest.EventsPath, "", "Impersonate-User", "nobody").Must(401)
}

// TestImpersonationOverWebSockets: the handshake is refused.
func TestImpersonationOverWebSockets(t *testing.T) {
	t.Parallel()
	srv := apitest.New(t).Serve()
	conn, res, err := websocket.Dial(t.Context(), srv.URL+"/loki/api/v1/tail?query={}", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer good"}, "Impersonate-User": {"nobody"}},
	})
	if err == nil {
		_ = conn.CloseNow()
		t.Fatal("the socket is open")
	}
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != 403 || !strings.Contains(string(body), leaveOut) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// TestImpersonationIsAudited: the entry says who asked to act as whom, in few bytes, and that it was refused.
func TestImpersonationIsAudited(t *testing.T) {
	t.Parallel()
	log := apitest.OpenAudit(t)
	w := apitest.New(t, func(c *api.Config) { c.Audit = log.Log })
	w.Do("DELETE", apitest.EventsPath+"/a", "", "Impersonate-User", strings.Repeat("u", 300), "Impersonate-Group", "g").Must(403)
	w.Do("GET", apitest.EventsPath, "", "Impersonate-User", "system:serviceaccount:shop:builder").Must(403)
	w.Do("GET", apitest.EventsPath, "", "Impersonate-Group", "g").Must(400)
	w.Do("GET", apitest.EventsPath, "").Must(200)
	var got []audit.Entry
	_, entries := log.Entries()
	for _, e := range entries {
		got = append(got, audit.Entry{
			User: e.User, Verb: e.Verb, Resource: e.Resource, Namespace: e.Namespace, Method: e.Method, Code: e.Code, Allowed: e.Allowed, Rule: e.Rule,
			Impersonate: e.Impersonate,
		})
	}
	apitest.Equal(t, got[:3], []audit.Entry{
		{
			User: "good", Verb: "impersonate", Resource: "users", Method: "DELETE", Code: 403, Allowed: new(false), Rule: leaveOut,
			Impersonate: &audit.Impersonate{User: strings.Repeat("u", 256) + "…", Groups: 1},
		},
		{
			User: "good", Verb: "impersonate", Resource: "serviceaccounts", Namespace: "shop", Method: "GET", Code: 403, Allowed: new(false), Rule: leaveOut,
			Impersonate: &audit.Impersonate{User: "system:serviceaccount:shop:builder"},
		},
		{
			User: "good", Verb: "impersonate", Resource: "users", Method: "GET", Code: 400, Allowed: new(false), Rule: leaveOut,
			Impersonate: &audit.Impersonate{Groups: 1},
		},
	})
	if got[3].Impersonate != nil {
		t.Errorf("a request without such headers: %+v", got[3])
	}
}
