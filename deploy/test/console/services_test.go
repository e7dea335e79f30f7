package console_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/deploy/test/internal/incidents"
	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// deadline bounds every wait in these tests. It is long enough for a busy machine.
const deadline = time.Minute

// The clients that tokensvc knows, all with the secret clientSecret.
const (
	admin        = "demo"   // may do everything
	reader       = "reader" // may list and watch in the namespace shop only
	clientSecret = "demo-secret"
)

// services are a tokensvc and an eventsvc on loopback, whose data survive restarts.
type services struct {
	tokens, events string // base URLs
	dir            string // with their files
	programs       map[string]*program
}

// program is one of the two.
type program struct {
	path string
	env  []string
	log  testenv.Output
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// startServices starts both, with further settings such as EVENTSVC_HISTORY=1h, and stops them when the test ends.
func startServices(t testing.TB, settings ...string) *services {
	t.Helper()
	s := newServices(t, t.TempDir(), settings...)
	t.Cleanup(func() {
		s.stopAll()
		if t.Failed() {
			for name, p := range s.programs {
				t.Logf("%s said:\n%s", name, p.log.String())
			}
		}
	})
	s.startAll(t)
	return s
}

// newServices prepares services that are not running.
func newServices(t testing.TB, dir string, settings ...string) *services {
	t.Helper()
	tokens, events := porttest.Addr(t), porttest.Addr(t)
	write(t, filepath.Join(dir, "clients.yaml"), clients)
	write(t, filepath.Join(dir, "policy.yaml"), policy)
	s := &services{tokens: "http://" + tokens, events: "http://" + events, dir: dir, programs: map[string]*program{
		"tokensvc": {env: []string{
			"TOKENSVC_LISTEN_HTTP=" + tokens, "TOKENSVC_LISTEN_ADMIN=" + porttest.Addr(t),
			"TOKENSVC_CLIENTS_FILE=" + filepath.Join(dir, "clients.yaml"), "TOKENSVC_CORS_ORIGIN=http://" + events,
			"TOKENSVC_SIGNING_KEY=" + signingKey(t, dir), // the same after a restart
		}},
		"eventsvc": {env: []string{
			"EVENTSVC_LISTEN_HTTP=" + events, "EVENTSVC_LISTEN_ADMIN=" + porttest.Addr(t),
			"EVENTSVC_ISSUER=http://" + tokens, "EVENTSVC_DATA_DIR=" + filepath.Join(dir, "events"),
			"EVENTSVC_POLICY_FILE=" + filepath.Join(dir, "policy.yaml"),
		}},
	}}
	for name, p := range s.programs {
		p.path = filepath.Join(programs(t), name)
		for _, setting := range settings {
			if strings.HasPrefix(setting, strings.ToUpper(name)+"_") {
				p.env = append(p.env, setting)
			}
		}
	}
	return s
}

const clients = `clients:
- {client_id: ` + admin + `, client_secret: "{noop}` + clientSecret + `", scope: events}
- {client_id: ` + reader + `, client_secret: "{noop}` + clientSecret + `", scope: events}
`

const policy = `roles:
- name: look
  rules: [{verbs: [get, list, watch], namespaces: [shop]}]
bindings:
- role: events:admin
  subjects: [{clientID: ` + admin + `}]
- role: look
  subjects: [{clientID: ` + reader + `}]
`

// signingKey writes a key to a file, so that a tokensvc that starts again signs as before.
func signingKey(t testing.TB, dir string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "key.pem")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	return file
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startAll starts both and waits until they are ready.
func (s *services) startAll(t testing.TB) {
	t.Helper()
	for _, p := range s.programs {
		p.start(t)
	}
	for _, p := range s.programs {
		p.ready(t)
	}
}

// start starts a service that was stopped, and waits until it is ready.
func (s *services) start(t testing.TB, name string) {
	t.Helper()
	s.programs[name].start(t)
	s.programs[name].ready(t)
}

// stop ends a service as an operator does.
func (s *services) stop(t testing.TB, name string) {
	t.Helper()
	if err := s.programs[name].end(syscall.SIGTERM); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// restart is stop and start.
func (s *services) restart(t testing.TB, name string) {
	t.Helper()
	s.stop(t, name)
	s.start(t, name)
}

func (s *services) stopAll() {
	for _, p := range s.programs {
		if p.cmd != nil {
			_ = p.end(syscall.SIGTERM)
		}
	}
}

func (p *program) start(t testing.TB) {
	t.Helper()
	p.cmd = exec.Command(p.path)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, done := p.cmd, make(chan struct{})
	p.done = done
	go func() { _ = cmd.Wait(); close(done) }()
}

// ready uses the probe that the images use.
func (p *program) ready(t testing.TB) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.path, "healthcheck", "--wait", deadline.String())
	cmd.Env = p.cmd.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s is not ready: %v\n%s%s", p.path, err, out, p.log.String())
	}
}

