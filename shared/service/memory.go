package service

import (
	"errors"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// LimitMemory sets the soft memory limit of the Go runtime to four fifths of the limit of the process's control group.
// The garbage collector then works harder before the process reaches that limit and is killed. If GOMEMLIMIT is set, it
// stays in force.
func LimitMemory(log *slog.Logger) { limitMemory(log, memlimit.FromCgroup) }

func limitMemory(log *slog.Logger, find memlimit.Provider) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, err := find()
	switch {
	case err == nil:
		own := int64(limit / 5 * 4) // the rest is for memory that the collector does not count, such as mapped files
		debug.SetMemoryLimit(own)
		log.Info("the memory of the control group is limited", "bytes", limit, "collector", own)
	case !errors.Is(err, memlimit.ErrNoLimit):
		log.Debug("no control group with a memory limit is found", "error", err) // such as in a sandbox, or not on Linux
	}
}
