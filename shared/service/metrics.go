package service

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry returns the metrics registry of a process, with the metrics of the Go runtime, of the process, and NAME_build_info.
func NewRegistry(name string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	version, commit := built()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        name + "_build_info",
		Help:        "Always 1; the labels say what was built.",
		ConstLabels: prometheus.Labels{"version": cmp.Or(version, "unknown"), "revision": cmp.Or(commit, "unknown"), "goversion": runtime.Version()},
	})
	info.Set(1)
	reg.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

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

// newRequestMetrics registers the metrics, or finds those of another listener of the same process.
func newRequestMetrics(reg prometheus.Registerer) *requestMetrics {
	m := &requestMetrics{
		requests: Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "Requests answered, by verb, status code (499: the client left first) and class of client.",
		}, []string{"verb", "code", "client"})),
		seconds: Register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "http_response_start_seconds",
			Help:    "Time from a request's header to the first byte of its answer; of use for watches too, which have no end.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"verb"})),
		inFlight: Register(reg, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "http_requests_in_flight", Help: "Requests being served, watches included.",
		})),
	}
	m.kinds.Store(&map[requestKind]kindMetrics{})
	return m
}

// Register registers a collector and returns it. If the registry has an equal one already, Register returns that one, so that
// two listeners or two issuers of a process can share a metric. It panics if the collector conflicts with another one, which
// is a mistake in the program. It does nothing if the registry is nil.
func Register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	var already prometheus.AlreadyRegisteredError
	err := reg.Register(c)
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		panic(err)
	}
	return c
}

// observe counts a request under its verb or, if the handler has set none, under its method.
func (m *requestMetrics) observe(a *asked, verb string, rec *recorder) {
	if verb == "" {
		switch verb = a.method; verb { // a client can send any method; labels must be few
		case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		default:
			verb = "other"
		}
	}
	of := m.of(requestKind{verb: verb, client: clientClass(a.agent), code: rec.code})
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
