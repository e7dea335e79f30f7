package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"tidings.example/shared/httpserver"
)

// defaultStopTimeout is two thirds of what Kubernetes gives a pod between the signal and its kill.
const defaultStopTimeout = 20 * time.Second

// Config describes the service for [Run].
type Config struct {
	HTTP   httpserver.Config                 // the listeners; Name and Log stand for the whole service
	Tasks  []func(ctx context.Context) error // background work; Run waits for it, and an error stops the service
	Health *Health                           // its readiness fails first when stopping; may be nil
	Drain  func(context.Context)             // called after StopDelay to end watches; may be nil

	StopDelay   time.Duration // time to go on serving while not ready, so that load balancers notice
	StopTimeout time.Duration // for draining, open requests and tasks together; 0: 20 s
}

// Signals returns a context that ends at SIGINT or SIGTERM. A second signal ends the process at once, with the exit
// code of a process killed by that signal (128 and its number). The returned function stops handling the signals.
func Signals(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	released := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case <-released:
				return
			case s := <-signals:
				if number, ok := s.(syscall.Signal); ok && !first {
					os.Exit(128 + int(number))
				}
				cancel()
			}
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(released)
		cancel()
	})
}

// Run opens all endpoints, serves them and runs the tasks until ctx ends or something fails. It then stops gracefully,
// in the order of the package comment. After the end of ctx it returns nil, also if it had to cut off requests at the
// end of StopTimeout, which is logged.
func Run(ctx context.Context, c Config) error {
	servers, err := httpserver.Listen(ctx, c.HTTP)
	if err != nil {
		return err
	}
	taskCtx, endTasks := context.WithCancel(context.WithoutCancel(ctx))
	defer endTasks()

	log := c.HTTP.Log
	failures := make(chan error, len(servers)+len(c.Tasks))
	var serving, tasks sync.WaitGroup
	for _, s := range servers {
		serving.Go(func() { failures <- s.Serve() })
	}
	for _, task := range c.Tasks {
		tasks.Go(func() {
			if err := task(taskCtx); err != nil && (taskCtx.Err() == nil || !errors.Is(err, context.Canceled)) {
				failures <- err
			}
		})
	}
	select {
	case <-ctx.Done():
		log.Info("stopping", "reason", "asked to")
	case err = <-failures:
		log.Info("stopping", "reason", err)
	}
	err = errors.Join(err, c.stop(servers, &serving, &tasks, endTasks, err == nil))
	for {
		select {
		case late := <-failures: // a failure while stopping, such as that of a last write
			err = errors.Join(err, late)
		default:
			return errors.Join(err, flushLog(log))
		}
	}
}

// stop ends everything in the order of the package comment. It waits for StopDelay only if delay is true: after a
// failure it does not.
func (c Config) stop(servers []*httpserver.Server, serving, tasks *sync.WaitGroup, endTasks func(), delay bool) error {
	if c.Health != nil {
		c.Health.stop()
	}
	if delay && c.StopDelay > 0 {
		time.Sleep(c.StopDelay)
	}
	timeout := c.StopTimeout
	if timeout <= 0 {
		timeout = defaultStopTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	// Clients that do not read make their requests last until these are cut off. The rest is for the tasks and the
	// files.
	requests, cancelRequests := context.WithTimeout(ctx, timeout-timeout/10)
	defer cancelRequests()
	var closing sync.WaitGroup
	for _, srv := range servers {
		closing.Go(func() { srv.Shutdown(requests) })
	}
	if c.Drain != nil {
		c.Drain(requests)
	}
	closing.Wait()
	serving.Wait()
	endTasks()
	ended := make(chan struct{})
	go func() { tasks.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	select { // requests may have used all of the time; tasks get another second
	case <-ended:
		return nil
	case <-time.After(time.Second):
		return fmt.Errorf("background work of %s did not end within %s and was left behind", c.HTTP.Name, timeout)
	}
}
