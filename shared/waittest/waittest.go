// Package waittest has the waits of tests. What they wait for comes at once, unless it is lost: then the test fails,
// and shows what all goroutines do. A wait is lost when the machine was idle for [Most], so that it could have done
// what is missing. On a machine that others keep busy a wait goes on, until it has taken [longest].
package waittest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Most is how long the machine is idle in a wait that is lost.
const Most = 10 * time.Second

// longest is how long a wait takes that is lost on a machine that is busy all the time.
const longest = 30 * Most

// A wait is one that goes on.
type wait struct {
	began time.Time
	idle  time.Duration // of the machine when it began
}

func begin() wait { return wait{time.Now(), idle()} }

// lost tells whether it has been in vain.
func (w wait) lost() bool {
	took := time.Since(w.began)
	return took > longest || took > Most && idle()-w.idle > Most
}

// pause is how long it takes to look again: a hundredth of what has passed.
func (w wait) pause() time.Duration { return 5*time.Millisecond + time.Since(w.began)/100 }

// idle is how long the processors had nothing to do since the machine was started, on average. Where the system does
// not tell, it is the time that has passed.
func idle() time.Duration {
	text, err := os.ReadFile("/proc/stat") // proc_stat(5): "cpu", then user, nice, system and idle in hundredths of a second
	if line := strings.Fields(string(text)); err == nil && len(line) > 4 {
		if ticks, err := strconv.ParseInt(line[4], 10, 64); err == nil {
			return time.Duration(ticks) * 10 * time.Millisecond / time.Duration(runtime.NumCPU())
		}
	}
	return time.Since(started)
}

var started = time.Now()

// Context ends when the wait that begins is lost, and with the test.
func Context(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for w := begin(); !w.lost() && ctx.Err() == nil; {
			select {
			case <-ctx.Done():
			case <-time.After(w.pause()):
			}
		}
	}()
	return ctx, cancel
}

// Within receives what others send, or waits until they close the channel.
func Within[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	timer := time.NewTimer(Most)
	defer timer.Stop()
	for w := begin(); ; timer.Reset(w.pause()) {
		select {
		case v = <-from:
			return v
		case <-timer.C:
			if w.lost() {
				Lost(t, "nothing was sent")
			}
		}
	}
}

// Join waits for goroutines that have been told to end, or have little left to do.
func Join(t testing.TB, all *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	Within(t, done)
}

// Becomes waits until a condition holds, of which the error says what is missing.
func Becomes(t testing.TB, condition func() error) {
	t.Helper()
	Slowly(t, 0, condition)
}

// Slowly is Becomes for what waits itself, for a timer or for programs that start. The wait is not lost before so much
// time has passed.
func Slowly(t testing.TB, least time.Duration, condition func() error) {
	t.Helper()
	w := begin()
	for err := condition(); err != nil; err = condition() {
		if took := time.Since(w.began); took > least && w.lost() || took > least+longest {
			Lost(t, err.Error())
		}
		<-time.After(w.pause())
	}
}

// Until waits until a condition holds.
func Until(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	missing := errors.New("not yet: " + condition)
	Becomes(t, func() error {
		if holds() {
			return nil
		}
		return missing
	})
}

// Reaches waits until a count has come to a number. What goes on may take long on a busy machine, and is lost when it
// stands still.
func Reaches(t testing.TB, what string, want int64, count func() int64) {
	t.Helper()
	for last := count(); last < want; last = count() {
		Until(t, fmt.Sprintf("%s: %d of %d", what, last, want), func() bool { return count() > last })
	}
}

// Lost fails the test, which has waited in vain.
func Lost(t testing.TB, missing string) {
	t.Helper()
	t.Fatalf("waited in vain: %s\n%s", missing, Stacks())
}

// Stacks are those of all goroutines.
func Stacks() []byte {
	text := make([]byte, 1<<20)
	return text[:runtime.Stack(text, true)]
}
