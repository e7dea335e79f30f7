package service

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"strings"
	"sync"
)

// stopSampling disables the sampling of allocations. The runtime documents that it must be set only once.
var stopSampling = sync.OnceFunc(func() { runtime.MemProfileRate = 0 })

// Profiles adds the profiles of the Go runtime, below /debug/pprof/, to the handler of a management listener, if they
// are offered. They reveal much about a process and cost time, so a service offers them only by a setting. Without
// them, allocations are not sampled either, because that costs a busy service some percent all the time.
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
