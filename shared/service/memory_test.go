package service

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, test := range map[string]struct {
		found  uint64
		err    error
		own    string // GOMEMLIMIT
		want   int64
		logged string
	}{
		"limited":             {found: 5 << 30, want: 4 << 30, logged: "level=INFO msg=\"the memory of the control group is limited\" bytes=5368709120 collector=4294967296\n"},
		"not limited":         {err: memlimit.ErrNoLimit, want: math.MaxInt64},
		"no control group":    {err: errors.New("none"), want: math.MaxInt64, logged: "level=DEBUG msg=\"no control group with a memory limit is found\" error=none\n"},
		"set by the operator": {found: 5 << 30, own: "3GiB", want: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", test.own)
			debug.SetMemoryLimit(math.MaxInt64)
			var log bytes.Buffer
			limitMemory(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), func() (uint64, error) { return test.found, test.err })
			_, line, _ := strings.Cut(log.String(), " ") // behind the time
			if got := debug.SetMemoryLimit(-1); got != test.want || line != test.logged {
				t.Errorf("the limit is %d, want %d; the log has %q, want %q", got, test.want, line, test.logged)
			}
		})
	}
}
