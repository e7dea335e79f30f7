package httpserver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tidings.example/shared/cli"
)

// Limits are the settings that limit the cost of a connection: its timeouts, and the size of a header. Zero fields
// stand for the defaults.
type Limits struct {
	HeaderTimeout  time.Duration `default:"10s" help:"Time to send the header of a request."`
	BodyTimeout    time.Duration `default:"30s" help:"Time to send a request, header and body."`
	WriteTimeout   time.Duration `default:"60s" help:"Time for a client to read an answer, or each write of a stream."`
	IdleTimeout    time.Duration `default:"2m" help:"Time that a connection may be idle between requests."`
	MaxHeaderBytes int           `default:"16384" help:"Largest header of a request, in bytes."`
}

// Check returns an error for limits that cannot be meant.
func (l *Limits) Check() error {
	if min(l.HeaderTimeout, l.BodyTimeout, l.WriteTimeout, l.IdleTimeout) <= 0 || l.MaxHeaderBytes < 1<<10 {
		return cli.Usagef("--header-timeout, --body-timeout, --write-timeout and --idle-timeout must be positive, --max-header-bytes at least 1024")
	}
	if l.BodyTimeout < l.HeaderTimeout {
		return cli.Usagef("--body-timeout %s is shorter than --header-timeout %s, which is a part of it", l.BodyTimeout, l.HeaderTimeout)
	}
	return nil
}

// complete sets the defaults.
func (l *Limits) complete() {
	for set, fallback := range map[*time.Duration]time.Duration{
		&l.HeaderTimeout: 10 * time.Second, &l.BodyTimeout: 30 * time.Second, &l.WriteTimeout: time.Minute, &l.IdleTimeout: 2 * time.Minute,
	} {
		if *set <= 0 {
			*set = fallback
		}
	}
	if l.MaxHeaderBytes <= 0 {
		l.MaxHeaderBytes = 16 << 10
	}
}

// cuts counts connections that a limit has cut off. Bodies that arrive too slowly are counted by the handlers that read them.
type cuts struct{ header, answer prometheus.Counter }

func newCuts(reg prometheus.Registerer) cuts {
	counters := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "http_connections_cut_total",
		Help: "Connections cut off: in the header of a request (too slow, too large or malformed) or in an answer (taken too slowly).",
	}, []string{"in"})
	return cuts{counters.WithLabelValues("header"), counters.WithLabelValues("answer")}
}
