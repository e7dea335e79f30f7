package httpserver

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type requestMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	kinds    atomic.Pointer[map[requestKind]kindMetrics]
}

// requestKind has the labels of the metrics of a request.
type requestKind struct {
	verb, client string
	code         int
}

// kindMetrics are the metrics of a kind. They are kept because finding them by their labels costs more than counting.
// Kinds are few.
type kindMetrics struct {
	requests prometheus.Counter
	seconds  prometheus.Observer
}

func newRequestMetrics(reg prometheus.Registerer) *requestMetrics {
	factory := promauto.With(reg)
	m := &requestMetrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "Requests answered, by verb, status code (499: the client left first) and class of client.",
		}, []string{"verb", "code", "client"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "http_response_start_seconds",
			Help:    "Time from a request's header to the first byte of its answer; of use for watches too, which have no end.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"verb"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "http_requests_in_flight", Help: "Requests being served, watches included.",
		}),
	}
	m.kinds.Store(&map[requestKind]kindMetrics{})
	return m
}

// observe counts a request under its verb or, if the handler has set none, under its method.
func (m *requestMetrics) observe(r *http.Request, verb string, rec *recorder) {
	if verb == "" {
		switch verb = r.Method; verb { // a client can send any method; labels must be few
		case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		default:
			verb = "other"
		}
	}
	of := m.of(requestKind{verb: verb, client: clientClass(r.UserAgent()), code: rec.code})
	of.requests.Inc()
	of.seconds.Observe(rec.firstBytes.Seconds())
}

func (m *requestMetrics) of(kind requestKind) kindMetrics {
	for {
		known := m.kinds.Load()
		if of, ok := (*known)[kind]; ok {
			return of
		}
		of := kindMetrics{
			m.requests.WithLabelValues(kind.verb, strconv.Itoa(kind.code), kind.client), m.seconds.WithLabelValues(kind.verb),
		}
		more := maps.Clone(*known)
		more[kind] = of
		if m.kinds.CompareAndSwap(known, &more) {
			return of
		}
	}
}

// clientClasses maps parts of user agents to classes. The first part that matches counts.
var clientClasses = []struct{ part, class string }{
	{"kubectl/", "kubectl"},
	{"eventsvc/", "eventsvc"},
	{"tokensvc/", "tokensvc"},
	{"kubernetes/", "client-go"}, // "manager/v0.0.0 (linux/amd64) kubernetes/abcdef"
	{"python", "python"},
	{"Python", "python"},
	{"Go-http-client", "go"},
	{"Mozilla/", "browser"},
	{"curl/", "curl"},
	{"Prometheus/", "prometheus"},
	{"kube-probe/", "probe"},
}

// clientClass returns the class of a client's user agent. Classes are few, because they are labels of metrics.
func clientClass(agent string) string {
	for _, c := range clientClasses {
		if strings.Contains(agent, c.part) {
			return c.class
		}
	}
	return "other"
}
