package service

import (
	"errors"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// LimitMemory lets the garbage collector work harder before the process reaches the memory limit of its container or
// unit, where it would be killed. GOMEMLIMIT, where it is set, stays in force.
func LimitMemory(log *slog.Logger) { limitMemory(log, memlimit.FromCgroup) }

func limitMemory(log *slog.Logger, find memlimit.Provider) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, err := find()
	switch {
	case err == nil:
		own := int64(limit / 5 * 4) // the rest is for what the collector knows nothing of, such as mapped files
		debug.SetMemoryLimit(own)
		log.Info("the memory of the control group is limited", "bytes", limit, "collector", own)
	case !errors.Is(err, memlimit.ErrNoLimit):
		log.Debug("no control group with a memory limit is found", "error", err) // such as in a sandbox, or not on Linux
	}
}
