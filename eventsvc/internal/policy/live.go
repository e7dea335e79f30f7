package policy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/service"
)

// lookAgain is how often the file is read and compared. Reading a few kilobytes is
// simpler than watching for each of the ways in which editors, Kubernetes and
// configuration management replace files.
const lookAgain = time.Second

// Config are the settings of a [Live].
type Config struct {
	// Path is the policy file; "" stands for the open policy.
	Path string
	Options
	// Changed is called after a new policy has come into force. May be nil.
	Changed  func()
	Log      *slog.Logger // nil: nothing is logged
	Registry prometheus.Registerer
}

// Live holds the policy in force and follows its file. A new version is read and
// checked as a whole before it replaces the policy. A bad version changes nothing.
type Live struct {
	Config
	current atomic.Pointer[Policy]
	read    []byte // the last version of the file, good or bad
	failed  string // the error of the last version; empty: it is in force

	reloads *prometheus.CounterVec
	good    prometheus.Gauge
}

// NewLive reads the policy file. At this first time a bad file is an error.
func NewLive(c Config) (*Live, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	l := &Live{
		Config: c,
		reloads: service.Register(c.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_policy_reloads_total", Help: "New versions of the policy file, by result.",
		}, []string{"result"})),
		good: service.Register(c.Registry, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventsvc_policy_file_good", Help: "1 if the policy file is the policy in force, 0 if it is bad and the one before stays in force.",
		})),
	}
	l.good.Set(1)
	if c.Path == "" {
		l.current.Store(Open())
		c.Log.Warn("--policy-file is not set: every authenticated client may do everything")
		return l, nil
	}
	data, err := readFile(c.Path)
	if err != nil {
		return nil, err
	}
	p, err := Parse(data, c.Options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	l.current.Store(p)
	l.read = data
	return l, nil
}

// Current returns the policy in force.
func (l *Live) Current() *Policy { return l.current.Load() }

// Run follows the file until ctx ends. After a SIGHUP it reads the file at once.
func (l *Live) Run(ctx context.Context) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
		case <-tick.C:
		}
		l.Reload()
	}
}

// Reload reads the file and puts it into force if it is new and valid. It must not be
// called while [Live.Run] runs.
func (l *Live) Reload() {
	if l.Path == "" {
		return
	}
	data, err := readFile(l.Path)
	if err == nil {
		if bytes.Equal(data, l.read) && l.failed == "" {
			return
		}
		var p *Policy
		if p, err = Parse(data, l.Options); err == nil {
			l.put(p, data)
			return
		}
	}
	if bytes.Equal(data, l.read) && l.failed == err.Error() {
		return // logged already
	}
	l.read, l.failed = data, err.Error()
	l.reloads.WithLabelValues("error").Inc()
	l.good.Set(0)
	l.Log.Error("the policy file is bad, the policy before stays in force", "file", l.Path, "error", err)
}

func (l *Live) put(p *Policy, data []byte) {
	l.current.Store(p)
	l.read, l.failed = data, ""
	l.reloads.WithLabelValues("ok").Inc()
	l.good.Set(1)
	l.Log.Info("a new policy is in force", "file", l.Path)
	if l.Changed != nil {
		l.Changed()
	}
}

// readFile reads a file, but at most one byte more than a policy file may have.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}