func (p *program) end(sig syscall.Signal) error {
	_ = p.cmd.Process.Signal(sig) // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(deadline):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("did not end within %s of %v", deadline, sig)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("left with %d\n%s", code, p.log.String())
	}
	return nil
}

// spent is the processor time of a running program so far.
func (p *program) spent(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime = 14 - 3, 15 - 3 // proc_pid_stat(5), counted from the state
	var ticks time.Duration
	for _, field := range []string{fields[utime], fields[stime]} {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * time.Second / 100 // USER_HZ
}

// token asks for the token of a client.
func (s *services) token(t testing.TB, client string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {clientSecret}}
	body := s.send(t, http.MethodPost, s.tokens+"/oauth2/token", "application/x-www-form-urlencoded", "", []byte(form.Encode()), http.StatusOK)
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return answer.AccessToken
}

// send sends a request and returns the answer's body. Another code than want fails the test.
func (s *services) send(t testing.TB, method, url, contentType, token string, body []byte, want int) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s %s: %d, %v: %s", method, url, resp.StatusCode, err, answer)
	}
	return answer
}

// eventsPath is the path of the events of a namespace.
func eventsPath(namespace string) string {
	return "/apis/events.k8s.io/v1/namespaces/" + namespace + "/events"
}

// event returns an event that happens now. Change what the test is about.
func event(namespace, name string) *eventsv1.Event {
	return &eventsv1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		EventTime:  metav1.NowMicro(), Type: "Normal", Reason: "Tested", Action: "Testing", Note: "This is a test.",
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "web-0"},
		ReportingController: "example.com/test", ReportingInstance: "test-1",
	}
}

// create creates events through the API.
func (s *services) create(t testing.TB, all ...*eventsv1.Event) {
	t.Helper()
	token := s.token(t, admin)
	for _, ev := range all {
		body, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		s.send(t, http.MethodPost, s.events+eventsPath(ev.Namespace), "application/json", token, body, http.StatusCreated)
	}
}

// record imports a generated week into services that are not running.
func (s *services) record(t testing.TB, w incidents.Week) *incidents.Facts {
	t.Helper()
	pipe, in := io.Pipe()
	p := s.programs["eventsvc"]
	cmd := exec.CommandContext(t.Context(), p.path, "import", "-", "--data-dir", filepath.Join(s.dir, "events"))
	cmd.Stdin = pipe
	var facts *incidents.Facts
	written := make(chan error, 1)
	go func() {
		var err error
		facts, err = w.Write(in)
		_ = in.CloseWithError(err)
		written <- err
	}()
	out, err := cmd.CombinedOutput()
	_ = pipe.Close()
	if writing := <-written; err != nil || writing != nil {
		t.Fatalf("import: %v, %v\n%s", err, writing, out)
	}
	return facts
}

// week returns services with a generated week of a cluster that ended when the tests began, and the facts about it. All
// tests share them, so none may write to them or stop them.
func week(t testing.TB) (*services, *incidents.Facts) {
	t.Helper()
	common.Do(func() {
		dir := filepath.Join(temp, "week")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s := newServices(t, dir)
		common.facts = s.record(t, incidents.Week{Seed: 1, Events: weekEvents, End: time.Now()})
		last = append(last, s.stopAll)
		s.startAll(t)
		common.services = s
	})
	if common.services == nil {
		t.Fatal("another test could not start the common services")
	}
	return common.services, common.facts
}

// weekEvents is how many events the common services have.
const weekEvents = 30_000

var common struct {
	sync.Once
	services *services
	facts    *incidents.Facts
}
