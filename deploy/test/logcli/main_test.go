package logcli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bin holds what TestMain builds: both services and logcli. root is the repository.
var bin, root string

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "logcli:", err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	var err error
	if root, err = filepath.Abs("../../.."); err != nil {
		return 0, err
	}
	if bin, err = os.MkdirTemp("", "logcli-bin-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(bin)
	for name, from := range map[string][2]string{
		"tokensvc": {"tokensvc", "."}, "eventsvc": {"eventsvc", "."}, "logcli": {"deploy/test/logcli", "github.com/grafana/loki/v3/cmd/logcli"},
	} {
		cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(bin, name), from[1])
		cmd.Dir = filepath.Join(root, from[0])
		cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
	}
	return m.Run(), nil
}

// deadline bounds every wait. It is long enough for a busy machine.
const deadline = 5 * time.Minute

// services are a running pair.
type services struct {
	tokens        string // base URL of tokensvc
	plain, secure string // base URLs of eventsvc

	ca, token string
}

// start runs both services until the test ends, and fetches a token.
func start(t *testing.T) *services {
	t.Helper()
	tokens, data := free(t), t.TempDir()
	plain, secure := free(t), free(t)
	launch(t, "tokensvc", "TOKENSVC_LISTEN_HTTP="+tokens, "TOKENSVC_LISTEN_ADMIN="+free(t), "TOKENSVC_CLIENTS_FILE="+filepath.Join(root, "deploy/local/clients.yaml"))
	launch(t, "eventsvc", "EVENTSVC_LISTEN_HTTP="+plain, "EVENTSVC_LISTEN_HTTPS="+secure, "EVENTSVC_LISTEN_ADMIN="+free(t),
		"EVENTSVC_ISSUER=http://"+tokens, "EVENTSVC_BASIC_TOKEN_URL=http://"+tokens+"/oauth2/token", "EVENTSVC_TLS_SELF_SIGNED=true", "EVENTSVC_DATA_DIR="+data)
	res, err := http.PostForm("http://"+tokens+"/oauth2/token", url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"demo"}, "client_secret": {"demo-secret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(res.Body).Decode(&token); err != nil || token.AccessToken == "" {
		t.Fatalf("%s: %v", res.Status, err)
	}
	return &services{"http://" + tokens, "http://" + plain, "https://" + secure, filepath.Join(data, "tls/ca.crt"), token.AccessToken}
}

// free returns a loopback address that nobody listens on, and that nobody else gets until the test ends. It does what
// shared/porttest does, whose module would bring other versions of what is built here.
func free(t *testing.T) string {
	t.Helper()
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000))
		mark, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = mark.Close() })
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
}

// launch runs a service until the test ends, and waits until it is ready.
func launch(t *testing.T, name string, env ...string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, name))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", name, log.String())
		}
	})
	ready := exec.CommandContext(t.Context(), filepath.Join(bin, name), "healthcheck", "--wait", deadline.String())
	ready.Env = cmd.Env
	if out, err := ready.CombinedOutput(); err != nil {
		t.Fatalf("%s is not ready: %v\n%s", name, err, out)
	}
}

// create records an event that was observed at a time.
func (s *services) create(t *testing.T, name, reason, kind, note string, at time.Time) {
	t.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":%q},"eventTime":%q,"reportingController":"kubelet","reportingInstance":"node-1","action":"Starting",
		"reason":%q,"type":%q,"note":%q,"regarding":{"kind":"Pod","namespace":"shop","name":"web-0","uid":"1"}}`,
		name, at.UTC().Format("2006-01-02T15:04:05.000000Z"), reason, kind, note)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.plain+"/apis/events.k8s.io/v1/namespaces/shop/events", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", res.Status, text)
	}
}
