package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/randtest"
)

// everything is an enrichment with all labels.
var everything = Enrichment{Owner: true, Labels: true, Namespace: true, CopyLabels: []string{"team"}, NamespaceLabels: []string{"example.com/tenant"}}

// newTestEnricher returns one that has not begun.
func newTestEnricher(t *testing.T, of Enrichment, source string, log *slog.Logger) *enricher {
	t.Helper()
	from, err := client.New(client.Config{Server: source})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Source: from, Enrich: of, Namespaces: []string{""}, Log: log}
	return newEnricher(c, newMetrics(prometheus.NewRegistry()))
}

// unreachable is the address of a source in tests that ask none.
const unreachable = "http://127.0.0.1:1"

// made makes the metadata of an object.
func made(namespace, name, uid string, labels map[string]string, owners ...string) *metadata {
	m := &metadata{}
	m.Metadata.Namespace, m.Metadata.Name, m.Metadata.UID, m.Metadata.Labels = namespace, name, types.UID(uid), labels
	m.Metadata.CreationTimestamp = metav1.NewTime(time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC))
	for _, o := range owners {
		kind, name, _ := strings.Cut(o, "/")
		yes := true
		m.Metadata.OwnerReferences = append(m.Metadata.OwnerReferences, metav1.OwnerReference{Kind: kind, Name: name, Controller: &yes})
	}
	return m
}

