// Package proc starts the measured processes and reads what they use, what the
// machine is, and which files lie on its disk.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"tidings.example/shared/porttest"
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

// FreeAddr returns an address of loopback that nobody listens on, and that nobody else
// gets until this process ends.
func FreeAddr() (netip.AddrPort, error) {
	addr, _, err := porttest.Take()
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.ParseAddrPort(addr)
}
