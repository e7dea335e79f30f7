//go:build !race

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tidings.example/shared/porttest"
	"tidings.example/shared/waittest"
)

// manyObjects is a cluster with so many objects of each kind, as big as usual ones: 5 KB of a workload.
type manyObjects int

// usualObject has what a Deployment has, that Helm and kubectl have written.
var usualObject = func() string {
	var env, owned []string
	for n := range 20 {
		env = append(env, fmt.Sprintf(`{"name":"SETTING_%d","value":"value of setting %d"}`, n, n))
		owned = append(owned, fmt.Sprintf(`"k:{\"name\":\"SETTING_%d\"}":{".":{},"f:name":{},"f:value":{}}`, n))
	}
	spec := `{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"registry.example/shop/web:1.4.2","env":[` +
		strings.Join(env, ",") + `],"resources":{"limits":{"memory":"512Mi"},"requests":{"cpu":"100m","memory":"256Mi"}},"readinessProbe":{"httpGet":{"path":"/readyz","port":8080},"periodSeconds":10}}]}}}`
	return `"labels":{"app":"web","team":"blue","app.kubernetes.io/managed-by":"Helm"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` + strconv.Quote(spec) +
		`},"managedFields":[{"manager":"helm","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:env":{` +
		strings.Join(owned, ",") + `}}}}}}}}]},"data":{"a.yaml":"dGhlIGZpcnN0","b.yaml":"dGhlIHNlY29uZA=="},"spec":` + spec
}()

// ServeHTTP implements [http.Handler]. Nothing changes.
func (m manyObjects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("watch") != "" {
		_ = http.NewResponseController(w).Flush() // the mirror may be gone
		<-r.Context().Done()
		return
	}
	from, _ := strconv.Atoi(q.Get("continue"))
	to, next := int(m), ""
	if strings.HasSuffix(r.URL.Path, "/events") || strings.HasSuffix(r.URL.Path, "/pods") {
		to = 0
	}
	if limit, err := strconv.Atoi(q.Get("limit")); err == nil && from+limit < to {
		to, next = from+limit, strconv.Itoa(from+limit)
	}
	page := fmt.Appendf(nil, `{"metadata":{"resourceVersion":"7","continue":%q},"items":[`, next)
	for n := from; n < to; n++ {
		page = fmt.Appendf(page, `{"metadata":{"name":"web-%[2]d","namespace":"shop-%[3]d","uid":"%[1]s-%[2]d","resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z",%[4]s},`,
			filepath.Base(r.URL.Path), n, n%50, usualObject)
	}
	_, _ = w.Write(append(bytes.TrimSuffix(page, []byte(",")), "]}"...)) // the mirror may be gone
}

// TestObjectsAreFollowed: a mirror follows each kind of the ready list.
func TestObjectsAreFollowed(t *testing.T) {
	t.Parallel()
	m, _ := followObjects(t, 100)
	m.kill()
}

// BenchmarkManyObjects: the mirror of 20,000 objects of the ready list takes at most 150 MiB, with everything else that
// it has.
func BenchmarkManyObjects(b *testing.B) {
	const objects, most = 20_000, 150
	for b.Loop() {
		m, state := followObjects(b, objects)
		stored, err := os.Stat(state)
		if err != nil {
			b.Fatal(err)
		}
		peak := m.memory("VmHWM") >> 20
		b.ReportMetric(float64(peak), "MiB-peak")
		b.ReportMetric(float64(m.memory("VmRSS")>>20), "MiB-now")
		b.ReportMetric(float64(stored.Size()>>20), "MiB-stored")
		if peak > most {
			b.Errorf("%d objects take %d MiB", objects, peak)
		}
		m.kill()
	}
}

// followObjects starts the mirror of a cluster with so many objects of the ready list, and returns it with its file
// when it follows all kinds.
func followObjects(t testing.TB, objects int) (m *child, state string) {
	t.Helper()
	kinds := []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "cronjobs.batch", "horizontalpodautoscalers.autoscaling", "poddisruptionbudgets.policy",
		"services", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io", "configmaps", "secrets", "nodes", "persistentvolumeclaims"}
	cluster := httptest.NewServer(manyObjects((objects + len(kinds) - 1) / len(kinds)))
	t.Cleanup(func() { cluster.CloseClientConnections(); cluster.Close() })
	i := newIssuer(t)
	hub := start(t, t.TempDir(), i)
	admin, state := porttest.Addr(t), filepath.Join(t.TempDir(), "changes.db")
	m = &child{t: t, args: []string{"mirror", "--kubeconfig=" + kubeconfigFor(t, cluster.URL, "t"), "--cluster=a", "--server=" + hub.url("--listen-http"),
		"--token-file=" + file(t, hub.token), "--listen-admin=" + admin, "--changes=workloads", "--changes-state=" + state}}
	m.start()
	t.Cleanup(func() {
		m.kill()
		if t.Failed() {
			t.Log(m.log.String())
		}
	})
	waittest.Until(t, "the mirror listens", func() bool { return ready(admin) })
	for _, name := range kinds {
		waittest.Until(t, name+" are followed", func() bool {
			return metric(t, "http://"+admin, fmt.Sprintf(`eventsvc_mirror_version{namespace="objects/%s"}`, name)) == "7"
		})
	}
	return m, state
}
