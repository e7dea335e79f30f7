package changes_test

import (
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/query/changes"
)

// TestRollouts: a Deployment that scaled a ReplicaSet up, as the note of its event alone says, is the change before the
// problem of that set's Pods, though it does so often; one of another set, or one behind the problem, is not.
func TestRollouts(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		probe(m)
		for before := 47 * 60.0; before > 80; before -= 90 {
			for _, name := range []string{"login", "mail", "search"} {
				m.say(minutes(before), "shop", "Deployment", name, normal, "ScalingReplicaSet", "deployment-controller", "Scaled up replica set "+name+"-5d9c8b7f4 to 3")
			}
		}
		for name, before := range map[string]float64{"web": 9, "api": 8, "cart": 1} {
			m.say(minutes(before), "shop", "Deployment", name, normal, "ScalingReplicaSet", "deployment-controller", "Scaled up replica set "+name+"-7d9f8b6c5 to 3")
		}
		burst(m, 7.5, 30, "shop", "Pod", "api-7d9f8b6c5-x2x7q", "Failed")
		burst(m, 8.8, 3, "shop", "Pod", "web-7d9f8b6c5-k4k9v", "Unhealthy") // few of what came of the reason
		burst(m, 8.7, 60, "shop", "Pod", "db-0", "Unhealthy")
		burst(m, 7, 30, "shop", "Pod", "api-7d9f8b6c5-x2x7q", "BackOff")
	})
	a := rank(t, m, changes.Query{At: noon, Allows: everywhere})
	var found []string
	for _, r := range a.Rows {
		if r.Kind == changes.Changed {
			found = append(found, r.Object+" "+r.Why)
		}
	}
	if len(found) != 1 || !strings.HasPrefix(found[0], "api ScalingReplicaSet once") || !strings.Contains(found[0], "30s before Failed of Pod") {
		t.Errorf("changes: %q", found)
	}
	if !strings.Contains(a.Verdict.Text, "30s after ScalingReplicaSet of Deployment api in shop.") || a.Verdict.Cause == nil || a.Verdict.Cause.Object != "api" {
		t.Errorf("the verdict is %q", a.Verdict.Text)
	}
}
