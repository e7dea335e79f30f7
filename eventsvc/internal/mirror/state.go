package mirror

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/rules"
)

// metrics of a mirror. The label namespace is the mirrored one, or * for all.
type metrics struct {
	registry prometheus.Registerer
	events   *prometheus.CounterVec
	lists    *prometheus.CounterVec
	gaps     *prometheus.CounterVec
	failures *prometheus.CounterVec
	dropped  *prometheus.CounterVec
	enriched *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		registry: reg,
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_mirror_events_total",
			Help: "Changes of the source: created, replaced, unchanged (was there already), refused by the target for good, kept (deleted at the source).",
		}, []string{"namespace", "result"}),
		lists: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_mirror_lists_total",
			Help: "Lists of the source: the first, after its history was gone, after its versions started over, or because its watch was silent.",
		}, []string{"namespace", "reason"}),
		gaps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_mirror_gaps_total",
			Help: "Times after which events of the source may be missing; each is an event with the reason MirrorGap.",
		}, []string{"namespace"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_mirror_dropped_total",
			Help: "Changes of the source that a rule of --rules-file dropped; each hour of them is an event with the reason EventsDropped.",
		}, []string{"rule"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_mirror_failures_total",
			Help: "Requests that failed and are tried again, by status code; 0: no answer.",
		}, []string{"side", "code"}),
		enriched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_mirror_enriched_total",
			Help: "Events by what is known of their objects: added, late (not within 250 ms), unknown (there is no such object), off (the source does not let it be read).",
		}, []string{"result"}),
	}
	reg.MustRegister(m.events, m.lists, m.gaps, m.dropped, m.failures, m.enriched)
	for _, result := range []string{enrichedAdded, enrichedLate, enrichedUnknown, enrichedOff} {
		m.enriched.WithLabelValues(result)
	}
	for _, side := range []string{sourceSide, targetSide} {
		m.failures.WithLabelValues(side, "0") // begins at 0, as far as codes are known
	}
	return m
}

// state is the state of one copier that probes and metrics show. It is safe for concurrent use.
type state struct {
	mu       sync.Mutex
	failures map[string]error
	failing  map[string]bool
	idle     bool      // every change that was read is written
	behind   time.Time // since then the target may lack something
	version  string    // of the source up to which everything is written
	awaited  time.Time // when the source had a later version, which the watch has not told yet; zero: it has
}

func (m *metrics) newState(namespace string) *state {
	for _, result := range []string{resultCreated, resultReplaced, resultUnchanged, resultRefused, resultKept} {
		m.events.WithLabelValues(namespace, result) // begins at 0, so that the first is an increase
	}
	for _, reason := range []string{reasonFirst, reasonGone, reasonRewound, reasonSilent} {
		m.lists.WithLabelValues(namespace, reason)
	}
	m.gaps.WithLabelValues(namespace)
	s := &state{failures: map[string]error{sourceSide: errors.New("not asked yet")}, failing: map[string]bool{}, behind: time.Now()}
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{"namespace": namespace},
		}, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return value()
		}))
	}
	gauge("eventsvc_mirror_lag_seconds", "Time since the target last was known to have all that the source has; 0: it has.", func() float64 {
		since := s.awaited
		if !s.current() && (since.IsZero() || s.behind.Before(since)) {
			since = s.behind
		}
		if since.IsZero() {
			return 0
		}
		return time.Since(since).Seconds()
	})
	gauge("eventsvc_mirror_version", "The source's resourceVersion up to which everything is written.", func() float64 {
		version, _ := strconv.ParseFloat(s.version, 64)
		return version
	})
	gauge("eventsvc_mirror_connected", "1 while the source answers.", func() float64 {
		if s.failures[sourceSide] == nil {
			return 1
		}
		return 0
	})
	return s
}

// fail sets the last failure of a side, or nil after a success, and reports whether failures begin or end with it.
func (s *state) fail(side string, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.settle(s.current())
	s.failures[side] = err
	changed := s.failing[side] != (err != nil)
	s.failing[side] = err != nil
	return changed
}

// setIdle sets whether every change that was read is written.
func (s *state) setIdle(idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.settle(s.current())
	s.idle = idle
}

func (s *state) moved(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// await notes since when the source has had a version that the cursor has not reached; nil: it has reached all that are
// known.
func (s *state) await(mark *cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaited = time.Time{}
	if mark != nil {
		s.awaited = mark.complete
	}
}

// reached returns the version of the source up to which everything is written.
func (s *state) reached() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// current reports whether the target has everything. The caller holds mu.
func (s *state) current() bool {
	return s.idle && s.failures[sourceSide] == nil && s.failures[targetSide] == nil
}

// settle notes the time if the target had everything before, and no longer has.
func (s *state) settle(before bool) {
	if before && !s.current() {
		s.behind = time.Now()
	}
}

func (s *state) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, side := range []string{sourceSide, targetSide} {
		if err := s.failures[side]; err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
	}
	return nil
}

// showRules begins the counters of rules that drop at 0, and takes out those of rules that are gone. Shown are those
// that are there.
func (m *metrics) showRules(set *rules.Set, shown map[string]bool) {
	now := map[string]bool{}
	for _, r := range set.All() {
		if r.Drop {
			now[r.Name] = true
			m.dropped.WithLabelValues(r.Name)
		}
	}
	for name := range shown {
		if !now[name] {
			m.dropped.DeleteLabelValues(name)
		}
	}
	clear(shown)
	maps.Copy(shown, now)
}
