package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/mirror/mirrortest"
	"tidings.example/shared/porttest"
	"tidings.example/shared/randtest"
	"tidings.example/shared/waittest"
)

// kubeconfigFor writes a kubeconfig for a server and a token and returns its name.
func kubeconfigFor(t testing.TB, server, token string) string {
	t.Helper()
	return file(t, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: %q}}]\n", server, token))
}

// coreEvents lists the events of a server, by namespace/name.
func coreEvents(t *testing.T, base, token, query string) map[string]corev1.Event {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var list corev1.EventList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	all := map[string]corev1.Event{}
	for _, ev := range list.Items {
		all[ev.Namespace+"/"+ev.Name] = ev
	}
	return all
}

// runMirror copies in this process until the returned function is called.
func runMirror(t *testing.T, args ...string) (admin string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	p := &process{t: t, addrs: map[string]string{}}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- run(ctx, append([]string{"mirror", "--listen-admin=127.0.0.1:0"}, args...), io.Discard, log, p.listening)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := waittest.Within(t, done); err != nil {
			t.Error(err)
		}
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the mirror said:\n%s", said)
		}
	})
	t.Cleanup(stop)
	waittest.Until(t, "the mirror listens", func() bool { return p.url("--listen-admin") != "" })
	return p.url("--listen-admin"), stop
}

