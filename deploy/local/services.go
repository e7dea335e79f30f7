package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"syscall"
	"time"
)

// readyWithin is how long a service may take until it serves.
const readyWithin = 30 * time.Second

// services are the two running processes.
type services struct {
	running []*exec.Cmd
	ended   chan *ended
	alive   int
}

// start starts both services, tokensvc first, with the environment of p.
// Each gets a process group of its own: a Ctrl-C on the terminal reaches only
// this program, which then asks each service once, by SIGTERM.
func start(p *plan, log io.Writer) (*services, error) {
	s := &services{ended: make(chan *ended, 2)}
	for _, name := range []string{"tokensvc", "eventsvc"} {
		cmd := exec.Command(p.Path("bin/" + name))
		cmd.Env, cmd.Stdout, cmd.Stderr = p.env, log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s is not built yet: run make build", p.Path("bin/"+name))
			}
			s.terminate()
			for range s.running {
				err = errors.Join(err, <-s.ended)
			}
			return nil, err
		}
		s.running = append(s.running, cmd)
		s.alive++
		go func() { s.ended <- &ended{name, cmd.Wait()} }()
	}
	return s, nil
}

// terminate asks every service to stop. One that has ended does not mind.
func (s *services) terminate() {
	for _, cmd := range s.running {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
}

// waitReady returns when both services answer their readiness probe.
func (p *plan) waitReady(ctx context.Context) error {
	for _, name := range []string{"tokensvc", "eventsvc"} {
		cmd := exec.CommandContext(ctx, p.Path("bin/"+name), "healthcheck", "--wait", readyWithin.String())
		cmd.Env = p.env
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s is not ready after %s: %s", name, readyWithin, text)
		}
	}
	return nil
}
