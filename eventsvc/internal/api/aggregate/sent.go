package aggregate

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	sentUsers = 1024 // so many users are remembered
	sentShown = 10   // as a metric
)

// sentBytes counts what is passed on, by user. Only the busiest are a metric, because every user is a label.
type sentBytes struct {
	mu   sync.Mutex
	by   map[string]float64
	desc *prometheus.Desc
}

func newSentBytes() *sentBytes {
	return &sentBytes{by: map[string]float64{}, desc: prometheus.NewDesc("eventsvc_aggregate_sent_bytes_total",
		"Bytes of events that were passed on, of the ten users with the most.", []string{"user"}, nil)}
}

func (s *sentBytes) add(user string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.by[user]; !known && len(s.by) >= sentUsers {
		for _, least := range s.busiest()[sentUsers/2:] {
			delete(s.by, least)
		}
	}
	s.by[user] += float64(n)
}

// busiest returns all users, those with the most bytes first.
func (s *sentBytes) busiest() []string {
	users := make([]string, 0, len(s.by))
	for user := range s.by {
		users = append(users, user)
	}
	slices.SortFunc(users, func(a, b string) int { return cmp.Or(cmp.Compare(s.by[b], s.by[a]), cmp.Compare(a, b)) })
	return users
}

// Describe implements [prometheus.Collector].
func (s *sentBytes) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect implements [prometheus.Collector].
func (s *sentBytes) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, user := range s.busiest()[:min(len(s.by), sentShown)] {
		to <- prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, s.by[user], user)
	}
}
