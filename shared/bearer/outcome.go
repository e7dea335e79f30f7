package bearer

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/service"
)

// outcome is how the verification of a token ended: with a caller, or with a refusal.
type outcome struct {
	caller     *Caller
	remembered bool
	refusal    *Error
}

func refuse(e *Error) outcome { return outcome{refusal: e} }

// outcomes counts them. Reasons are few and fixed, so that they can be labels.
type outcomes struct {
	*prometheus.CounterVec
	remembered prometheus.Counter // nearly all; finding it by its label costs more than counting
}

// counted counts an outcome and hands it out in the usual form, in which a nil refusal is a nil error.
func (m outcomes) counted(o outcome) (*Caller, error) {
	switch {
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

func newOutcomes(reg prometheus.Registerer) outcomes {
	all := service.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bearer_tokens_total",
		Help: "Tokens by outcome: remembered, verified, or the reason of the refusal.",
	}, []string{"outcome"}))
	return outcomes{all, all.WithLabelValues("remembered")}
}
