// Command local is `make run`: it starts tokensvc and then eventsvc on this
// machine with the demo client, waits until each is ready, writes a
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
	s := &services{plan: p, log: log, ended: make(chan *ended, 2), ready: make(chan error, 2)}
	var stopping bool
	var first error
	stop := func(why error) {
		if !stopping {
			stopping, first = true, why
			cancel()
		}
		s.terminate()
	}

	todo := []func() error{
		func() error { return s.start(ctx, "tokensvc") },
		func() error { return s.start(ctx, "eventsvc") },
		func() error { return p.tell(out) },
	}
	s.ready <- nil // nothing has to be ready for the first step
	for !stopping || s.alive > 0 {
		select {
		case <-signals:
			stop(nil) // a second one makes a service leave at once
		case err := <-s.ready:
			if err == nil && !stopping {
				err = todo[0]()
				todo = todo[1:]
			}
			if err != nil && !stopping {
				stop(err)
			}
		case end := <-s.ended:
			s.alive--
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
