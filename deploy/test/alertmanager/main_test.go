package alertmanager_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bin holds what TestMain builds: both services and Alertmanager. root is the repository.
var bin, root string

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "alertmanager:", err)
		code = 1
	}
	os.Exit(code)
}

const module = "github.com/prometheus/alertmanager"

func build(m *testing.M) (int, error) {
	var err error
	if root, err = filepath.Abs("../../.."); err != nil {
		return 0, err
	}
	if bin, err = os.MkdirTemp("", "alertmanager-bin-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(bin)
	source := filepath.Join(bin, "source")
	if err := withPage(source); err != nil {
		return 0, err
	}
	for name, from := range map[string][2]string{
		"tokensvc": {filepath.Join(root, "tokensvc"), "."}, "eventsvc": {filepath.Join(root, "eventsvc"), "."}, "alertmanager": {source, "./cmd/alertmanager"},
	} {
		if _, err := run(from[0], "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(bin, name), from[1]); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// withPage copies the module of Alertmanager, and adds the page that it embeds.
func withPage(to string) error {
	listed, err := run(".", "go", "mod", "download", "-json", module)
	if err != nil {
		return err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(listed, &found); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(found.Dir)); err != nil {
		return err
	}
	if _, err := run(to, "chmod", "-R", "u+w", "."); err != nil {
		return err
	}
	for _, page := range []string{"elm", "mantine"} {
		dir := filepath.Join(to, "ui/app/dist", page)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte("<title>Alertmanager</title>"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func run(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	var failed bytes.Buffer
	cmd.Dir, cmd.Stderr, cmd.Env = dir, &failed, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, failed.String())
	}
	return out, nil
}

// deadline bounds every wait. It is long enough for a busy machine.
const deadline = 3 * time.Minute

// until waits for a condition.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, deadline)
		}
	}
}

// free returns a loopback address that nobody listens on, and that nobody else gets until the test ends. It does what
// shared/porttest does, whose module would bring other versions of what is built here.
func free(t testing.TB) string {
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

// process is a program that is killed and started again.
type process struct {
	name  string
	args  []string
	env   []string
	ready string // URL that answers 200 when it is ready
	cmd   *exec.Cmd
	log   bytes.Buffer // of the runs before this one; read after they have ended
}

func (p *process) start(t testing.TB) {
	t.Helper()
	p.cmd = exec.Command(filepath.Join(bin, p.name), p.args...)
	p.cmd.Dir, p.cmd.Env = t.TempDir(), append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// launch starts a program, and ends it with the test.
func (p *process) launch(t testing.TB) *process {
	t.Helper()
	p.start(t)
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", p.name, p.log.String())
		}
	})
	p.wait(t)
	return p
}

func (p *process) wait(t testing.TB) {
	t.Helper()
	until(t, p.name+" is ready", func() bool {
		res, err := http.Get(p.ready)
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == http.StatusOK
	})
}

// kill ends a program at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// world is everything that runs.
type world struct {
	t             testing.TB
	events        *process
	url, token    string
	alertmanagers []*process
	urls          []string // of them
	*receiver
}

// receiver keeps what Alertmanager sends to a webhook.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	messages []message
}

// message is one of Alertmanager's.
type message struct {
	Status string
	Alerts []struct {
		Status              string
		Labels, Annotations map[string]string
		StartsAt, EndsAt    time.Time
		GeneratorURL        string
	}
	at time.Time
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var m message
		if err := json.NewDecoder(req.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		m.at = time.Now()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.messages = append(r.messages, m)
	}))
	t.Cleanup(r.Close)
	return r
}

// of returns the messages about an object.
func (r *receiver) of(name string) (all []message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.messages {
		if m.Alerts[0].Labels["name"] == name {
			all = append(all, m)
		}
	}
	return all
}

// names returns how often each object was told of.
func (r *receiver) names(status string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]int{}
	for _, m := range r.messages {
		if m.Status == status {
			all[m.Alerts[0].Labels["name"]]++
		}
	}
	return all
}

// config has Alertmanager tell of each alert by itself, and at once.
const config = `route: {receiver: test, group_by: ['...'], group_wait: 10ms, group_interval: 1s, repeat_interval: 4h}
receivers: [{name: test, webhook_configs: [{url: %q, send_resolved: true}]}]
`