// about makes an item of an event that was written at an instant.
func about(at time.Time, kind, namespace, name, uid string) item {
	return item{uid: "event of " + uid, version: "1", written: at, created: at, copy: &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{}},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name, UID: types.UID(uid)},
	}}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	minute := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC).Unix() / 60
	hash := map[string]string{"pod-template-hash": "7d9c"}
	noController := made("shop", "p", "1", hash, "ReplicaSet/web-7d9c")
	noController.Metadata.OwnerReferences[0].Controller = nil
	for name, c := range map[string]struct {
		kind   string
		object *metadata
		want   string
	}{
		"a pod of a Deployment":                 {"Pod", made("shop", "web-7d9c-x", "1", hash, "ReplicaSet/web-7d9c"), "Deployment/web"},
		"a name with dashes":                    {"Pod", made("shop", "p", "1", hash, "ReplicaSet/web-front-7d9c"), "Deployment/web-front"},
		"a ReplicaSet without Deployment":       {"Pod", made("shop", "p", "1", nil, "ReplicaSet/web-7d9c"), "ReplicaSet/web-7d9c"},
		"a hash that is not the name's":         {"Pod", made("shop", "p", "1", hash, "ReplicaSet/web-other"), "ReplicaSet/web-other"},
		"a ReplicaSet":                          {"ReplicaSet", made("shop", "web-7d9c", "1", hash, "Deployment/web"), "Deployment/web"},
		"a ReplicaSet of something else":        {"ReplicaSet", made("shop", "web-7d9c", "1", nil, "Rollout/web"), "Rollout/web"},
		"a Deployment":                          {"Deployment", made("shop", "web", "1", nil), "Deployment/web"},
		"a StatefulSet that an operator owns":   {"StatefulSet", made("shop", "db", "1", nil, "Postgres/db"), "StatefulSet/db"},
		"a pod of a StatefulSet":                {"Pod", made("shop", "db-0", "1", nil, "StatefulSet/db"), "StatefulSet/db"},
		"a pod of a DaemonSet":                  {"Pod", made("shop", "log-x", "1", nil, "DaemonSet/log"), "DaemonSet/log"},
		"a pod of a CronJob":                    {"Pod", made("shop", "p", "1", nil, fmt.Sprintf("Job/backup-%d", minute-30)), "CronJob/backup"},
		"a pod of a Job with a date":            {"Pod", made("shop", "p", "1", nil, "Job/backup-20261125"), "Job/backup-20261125"},
		"a pod of a Job":                        {"Pod", made("shop", "p", "1", nil, "Job/migrate"), "Job/migrate"},
		"a pod of a Job that is only a number":  {"Pod", made("shop", "p", "1", nil, fmt.Sprintf("Job/-%d", minute)), fmt.Sprintf("Job/-%d", minute)},
		"a Job of a CronJob":                    {"Job", made("shop", "backup-1", "1", nil, "CronJob/backup"), "CronJob/backup"},
		"a pod of a controller of its own kind": {"Pod", made("shop", "p", "1", nil, "Workflow/build"), "Workflow/build"},
		"a pod alone":                           {"Pod", made("shop", "debug", "1", nil), "Pod/debug"},
		"an owner that is no controller":        {"Pod", noController, "Pod/p"},
		"any other object":                      {"Certificate", made("shop", "tls", "1", nil), "Certificate/tls"},
	} {
		kind, owner := owner(c.kind, c.object)
		if got := kind + "/" + owner; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ev   corev1.Event
		want string
	}{
		"kubelet":        {corev1.Event{Source: corev1.EventSource{Component: "kubelet", Host: "n1"}}, "n1"},
		"kubelet, new":   {corev1.Event{ReportingController: "kubelet", ReportingInstance: "n1"}, "n1"},
		"about the node": {corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n1"}, Source: corev1.EventSource{Host: "x"}}, "n1"},
		"a pod's name":   {corev1.Event{Source: corev1.EventSource{Component: "scheduler", Host: "scheduler-0"}}, ""},
		"nobody":         {corev1.Event{}, ""},
	} {
		if got := nodeOf(&c.ev); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAdded reads the labels that copies get.
func TestAdded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	long := strings.Repeat("a", 80)
	for name, c := range map[string]struct {
		enrich     Enrichment
		it         item
		want       map[string]string
		annotation string
	}{
		"everything of a pod": {everything, about(now, "Pod", "shop", "web-7d9c-x", "pod"), map[string]string{
			event.OwnerKindLabel: "Deployment", event.OwnerNameLabel: "web", event.NamespaceUIDLabel: "ns",
			"app": "web", "team": "blue", "namespace.tidings.example/example.com_tenant": "acme"}, ""},
		"owner only": {Enrichment{Owner: true}, about(now, "Pod", "shop", "web-7d9c-x", "pod"),
			map[string]string{event.OwnerKindLabel: "Deployment", event.OwnerNameLabel: "web", event.NamespaceUIDLabel: "ns"}, ""},
		"labels only": {Enrichment{Labels: true}, about(now, "Pod", "shop", "web-7d9c-x", "pod"),
			map[string]string{"app": "web", event.NamespaceUIDLabel: "ns"}, ""},
		"namespace only": {Enrichment{Namespace: true, NamespaceLabels: []string{"example.com/tenant"}}, about(now, "Pod", "shop", "x", "pod"),
			map[string]string{event.NamespaceUIDLabel: "ns", "namespace.tidings.example/example.com_tenant": "acme"}, ""},
		"a pod of another namespace": {everything, about(now, "Pod", "shop", "spy", "other"),
			map[string]string{event.NamespaceUIDLabel: "ns", "namespace.tidings.example/example.com_tenant": "acme"}, ""},
		"the node itself": {Enrichment{Owner: true}, about(now, "Node", "default", "n1", "n1"),
			map[string]string{event.OwnerKindLabel: "Node", event.OwnerNameLabel: "n1", event.NodeLabel: "n1"}, ""},
		"a long name": {Enrichment{Owner: true}, about(now, "Pod", "shop", "x", "long"),
			map[string]string{event.OwnerKindLabel: "StatefulSet", event.OwnerNameLabel: labelValue(long), event.NamespaceUIDLabel: "ns"}, long},
		"an event from before its namespace": {Enrichment{Namespace: true}, about(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), "Pod", "shop", "x", "pod"),
			map[string]string{}, ""},
	} {
		e := newTestEnricher(t, c.enrich, unreachable, slog.New(slog.DiscardHandler))
		e.spaces.now = followed
		namespacesOf{e}.see(made("", "shop", "ns", map[string]string{"example.com/tenant": "acme", "more": "x"}))
		if of := e.podsOf[""]; of != nil {
			of.now = followed
		}
		pods := podsOf{enricher: e}
		pods.see(made("shop", "web-7d9c-x", "pod", map[string]string{"pod-template-hash": "7d9c", "app": "web", "team": "blue", "version": "7"}, "ReplicaSet/web-7d9c"))
		pods.see(made("vault", "keys", "other", map[string]string{"app": "keys"}))
		pods.see(made("shop", "x", "long", nil, "StatefulSet/"+long))
		items := []item{c.it}
		items[0].written = now.Add(-time.Hour) // what is not there is not waited for
		e.enrich(t.Context(), items, newKnown())
		whole := items[0].whole()
		labels, annotations := whole.Labels, whole.Annotations
		if d := cmp.Diff(c.want, labels); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
		if annotations[event.OwnerNameLabel] != c.annotation {
			t.Errorf("%s: annotation %q", name, annotations[event.OwnerNameLabel])
		}
	}
}

