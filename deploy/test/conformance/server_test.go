package conformance_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"tidings.example/shared/pgtest"
	"tidings.example/shared/porttest"
)

// patience is how long a test waits for something that must happen. Nothing
// takes nearly as long on a machine that is not overloaded.
const patience = 5 * time.Minute

// server is a running eventsvc.
type server struct {
	httpAddr, httpsAddr, adminAddr string // the same over restarts

	dir   string   // its data
	extra []string // its settings
	token string

	engine []string     // where the events are
	twin   *server      // the other replica of the database; nil: there is none
	turn   turns        // between the two
	plain  *http.Client // HTTP/1.1 without TLS

	cmd  *exec.Cmd
	log  *logs
	read <-chan struct{} // closed when the process has ended
}

// start runs eventsvc until the test ends.
func start(t *testing.T, extra ...string) *server {
	t.Helper()
	s := newServer(t, extra)
	if *engine == "postgres" {
		dsn := pgtest.Start(t).Database(t)
		eventsvc(t, "database", "migrate", "--store-dsn", dsn)
		s.engine = []string{"--store-dsn=" + dsn}
	}
	if *replicas > 1 {
		s.twin = newServer(t, nil)
		s.extra = append([]string{"--public-url=http://" + s.httpAddr}, extra...) // each would name its own address
		s.turn = turns{next: new(atomic.Uint32), other: map[string]string{s.httpAddr: s.twin.httpAddr, s.httpsAddr: s.twin.httpsAddr}}
	}
	s.plain = &http.Client{Transport: s.turn.transport(&http.Transport{DisableCompression: true})}
	t.Cleanup(func() {
		s.plain.CloseIdleConnections()
		s.stop(t)
		if t.Failed() {
			t.Logf("log of eventsvc:\n%s", s.log)
			if s.twin != nil {
				t.Logf("log of the other replica:\n%s", s.twin.log)
			}
		}
	})
	s.launch(t)
	return s
}

// newServer returns a server that does not run yet.
func newServer(t *testing.T, extra []string) *server {
	t.Helper()
	return &server{
		httpAddr: porttest.Addr(t), httpsAddr: porttest.Addr(t), adminAddr: porttest.Addr(t),
		dir: t.TempDir(), extra: extra, token: run.issuer.token(t, "tester"), log: &logs{},
	}
}

// turns sends every other request for a replica to the other one.
type turns struct {
	next  *atomic.Uint32
	other map[string]string // from the address of a replica to the same of the other one
}

// transport returns a transport that takes turns, if there are two replicas.
func (r turns) transport(to http.RoundTripper) http.RoundTripper {
	if r.other == nil {
		return to
	}
	return turning{r, to}
}

// address returns an address of either replica.
func (r turns) address(addr string) string {
	if other := r.other[addr]; other != "" && r.next.Add(1)%2 == 0 {
		return other
	}
	return addr
}

// A turning transport keeps the Host of requests: a client that looks at it must not see where they went.
type turning struct {
	turns
	to http.RoundTripper
}

func (r turning) RoundTrip(req *http.Request) (*http.Response, error) {
	turned := req.Clone(req.Context())
	turned.Host = cmp.Or(req.Host, req.URL.Host)
	turned.URL.Host = r.address(req.URL.Host)
	return r.to.RoundTrip(turned)
}

func (r turning) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(r.to) }

// launch starts the process and waits until it is ready.
func (s *server) launch(t *testing.T) {
	t.Helper()
	bin, err := run.eventsvc()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"--listen-http", s.httpAddr, "--listen-https", s.httpsAddr, "--tls-self-signed", "--listen-admin", s.adminAddr,
		"--data-dir", s.dir, "--issuer", issuerName, "--jwks-url", run.issuer.URL, "--log-format", "json",
	}, slices.Concat(s.engine, s.extra)...)
	// Not the test's context: it ends before the cleanups run.
	cmd := exec.Command(bin, args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.cmd = cmd
	read := make(chan struct{})
	s.read = read
	go func() {
		defer close(read)
		s.log.read(stderr)
	}()
	s.awaitReady(t)
	if s.twin != nil { // clients trust one certificate
		if err := os.CopyFS(filepath.Join(s.twin.dir, "tls"), os.DirFS(filepath.Join(s.dir, "tls"))); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		s.twin.engine, s.twin.extra = s.engine, s.extra
		s.twin.launch(t)
	}
}

func (s *server) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, "eventsvc is ready", func() error {
		select {
		case <-s.read:
			t.Fatalf("eventsvc ended before it was ready:\n%s", s.log)
		default:
		}
		res, err := http.Get("http://" + s.httpAddr + "/readyz")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", res.Status, body)
		}
		return nil
	})
}

// stop ends the process as a supervisor would, and waits for it.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if s.twin != nil {
		s.twin.stop(t)
	}
	if s.cmd == nil {
		return
	}
	cmd := s.cmd
	s.cmd = nil
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone already; Wait tells
	hang := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer hang.Stop()
	<-s.read // Wait closes the pipe
	if err := cmd.Wait(); err != nil {
		t.Errorf("eventsvc ended with %v", err)
	}
}

// restart stops the process and starts it again at the same addresses.
func (s *server) restart(t *testing.T) {
	t.Helper()
	s.stop(t)
	s.plain.CloseIdleConnections()
	s.launch(t)
}

// config is how client-go reaches the server: HTTP/2 over TLS.
func (s *server) config() *rest.Config {
	return &rest.Config{
		Host:            "https://" + s.httpsAddr,
		BearerToken:     s.token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.caFile()},
		WrapTransport:   s.turn.transport,
		QPS:             -1, // the server is what is tested, not the client's patience
	}
}

// plainConfig is the same without TLS: HTTP/1.1.
func (s *server) plainConfig() *rest.Config {
	return &rest.Config{Host: "http://" + s.httpAddr, BearerToken: s.token, WrapTransport: s.turn.transport, QPS: -1}
}

// caFile is the authority that the server made for itself.
func (s *server) caFile() string { return filepath.Join(s.dir, "tls", "ca.crt") }

// logs collects what the server logs.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var line struct {
			Msg  string
			Code int
		}
		_ = json.Unmarshal(lines.Bytes(), &line) // a line that is none is kept all the same
		if line.Msg == "request" && line.Code < http.StatusInternalServerError {
			continue // tests say themselves what they asked for
		}
		l.mu.Lock()
		fmt.Fprintf(&l.text, "%s\n", lines.Bytes())
		l.mu.Unlock()
	}
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// everywhere reports whether a condition holds for all replicas, of which each answers one request in turn.
func everywhere(condition func() error) error {
	for range *replicas {
		if err := condition(); err != nil {
			return err
		}
	}
	return nil
}

// eventually waits until a condition holds, which it asks for often.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %v for: %s: %v", patience, what, err)
		}
	}
}

// namespace makes a name for a namespace of this test alone. Namespaces need
// not be declared.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return strings.Trim(name[:min(len(name), 60)], "-")
}
