package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// tokenService starts a tokensvc and returns it with its URL and the one of its metrics.
func tokenService(t *testing.T, env ...string) (p *process, api, metrics string) {
	t.Helper()
	addr, admin := porttest.Addr(t), porttest.Addr(t)
	p = &process{name: "tokensvc", env: append([]string{"TOKENSVC_LISTEN_HTTP=" + addr, "TOKENSVC_LISTEN_ADMIN=" + admin}, env...)}
	p.launch(t)
	p.waitReady(t)
	return p, "http://" + addr, "http://" + admin + "/metrics"
}

// trade sends an assertion, and returns the status of the answer and why there is none.
func trade(ctx context.Context, client *http.Client, api, assertion string) (status int, err error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}}
	var answer map[string]any
	return call(ctx, client, request{
		method: http.MethodPost, url: api + "/oauth2/token", contentType: "application/x-www-form-urlencoded", body: []byte(form.Encode()),
	}, &answer)
}

// withKeyID replaces the header of a token by one with another key id.
func withKeyID(token, kid string) string {
	_, rest, _ := strings.Cut(token, ".")
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"RS256","kid":%q}`, kid)) + "." + rest
}

// publisher is an issuer that answers requests for its keys in its own way, and counts them.
type publisher struct {
	signer
	name    string
	server  *httptest.Server
	fetches atomic.Int64
	trust   string
	refused atomic.Int64 // assertions in its name that were answered, none of which is good
}

// publish starts an issuer. The handler gets the document that would be good.
func publish(t *testing.T, name string, key *rsa.PrivateKey, serve func(w http.ResponseWriter, r *http.Request, good string)) *publisher {
	t.Helper()
	p := &publisher{name: name}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			p.fetches.Add(1)
		}
		serve(w, r, p.keys())
	}))
	issuer := "https://" + p.server.Listener.Addr().String()
	p.signer = newSigner(t, issuer, key)
	p.server.StartTLS()
	t.Cleanup(p.server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	p.trust = fmt.Sprintf("- {issuer: %q, jwksURL: %q, caFile: %q, audiences: [tokensvc]}\n", issuer, issuer+"/keys", textFile(t, "ca.crt", string(ca)))
	return p
}

// spaces is a gzip stream of many spaces, which are valid before JSON.
func spaces(mebibytes int) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for block := bytes.Repeat([]byte(" "), 1<<20); mebibytes > 0; mebibytes-- {
		_, _ = w.Write(block) // to memory
	}
	_ = w.Close()
	return packed.Bytes()
}

// hostileAnswers are the ways in which issuers publish keys that are not good. None ends before the client leaves, or
// until stop is closed.
func hostileAnswers(stop <-chan struct{}, elsewhere string) map[string]func(w http.ResponseWriter, r *http.Request, good string) {
	bomb := spaces(64)
	var version atomic.Int64
	forever := func(r *http.Request, more func() error) {
		for r.Context().Err() == nil && more() == nil {
			select {
			case <-stop:
				return
			default:
			}
		}
	}
	return map[string]func(w http.ResponseWriter, r *http.Request, good string){
		"slow": func(_ http.ResponseWriter, r *http.Request, _ string) {
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		},
		"byte by byte": func(w http.ResponseWriter, r *http.Request, _ string) {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			forever(r, func() error {
				<-tick.C
				_, err := w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				return err
			})
		},
		"endless": func(w http.ResponseWriter, r *http.Request, _ string) {
			block := make([]byte, 64<<10)
			forever(r, func() error {
				_, err := w.Write(block)
				return err
			})
		},
		"endless header": func(w http.ResponseWriter, r *http.Request, _ string) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			_, _ = out.WriteString("HTTP/1.1 200 OK\r\nX-Long: ")
			forever(r, func() error {
				_, err := out.WriteString(strings.Repeat("x", 4<<10))
				return err
			})
		},
		"compressed": func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		},
		"nested": func(w http.ResponseWriter, _ *http.Request, _ string) {
			fmt.Fprint(w, `{"keys":`+strings.Repeat("[", 200_000)+strings.Repeat("]", 200_000)+"}")
		},
		"redirecting": func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, elsewhere+"/keys", http.StatusTemporaryRedirect)
		},
		"in circles": func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		},
		"changing": func(w http.ResponseWriter, _ *http.Request, good string) { // a hundred new keys each time
			n, keys := version.Add(1), []string{}
			entry := strings.TrimSuffix(strings.TrimPrefix(good, `{"keys":[`), "]}")
			for i := range 100 {
				keys = append(keys, regexp.MustCompile(`"kid":"[^"]*"`).ReplaceAllString(entry, fmt.Sprintf(`"kid":"%d-%d"`, n, i)))
			}
			w.Header().Set("Cache-Control", "max-age=1")
			fmt.Fprint(w, `{"keys":[`+strings.Join(keys, ",")+`]}`)
		},
	}
}