// TestOwnLabelsWin: what is added to a copy replaces none of its event's own labels.
func TestOwnLabelsWin(t *testing.T) {
	t.Parallel()
	it := about(time.Now(), "Pod", "shop", "x", "1")
	it.copy.Labels = map[string]string{"app": "event", event.NodeLabel: "claimed", "own": "1"}
	it.added.labels = map[string]string{"app": "object", "team": "late", event.NodeLabel: "late", event.OwnerKindLabel: "Pod", event.OwnerNameLabel: "late"}
	it.added.owner = "the whole of late"
	first := it.whole()
	if d := cmp.Diff(map[string]string{"app": "event", "own": "1", "team": "late", event.NodeLabel: "claimed",
		event.OwnerKindLabel: "Pod", event.OwnerNameLabel: "late"}, first.Labels); d != "" || first.Annotations[event.OwnerNameLabel] != "the whole of late" {
		t.Errorf("(-want +got)\n%s%v", d, first.Annotations)
	}
	it.copy.Labels[event.OwnerNameLabel] = "own"
	if ev := it.whole(); ev.Labels[event.OwnerNameLabel] != "own" || ev.Annotations[event.OwnerNameLabel] != "" {
		t.Errorf("an owner of its own became %v, %v", ev.Labels, ev.Annotations)
	}
}

// TestAuthorsNameNoLabels: an event's author does not say which labels of its copy are replaced.
func TestAuthorsNameNoLabels(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{"": "", "app": "app"} {
		ev := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "shop", Annotations: map[string]string{event.SourceLabels: event.NodeLabel}}}
		if own != "" {
			ev.Labels = map[string]string{own: "x"}
		}
		m := &Mirror{}
		it := m.newItem(ev)
		if got := it.whole(); got.Annotations[event.SourceLabels] != want {
			t.Errorf("labels %q: the copy names %q", own, got.Annotations[event.SourceLabels])
		}
	}
}

// TestLabelValue makes values of any text.
func TestLabelValue(t *testing.T) {
	t.Parallel()
	if got := labelValue(strings.Repeat("n", 63)); got != strings.Repeat("n", 63) {
		t.Errorf("63 characters became %q", got)
	}
	if got := labelValue(strings.Repeat("n", 64)); !strings.HasPrefix(got, strings.Repeat("n", 54)+"-") || len(got) != 63 {
		t.Errorf("64 characters became %q", got)
	}
	seen, random := map[string]string{}, randtest.New(t)
	for range 5000 {
		text := []rune{}
		for range random.IntN(90) {
			text = append(text, []rune("ab-_.:/ ü\x00\U0001F600")[random.IntN(11)])
		}
		value := labelValue(string(text))
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			t.Fatalf("%q became %q: %v", string(text), value, problems)
		}
		if other, ok := seen[value]; ok && other != string(text) {
			t.Fatalf("%q and %q became %q", other, string(text), value)
		}
		seen[value] = string(text)
	}
}

