package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// checkTimeout is the time for all checks of one probe. A check that takes longer has failed.
const checkTimeout = 5 * time.Second

// Health has the named checks of a process's probes. Every probe runs its checks again. The zero value is ready to use.
// They are readiness checks, which may depend on other services (a database, a key set). Liveness must not, because a
// restart of this process would not repair those: it only says that the process answers.
type Health struct {
	mu       sync.Mutex
	ready    []check
	stopping atomic.Bool
}

type check struct {
	name    string
	run     func(context.Context) error
	warning bool // the probe passes although the check fails
	state   func() string
}

// Add adds a readiness check.
func (h *Health) Add(name string, run func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = append(h.ready, check{name: name, run: run})
}

// AddWarning adds a check that is reported with the readiness checks. The probe passes although it fails.
func (h *Health) AddWarning(name string, run func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = append(h.ready, check{name: name, run: run, warning: true})
}

// AddState adds a check that never fails. [Admin] shows what state returns behind it.
func (h *Health) AddState(name string, state func() string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = append(h.ready, check{name: name, run: func(context.Context) error { return nil }, state: state})
}

// stop makes readiness fail from now on. It is the first step of a graceful stop.
func (h *Health) stop() { h.stopping.Store(true) }

// checks returns the checks of a probe, in the order in which they are reported.
func (h *Health) checks(probe string) []check {
	h.mu.Lock()
	defer h.mu.Unlock()
	checks := []check{{name: "ping", run: func(context.Context) error { return nil }}}
	if probe == "livez" {
		return checks
	}
	checks = append(checks, h.ready...)
	return append(checks, check{name: "shutdown", run: func(context.Context) error {
		if h.stopping.Load() {
			return errors.New("the process is stopping")
		}
		return nil
	}})
}

// Handler answers the probe at path, which is /livez, /readyz or /healthz, and its single checks below it, in the text
// form of a Kubernetes API server: "ok", ?verbose for a line per check, ?exclude=name to leave one out. It does not
// give the reasons of failures, because it needs no credentials; [Admin] gives them.
func (h *Health) Handler(path string) http.Handler { return h.handler(path, false) }

func (h *Health) handler(path string, reasons bool) http.Handler {
	probe := strings.TrimPrefix(path, "/")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
		defer cancel()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, path), "/"); name != "" {
			h.writeOne(ctx, w, r, probe, name, reasons)
			return
		}
		h.writeAll(ctx, w, r, probe, reasons)
	})
}

// failed returns what a probe says of a failure.
func failed(err error, reasons bool) string {
	if !reasons {
		return "reason withheld"
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

func (h *Health) writeOne(ctx context.Context, w http.ResponseWriter, r *http.Request, probe, name string, reasons bool) {
	for _, c := range h.checks(probe) {
		if c.name != name {
			continue
		}
		if err := c.run(ctx); err != nil {
			http.Error(w, "internal server error: "+failed(err, reasons), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprint(w, "ok")
		return
	}
	http.NotFound(w, r)
}

func (h *Health) writeAll(ctx context.Context, w http.ResponseWriter, r *http.Request, probe string, reasons bool) {
	query := r.URL.Query()
	excluded := query["exclude"]
	passed := true
	var lines strings.Builder
	for _, c := range h.checks(probe) {
		if i := slices.Index(excluded, c.name); i >= 0 {
			excluded = slices.Delete(excluded, i, i+1)
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.name)
		} else if err := c.run(ctx); err != nil {
			if c.warning {
				fmt.Fprintf(&lines, "[-]%s failed (a warning): %s\n", c.name, failed(err, reasons))
				continue
			}
			passed = false
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", c.name, failed(err, reasons))
		} else if reasons && c.state != nil {
			fmt.Fprintf(&lines, "[+]%s ok: %s\n", c.name, c.state())
		} else {
			fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
		}
	}
	if len(excluded) > 0 {
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %q\n", excluded)
	}
	switch {
	case !passed:
		http.Error(w, lines.String()+probe+" check failed", http.StatusInternalServerError)
	case query.Has("verbose"):
		_, _ = fmt.Fprintf(w, "%s%s check passed\n", lines.String(), probe)
	default:
		_, _ = fmt.Fprint(w, "ok")
	}
}
