// Package proc starts the measured processes and reads from /proc what they
// use.
package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running service.
type Process struct {
	// Started is when the process was started.
	Started time.Time
	cmd     *exec.Cmd
	log     *os.File
	ended   chan struct{}
	err     error // of the process, after ended
}

// Start runs a command; what it prints goes to the file log. The process ends
// with this one, however this one ends.
func Start(log string, cmd *exec.Cmd) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", filepath.Base(cmd.Path), err)
	}
	p := &Process{Started: time.Now(), cmd: cmd, log: f, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = f, f
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig, cmd.SysProcAttr.Setpgid = syscall.SIGKILL, true
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the process would end with the thread that has started it
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err), f.Close())
	}
	return p, nil
}

// PID is the number of the process, to measure it with.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ready asks a probe until it answers 200, and returns the time since the start.
func (p *Process) Ready(ctx context.Context, url string, wait time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		err := probe(ctx, client, url)
		if err == nil {
			return time.Since(p.Started), nil
		}
		select {
		case <-p.ended:
			return 0, fmt.Errorf("%s ended before it was ready: %w\n%s", p.name(), p.err, p.tail())
		case <-ctx.Done():
			return 0, fmt.Errorf("%s is not ready after %v: %w\n%s", p.name(), wait, err, p.tail())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return nil
}

// Stop asks the process to end, and insists after a time.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return errors.Join(fmt.Errorf("%s did not stop within 30 s and was killed\n%s", p.name(), p.tail()), p.log.Close())
	}
	return errors.Join(p.err, p.log.Close())
}

func (p *Process) name() string { return filepath.Base(p.cmd.Path) }

// tail is the end of what the process printed.
func (p *Process) tail() string {
	const most = 2000
	info, err := p.log.Stat()
	if err != nil {
		return err.Error()
	}
	text := make([]byte, min(most, info.Size()))
	if _, err := p.log.ReadAt(text, info.Size()-int64(len(text))); err != nil && err != io.EOF {
		return err.Error()
	}
	return string(text)
}

// FreePort is a TCP port of loopback that nobody listens on. Somebody may take
// it before the service does, which then says so.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// tick is the unit of the times in /proc, fixed at 100 Hz for user space.
const tick = 10 * time.Millisecond

// CPU is the user and system time that a process has used.
func CPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	// The second field is the name in parentheses and may hold anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const utime, stime = 14 - 3, 15 - 3
	if len(fields) <= stime {
		return 0, fmt.Errorf("CPU time: /proc/%d/stat has %d fields after the name", pid, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// Memory is the resident memory of a process in bytes: its own, and the pages
// of mapped files, which the kernel can drop.
type Memory struct{ Anon, File int64 }

// MemoryOf reads the resident memory of a process.
func MemoryOf(pid int) (Memory, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("memory: %w", err)
	}
	defer f.Close()
	var m Memory
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		into := map[string]*int64{"RssAnon": &m.Anon, "RssFile": &m.File}[name]
		if into == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("memory: %s of /proc/%d/status: %w", name, pid, err)
		}
		*into = kib << 10
	}
	return m, nil
}

// BusyCPU is the time that all processes of the machine together have used.
func BusyCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("CPU time of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var busy int64
	for i, field := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // the name, idle, iowait, and guests that user holds already
			continue
		}
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time of the machine: %w", err)
		}
		busy += n
	}
	return time.Duration(busy) * tick, nil
}

// DiskBytes is what the files under dir occupy.
func DiskBytes(dir string) (int64, error) {
	var bytes int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil // a segment that has just gone
		}
		if err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	return bytes, err
}
