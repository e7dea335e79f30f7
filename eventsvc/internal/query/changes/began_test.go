package changes_test

import (
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/query/changes"
)

// row returns the row of a reason, nil if there is none.
func row(a changes.Answer, reason string) *changes.Change {
	for i := range a.Rows {
		if a.Rows[i].By.Reason == reason {
			return &a.Rows[i]
		}
	}
	return nil
}

// TestBegan: a problem that went on already when the window began is as old in each window, and never new.
func TestBegan(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		for before := 47.0 * 60; before > 0; before -= 20 {
			m.say(minutes(before), "shop", "Pod", "web-0", normal, "Pulled", "kubelet", "note")
		}
		for before, gap := 26.0*60, 180.0; before > 3; before, gap = before-gap, max(12, gap*0.8) {
			m.say(minutes(before), "default", "Node", "node-1", warning, "OOMKilling", "kernel-monitor", "Killed process 20001")
		}
		for before := 130.0; before > 0; before-- {
			m.say(minutes(before), "mail", "Pod", "spool-0", warning, "Failed", "kubelet", "not found")
		}
	})
	for _, window := range []time.Duration{time.Hour, 2 * time.Hour, 24 * time.Hour, 30 * time.Hour} {
		a := rank(t, m, changes.Query{At: noon, Window: window, Allows: everywhere})
		for reason, long := range map[string]time.Duration{"OOMKilling": 26 * time.Hour, "Failed": 130 * time.Minute} {
			r := row(a, reason)
			if r == nil {
				if 8*window < long { // it is usual by now
					continue
				}
				t.Fatalf("%s: no row of %s: %s", window, reason, a.Verdict.Text)
			}
			before := long > window
			if got := noon.Sub(r.First); got != long {
				t.Errorf("%s: %s since %s, want %s: %s", window, reason, got, long, r.Why)
			}
			if before && (r.Kind == changes.New || strings.Contains(r.Why, "never")) || before != strings.Contains(r.Why, "before this window") {
				t.Errorf("%s: %s %s", window, r.Kind, r.Why)
			}
			if a.Verdict.Change.By.Reason == reason && before != strings.Contains(a.Verdict.Text, "before this window") {
				t.Errorf("%s: %s", window, a.Verdict.Text)
			}
		}
	}
}

// TestSameFormerOutage: a former outage is the same in each window.
func TestSameFormerOutage(t *testing.T) {
	t.Parallel()
	m := small(t, func(m *memory) {
		for before := 47.0 * 60; before > 0; before -= 20 {
			m.say(minutes(before), "shop", "Pod", "web-0", normal, "Pulled", "kubelet", "note")
		}
		for _, began := range []float64{36*60 + 11, 12} {
			for n := range 23 {
				m.say(minutes(began)+10*float64(n), "default", "Node", "node-1", warning, "EvictionThresholdMet", "kubelet", "Attempting to reclaim")
			}
		}
	})
	for window := 13 * time.Minute; window < 16*time.Hour; window += 7 * time.Minute {
		a := rank(t, m, changes.Query{At: noon, Window: window, Allows: everywhere})
		r := row(a, "EvictionThresholdMet")
		if r == nil || r.Kind != changes.Again || r.Former == nil {
			t.Errorf("%s: %+v", window, r)
			continue
		}
		if f := r.Former; f.Count != 23 || f.Last.Sub(f.First) != 220*time.Second {
			t.Errorf("%s: %d from %s to %s; %s", window, f.Count, f.First, f.Last, r.Why)
		}
	}
}
