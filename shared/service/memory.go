package service

import (
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// LimitMemory lets the garbage collector work harder before the process reaches the memory limit of its container or
// unit, where it would be killed. GOMEMLIMIT, where it is set, stays in force.
func LimitMemory(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit := groupLimit(os.DirFS("/proc/self"), os.DirFS("/sys/fs/cgroup")); limit > 0 {
		own := limit / 5 * 4 // the rest is for what the collector knows nothing of, such as mapped files
		debug.SetMemoryLimit(own)
		log.Info("the memory of the control group is limited", "bytes", limit, "collector", own)
	}
}

// groupLimit is the smallest memory limit of a process's control group and those around it, in version 1 and 2; 0: none.
func groupLimit(process, groups fs.FS) (limit int64) {
	text, err := fs.ReadFile(process, "cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) != 3 {
			continue
		}
		mount, file := "memory", "memory.limit_in_bytes"
		if parts[1] == "" {
			mount, file = ".", "memory.max"
		} else if parts[1] != "memory" {
			continue
		}
		// In a container the path may be that of the host, and the container's own group is at the root.
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			value, err := fs.ReadFile(groups, path.Join(mount, dir, file))
			n, notNumber := strconv.ParseInt(strings.TrimSpace(string(value)), 10, 64)
			// Without a limit, version 2 says max and version 1 a number near the largest.
			if err == nil && notNumber == nil && n > 0 && n < 1<<60 && (limit == 0 || n < limit) {
				limit = n
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit
}
