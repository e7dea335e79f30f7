package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// replicas are instances of a service behind a load balancer that sends requests to those that say they are ready, as
// the endpoints of a Kubernetes service do.
type replicas struct {
	processes []*process
	urls      []*url.URL
	probes    []string
	ready     []atomic.Bool
	next      atomic.Int64
}

// watchReadiness polls the readiness of every replica.
func (r *replicas) watchReadiness(t *testing.T) {
	for i, probe := range r.probes {
		go func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, probe+"/readyz", nil)
				if err != nil || t.Context().Err() != nil {
					return
				}
				resp, err := http.DefaultClient.Do(req)
				if err == nil {
					resp.Body.Close()
				}
				r.ready[i].Store(err == nil && resp.StatusCode == http.StatusOK)
			}
		}()
	}
}

func (r *replicas) rewrite(out *httputil.ProxyRequest) {
	for range r.urls {
		i := int(r.next.Add(1)) % len(r.urls)
		if r.ready[i].Load() {
			out.SetURL(r.urls[i])
			return
		}
	}
	out.SetURL(r.urls[0])
}

// TestRollingTokens replaces the replicas of tokensvc one after the other under load: no request fails, and every token
// is accepted, whichever replica issued it.
func TestRollingTokens(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "tokensvc"), "keys", "rotate", "--signing-key", keys).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	front := porttest.Addr(t)
	r := &replicas{ready: make([]atomic.Bool, 2)}
	for range 2 {
		addr, admin := porttest.Addr(t), porttest.Addr(t)
		p := &process{name: "tokensvc", env: []string{
			"TOKENSVC_LISTEN_HTTP=" + addr, "TOKENSVC_LISTEN_ADMIN=" + admin, "TOKENSVC_PUBLIC_URL=http://" + front,
			"TOKENSVC_SIGNING_KEY=" + keys, "TOKENSVC_CLIENTS_FILE=" + filepath.Join(root, "deploy/local/clients.yaml"),
			"TOKENSVC_STOP_DELAY=5s", // until the load balancer has noticed, which asks a hundred times a second when it can
		}}
		p.launch(t)
		p.waitReady(t)
		r.processes, r.probes = append(r.processes, p), append(r.probes, "http://"+admin)
		r.urls = append(r.urls, &url.URL{Scheme: "http", Host: addr})
	}
	r.watchReadiness(t)
	allReady := func() error {
		for i := range r.ready {
			if !r.ready[i].Load() {
				return fmt.Errorf("replica %d is not ready", i)
			}
		}
		return nil
	}
	testenv.Eventually(t, "both are ready", deadline, allReady)
	balancer := &http.Server{Addr: front, Handler: &httputil.ReverseProxy{Rewrite: r.rewrite, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, `{"error":"`+err.Error()+`"}`)
	}}}
	go func() { _ = balancer.ListenAndServe() }()
	t.Cleanup(func() { _ = balancer.Close() })
	world := startEvents(t, "EVENTSVC_ISSUER=http://"+front)

	var issued, failed atomic.Int64
	stop, ended := make(chan struct{}), make(chan struct{}, 4)
	for range cap(ended) {
		go func() {
			defer func() { ended <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				token, code, err := requestToken(t.Context(), "http://"+front, clientID, clientSecret)
				if err != nil || code != http.StatusOK {
					failed.Add(1)
					t.Errorf("token: %d %v", code, err)
					return
				}
				if issued.Add(1)%10 == 0 {
					var list eventsv1.EventList
					if code, err := call(t.Context(), http.DefaultClient, request{"GET", eventsIn(world, "default"), token, "", nil}, &list); err != nil || code != http.StatusOK {
						t.Errorf("a token is refused: %d %v", code, err)
					}
				}
			}
		}()
	}
	more := func() {
		from := issued.Load()
		testenv.Eventually(t, "tokens are issued", deadline, func() error {
			if issued.Load() < from+50 && failed.Load() == 0 {
				return fmt.Errorf("%d", issued.Load()-from)
			}
			return nil
		})
	}
	for _, p := range r.processes {
		more()
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		p.start(t)
		testenv.Eventually(t, "both are ready", deadline, allReady)
	}
	more()
	close(stop)
	for range cap(ended) {
		<-ended
	}
	t.Logf("%d tokens, %d failures over the replacement of both replicas", issued.Load(), failed.Load())
}

// startEvents starts an eventsvc alone and returns its URL.
func startEvents(t *testing.T, env ...string) string {
	t.Helper()
	addr := porttest.Addr(t)
	p := &process{name: "eventsvc", env: append(env, "EVENTSVC_LISTEN_HTTP="+addr, "EVENTSVC_LISTEN_ADMIN="+porttest.Addr(t), "EVENTSVC_DATA_DIR="+t.TempDir())}
	p.launch(t)
	p.waitReady(t)
	return "http://" + addr
}

// TestRecorderOverRestarts reports events with client-go's stock recorder while eventsvc is stopped and killed. All of
// them are stored, because the recorder repeats what was refused.
func TestRecorderOverRestarts(t *testing.T) {
	t.Parallel()
	w := startLocal(t)
	config := w.restConfig(t)
	config.QPS = -1 // as fast as it can
	client := kubernetes.NewForConfigOrDie(config).EventsV1()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broadcaster.Shutdown)
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/recorder")
	recorded := 0
	record := func(n int) {
		for range n {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "recorder", Name: fmt.Sprintf("pod-%d", recorded)}}
			pod.APIVersion, pod.Kind = "v1", "Pod"
			recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Recorded", "Recording", "event %d", recorded)
			recorded++
		}
	}
	for _, interrupt := range []func(*testing.T, string){w.restart, w.kill} {
		record(50)
		interrupt(t, "eventsvc") // while the recorder sends
		record(50)
	}
	testenv.Eventually(t, "everything is stored", deadline, func() error {
		list, err := client.Events("recorder").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, event := range list.Items {
			seen[event.Regarding.Name] = true
		}
		if len(seen) != recorded {
			return fmt.Errorf("%d of %d events", len(seen), recorded)
		}
		return nil
	})
}
