package trustfile_test

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tidings.example/shared/certtest"
	"tidings.example/shared/trustfile"
)

// TestRenewed: connections are verified with the authorities that the file has now, whether it is rewritten in place or
// replaced.
func TestRenewed(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	var pairs []tls.Certificate
	for _, dir := range dirs {
		certtest.Write(t, dir, "127.0.0.1")
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, pair)
	}
	var serves atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{pairs[serves.Load()]}, MinVersion: tls.VersionTLS12}, nil
	}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.SetKeepAlivesEnabled(false) // each request is a connection
	server.StartTLS()
	t.Cleanup(server.Close)

	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(text []byte, replace bool) {
		t.Helper()
		name := file
		if replace {
			name += ".new"
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if replace {
			if err := os.Rename(name, file); err != nil {
				t.Fatal(err)
			}
		}
	}
	authority := func(n int) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dirs[n], "ca.crt"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	write(authority(0), false)
	transport, err := trustfile.New(&http.Transport{ForceAttemptHTTP2: true}, file)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	try := func(step string, trusted bool) {
		t.Helper()
		resp, err := client.Get(server.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil) != trusted || err != nil && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", step, err)
		}
	}
	try("at first", true)
	serves.Store(1)
	try("the server is renewed first", false)
	write(append(authority(0), authority(1)...), true)
	try("both are trusted", true)
	write([]byte("half a file"), false)
	try("a bad file changes nothing", true)
	write(authority(0), false)
	try("the authority is taken back", false)
	serves.Store(0)
	try("the former certificate", true)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	try("no file changes nothing", true)
	write(authority(1), true)
	try("another file", false)
}

// TestBadFiles are refused at first.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + "x", t.TempDir()} {
		if _, err := trustfile.New(&http.Transport{}, file); err == nil {
			t.Errorf("%s is accepted", file)
		}
	}
}
