package load

import (
	"context"
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Background puts load on a server until stop is called, which returns the
// number of checked answers. It runs on a thread of its own with the lowest
// priority: a real attacker does not use the server's processors, so sending the
// requests must not take processor time from the other clients.
func Background(spec Spec) (stop func() (done int, err error), err error) {
	l, err := NewLoop()
	if err != nil {
		return nil, err
	}
	ld, err := l.NewLoad(spec)
	if err != nil {
		l.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ld.Start()
	go func() {
		runtime.LockOSThread()
		err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
		if err == nil {
			err = l.Run(5*time.Minute, func() bool { return ctx.Err() != nil })
		}
		ended <- err
		select {} // the thread is good for nothing else, and services that it has started would end with it
	}()
	return func() (int, error) {
		defer l.Close()
		cancel()
		err := <-ended // the next answer wakes it
		return ld.Done, errors.Join(err, ld.Drain(), ld.Failure)
	}, nil
}
