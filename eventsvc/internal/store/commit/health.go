package commit

import (
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/disk"
)

// health knows whether the files can be written. It is safe for concurrent use.
type health struct {
	config   WriterConfig
	failure  atomic.Pointer[error] // why nothing can be written until failover
	failures prometheus.Counter
}

func newHealth(c WriterConfig) *health {
	return &health{config: c, failures: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "store_failed_files_total", Help: "Failures of a log file that refused all writes until its content was copied to a new file.",
	})}
}

func (h *health) collectors() []prometheus.Collector {
	return []prometheus.Collector{h.failures,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "store_failed", Help: "1 while nothing can be written, because the disk fails."}, func() float64 {
			if h.Failed() != nil {
				return 1
			}
			return 0
		}),
	}
}

// Failed returns why nothing can be written, nil if it can.
func (h *health) Failed() error {
	if p := h.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// Fail refuses all writes from now on, because nobody knows what of a write is on the disk.
// It returns the error for the writers.
func (h *health) Fail(cause error) error {
	if err := h.Failed(); err != nil {
		return err
	}
	failure := fmt.Errorf("%w: %w", store.ErrUnwritable, cause)
	h.failure.Store(&failure)
	h.failures.Inc()
	h.config.Log.Error("a log file could not be written; what was acknowledged is now copied to another", "file", h.config.Records.Head().Path, "error", cause)
	h.config.Unwritable()
	return failure
}

// orFail returns the error of a commit to the head. Unless the disk is full, the
// head has failed.
func (h *health) orFail(err error) error {
	if err != nil && !disk.IsFull(err) {
		return h.Fail(err)
	}
	return err
}

// recovered accepts writes again.
func (h *health) recovered() { h.failure.Store(nil) }
