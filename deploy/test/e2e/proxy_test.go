package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// TestProxies runs the configurations of docs/how-to/proxy.md between a client and both services.
func TestProxies(t *testing.T) {
	t.Parallel()
	w := startLocal(t, "TOKENSVC_TRUSTED_PROXY=127.0.0.1", "EVENTSVC_PUBLIC_URL=https://events.example.com")
	t.Run("nginx", func(t *testing.T) {
		testProxy(t, w, func(dir, config string) *exec.Cmd {
			return nginx(t, dir, config)
		})
	})
	t.Run("haproxy", func(t *testing.T) {
		testProxy(t, w, func(dir, config string) *exec.Cmd {
			return haproxy(t, dir, config)
		})
	})
}

// nginx returns nginx with a file of its http block.
func nginx(t *testing.T, dir, config string) *exec.Cmd {
	// What Debian's nginx.conf has around the file. user keeps a test that runs as root in its own directory.
	config = "user root; pid nginx.pid; worker_processes 1; daemon off; events {}\n" +
		"http { access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n" +
		config + "}\n"
	writeFile(t, filepath.Join(dir, "nginx.conf"), config)
	return exec.Command(testenv.Tool(t, "nginx"), "-p", dir, "-c", "nginx.conf", "-e", "stderr")
}

func haproxy(t *testing.T, dir, config string) *exec.Cmd {
	writeFile(t, filepath.Join(dir, "haproxy.cfg"), config)
	return exec.Command(testenv.Tool(t, "haproxy"), "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
}

// startProxy starts a proxy that ends with the test. What it says is logged if the test fails.
func startProxy(t *testing.T, proxy *exec.Cmd) {
	t.Helper()
	var log testenv.Output
	proxy.Stdout, proxy.Stderr = &log, &log
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = proxy.Process.Signal(syscall.SIGTERM)
		_ = proxy.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(proxy.Path), log.String())
		}
	})
}

