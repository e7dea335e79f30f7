package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// CPU is the user and system time that a process has used.
func CPU(pid int) (time.Duration, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	stat, err := p.Stat()
	if err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	return seconds(stat.CPUTime()), nil
}

// BusyCPU is the time that all processes of the machine together have used.
func BusyCPU() (time.Duration, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("CPU time of the machine: %w", err)
	}
	stat, err := fs.Stat()
	if err != nil {
		return 0, fmt.Errorf("CPU time of the machine: %w", err)
	}
	c := stat.CPUTotal // User holds the guests already
	return seconds(c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal), nil
}

// Usage is the CPU time that was used up to a moment: by a measured process, by this one, and by all others.
type Usage struct {
	At                   time.Time
	Server, Self, Others time.Duration
}

// UsageOf reads the CPU time that was used so far; pid may be 0, for no process.
func UsageOf(pid int) (u Usage, err error) {
	busy, err1 := BusyCPU()
	var err2 error
	if pid != 0 {
		u.Server, err2 = CPU(pid)
	}
	self, err3 := CPU(os.Getpid())
	u.At, u.Self, u.Others = time.Now(), self, busy-self-u.Server
	return u, errors.Join(err1, err2, err3)
}

// Rest waits until a process uses no more CPU time, ten seconds at most.
func Rest(pid int) error {
	before, err := CPU(pid)
	for range 100 {
		time.Sleep(100 * time.Millisecond)
		now, err2 := CPU(pid)
		if err = errors.Join(err, err2); err != nil || now == before {
			break
		}
		before = now
	}
	return err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Memory is the resident memory of a process in bytes: its own, the pages of mapped files, which the kernel can drop,
// and the most that both were since its start.
type Memory struct{ Anon, File, Peak int64 }

// MemoryOf reads the resident memory of a process.
func MemoryOf(pid int) (Memory, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Memory{}, fmt.Errorf("memory: %w", err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return Memory{}, fmt.Errorf("memory: %w", err)
	}
	return Memory{Anon: int64(status.RssAnon), File: int64(status.RssFile), Peak: int64(status.VmHWM)}, nil
}

// Machine describes what the figures are measured on, without names; dataDir
// is where the measured processes keep their data.
func Machine(dataDir string) (string, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return "", fmt.Errorf("description of the machine: %w", err)
	}
	cpus, err1 := fs.CPUInfo()
	memory, err2 := fs.Meminfo()
	kind, err3 := fileSystem(dataDir)
	var name unix.Utsname
	if err := errors.Join(err1, err2, err3, unix.Uname(&name)); err != nil {
		return "", fmt.Errorf("description of the machine: %w", err)
	}
	if len(cpus) == 0 || memory.MemTotalBytes == nil {
		return "", errors.New("description of the machine: /proc tells no processor or no memory")
	}
	release, _, _ := strings.Cut(unix.ByteSliceToString(name.Release[:]), "-") // what follows is the builder's
	return fmt.Sprintf("%d cores (%s), %.0f GiB of memory, %s %s, data on %s, %s %s/%s",
		runtime.NumCPU(), cpus[0].ModelName, float64(*memory.MemTotalBytes)/(1<<30), unix.ByteSliceToString(name.Sysname[:]),
		release, kind, runtime.Version(), runtime.GOOS, runtime.GOARCH), nil
}

// fileSystem is the type of the file system that holds dir: that of the longest
// mount point which is a prefix of it, and of the last one mounted there.
func fileSystem(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	mounts, err := procfs.GetMounts()
	if err != nil {
		return "", err
	}
	kind, longest := "an unknown file system", 0
	for _, m := range mounts {
		point := strings.TrimSuffix(m.MountPoint, "/")
		if len(point) >= longest && strings.HasPrefix(dir+"/", point+"/") {
			kind, longest = m.FSType, len(point)
		}
	}
	return kind, nil
}

// MemoryLimit describes the limit of a control group: of version 2, or of
// version 1.
func MemoryLimit(cgroup string) (string, error) {
	if cgroup == "" {
		return "no memory limit", nil
	}
	text, err := os.ReadFile(filepath.Join(cgroup, "memory.max"))
	if errors.Is(err, os.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(cgroup, "memory.limit_in_bytes"))
	}
	if err != nil {
		return "", fmt.Errorf("-cgroup: no directory of a memory control group: %w", err)
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return "", fmt.Errorf("-cgroup: its memory is not limited: %w", err)
	}
	return fmt.Sprintf("both services within one memory limit of %d MiB", limit>>20), nil
}
