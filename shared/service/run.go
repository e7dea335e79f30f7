package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// defaultStopTimeout is the default of Config.StopTimeout.
const defaultStopTimeout = 30 * time.Second

// Endpoint is one listener and what it serves.
type Endpoint struct {
	Setting string       // the flag that holds Addr, such as --listen-http; named in errors
	Addr    string       // host:port; empty: not opened; port 0: any free one
	Handler http.Handler // required
	TLS     *tls.Config  // nil: plain HTTP/1.1; otherwise HTTP/2 is offered too
	// Streaming is set if answers may be endless (watches). Then each write has a deadline, instead of the whole answer.
	Streaming bool
	OnListen  func(net.Addr) // called with the actual address before anything is served; may be nil
}

// Config describes the service for [Run].
type Config struct {
	Name      string                // of the program; in upper case the prefix of its environment variables
	Log       *slog.Logger          // required
	Registry  prometheus.Registerer // for the metrics of connections; may be nil
	Limits    ConnectionLimits
	Endpoints []Endpoint
	Tasks     []func(ctx context.Context) error // background work; Run waits for it, and an error stops the service
	Health    *Health                           // its readiness fails first when stopping; may be nil
	Drain     func(context.Context)             // called after StopDelay to end watches; may be nil

	StopDelay   time.Duration // time to go on serving while not ready, so that load balancers notice
	StopTimeout time.Duration // for draining, open requests and tasks together; 0: 30 s
}

// Signals returns a context that ends at SIGINT or SIGTERM. A second signal ends the process at once, with the exit code of a
// process killed by that signal (128 and its number). The returned function stops handling the signals.
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

// Run opens all endpoints, serves them and runs the tasks until ctx ends or something fails. It then stops gracefully, in the
// order of the package comment. After the end of ctx it returns nil, also if it had to cut off requests at the end of
// StopTimeout, which is logged.
func Run(ctx context.Context, c Config) error {
	listeners, err := listenAll(ctx, c)
	if err != nil {
		return err
	}
	taskCtx, endTasks := context.WithCancel(context.WithoutCancel(ctx))
	defer endTasks()

	failures := make(chan error, len(listeners)+len(c.Tasks))
	var servers []*server
	var serving, tasks sync.WaitGroup
	for _, l := range listeners {
		c.Log.Info("listening", "setting", l.Setting, "address", l.Addr().String(), "tls", l.TLS != nil)
		if l.OnListen != nil {
			l.OnListen(l.Addr())
		}
		srv := newServer(l.Endpoint, c)
		servers = append(servers, srv)
		serving.Go(func() { failures <- l.serve(srv) })
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
		c.Log.Info("stopping", "reason", "asked to")
	case err = <-failures:
		c.Log.Info("stopping", "reason", err)
	}
	err = errors.Join(err, c.stop(servers, &serving, &tasks, endTasks, err == nil))
	for {
		select {
		case late := <-failures: // a failure while stopping, such as that of a last write
			err = errors.Join(err, late)
		default:
			return errors.Join(err, flushLog(c.Log))
		}
	}
}

// stop ends everything in the order of the package comment. It waits for StopDelay only if delay is true: after a failure it
// does not.
func (c Config) stop(servers []*server, serving, tasks *sync.WaitGroup, endTasks func(), delay bool) error {
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
	var closing sync.WaitGroup
	for _, srv := range servers {
		closing.Go(func() { c.shutdown(ctx, srv) })
	}
	if c.Drain != nil {
		c.Drain(ctx)
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
		return fmt.Errorf("background work of %s did not end within %s and was left behind", c.Name, timeout)
	}
}

// shutdown waits for open requests, and cuts off those that have not finished when ctx ends.
func (c Config) shutdown(ctx context.Context, srv *server) {
	err := srv.Shutdown(ctx)
	if err == nil {
		err = srv.detachments.wait(ctx)
	}
	if err != nil {
		c.Log.Warn("open requests were cut off at the end of the stop timeout", "address", srv.Addr)
		_ = srv.Close() // its connections are lost either way
		srv.detachments.close()
	}
}
