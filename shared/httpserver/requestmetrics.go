package httpserver

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type requestMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newRequestMetrics(reg prometheus.Registerer) *requestMetrics {
	factory := promauto.With(reg)
	return &requestMetrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "Requests answered, by verb, status code (499: the client left first) and class of client.",
		}, []string{"verb", "code", "client"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "http_response_start_seconds",
			Help:    "Time from a request's header to the first byte of its answer; also of watches, which have no end.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"verb"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "http_requests_in_flight", Help: "Requests being served, watches included.",
		}),
	}
}

// observe counts a request under its verb or, if the handler has set none, under its method.
func (m *requestMetrics) observe(of *http.Request, verb string, rec *recorder) {
	if verb == "" {
		switch verb = of.Method; verb { // a client can send any method; labels must be few
		case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		default:
			verb = "other"
		}
	}
	m.requests.WithLabelValues(verb, strconv.Itoa(rec.code), clientClass(of.UserAgent())).Inc()
	m.seconds.WithLabelValues(verb).Observe(rec.firstBytes.Seconds())
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
