package changes_test

import (
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/query/changes"
)

// TestTelling: the note of a row is the one that tells most, and not the newest.
func TestTelling(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		probe(m)
		for n := range 5 {
			pod := "api-7d5fb757db-" + random(n)
			m.say(minutes(8)+float64(n), "shop", "Pod", pod, warning, "Failed", "kubelet", `Failed to pull image "registry/api:1.4.`+random(n)+`": rpc error: 429 Too Many Requests`)
			m.say(minutes(7)+float64(n), "shop", "Pod", pod+"x", warning, "Failed", "kubelet", "Error: ErrImagePull")
		}
	})
	a := rank(t, m, changes.Query{At: noon, Allows: everywhere})
	if len(a.Rows) == 0 || !strings.Contains(a.Rows[0].Why, "Too Many Requests") {
		t.Errorf("%+v", a.Rows)
	}
}