// metric reads the value of a metric as it is printed.
func metric(t testing.TB, admin, name string) string {
	t.Helper()
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// child is the program in a process of its own, to be killed and started again.
type child struct {
	t    testing.TB
	args []string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

func (c *child) start() {
	c.cmd = exec.Command(os.Args[0], "-test.run=^TestChild$")
	c.cmd.Env = append(os.Environ(), childArgs+"="+strings.Join(c.args, "\n"))
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	if err := c.cmd.Start(); err != nil {
		c.t.Error(err)
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended; the log says why
	_ = c.cmd.Wait()
}

// TestMirrorUnderKills kills source, mirror and target repeatedly while a writer creates, updates and deletes. In the
// end the target has the last state of every event that ever existed, once, and nothing else.
func TestMirrorUnderKills(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	from, to := porttest.Addr(t), porttest.Addr(t)
	token := i.token(t, nil)
	serve := func(addr string) *child {
		return &child{t: t, args: []string{"serve", "--listen-http=" + addr, "--listen-admin=", "--issuer=" + i.URL, "--data-dir=" + t.TempDir()}}
	}
	parts := []*child{serve(from), serve(to), {t: t, args: []string{"mirror", "--kubeconfig=" + kubeconfigFor(t, "http://"+from, token),
		"--cluster=a", "--server=http://" + to, "--token-file=" + file(t, token), "--listen-admin="}}}
	for n, p := range parts {
		if n == 2 { // a mirror that finds no server waits for longer each time
			waittest.Until(t, "both servers are ready", func() bool { return ready(from) && ready(to) })
		}
		p.start()
		t.Cleanup(func() {
			p.kill()
			if t.Failed() {
				t.Logf("%s:\n%s", p.args[0], p.log.String())
			}
		})
	}

	waittest.Until(t, "the mirror has begun", func() bool { // what goes before that, nobody could have seen
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+to+"/api/v1/namespaces/kube-system/events/eventsvc-mirror.a", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})

	// The writer sends each request until it is answered, so some requests arrive twice.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	send := func(method, path, body string) (code int) {
		waittest.Until(t, method+" is answered", func() bool {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+from+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			req.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[method])
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			code = resp.StatusCode
			return code < 500
		})
		return code
	}
	written, deleted := 0, 0
	var progress atomic.Int64 // written, as others may read it
	var writer sync.WaitGroup
	seed := randtest.Seed(t)
	writer.Go(func() {
		random := rand.New(rand.NewPCG(seed, 1))
		for ctx.Err() == nil {
			name := fmt.Sprintf("e%05d", written)
			if code := send("POST", eventsPath, newEvent(name)); code != 201 && code != 409 {
				t.Errorf("create: %d", code)
			}
			written++
			progress.Store(int64(written))
			if recent := written - random.IntN(min(written, 20)) - 1; recent%7 != 0 {
				send("PATCH", eventsPath+fmt.Sprintf("/e%05d", recent), fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":"2026-01-02T03:05:05.000006Z"}}`, written+2))
			}
			if written%7 == 1 && written > 40 { // one that is never patched: its last version is known
				send("DELETE", fmt.Sprintf("%s/e%05d", eventsPath, written-36), "")
				deleted++
			}
		}
	})
	random := rand.New(rand.NewPCG(seed, 2))
	for round := range 12 {
		p := parts[round%len(parts)]
		before := progress.Load()
		waittest.Reaches(t, "something is written", before+20, progress.Load)
		if err := wait(ctx, time.Duration(random.Int64N(int64(300*time.Millisecond)))); err != nil {
			t.Fatal(err)
		}
		p.kill()
		if round%4 == 0 { // sometimes away for a while
			_ = wait(ctx, time.Duration(random.Int64N(int64(300*time.Millisecond))))
		}
		p.start()
	}
	stop()
	waittest.Join(t, &writer)

	var live, copies map[string]corev1.Event
	names := map[string]int{}
	defer func() {
		for n := range written {
			if name := fmt.Sprintf("e%05d", n); names[name] != 1 {
				t.Logf("%s has %d copies", name, names[name])
			}
		}
	}()
	send("GET", eventsPath, "") // until the source is up
	live = coreEvents(t, "http://"+from, token, "")
	waittest.Until(t, "the target answers", func() bool { return ready(to) })
	arrived := -1
	for whole := written + len(live); arrived < whole; { // however slow the disk is, as long as more arrives
		before := arrived
		waittest.Until(t, "more has arrived", func() bool {
			copies = mirrortest.BySource(t, coreEvents(t, "http://"+to, token, "labelSelector=cluster=a"))
			arrived = len(copies)
			clear(names)
			for _, ev := range copies {
				names[ev.Name[:strings.LastIndex(ev.Name, ".")]]++
			}
			for _, ev := range live {
				if copies[string(ev.UID)].Annotations["mirror.tidings.example/resource-version"] == ev.ResourceVersion {
					arrived++
				}
			}
			return arrived > before
		})
	}
	for _, ev := range live {
		if d := cmp.Diff(mirrortest.Content(ev, "a"), mirrortest.Content(copies[string(ev.UID)], "a")); d != "" {
			t.Errorf("%s (-source +copy)\n%s", ev.Name, d)
		}
	}
	if len(names) != written || len(live) != written-deleted || deleted == 0 {
		t.Errorf("%d names of %d written, %d live after %d deletions", len(names), written, len(live), deleted)
	}
	if gaps := coreEvents(t, "http://"+to, token, "fieldSelector=reason=MirrorGap"); len(gaps) > 0 {
		t.Errorf("gaps although every watch could be continued: %v", gaps)
	}
	t.Logf("%d written, %d deleted at the source, %d copies", written, deleted, len(copies))
}

// ready asks the readiness probe of a server.
func ready(addr string) bool {
	resp, err := http.Get("http://" + addr + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func TestMirrorSettings(t *testing.T) {
	t.Parallel()
	kubeconfig := "--kubeconfig=" + kubeconfigFor(t, "http://127.0.0.1:1", "x")
	long := "example.com/" + strings.Repeat("k", 55) // with the name of its domain it is longer than 63 characters
	for want, args := range map[string][]string{
		"--cluster is not set":                         {kubeconfig},
		`--cluster "Prod_1"`:                           {kubeconfig, "--cluster=Prod_1"},
		"--cluster-label":                              {kubeconfig, "--cluster=a", "--cluster-label=a/b/c"},
		"--kubeconfig is not set, and this is no pod":  {"--cluster=a"},
		"--context has no effect without --kubeconfig": {"--cluster=a", "--context=x"},
		"--kubeconfig and --server are the same":       {kubeconfig, "--cluster=a", "--server=http://127.0.0.1:1"},
		"--parallel":                                   {kubeconfig, "--cluster=a", "--parallel=0"},
		"--cursor-namespace":                           {kubeconfig, "--cluster=a", "--cursor-namespace="},
		`--enrich "all" is unknown`:                    {kubeconfig, "--cluster=a", "--enrich=all"},
		`--copy-labels "a/b/c"`:                        {kubeconfig, "--cluster=a", "--copy-labels=a/b/c"},
		"--namespace-labels: \"" + long:                {kubeconfig, "--cluster=a", "--namespace-labels=" + long},
		"leave out some, they can be 6":                {kubeconfig, "--cluster=a", "--copy-labels=a,b,c,d", "--namespace-labels=e,f,g"},
		"--copy-labels has no effect":                  {kubeconfig, "--cluster=a", "--enrich=owner", "--copy-labels=a"},
		"--namespace-labels has no effect":             {kubeconfig, "--cluster=a", "--enrich=", "--namespace-labels=a"},
	} {
		_, said, code := use(t, append([]string{"mirror"}, args...)...)
		if code != 2 || !strings.Contains(said, want) {
			t.Errorf("%v: exit code %d: %s", args, code, said)
		}
	}
}
