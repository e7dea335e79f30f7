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

// services are the running processes.
type services struct {
	plan    *plan
	log     io.Writer // what they print
	running []*exec.Cmd
	alive   int
	ready   chan error  // a service answers its readiness probe, or will not
	ended   chan *ended // a service is gone
}

// start starts one service and then waits for it in the background. It gets a
// process group of its own: a Ctrl-C on the terminal reaches only this
// program, which then asks each service once, by SIGTERM.
func (s *services) start(ctx context.Context, name string) error {
	cmd := exec.Command(s.plan.Path("bin/" + name))
	cmd.Env, cmd.Stdout, cmd.Stderr = s.plan.env, s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not built yet: run make build", cmd.Path)
	} else if err != nil {
		return err
	}
	s.running = append(s.running, cmd)
	s.alive++
	go func() { s.ended <- &ended{name, cmd.Wait()} }()
	go func() { s.ready <- s.probe(ctx, name) }()
	return nil
}

// probe returns when the service answers its readiness probe.
func (s *services) probe(ctx context.Context, name string) error {
	cmd := exec.CommandContext(ctx, s.plan.Path("bin/"+name), "healthcheck", "--wait", readyWithin.String())
	cmd.Env = s.plan.env
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s is not ready after %s: %s", name, readyWithin, text)
	}
	return nil
}

// terminate sends SIGTERM to every service. It has no effect on a service that
// has ended.
func (s *services) terminate() {
	for _, cmd := range s.running {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
}

// ended is the error for a service that has ended by itself.
type ended struct {
	name string
	err  error
}

// Error points at the service's own message, which is already on the terminal.
func (e *ended) Error() string {
	if e.err == nil {
		return e.name + " ended by itself"
	}
	return fmt.Sprintf("%s ended with %v; its own message is above", e.name, e.err)
}

// Unwrap gives the exit error.
func (e *ended) Unwrap() error { return e.err }