// start runs both services and two Alertmanagers until the test ends.
func start(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, receiver: newReceiver(t)}
	tokens, admin, events, eventsAdmin := free(t), free(t), free(t), free(t)
	(&process{name: "tokensvc", ready: "http://" + admin + "/readyz", env: []string{"TOKENSVC_LISTEN_HTTP=" + tokens, "TOKENSVC_LISTEN_ADMIN=" + admin,
		"TOKENSVC_CLIENTS_FILE=" + filepath.Join(root, "deploy/local/clients.yaml")}}).launch(t)
	w.events = (&process{name: "eventsvc", ready: "http://" + eventsAdmin + "/readyz", env: []string{"EVENTSVC_LISTEN_HTTP=" + events, "EVENTSVC_LISTEN_ADMIN=" + eventsAdmin,
		"EVENTSVC_ISSUER=http://" + tokens, "EVENTSVC_DATA_DIR=" + t.TempDir()}}).launch(t)
	w.url = "http://" + events
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
	w.token = token.AccessToken
	file := filepath.Join(t.TempDir(), "alertmanager.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, w.Server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	peers := []string{free(t), free(t)}
	for i := range peers { // they listen for UDP too, and the mark of a free address does so at 127.0.0.1
		peers[i] = strings.Replace(peers[i], "127.0.0.1", "127.0.0.2", 1)
	}
	for i, peer := range peers {
		web := free(t)
		w.urls = append(w.urls, "http://"+web)
		w.alertmanagers = append(w.alertmanagers, (&process{name: "alertmanager", ready: "http://" + web + "/-/ready", args: []string{
			"--config.file=" + file, "--storage.path=" + t.TempDir(), "--web.listen-address=" + web, "--cluster.listen-address=" + peer,
			"--cluster.peer=" + peers[1-i], "--cluster.peer-timeout=3s", "--cluster.gossip-interval=50ms", "--cluster.settle-timeout=5s",
		}}))
	}
	for _, a := range w.alertmanagers {
		a.start(t)
		t.Cleanup(func() {
			a.kill()
			if t.Failed() {
				t.Logf("alertmanager said:\n%s", a.log.String())
			}
		})
	}
	for _, a := range w.alertmanagers {
		a.wait(t)
	}
	return w
}

// alerts returns a process of eventsvc alerts with a file of the cursor.
func (w *world) alerts(rules, cursor string) *process {
	admin := free(w.t)
	file := filepath.Join(w.t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return &process{name: "eventsvc", ready: "http://" + admin + "/readyz", args: []string{"alerts", "--rules=" + file, "--cursor-file=" + cursor, "--server=" + w.url,
		"--listen-admin=" + admin, "--alertmanager=" + strings.Join(w.urls, ",")}, env: []string{"EVENTSVC_TOKEN=" + w.token}}
}

// create records an event about a pod, and returns its revision. It is sent until the server answers.
func (w *world) create(name, reason, note string, at time.Time) (revision string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": name + "." + strings.ToLower(reason)}, "eventTime": at.UTC().Format("2006-01-02T15:04:05.000000Z"),
		"reportingController": "kubelet", "reportingInstance": "node-1", "action": "Starting", "reason": reason, "type": "Warning", "note": note,
		"regarding": map[string]any{"kind": "Pod", "namespace": "shop", "name": name, "uid": "1"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	until(w.t, "the event is created", func() bool {
		req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/apis/events.k8s.io/v1/namespaces/shop/events", bytes.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+w.token)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		var made struct {
			Metadata struct{ ResourceVersion string }
		}
		if err != nil || json.Unmarshal(text, &made) != nil {
			return false
		}
		if res.StatusCode >= 500 {
			return false
		}
		if res.StatusCode != http.StatusCreated && res.StatusCode != http.StatusConflict {
			w.t.Fatalf("%s: %s", res.Status, text)
		}
		revision = made.Metadata.ResourceVersion
		return true
	})
	return revision
}

// told waits until a message about a pod has come.
func (w *world) told(name string) {
	w.t.Helper()
	until(w.t, "a message about "+name, func() bool { return len(w.of(name)) > 0 })
}

// settled waits until both Alertmanagers have so many alerts, and have looked twice whether each was told of, after
// which none is told of again.
func (w *world) settled(alerts int) {
	w.t.Helper()
	for _, a := range w.urls {
		until(w.t, fmt.Sprintf("%s has %d alerts", a, alerts), func() bool {
			res, err := http.Get(a + "/api/v2/alerts")
			if err != nil {
				return false
			}
			defer res.Body.Close()
			var all []any
			return json.NewDecoder(res.Body).Decode(&all) == nil && len(all) >= alerts
		})
		before := w.metric(a, "alertmanager_nflog_queries_total")
		until(w.t, a+" has decided", func() bool { return w.metric(a, "alertmanager_nflog_queries_total") >= before+float64(2*alerts) })
	}
}

// metric returns the value of a metric.
func (w *world) metric(base, name string) (value float64) {
	res, err := http.Get(base + "/metrics")
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			_, _ = fmt.Sscan(rest, &value)
		}
	}
	return value
}

// once fails the test unless each pod was told of once.
func (w *world) once(status string, want ...string) {
	w.t.Helper()
	got := w.names(status)
	for name, n := range got {
		if n != 1 {
			w.t.Errorf("%s is %s %d times", name, status, n)
		}
	}
	if all := slices.Sorted(maps.Keys(got)); !slices.Equal(all, slices.Sorted(slices.Values(want))) {
		w.t.Errorf("%s: %v, want %v", status, all, want)
	}
}
