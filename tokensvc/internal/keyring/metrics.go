package keyring

import "github.com/prometheus/client_golang/prometheus"

func (r *Keyring) metrics() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tokensvc_keys_published", Help: "Keys in the published key set.",
		}, func() float64 { return float64(len(r.current.Load().published)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tokensvc_signers_busy", Help: "Signatures being made now.",
		}, func() float64 { return float64(len(r.gate)) }),
	}
}
