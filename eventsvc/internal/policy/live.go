package policy

import (
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/livefile"
	"tidings.example/shared/service"
)

// Config are the settings of a [Live].
type Config struct {
	// Path is the policy file; "" stands for the open policy.
	Path string
	// Options returns what the policy may refer to, which may change: see [livefile.File.Recheck].
	Options func() Options
	// Changed is called after a new policy has come into force. May be nil.
	Changed  func()
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Live holds the policy in force and follows its file. A new version is read and
// checked as a whole before it replaces the policy. A bad version changes nothing.
// Run follows the file, and Recheck reads it after its options have changed.
type Live struct {
	*livefile.File // nil: the open policy
	current        atomic.Pointer[Policy]
}

// NewLive reads the policy file. At this first time a bad file is an error.
func NewLive(c Config) (*Live, error) {
	reloads := service.Register(c.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "eventsvc_policy_reloads_total", Help: "New versions of the policy file, by result.",
	}, []string{"result"}))
	good := service.Register(c.Registry, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "eventsvc_policy_file_good", Help: "1 if the policy file is the policy in force, 0 if it is bad and the one before stays in force.",
	}))
	l := &Live{}
	if c.Path == "" {
		good.Set(1)
		l.current.Store(AllowAll())
		c.Log.Warn("--policy-file is not set: every authenticated client may do everything")
		return l, nil
	}
	var err error
	l.File, err = livefile.Open(livefile.Config{
		Path: c.Path, MaxBytes: maxFile, Reloads: reloads, Good: good,
		Apply: func(data []byte) error {
			p, err := Parse(data, c.Options())
			if err != nil {
				return err
			}
			l.current.Store(p)
			for _, text := range p.Unreachable() {
				c.Log.Warn("a part of the policy has no effect", "file", c.Path, "part", text)
			}
			return nil
		},
		Changed: func() {
			c.Log.Info("a new policy is in force", "file", c.Path)
			if c.Changed != nil {
				c.Changed()
			}
		},
		Failed: func(err error) {
			c.Log.Error("the policy file is bad, the policy before stays in force", "file", c.Path, "error", err)
		},
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Current returns the policy in force.
func (l *Live) Current() *Policy { return l.current.Load() }
