package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine describes what the figures were measured on, without names.
func machine(dataDir string) (string, error) {
	model, err1 := field("/proc/cpuinfo", "model name")
	total, err2 := field("/proc/meminfo", "MemTotal")
	kind, err3 := fileSystem(dataDir)
	var name unix.Utsname
	if err := errors.Join(err1, err2, err3, unix.Uname(&name)); err != nil {
		return "", fmt.Errorf("description of the machine: %w", err)
	}
	kib, err := strconv.ParseInt(strings.TrimSuffix(total, " kB"), 10, 64)
	if err != nil {
		return "", fmt.Errorf("description of the machine: MemTotal: %w", err)
	}
	release, _, _ := strings.Cut(unix.ByteSliceToString(name.Release[:]), "-") // what follows is the builder's
	return fmt.Sprintf("%d cores (%s), %.0f GiB of memory, %s %s, data on %s, %s %s/%s",
		runtime.NumCPU(), model, float64(kib)/(1<<20), unix.ByteSliceToString(name.Sysname[:]),
		release, kind, runtime.Version(), runtime.GOOS, runtime.GOARCH), nil
}

// field is the value of the first line "name : value" of a file.
func field(path, name string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no line %q: %w", path, name, errors.Join(lines.Err(), os.ErrNotExist))
}

// fileSystem is the type of the file system that holds dir, by the longest
// mount point that is a prefix of it.
func fileSystem(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return "", err
	}
	kind, longest := "an unknown file system", 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || len(fields[1]) < longest {
			continue
		}
		if point := strings.TrimSuffix(fields[1], "/"); dir == point || strings.HasPrefix(dir, point+"/") {
			kind, longest = fields[2], len(fields[1])
		}
	}
	return kind, nil
}

// memoryLimit describes the limit of a control group: of version 2, or of
// version 1.
func memoryLimit(cgroup string) (string, error) {
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