// metric returns the value of a metric without labels.
func metric(t *testing.T, address, name string) float64 {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// peak returns the largest memory that the process has had so far, in bytes.
func (p *process) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		testenv.Unable(t, "%v: memory is read from /proc", err)
	}
	found := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kibibytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}

// TestHostileIssuersOfAssertions: many trusted issuers are hostile, and assertions with new key ids arrive in the name
// of each without a pause. Every request is answered. The assertions of the good issuer pass all the time. Each issuer
// is asked about once a second, memory stays within bounds, and nothing is left over afterwards.
func TestHostileIssuersOfAssertions(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var led atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led.Add(1) }))
	t.Cleanup(elsewhere.Close)
	stop := make(chan struct{})
	good := publish(t, "good", key, func(w http.ResponseWriter, _ *http.Request, good string) { fmt.Fprint(w, good) })
	all := []*publisher{good}
	for name, serve := range hostileAnswers(stop, elsewhere.URL) {
		all = append(all, publish(t, name, key, serve))
	}
	var issuers strings.Builder
	for _, i := range all {
		issuers.WriteString(i.trust)
	}
	const account = "system:serviceaccount:shop:reporter"
	began := time.Now()
	p, api, metrics := tokenService(t, "TOKENSVC_FAILURE_REFILL=0s",
		"TOKENSVC_TRUSTED_ISSUERS_FILE="+textFile(t, "issuers.yaml", issuers.String()),
		"TOKENSVC_CLIENTS_FILE="+textFile(t, "clients.yaml", fmt.Sprintf("clients:\n- {client_id: %q, scope: events, assertion_issuer: %q}\n", account, "https://"+good.server.Listener.Addr().String())))
	t.Cleanup(func() { close(stop) }) // before the servers, which wait for their handlers

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}
	ours := grant{audiences: []string{"tokensvc"}}
	testenv.Eventually(t, "the good issuer's keys are there", deadline, func() error {
		if status, err := trade(t.Context(), client, api, good.token(t, ours)); err != nil || status != http.StatusOK {
			return fmt.Errorf("%d %w", status, err)
		}
		return nil
	})
	before, idle := p.peak(t), metric(t, metrics, "go_goroutines")
	ctx, leave := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var passed atomic.Int64
	assertion := good.token(t, ours)
	for range 2 {
		load.Go(func() {
			for ctx.Err() == nil {
				if status, err := trade(ctx, client, api, assertion); ctx.Err() == nil && (err != nil || status != http.StatusOK) {
					t.Errorf("a good assertion: %d %v", status, err)
					return
				}
				passed.Add(1)
			}
		})
	}
	for _, i := range all {
		token := i.token(t, ours)
		for sender := range 8 {
			load.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					status, err := trade(ctx, client, api, withKeyID(token, fmt.Sprintf("new-%d-%d", sender, n)))
					if ctx.Err() != nil {
						return
					}
					if err != nil || status != http.StatusUnauthorized && status != http.StatusServiceUnavailable {
						t.Errorf("%s: an assertion with a new key id: %d %v", i.name, status, err)
						return
					}
					i.refused.Add(1)
				}
			})
		}
	}
	testenv.Eventually(t, "each issuer has been asked three times", deadline, func() error {
		for _, i := range all {
			if asked, refused := i.fetches.Load(), i.refused.Load(); (asked < 3 || refused < 8) && !t.Failed() {
				return fmt.Errorf("%s: asked %d times, %d refusals", i.name, asked, refused)
			}
		}
		if passed.Load() < 100 && !t.Failed() {
			return fmt.Errorf("%d good assertions", passed.Load())
		}
		return nil
	})
	leave()
	load.Wait()
	client.CloseIdleConnections()
	elapsed := time.Since(began)
	for _, i := range all {
		// Once a second because of the key ids, and after a failure at most once in 250 ms, 500 ms, 1 s, 2 s, 4 s, 4 s
		// …
		if most := int64(6 + 2*elapsed/time.Second); i.fetches.Load() > most {
			t.Errorf("%s: asked %d times within %s, want at most %d", i.name, i.fetches.Load(), elapsed, most)
		}
		t.Logf("%-15s asked %d times, %d assertions refused", i.name, i.fetches.Load(), i.refused.Load())
	}
	if n := led.Load(); n > 0 {
		t.Errorf("a redirect to another host was followed %d times", n)
	}
	grown := p.peak(t) - before
	t.Logf("%d good assertions within %s; %d MiB at first, at most %d MiB more", passed.Load(), elapsed.Round(time.Second), before>>20, grown>>20)
	if grown > 128<<20 {
		t.Errorf("%d MiB of memory are held", grown>>20)
	}
	testenv.Eventually(t, "nothing is left over", deadline, func() error {
		if now := metric(t, metrics, "go_goroutines"); now > idle+20 {
			return fmt.Errorf("%v goroutines, %v at first", now, idle)
		}
		return nil
	})
}
