package changes_test

import (
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query/changes"
)

// TestScope: a question about a namespace answers with what bears on it elsewhere, says so, and has nothing that the
// caller may not list.
func TestScope(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		probe(m)
		say := func(before float64, namespace, kind, name, reason, note string) {
			for n := range 4 {
				m.say(minutes(before)+float64(n), namespace, kind, name, warning, reason, "kubelet", note)
			}
		}
		say(5, "shop", "Pod", "web-0", "Own", "dial tcp: lookup db.data.svc.cluster.local: no such host")
		say(6, "default", "Node", "node-1", "OfNode", "note")
		say(6, "default", "ClusterIssuer", "ca", "OfCluster", "note")
		say(6, "kube-system", "Pod", "dns-x2x7q", "OfSystem", "note")
		say(6, "data", "Pod", "db-0", "IsNamed", "note")
		say(6, "policy", "ClusterPolicy", "p", "OfPolicy", "note")
		say(6, "mesh", "Pod", "proxy-0", "Names", "no route to shop/web")
		say(6, "other", "Pod", "shop-0", "Unrelated", "the shop of shopping, workshop/x, shop-b/y")
	})
	for _, test := range []struct {
		hidden string
		want   map[string]string
	}{
		{"", map[string]string{
			"Own": "", "OfNode": "is about a Node", "OfCluster": "is about a ClusterIssuer", "OfSystem": "is about kube-system", "IsNamed": "is named in shop",
			"OfPolicy": "is about a ClusterPolicy", "Names": "names shop",
		}},
		{"kube-system data", map[string]string{"Own": "", "OfNode": "", "OfCluster": "", "OfPolicy": "", "Names": ""}},
	} {
		allows := func(namespace, _ string) bool { return !slices.Contains(strings.Fields(test.hidden), namespace) }
		a := rank(t, m, changes.Query{At: noon, Allows: allows, Namespaces: []string{"shop"}})
		for _, r := range a.Rows {
			want, found := test.want[r.By.Reason]
			if !found || !strings.Contains(r.Why, want) {
				t.Errorf("without %q: %s", test.hidden, r.Why)
			}
		}
		if len(a.Rows) != len(test.want) || !strings.HasPrefix(a.Scope, "shop; and elsewhere") {
			t.Errorf("without %q: %d rows, want %d; %s", test.hidden, len(a.Rows), len(test.want), a.Scope)
		}
	}
}

// TestWanted: a question with Wanted has only the wanted rows, and their numbers are the same as without it.
func TestWanted(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		probe(m)
		burst(m, 5, 3, "shop", "Pod", "web-0", "BackOff")
		burst(m, 6, 3, "shop", "Pod", "web-0", "FailedMount")
	})
	all := rank(t, m, changes.Query{At: noon, Allows: everywhere})
	some := rank(t, m, changes.Query{At: noon, Allows: everywhere, Wanted: func(d event.Dimensions) bool { return d.Reason == "BackOff" }})
	if len(all.Rows) != 2 || len(some.Rows) != 1 || some.Rows[0].Score != all.Rows[slices.IndexFunc(all.Rows, func(r changes.Change) bool { return r.By.Reason == "BackOff" })].Score {
		t.Errorf("%+v\nof %+v", some.Rows, all.Rows)
	}
}
