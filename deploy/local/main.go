// Command local is `make run`: it starts tokensvc and eventsvc on this
// machine with the demo client, waits until both are ready, writes a
// kubeconfig and prints what to type next. It needs nothing but the two
// binaries, and is for trying things out, not for production.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	dir := flag.String("dir", ".", "the repository: binaries in bin, data in var")
	flag.Parse()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if err := run(*dir, signals, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "make run:", err)
		os.Exit(1)
	}
}

// run keeps both services alive until a signal comes, and ends both when one
// of them ends by itself.
func run(dir string, signals <-chan os.Signal, out, log io.Writer) error {
	p, err := newPlan(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	services, err := start(p, log)
	if err != nil {
		return err
	}
	ready := make(chan error, 1)
	go func() { ready <- p.waitReady(ctx) }()

	var stopping bool
	var first error
	stop := func(why error) {
		if !stopping {
			stopping, first = true, why
			cancel()
		}
		services.terminate()
	}
	for services.alive > 0 {
		select {
		case <-signals:
			stop(nil) // a second one makes a service leave at once
		case err := <-ready:
			if err == nil {
				err = p.tell(out)
			}
			if err != nil && !stopping {
				stop(err)
			}
		case end := <-services.ended:
			services.alive--
			switch {
			case !stopping:
				stop(end)
			case end.err != nil && first == nil:
				first = end
			}
		}
	}
	return first
}

// ended says that a service is gone, and what it left with.
type ended struct {
	name string
	err  error
}

// Error points at the service's own message, which is already on the terminal.
func (e *ended) Error() string {
	if e.err == nil {
		return e.name + " ended by itself, so the other one was stopped"
	}
	return fmt.Sprintf("%s ended with %v; its own message is above", e.name, e.err)
}

// Unwrap gives the exit error.
func (e *ended) Unwrap() error { return e.err }
