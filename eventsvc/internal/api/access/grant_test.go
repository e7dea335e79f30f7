package access_test

import (
	"testing"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/event"
)

// TestZeroGrant: a grant that nobody has given allows nothing, however a handler asks.
func TestZeroGrant(t *testing.T) {
	t.Parallel()
	var may access.Grant
	for _, cluster := range []string{"", "east"} {
		a := event.NewAttributes([event.NumFields]string{event.Reason: "R"}, map[string]string{event.ClusterLabel: cluster})
		if !may.Limited() || may.Sees(a) || may.Narrow(nil).Matches("shop", "a", a) || may.Narrow(&event.Selector{}).Matches("shop", "a", a) {
			t.Errorf("it shows events of the cluster %q", cluster)
		}
	}
}