// TestAddedIsBounded adds too many labels, and too long ones.
func TestAddedIsBounded(t *testing.T) {
	t.Parallel()
	many, large := addition{labels: map[string]string{}}, addition{labels: map[string]string{}}
	for i := range 40 {
		many.put(fmt.Sprintf("k%d", i), "v")
		large.put(fmt.Sprintf("k%d", i), strings.Repeat("v", 120))
	}
	if len(many.labels) != 16 {
		t.Errorf("%d labels", len(many.labels))
	}
	size := 0
	for k, v := range large.labels {
		size += len(k) + len(v)
	}
	if size > 1024 || size < 900 {
		t.Errorf("%d bytes", size)
	}
	if n := 4 + len(UsualLabels) + MaxChosenLabels; n != maxAdded {
		t.Errorf("%d labels can be chosen", n)
	}
}

// TestWait looks for pods that come early, late and never.
func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newTestEnricher(t, Enrichment{Owner: true}, unreachable, slog.New(slog.DiscardHandler))
		e.spaces.now, e.podsOf[""].now = denied, followed
		pods := podsOf{enricher: e}
		try := func(of ...string) (took time.Duration, owners []string) {
			began := time.Now()
			var items []item
			for _, uid := range of {
				items = append(items, about(time.Now(), "Pod", "shop", "p", uid))
			}
			e.enrich(t.Context(), items, newKnown())
			for _, it := range items {
				owners = append(owners, it.added.labels[event.OwnerNameLabel])
			}
			return time.Since(began), owners
		}
		time.AfterFunc(100*time.Millisecond, func() { pods.see(made("shop", "p", "early", nil, "DaemonSet/early")) })
		if took, owners := try("early", "early"); took != 100*time.Millisecond || !slices.Equal(owners, []string{"early", "early"}) {
			t.Errorf("a pod that came after 100ms: %v, %v", took, owners)
		}
		time.AfterFunc(time.Second, func() { pods.see(made("shop", "p", "late", nil, "DaemonSet/late")) })
		if took, owners := try("late", "never", "early"); took != 250*time.Millisecond || !slices.Equal(owners, []string{"", "", "early"}) {
			t.Errorf("pods that did not come: %v, %v", took, owners)
		}
		if took, owners := try("late", "never"); took != 0 || !slices.Equal(owners, []string{"", ""}) {
			t.Errorf("the same again: %v, %v", took, owners)
		}
		time.Sleep(time.Second)
		if took, owners := try("late"); took != 0 || owners[0] != "late" {
			t.Errorf("a later version: %v, %v", took, owners)
		}
		old := about(time.Now().Add(-time.Minute), "Pod", "shop", "p", "long gone")
		began := time.Now()
		e.enrich(t.Context(), []item{old}, newKnown())
		if time.Since(began) != 0 {
			t.Errorf("an old event waited %v", time.Since(began))
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		e.enrich(ctx, []item{about(time.Now(), "Pod", "shop", "p", "stopped")}, newKnown())
		if time.Since(began) != 0 {
			t.Error("a mirror that stops waited")
		}
	})
}

