package bearer

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/service"
)

// outcome is the result of verifying a token: a caller or a refusal.
type outcome struct {
	caller     *Caller
	remembered bool
	refusal    *Error
}

func refuse(e *Error) outcome { return outcome{refusal: e} }

// outcomes counts the outcomes. The reasons of refusals are few and fixed, so they can be labels.
type outcomes struct {
	*prometheus.CounterVec
	remembered prometheus.Counter // the most frequent one: finding it by its label would cost more than counting
}

// counted counts an outcome and returns it as a caller and an error. The error is nil, not a nil *Error, if there is no
// refusal.
func (m outcomes) counted(o outcome) (*Caller, error) {
	switch {
	case m.CounterVec == nil && o.refusal != nil:
		return nil, o.refusal
	case m.CounterVec == nil:
	case o.refusal != nil:
		m.WithLabelValues(o.refusal.Reason).Inc()
		return nil, o.refusal
	case o.remembered:
		m.remembered.Inc()
	default:
		m.WithLabelValues("verified").Inc()
	}
	return o.caller, nil
}

// newOutcomes returns counters that count nothing without a registry.
func newOutcomes(reg prometheus.Registerer) outcomes {
	if reg == nil {
		return outcomes{}
	}
	all := service.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bearer_tokens_total",
		Help: "Tokens by outcome: remembered, verified, or the reason of the refusal.",
	}, []string{"outcome"}))
	return outcomes{all, all.WithLabelValues("remembered")}
}
