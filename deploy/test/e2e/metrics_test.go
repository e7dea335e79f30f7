package e2e_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// partOfHistogram matches the endings of the names of a histogram's series.
var partOfHistogram = regexp.MustCompile(`_(bucket|count|sum)$`)

// startMirror mirrors an empty namespace of w to itself. It returns the URL of
// the mirror's admin listener.
func startMirror(t *testing.T, w *world) (admin string) {
	t.Helper()
	addr := porttest.Addr(t)
	p := &process{name: "eventsvc", args: []string{"mirror", "--cluster=itself", "--namespace=nothing-here",
		"--kubeconfig=" + w.kubeconfig(t), "--server=" + w.events, "--token-url=" + w.tokens + "/oauth2/token",
		"--client-id=" + clientID, "--client-secret-file=" + filepath.Join(root, "deploy/local/demo-secret")},
		env: []string{"EVENTSVC_LISTEN_ADMIN=" + addr}}
	p.launch(t)
	p.waitReady(t)
	return "http://" + addr
}

// testMetrics checks that the services, and a mirror, have every metric that
// the alerts and the dashboard use. It runs after the other scenarios.
func testMetrics(t *testing.T, w *world) {
	recorded := exec.CommandContext(t.Context(), filepath.Join(bin, "eventsvc"), "record", "--kubeconfig="+w.kubeconfig(t), "--namespace=default",
		"--reason=Metrics", "--regarding=Pod/metrics", "--label=tidings.example/cluster=itself") // a cluster has its metric from its first event on
	if out, err := recorded.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	told, of := "", append([]string{startMirror(t, w)}, w.probes...)
	testenv.Eventually(t, "the cursor of the mirror is known", 10*time.Second, func() error {
		told = ""
		for _, base := range of {
			resp, err := http.Get(base + "/metrics")
			if err != nil {
				return err
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				return err
			}
			told += string(text)
		}
		if !strings.Contains(told, "eventsvc_cluster_complete_seconds{") {
			return errors.New("no metric of the cluster")
		}
		return nil
	})
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		asked, err := os.ReadFile(filepath.Join(root, "deploy/observability", file))
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\b(http|jwks|bearer|eventsvc|tokensvc|process)_[a-z_]+\b`).FindAllString(string(asked), -1)
		if len(names) == 0 {
			t.Errorf("%s asks for nothing", file)
		}
		for _, name := range names {
			if strings.HasPrefix(name, "eventsvc_aggregate_") || strings.HasPrefix(name, "eventsvc_alerts_") {
				continue // TestAggregate and TestMetricsExist have these processes
			}
			if !strings.Contains(told, "# TYPE "+partOfHistogram.ReplaceAllString(name, "")+" ") {
				t.Errorf("%s asks for %s, which no service tells", file, name)
			}
		}
	}
}
