package changes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/query/changes"
)

// TestCauseIsNear: what came before a failure is named as its cause only if it came just before, in a long window too.
func TestCauseIsNear(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		before      float64 // hours
		typ, reason string
		every       float64 // hours between two failures
		cause       bool
	}{
		{"routine of the evening before", 17, normal, "Issuing", 0.003, false},
		{"routine of a quarter of an hour before", 0.25, normal, "Issuing", 0.003, false},
		{"routine just before", 0.05, normal, "Issuing", 0.003, true},
		{"problem of the evening before", 17, warning, "FailedMount", 0.003, false},
		{"problem just before", 0.05, warning, "FailedMount", 0.003, true},
		{"problem of half an hour before what comes each 40 minutes", 0.5, warning, "FailedMount", 0.67, true},
		{"routine of half an hour before what comes each 40 minutes", 0.5, normal, "Issuing", 0.67, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := fortnight(t, func(m *memory, ago func(float64) float64) {
				begin := 0.5 + 30*test.every
				for n := range 30 {
					m.say(ago(begin-test.every*float64(n)), "shop", "Pod", "api-0", warning, "BackOff", "kubelet", "Back-off restarting failed container")
				}
				for n := range 7 {
					m.say(ago(begin+test.before)+float64(n), "shop", "Certificate", "api-tls", test.typ, test.reason, "cert-manager", "note")
				}
			})
			a := rank(t, m, changes.Query{At: noon, Window: 24 * time.Hour, Allows: everywhere})
			if len(a.Rows) != 2 {
				t.Fatalf("%d rows, want two: %+v", len(a.Rows), a.Rows)
			}
			for _, r := range a.Rows {
				if cause := r.By.Reason == "BackOff" && test.cause; cause != (r.Follows != nil) || cause != strings.Contains(r.Why, "after "+test.reason) {
					t.Errorf("%s: follows %+v", r.Why, r.Follows)
				}
			}
		})
	}
}

// TestCauseOfSeveralNamespaces: the cause of what spans several namespaces is not in one that happened to have
// something before it, if the whole cluster had something too.
func TestCauseOfSeveralNamespaces(t *testing.T) {
	t.Parallel()
	m := fortnight(t, func(m *memory, ago func(float64) float64) {
		for n := range 12 {
			if n < 9 {
				m.say(ago(0.2)+float64(n), "shop", "Pod", "api-0", warning, "FailedScheduling", "default-scheduler", "0/40 nodes are available")
			}
			m.say(ago(0.1)+10*float64(n), "default", "Node", "node-17", normal, "NodeNotReady", "node-controller", "Node node-17 status is now: NodeNotReady")
			m.say(ago(0.1)+5+float64(n), []string{"mail", "media", "orders", "maps"}[n%4], "Pod", "web-"+random(n), warning, "NodeNotReady", "node-controller", "Node is not ready")
		}
	})
	for _, r := range rank(t, m, changes.Query{At: noon, Window: time.Hour, Allows: everywhere}).Rows {
		if r.By.Kind == "Pod" && r.By.Reason == "NodeNotReady" {
			if r.By.Namespace != "" || r.Follows == nil || r.Follows.Object != "node-17" {
				t.Errorf("%s: follows %+v", r.Why, r.Follows)
			}
			return
		}
	}
	t.Error("no row of several namespaces")
}

// TestCauseByChance: of many things that began in a window one is minutes before another by chance, and is not named as
// its cause; what came just before, or is a Node, is.
func TestCauseByChance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, kind, reason string
		before             float64 // minutes
		cause              bool
	}{
		{"another problem of minutes before", "Pod", "FailedScheduling", 6.7, false},
		{"another problem of seconds before", "Pod", "FailedScheduling", 0.1, true},
		{"a Node that was lost minutes before", "Node", "NodeNotReady", 5, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := small(t, func(m *memory) {
				probe(m)
				for n, reason := range []string{"FailedMount", "Evicted", "FailedAttachVolume", "InspectFailed"} {
					burst(m, 9-2*float64(n), 9, "shop", "Pod", fmt.Sprint(reason, "-0"), reason)
				}
				burst(m, 10+test.before, 12, "shop", test.kind, "other-0", test.reason)
				burst(m, 10, 200, "shop", "Pod", "api-0", "Failed")
				burst(m, 10, 200, "shop", "Pod", "web-1", "Failed")
			})
			a := rank(t, m, changes.Query{At: noon, Window: time.Hour, Allows: everywhere})
			r := row(a, "Failed")
			if r == nil || test.cause != (r.Follows != nil) || test.cause != strings.Contains(r.Why, "after "+test.reason) {
				t.Errorf("%+v", r)
			}
			if v := a.Verdict; v.Change.By.Reason == "Failed" && test.cause != (v.Cause != nil) {
				t.Errorf("%s", v.Text)
			}
		})
	}
}
