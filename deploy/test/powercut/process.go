//go:build linux

package powercut

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a running eventsvc. It ends with the test.
type process struct {
	cmd    *exec.Cmd
	output output
	done   chan struct{}
	err    error // once it is done
}

// start starts a command of eventsvc.
func (m *machine) start(args ...string) (*process, error) {
	p := &process{cmd: exec.Command(m.binary, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "EVENTSVC_DATA_DIR="+filepath.Join(m.mountpoint, dataDir), "EVENTSVC_LISTEN_ADMIN="+m.admin)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// An output is the end of what a process has printed.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	o.text = o.text[max(0, len(o.text)-2000):]
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.text))
}

// An issuer makes tokens and serves the key that they are verified with.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer() (*issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	keys := map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}}}
	serve := func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(keys) }
	return &issuer{httptest.NewServer(http.HandlerFunc(serve)), key}, nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token returns a token that is good for an hour.
func (i *issuer) token() (string, error) {
	now := time.Now().Unix()
	claims := fmt.Sprintf(`{"iss":%q,"sub":"powercut","client_id":"powercut","iat":%d,"exp":%d}`, i.URL, now, now+3600)
	text := encode([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encode([]byte(claims))
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, i.key, crypto.SHA256, digest[:])
	return text + "." + encode(signature), err
}

// A machine is where eventsvc runs: the binary, its settings, and a directory
// on which disks are mounted.
type machine struct {
	binary     string
	flags      []string
	issuer     *issuer
	mountpoint string
	api, admin string // addresses
}

// dataDir is where the data is on the disk.
const dataDir = "data"

// serve starts the service without waiting for it.
func (m *machine) serve() (*service, error) {
	token, err := m.issuer.token()
	if err != nil {
		return nil, err
	}
	p, err := m.start(append([]string{"serve", "--issuer", m.issuer.URL, "--jwks-url", m.issuer.URL, "--listen-http", m.api, "--log-format", "text"}, m.flags...)...)
	return &service{process: p, machine: m, token: token, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers}}}, err
}

// run runs another command and fails unless it exits with 0.
func (m *machine) run(args ...string) error {
	p, err := m.start(args...)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.kill()
	}
	if p.err != nil {
		return fmt.Errorf("eventsvc %s: %w: %s", args[0], p.err, &p.output)
	}
	return nil
}

// powerOff ends everything that runs on a disk: from now on no change reaches it.
func (m *machine) powerOff(d *mount, all ...*process) error {
	d.stop()
	for _, p := range all {
		p.kill()
	}
	return d.unmount()
}

// A service is an eventsvc that serves the API.
type service struct {
	*process
	*machine
	token  string
	client *http.Client
}

// ready waits until the service is ready.
func (s *service) ready() error {
	last := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(3 * time.Millisecond) {
		if s.ended() {
			return fmt.Errorf("the service has ended: %w: %s", errors.Join(s.err), &s.output)
		}
		resp, err := s.client.Get("http://" + s.admin + "/readyz")
		if err != nil {
			continue
		}
		var b bytes.Buffer
		_, _ = b.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		last = b.String()
	}
	return fmt.Errorf("the service is not ready after a minute: %s; %s", last, &s.output)
}
