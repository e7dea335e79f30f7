package service

import (
	"cmp"
	"errors"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry returns the metrics registry of a process, with the metrics of the Go runtime, of the process, and
// NAME_build_info.
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

// Register registers a collector and returns it. If the registry has an equal one already, Register returns that one,
// so that two listeners or two issuers of a process can share a metric. It panics if the collector conflicts with
// another one, which is a mistake in the program. It does nothing if the registry is nil.
func Register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		panic(err)
	}
	return c
}
