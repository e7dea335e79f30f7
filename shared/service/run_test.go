package service_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
	"tidings.example/shared/waittest"
)

var quiet = slog.New(slog.DiscardHandler)

// start runs a configuration with one more endpoint, and returns its address, a function that stops it, and its result.
func start(t *testing.T, c service.Config, e httpserver.Endpoint) (addr string, stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	opened := make(chan string, 1)
	e.Setting, e.Addr = "--listen-http", "127.0.0.1:0"
	e.OnListen = func(a net.Addr) { opened <- a.String() }
	c.HTTP = httpserver.Config{Name: "demosvc", Log: quiet, Endpoints: append(c.HTTP.Endpoints, e)}
	end := make(chan error, 1)
	go func() { end <- service.Run(ctx, c) }()
	return waittest.Within(t, opened), cancel, end
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestRunBusyPort(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	free := httpserver.Endpoint{Setting: "--listen-admin", Addr: "127.0.0.1:0", OnListen: func(net.Addr) { t.Error("opened in vain") }}
	for name, test := range map[string]struct {
		addr string
		code int
		want []string
	}{
		"busy":                {busy.Addr().String(), 1, []string{"--listen-http: port " + port + " is in use", "stop the other program", "DEMOSVC_LISTEN_HTTP"}},
		"no address":          {"localhost", 2, []string{"--listen-http", "host:port"}},
		"no port number":      {"127.0.0.1:http-alt", 2, []string{"--listen-http", "host:port"}},
		"port out of range":   {"127.0.0.1:70000", 2, []string{"host:port"}},
		"not of this machine": {"192.0.2.1:8080", 1, []string{"no address 192.0.2.1", "DEMOSVC_LISTEN_HTTP"}},
	} {
		err := service.Run(t.Context(), service.Config{HTTP: httpserver.Config{Name: "demosvc", Log: quiet, Endpoints: []httpserver.Endpoint{
			free, {Setting: "--listen-http", Addr: test.addr},
		}}})
		if cli.ExitCode(err) != test.code {
			t.Errorf("%s: exit code %d of %v, want %d", name, cli.ExitCode(err), err, test.code)
		}
		for _, text := range test.want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q in it", name, err, text)
			}
		}
	}
}

func TestRunStopsInOrder(t *testing.T) {
	t.Parallel()
	var health service.Health
	order := make(chan string, 10)
	inside, release := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		close(inside)
		<-release
		_, _ = io.WriteString(w, "finished")
		order <- "request"
	})
	addr, stop, ended := start(t, service.Config{
		Health: &health,
		Tasks: []func(context.Context) error{func(ctx context.Context) error {
			<-ctx.Done()
			order <- "task"
			return nil
		}},
		Drain: func(context.Context) {
			rec := &statusRecorder{header: http.Header{}}
			req, _ := http.NewRequest(http.MethodGet, "/readyz", nil)
			health.Handler("/readyz").ServeHTTP(rec, req)
			order <- fmt.Sprint("drain with readiness ", rec.code)
			close(release)
		},
	}, httpserver.Endpoint{Handler: mux})
	answer := make(chan string, 1)
	go func() {
		_, body := get(t, http.DefaultClient, "http://"+addr+"/slow")
		answer <- body
	}()
	waittest.Within(t, inside)
	stop()
	if err := waittest.Within(t, ended); err != nil {
		t.Errorf("Run: %v", err)
	}
	if body := waittest.Within(t, answer); body != "finished" {
		t.Errorf("the open request was answered %q", body)
	}
	for _, want := range []string{"drain with readiness 500", "request", "task"} {
		if got := waittest.Within(t, order); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

type statusRecorder struct {
	header http.Header
	code   int
}

func (r *statusRecorder) Header() http.Header         { return r.header }
func (r *statusRecorder) WriteHeader(code int)        { r.code = code }
func (r *statusRecorder) Write(b []byte) (int, error) { return len(b), nil }

func TestRunEndsWithinStopTimeout(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{})
	addr, stop, ended := start(t, service.Config{StopTimeout: 20 * time.Millisecond}, httpserver.Endpoint{
		Streaming: true,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(inside)
			<-r.Context().Done() // ends only when its connection is cut
		}),
	})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	waittest.Within(t, inside)
	stop()
	if err := waittest.Within(t, ended); err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the service")
	}
}

func TestRunReportsFailures(t *testing.T) {
	t.Parallel()
	failure := errors.New("disk full")
	_, _, ended := start(t, service.Config{
		StopDelay: time.Hour, // not waited for after a failure
		Tasks:     []func(context.Context) error{func(context.Context) error { return failure }},
	}, httpserver.Endpoint{Handler: http.NotFoundHandler()})
	if err := waittest.Within(t, ended); !errors.Is(err, failure) {
		t.Errorf("Run: %v, want the task's error", err)
	}
	_, stop, ended := start(t, service.Config{Tasks: []func(context.Context) error{
		func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("last write: %w", failure) },
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, // the usual way to end, no failure
	}}, httpserver.Endpoint{Handler: http.NotFoundHandler()})
	stop()
	if err := waittest.Within(t, ended); !errors.Is(err, failure) || errors.Is(err, context.Canceled) {
		t.Errorf("a task that fails while stopping: %v", err)
	}
	_, stop, ended = start(t, service.Config{
		StopTimeout: time.Millisecond,
		Tasks:       []func(context.Context) error{func(context.Context) error { select {} }},
	}, httpserver.Endpoint{Handler: http.NotFoundHandler()})
	stop()
	if err := waittest.Within(t, ended); err == nil || !strings.Contains(err.Error(), "left behind") {
		t.Errorf("a task that does not end: %v", err)
	}
}

func TestRunTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	config := httpserver.TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certified.TLS.Certificates[0], nil })
	addr, _, _ := start(t, service.Config{}, httpserver.Endpoint{TLS: config, Streaming: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			_, _ = fmt.Fprint(w, r.Proto, " ", string(body), err)
			_ = http.NewResponseController(w).Flush()
		})})
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	for version, want := range map[uint16]string{tls.VersionTLS13: "HTTP/2.0 hello<nil>", tls.VersionTLS12: "HTTP/2.0 hello<nil>", tls.VersionTLS11: ""} {
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: version}}} //nolint:gosec // old versions are what is tested
		resp, err := client.Post("https://"+addr, "text/plain", strings.NewReader("hello"))
		if want == "" {
			if err == nil {
				t.Error("TLS 1.1 was accepted")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != want {
			t.Errorf("answer %q, %v; want %q", body, err, want)
		}
		_ = resp.Body.Close()
		client.CloseIdleConnections()
	}
}

func TestRunBoundsHeaders(t *testing.T) {
	t.Parallel()
	addr, _, _ := start(t, service.Config{}, httpserver.Endpoint{Handler: http.NotFoundHandler()})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("x", 64<<10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a 64 KiB header: %d, want 431", resp.StatusCode)
	}
}

// TestSignals runs itself as a child, because a second signal ends the process.
func TestSignals(t *testing.T) {
	if os.Getenv("SIGNALS_CHILD") != "" {
		ctx, stop := service.Signals(context.Background())
		defer stop()
		fmt.Println("waiting")
		<-ctx.Done()
		fmt.Println("stopping")
		select {}
	}
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSignals$")
	child.Env = append(os.Environ(), "SIGNALS_CHILD=1")
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for _, want := range []string{"waiting", "stopping"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("child said %q, want %q", lines.Text(), want)
		}
		if err := child.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("after the second signal: %v, want exit code 143", err)
	}
}
