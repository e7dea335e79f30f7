package httpserver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The limits of a connection. They are far above what clients need on a slow network, and what one that only wants to
// hold connections costs is small: 32 KiB of header, and a goroutine for as long.
const (
	headerTimeout  = 10 * time.Second // to send the header of a request
	bodyTimeout    = 30 * time.Second // to send a request, header and body
	writeTimeout   = time.Minute      // to read an answer, or each write of a stream
	shortTimeout   = 10 * time.Second // the same of a request that nobody has answered for ([Leave])
	idleTimeout    = 2 * time.Minute  // between two requests
	maxHeaderBytes = 32 << 10         // of a request: a token of 16 KiB, or as many names of groups from kube-apiserver
	maxStreams     = 100              // of a connection over HTTP/2: as kube-apiserver has it, the least that RFC 9113 recommends
)

// cuts counts connections that a limit has cut off. Bodies that arrive too slowly are counted by the handlers that read
// them.
type cuts struct{ header, answer, source, unread prometheus.Counter }

func newCuts(reg prometheus.Registerer) cuts {
	counters := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "http_connections_cut_total",
		Help: "Connections cut off: in the header of a request (too slow, too large or malformed), in an answer (taken too slowly), at once " +
			"(source: too many of their source), or in a request without a token (unread: too many of its source are not read).",
	}, []string{"in"})
	return cuts{counters.WithLabelValues("header"), counters.WithLabelValues("answer"), counters.WithLabelValues("source"), counters.WithLabelValues("unread")}
}