// TestGone asks for pods and namespaces after their end.
func TestGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newTestEnricher(t, Enrichment{Owner: true}, unreachable, slog.New(slog.DiscardHandler))
		pods, there := podsOf{enricher: e}, func(uid string) bool {
			return e.pods.find(keyOf(types.UID(uid)), followed, false).result == enrichedAdded
		}
		round := pods.begin()
		for _, uid := range []string{"1", "2", "3"} {
			pods.see(made("shop", "p"+uid, uid, nil))
		}
		pods.end(round)
		pods.lose(made("shop", "p1", "1", nil))
		round = pods.begin()
		pods.see(made("shop", "p3", "3", nil))
		pods.end(round) // 2 was deleted while nobody watched
		time.Sleep(29 * time.Minute)
		if !there("1") || !there("2") || !there("3") {
			t.Error("pods are forgotten within half an hour after their end")
		}
		time.Sleep(2 * time.Minute)
		pods.lose(made("shop", "p3", "3", nil))
		if there("1") || there("2") || !there("3") {
			t.Error("pods are known for longer than half an hour after their end")
		}
		for i := range goneMost + 10 {
			uid := fmt.Sprint("many", i)
			pods.see(made("shop", uid, uid, nil))
			pods.lose(made("shop", uid, uid, nil))
		}
		if n := len(e.pods.known); n != goneMost || there("3") || !there(fmt.Sprint("many", goneMost+9)) {
			t.Errorf("%d pods are kept after their end", n)
		}

		// One scope's list says nothing about another's pods.
		other := podsOf{e, "other"}
		pods.see(made("shop", "stays", "stays", nil))
		other.see(made("other", "goes", "goes", nil))
		other.end(other.begin())
		if e.pods.known[keyOf("stays")].gone || !e.pods.known[keyOf("goes")].gone {
			t.Error("the list of one namespace ends pods of another")
		}

		// An event from before a namespace was made again belongs to the former one.
		began := time.Now()
		former, today := made("", "shop", "former", nil), made("", "shop", "today", nil)
		former.Metadata.CreationTimestamp, today.Metadata.CreationTimestamp = metav1.NewTime(began.Add(-time.Hour)), metav1.NewTime(began)
		spaces := namespacesOf{e}
		spaces.see(former)
		spaces.lose(former)
		spaces.see(today)
		spaces.see(today)
		for at, want := range map[time.Time]string{began.Add(-time.Minute): "former", began: "today", began.Add(-2 * time.Hour): "former"} {
			it := about(at, "Pod", "shop", "p", "1")
			if got := e.space(&it).value.uid; got != want {
				t.Errorf("an event of %s belongs to %q, not %q", at, got, want)
			}
		}
	})
}

// TestMemoryOfPods keeps 50,000 pods of 5,000 workloads, each with labels of its own.
func TestMemoryOfPods(t *testing.T) {
	const n, workloads = 50_000, 5_000
	e := newTestEnricher(t, everything, unreachable, slog.New(slog.DiscardHandler))
	pods := podsOf{enricher: e}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // handles that are used no longer take two
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range n {
		w := fmt.Sprint("workload-", i%workloads)
		pods.see(made(fmt.Sprint("namespace-", i%100), fmt.Sprintf("%s-5d4f7c9b8-%05d", w, i), fmt.Sprintf("6f9619ff-8b86-d011-b42d-%012d", i), map[string]string{
			"pod-template-hash": "5d4f7c9b8", "app.kubernetes.io/name": w, "app.kubernetes.io/instance": w + "-production", "app.kubernetes.io/part-of": "shop", "team": "blue",
		}, "ReplicaSet/"+w+"-5d4f7c9b8"))
	}
	used := heap() - before
	if len(e.pods.known) != n {
		t.Fatalf("%d pods", len(e.pods.known))
	}
	t.Logf("%d pods take %d bytes, %d each", n, used, used/n)
	if used > 20<<20 || used/n > 232 {
		t.Errorf("%d pods take %d bytes, %d each", n, used, used/n)
	}
	runtime.KeepAlive(e)
}

// BenchmarkEnrich adds labels to a batch of events about pods that are known.
func BenchmarkEnrich(b *testing.B) {
	from, err := client.New(client.Config{Server: unreachable})
	if err != nil {
		b.Fatal(err)
	}
	e := newEnricher(Config{Source: from, Enrich: everything, Namespaces: []string{""}, Log: slog.New(slog.DiscardHandler)}, newMetrics(prometheus.NewRegistry()))
	e.spaces.now, e.podsOf[""].now = followed, followed
	namespacesOf{e}.see(made("", "shop", "ns", map[string]string{"example.com/tenant": "acme"}))
	var batch []item
	for i := range batchSize {
		uid := fmt.Sprint("pod-", i)
		podsOf{enricher: e}.see(made("shop", uid, uid, map[string]string{"pod-template-hash": "7d9c", "app": "web", "team": "blue"}, "ReplicaSet/web-7d9c"))
		batch = append(batch, about(time.Now(), "Pod", "shop", uid, uid))
	}
	for b.Loop() {
		e.enrich(b.Context(), batch, newKnown())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batchSize), "ns/event")
	if batch[batchSize-1].added.labels[event.OwnerNameLabel] != "web" {
		b.Error("the last event has no owner")
	}
}
