package client

import "github.com/prometheus/client_golang/prometheus"

// metrics returns the metrics of attempts and of remembered secrets.
func (a *Authenticator) metrics() []prometheus.Collector {
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	return []prometheus.Collector{
		a.compares,
		gauge("tokensvc_attempts_waiting", "Attempts that wait for a BCrypt compare.", a.gate.length),
		gauge("tokensvc_secrets_remembered", "Secrets that need no BCrypt compare any more.", a.proofs.count),
		gauge("tokensvc_assertions_remembered", "Assertions that have been used and have not expired.", a.replays.length),
	}
}