// configured returns the blocks of a proxy in proxy.md: the whole configuration, what serves tokensvc below a path and,
// of nginx, what serves eventsvc below a path.
func configured(t *testing.T, name string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "deploy/docs/how-to/proxy.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, rest := range strings.Split(string(page), "```"+name+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		blocks = append(blocks, block)
	}
	if want := map[string]int{"nginx": 3, "haproxy": 2}[name]; len(blocks) != want {
		t.Fatalf("proxy.md has %d blocks %s, want %d", len(blocks), name, want)
	}
	return blocks
}

// TestEventsBelowAPath: clients that have the path in the address of eventsvc find all that it serves.
func TestEventsBelowAPath(t *testing.T) {
	t.Parallel()
	listen := porttest.Addr(t)
	below := "http://" + listen + "/events"
	w := startLocal(t, "EVENTSVC_PUBLIC_URL="+below)
	startProxy(t, nginx(t, t.TempDir(), "upstream eventsvc { server "+strings.TrimPrefix(w.events, "http://")+"; } server { listen "+listen+";"+configured(t, "nginx")[2]+"}"))
	token := w.token(t)
	testenv.Eventually(t, "nginx answers", deadline, func() error {
		code, err := call(t.Context(), http.DefaultClient, request{method: "GET", url: below + "/apis/events.k8s.io/v1", token: token}, new(struct{}))
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d", code)
		}
		return err
	})
	for path, want := range map[string]string{
		below + "/apis/events.k8s.io/v1/namespaces/default/events":          `"kind":"EventList"`,
		below + "/query/v1/facets":                                          `"facets":{`,
		below + "/console/":                                                 "<title>",
		"http://" + listen + "/.well-known/oauth-protected-resource/events": `"resource":"` + below + `"`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s %v %s, want %s", path, resp.Status, err, body, want)
		}
	}
}

// TestProxiesBelowAPath: a client that knows the issuer only finds and uses all of a tokensvc whose public URL has a
// path, whether the proxy keeps or removes the path.
func TestProxiesBelowAPath(t *testing.T) {
	t.Parallel()
	for name, proxy := range map[string]func(dir, listen, tokens string) *exec.Cmd{
		"nginx keeps it": func(dir, listen, tokens string) *exec.Cmd {
			return nginx(t, dir, "upstream tokensvc { server "+tokens+"; } server { listen "+listen+";"+configured(t, "nginx")[1]+"}")
		},
		"nginx removes it": func(dir, listen, tokens string) *exec.Cmd {
			location := strings.Replace(configured(t, "nginx")[1], "http://tokensvc;", "http://tokensvc/;", 1)
			return nginx(t, dir, "upstream tokensvc { server "+tokens+"; } server { listen "+listen+";"+location+"}")
		},
		"haproxy keeps it": func(dir, listen, tokens string) *exec.Cmd {
			return haproxy(t, dir, "defaults\n mode http\n timeout connect 5s\n timeout client 1m\n timeout server 1m\nfrontend f\n bind "+listen+"\n"+
				configured(t, "haproxy")[1]+"backend tokensvc\n server tokensvc "+tokens+"\n")
		},
		"haproxy removes it": func(dir, listen, tokens string) *exec.Cmd {
			return haproxy(t, dir, "defaults\n mode http\n timeout connect 5s\n timeout client 1m\n timeout server 1m\nfrontend f\n bind "+listen+"\n"+
				configured(t, "haproxy")[1]+"backend tokensvc\n http-request replace-path /auth(/.*) \\1\n server tokensvc "+tokens+"\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listen := porttest.Addr(t)
			issuer := "http://" + listen + "/auth"
			_, api, _ := tokenService(t, "TOKENSVC_PUBLIC_URL="+issuer, "TOKENSVC_CLIENTS_FILE="+filepath.Join(root, "deploy/local/clients.yaml"))
			startProxy(t, proxy(t.TempDir(), listen, strings.TrimPrefix(api, "http://")))
			var metadata struct {
				Issuer string `json:"issuer"`
				Token  string `json:"token_endpoint"`
				Keys   string `json:"jwks_uri"`
			}
			testenv.Eventually(t, "the metadata", deadline, func() error {
				code, err := call(t.Context(), http.DefaultClient, request{method: "GET", url: issuer + "/.well-known/openid-configuration"}, &metadata)
				if err == nil && code != http.StatusOK {
					err = fmt.Errorf("%d", code)
				}
				return err
			})
			if metadata.Issuer != issuer || !strings.HasPrefix(metadata.Token, issuer+"/") {
				t.Fatalf("%+v", metadata)
			}
			const formType = "application/x-www-form-urlencoded"
			var answer struct {
				Token string `json:"access_token"`
				Keys  []any
			}
			form := "grant_type=client_credentials&client_id=" + clientID + "&client_secret=" + clientSecret
			if code, err := call(t.Context(), http.DefaultClient, request{"POST", metadata.Token, "", formType, []byte(form)}, &answer); err != nil || code != http.StatusOK {
				t.Fatalf("token: %d, %v", code, err)
			}
			if code, err := call(t.Context(), http.DefaultClient, request{"GET", metadata.Keys, "", "", nil}, &answer); err != nil || code != http.StatusOK || len(answer.Keys) != 1 {
				t.Errorf("keys: %d, %v", code, err)
			}
		})
	}
}

// testProxy starts the proxy whose configuration has the name of the test, and uses both services through it.
func testProxy(t *testing.T, w *world, command func(dir, config string) *exec.Cmd) {
	_, name, _ := strings.Cut(t.Name(), "/")
	config := configured(t, name)[0]
	dir, listen := t.TempDir(), porttest.Addr(t)
	pair := filepath.Join(dir, "events")
	for ext, from := range map[string]string{"crt": "tls.crt", "key": "tls.key"} {
		pem, err := os.ReadFile(filepath.Join(filepath.Dir(w.ca), from))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, pair+"."+ext, string(pem))
		both, _ := os.ReadFile(pair + ".pem")
		writeFile(t, pair+".pem", string(both)+string(pem))
	}
	config = strings.NewReplacer("/etc/ssl/events", pair, "127.0.0.1:443", listen,
		"127.0.0.1:9000", strings.TrimPrefix(w.tokens, "http://"), "127.0.0.1:8080", strings.TrimPrefix(w.events, "http://")).Replace(config)

	startProxy(t, command(dir, config))
	through := *w
	through.secure = "https://" + listen
	testenv.Eventually(t, name+" answers", deadline, func() error {
		resp, err := w.https(t).Get("https://" + listen + "/console/")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
			return fmt.Errorf("%s %s", resp.Proto, resp.Status)
		}
		return nil
	})
	t.Run("Addresses", func(t *testing.T) { testForwarded(t, &through) })
	t.Run("Discovery", func(t *testing.T) { testProxiedDiscovery(t, &through) })
	t.Run("Agents", func(t *testing.T) { testProxiedAgents(t, &through) })
	t.Run("LargeBody", func(t *testing.T) { testLargeBody(t, &through) })
	t.Run("Watch", func(t *testing.T) { testProxiedWatch(t, &through) })
	t.Run("WebSocket", func(t *testing.T) { testProxiedSocket(t, &through) })
}

// testForwarded: tokensvc counts the client's address, not the proxy's.
func testForwarded(t *testing.T, w *world) {
	const source = `"source":"127.0.0.2"`
	before := strings.Count(w.log("tokensvc"), source)
	client := w.https(t)
	client.Transport.(*http.Transport).DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext
	form := "grant_type=client_credentials&client_id=" + clientID + "&client_secret=" + clientSecret
	var answer struct {
		Token string `json:"access_token"`
	}
	code, err := call(t.Context(), client, request{"POST", w.secure + "/oauth2/token", "", "application/x-www-form-urlencoded", []byte(form)}, &answer)
	if err != nil || code != http.StatusOK || answer.Token == "" {
		t.Fatalf("token: %d, %v", code, err)
	}
	testenv.Eventually(t, "the log has the client's address", deadline, func() error {
		if log := w.log("tokensvc"); strings.Count(log, source) == before {
			return fmt.Errorf("log: %s", log)
		}
		return nil
	})
}

// testProxiedDiscovery: a client without a token learns from each service what is its own, as a web page too.
func testProxiedDiscovery(t *testing.T, w *world) {
	for path, want := range map[string]string{
		"/.well-known/oauth-protected-resource":     `"resource":"https://events.example.com"`,
		"/.well-known/oauth-protected-resource/mcp": `"resource":"https://events.example.com/mcp"`,
		"/.well-known/oauth-authorization-server":   `"code_challenge_methods_supported":["S256"]`,
		"/.well-known/openid-configuration":         `"authorization_endpoint":"` + w.tokens + `/oauth2/authorize"`,
		"/oauth2/jwks":                              `"keys":[`,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			resp, body := w.ask(t, method, path, nil)
			h := resp.Header
			if resp.StatusCode != http.StatusOK || h.Get("Content-Type") != "application/json" || h.Get("Access-Control-Allow-Origin") != "*" || method == http.MethodGet && !strings.Contains(body, want) {
				t.Errorf("%s %s: %s %v %s, want %s", method, path, resp.Status, h, body, want)
			}
			if resp, _ := w.ask(t, method, path, http.Header{"If-None-Match": {h.Get("ETag")}}); resp.StatusCode != http.StatusNotModified {
				t.Errorf("%s %s with its ETag %s: %s", method, path, h.Get("ETag"), resp.Status)
			}
		}
	}
	if resp, _ := w.ask(t, http.MethodGet, "/.well-known/oauth-protected-resource/other", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the document of an unknown resource: %s", resp.Status)
	}
	resp, _ := w.ask(t, http.MethodGet, "/apis", nil)
	if got := resp.Header.Get("WWW-Authenticate"); got != `Bearer resource_metadata="https://events.example.com/.well-known/oauth-protected-resource"` {
		t.Errorf("challenge %s", got)
	}
}

// testProxiedAgents: an agent that sends a fixed header lists the tools. Pages get in from the public URL alone,
// whatever the proxy makes of Host.
func testProxiedAgents(t *testing.T, w *world) {
	for origin, want := range map[string]int{"": 200, "https://events.example.com": 200, "https://evil.example": 403, "https://events.example.com.evil.example": 403, "null": 403} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.secure+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(clientID, clientSecret)
		req.Header.Set("Content-Type", "application/json")
		if origin != "" {
			req.Header.Set("Origin", origin)
			req.Host = strings.TrimPrefix(origin, "https://") // as a page whose name is an alias of the proxy's address
		}
		resp, err := w.https(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || (want == 200) != strings.Contains(string(body), `"events_overview"`) || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("of %q: %s, %v: %.200s", origin, resp.Status, err, body)
		}
	}
}

// ask sends a request without a token, and returns the answer and its body.
func (w *world) ask(t *testing.T, method, path string, header http.Header) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.secure+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := w.https(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// testLargeBody: a body near the limit reaches eventsvc. It is refused there, because an event of this size breaks a
// rule.
func testLargeBody(t *testing.T, w *world) {
	event := newEvent("large", "Large")
	event.Note = strings.Repeat("x", 5<<19) // 2.5 MiB
	var status metav1.Status
	code, err := call(t.Context(), w.https(t), request{"POST", eventsIn(w.secure, "proxied"), w.token(t), "application/json", encode(event)}, &status)
	if err != nil || code != http.StatusUnprocessableEntity || status.Reason != metav1.StatusReasonInvalid {
		t.Errorf("%d %s %v, want 422 Invalid", code, status.Reason, err)
	}
}

// testProxiedWatch: an event arrives while the watch is still open. It is created before the watch begins, because
// nginx sends the header of an answer over HTTP/2 only with its first bytes.
func testProxiedWatch(t *testing.T, w *world) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	client, token := w.https(t), w.token(t)
	var list metav1.PartialObjectMetadataList
	if code, err := call(ctx, client, request{"GET", eventsIn(w.secure, "proxied"), token, "", nil}, &list); err != nil || code != http.StatusOK {
		t.Fatalf("list: %d, %v", code, err)
	}
	name := "while-watched-" + filepath.Base(filepath.Dir(t.Name()))
	var created eventsv1.Event
	code, err := call(ctx, client, request{"POST", eventsIn(w.secure, "proxied"), token, "application/json", encode(newEvent(name, "Watched"))}, &created)
	if err != nil || code != http.StatusCreated {
		t.Fatalf("create: %d, %v", code, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, eventsIn(w.secure, "proxied")+"?watch=true&resourceVersion="+list.ResourceVersion, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for frames := json.NewDecoder(resp.Body); ; {
		var frame struct{ Object metav1.PartialObjectMetadata }
		if err := frames.Decode(&frame); err != nil {
			t.Fatalf("%v before the event", err)
		}
		if frame.Object.Name == created.Name {
			return
		}
	}
}

// testProxiedSocket: a tail of Loki's API is accepted, and shows an event.
func testProxiedSocket(t *testing.T, w *world) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	client := w.https(t)
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.secure+"/loki/api/v1/tail?query=%7B%7D", nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"Authorization": "Bearer " + w.token(t), "Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", // the example of RFC 6455 section 1.3
	} {
		req.Header.Set(key, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%s, want 101", resp.Status)
	}
	var said []byte
	for part := make([]byte, 4096); !bytes.Contains(said, []byte(`"streams"`)); {
		n, err := resp.Body.Read(part)
		if err != nil {
			t.Fatalf("%v after %q", err, said)
		}
		said = append(said, part[:n]...)
	}
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
