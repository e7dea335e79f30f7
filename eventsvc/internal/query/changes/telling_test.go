package changes_test

import (
	"strings"
	"testing"
	"time"

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

// fortnight returns a small timeline with two weeks of history before the day that ends at noon. ago is a time in hours
// before noon.
func fortnight(t *testing.T, record func(m *memory, ago func(hours float64) float64)) *memory {
	t.Helper()
	const days = 15
	m := newMemory(noon.Add(-days * 24 * time.Hour))
	for hour := range days * 24 {
		m.say(float64(hour)*3600, "shop", "Pod", "web-7d5fb757db-x2x7q", warning, "Unhealthy", "kubelet", "Readiness probe failed")
	}
	record(m, func(hours float64) float64 { return days*24*3600 - hours*3600 })
	m.sort()
	return m
}

// TestOneObjectIsNamed: a row all of whose events are about one object names it, however many they are, and no row
// does whose events are about several.
func TestOneObjectIsNamed(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{normal, warning} {
		for _, others := range []int{0, 1} {
			m := fortnight(t, func(m *memory, ago func(float64) float64) {
				for n := range 22 { // events of their own, as more than an hour is between two
					m.say(ago(0.5+1.02*float64(n)), "checkout", "Pod", "cart-0", typ, "Restored", "kubelet", "note")
				}
				for range others {
					m.say(ago(23.5), "checkout", "Pod", "cart-1", typ, "Restored", "kubelet", "note")
				}
				m.say(ago(50), "checkout", "Pod", "cart-0", warning, "Unhealthy", "kubelet", "note") // so that no row is about an object that began to fail
				m.say(ago(30), "checkout", "Pod", "cart-1", warning, "Unhealthy", "kubelet", "note")
				m.say(ago(25), "checkout", "Pod", "cart-0", warning, "Unhealthy", "kubelet", "note")
			})
			a := rank(t, m, changes.Query{At: noon, Window: 24 * time.Hour, Allows: everywhere})
			object, subject := "cart-0", "Pod cart-0 in checkout"
			if others > 0 {
				object, subject = "", "Pod in checkout"
			}
			if len(a.Rows) != 1 || a.Rows[0].Object != object || !strings.Contains(a.Rows[0].Why, subject) || !strings.Contains(a.Verdict.Text, subject) {
				t.Errorf("%s, %d others: %+v %s", typ, others, a.Rows, a.Verdict.Text)
			}
		}
	}
}
