package policy

import (
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/livefile"
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
	*livefile.File
	current atomic.Pointer[Policy]
}

// NewLive reads the policy file. At this first time a bad file is an error.
func NewLive(c Config) (*Live, error) {
	l := &Live{}
	if c.Path == "" {
		l.current.Store(AllowAll())
		c.Log.Warn("--policy-file is not set: every authenticated client may do everything")
	}
	var err error
	l.File, err = livefile.Open(livefile.Config{
		Path: c.Path, MaxBytes: maxFile, Metric: "eventsvc_policy", What: "policy", Changed: c.Changed, Log: c.Log, Registry: c.Registry,
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
	})
	return l, err
}

// Current returns the policy in force.
func (l *Live) Current() *Policy { return l.current.Load() }
