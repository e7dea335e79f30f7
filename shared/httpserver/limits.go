package httpserver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The limits of a connection. They are far above what clients need on a slow network, and what one that only wants to hold
// connections costs is small: 32 KiB of header, and a goroutine for as long.
const (
	headerTimeout  = 10 * time.Second // to send the header of a request
	bodyTimeout    = 30 * time.Second // to send a request, header and body
	writeTimeout   = time.Minute      // to read an answer, or each write of a stream
	idleTimeout    = 2 * time.Minute  // between two requests
	maxHeaderBytes = 32 << 10         // of a request: a token of 16 KiB, or as many names of groups from kube-apiserver
)

// cuts counts connections that a limit has cut off. Bodies that arrive too slowly are counted by the handlers that read them.
type cuts struct{ header, answer prometheus.Counter }

func newCuts(reg prometheus.Registerer) cuts {
	counters := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "http_connections_cut_total",
		Help: "Connections cut off: in the header of a request (too slow, too large or malformed) or in an answer (taken too slowly).",
	}, []string{"in"})
	return cuts{counters.WithLabelValues("header"), counters.WithLabelValues("answer")}
}
