package issuers_test

import (
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
	"tidings.example/shared/issuers"
)

// apiServer is a cluster whose tokens name the issuer o, which nobody reaches. Its API server shows keys to those who
// have the token of a pod and name their type.
func apiServer(t *testing.T, o *origin) issuers.Pod {
	t.Helper()
	p := issuers.Pod{Dir: t.TempDir()}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mounted, _ := os.ReadFile(filepath.Join(p.Dir, "token"))
		switch {
		case r.URL.Path != "/openid/v1/jwks" || r.Header.Get("Authorization") != "Bearer "+string(mounted):
			w.WriteHeader(http.StatusForbidden)
		case !strings.Contains(r.Header.Get("Accept"), "application/jwk-set+json"):
			w.WriteHeader(http.StatusNotAcceptable)
		default:
			fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"k","n":%q,"e":"AQAB"}]}`, encode(o.key.N.Bytes()))
		}
	}))
	t.Cleanup(server.Close)
	var err error
	if p.Host, p.Port, err = net.SplitHostPort(server.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	mount(t, p, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	mount(t, p, "token", o.token("https://kubernetes.default.svc"))
	return p
}

// mount replaces a file of the pod.
func mount(t *testing.T, p issuers.Pod, name, content string) {
	t.Helper()
	path := filepath.Join(p.Dir, name)
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestCluster: the mounted token names the issuer, and the API server has the keys. When the tokens of the
// cluster get another issuer, that one is trusted in its place, without a change of the file.
func TestCluster(t *testing.T) {
	t.Parallel()
	before, after := newOrigin(t), newOrigin(t)
	after.key = before.key // a cluster keeps its keys when its issuer changes
	pod := apiServer(t, before)
	path := filepath.Join(t.TempDir(), "issuers.yaml")
	if err := os.WriteFile(path, []byte("- {issuer: cluster, audiences: [eventsvc]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	live, err := issuers.New(issuers.Config[Issuer]{
		Path: path, Pod: pod, Setting: "--file", Log: log, Registry: prometheus.NewRegistry(),
		Parse: func(data []byte) ([]Issuer, error) {
			list, err := parse(data)
			if err == nil {
				list[0].Issuer, list[0].KeySource, err = pod.Issuer(list[0].KeySource)
			}
			return list, err
		},
		Keys: func(i Issuer) (*bearer.IssuerKeys, error) {
			return bearer.NewIssuerKeys(i.Issuer, i.KeySource, bearer.JWKSConfig{Log: log})
		},
		Verifier: func(i Issuer, keys *bearer.IssuerKeys) (*bearer.Verifier, error) {
			return bearer.New(bearer.Config{Issuer: i.Issuer, Audience: i.Audiences, Keys: keys, Algorithms: i.Algorithms})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	verify := func(step string, o *origin, want string) {
		t.Helper()
		got := "ok"
		if _, err := live.Current().Verify(t.Context(), o.token("eventsvc")); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", step, got, want)
		}
	}
	verify("at first", before, "ok")
	verify("an issuer to come", after, "other issuer")
	if _, err := live.Current().Verify(t.Context(), before.token("vault")); err == nil || err.Error() != "other audience" {
		t.Errorf("for another audience: %v", err)
	}
	current := live.Current()
	mount(t, pod, "token", before.token("https://kubernetes.default.svc"))
	live.Reload()
	if live.Current() != current {
		t.Error("a newer token of the same issuer changes the issuers")
	}
	mount(t, pod, "token", "damaged")
	live.Reload()
	verify("with a damaged token in the mount", before, "ok")
	mount(t, pod, "token", after.token("https://kubernetes.default.svc"))
	live.Reload()
	verify("after the change", after, "ok")
	verify("the issuer before", before, "other issuer")
}

// TestClusterMistakes: an entry that means the cluster is refused with what is wrong.
func TestClusterMistakes(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	good := apiServer(t, o)
	for name, tc := range map[string]struct {
		change func(p *issuers.Pod)
		given  bearer.KeySource
		want   string
	}{
		"no pod":       {change: func(p *issuers.Pod) { p.Host = "" }, want: "this is no pod of a cluster"},
		"a URL beside": {given: bearer.KeySource{JWKSURL: "https://a.example"}, want: "leave jwksURL"},
		"no mount":     {change: func(p *issuers.Pod) { p.Dir = "/nowhere" }, want: "/nowhere/token: no such file"},
		"no token": {change: func(p *issuers.Pod) {
			p.Dir = t.TempDir()
			mount(t, *p, "token", "x.y")
		}, want: "holds no token that names its issuer"},
	} {
		p := good
		if tc.change != nil {
			tc.change(&p)
		}
		if _, _, err := p.Issuer(tc.given); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "issuer: cluster: ") {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	issuer, keys, err := good.Issuer(bearer.KeySource{Algorithms: []string{"PS256"}})
	if err != nil || issuer != o.URL || !reflect.DeepEqual(keys.Algorithms, []string{"PS256"}) {
		t.Errorf("%q, %+v, %v", issuer, keys, err)
	}
}
