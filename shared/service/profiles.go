package service

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"strings"
	"sync"
)

// stopSampling ends the recording of every so many bytes' allocation. The runtime wants to be told once.
var stopSampling = sync.OnceFunc(func() { runtime.MemProfileRate = 0 })

// Profiles adds the profiles of the Go runtime, below /debug/pprof/, to the handler of a management listener. They tell
// much about what a process works on and cost it time, so that a service offers them only when it is told to. The one of
// the heap costs all the time, some percent of a busy service: where it is not offered, nothing is recorded for it.
func Profiles(next http.Handler, offered bool) http.Handler {
	if !offered {
		stopSampling()
		return next
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // the named profiles too
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			mux.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
