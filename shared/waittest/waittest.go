// Package waittest has the waits of tests. What they wait for comes at once, unless it is lost: then the test fails after
// [Most], and shows what all goroutines do.
package waittest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Within receives what others send, or waits until they close the channel.
func Within[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	timer := time.NewTimer(Most)
	defer timer.Stop()
	select {
	case v = <-from:
	case <-timer.C:
		Lost(t, "nothing was sent")
	}
	return v
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
	began := time.Now()
	for err := condition(); err != nil; err = condition() {
		if time.Since(began) > Most {
			Lost(t, err.Error())
		}
		<-time.After(5 * time.Millisecond)
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

// Reaches waits until a count has come to a number. What goes on may take long on a busy machine, and is lost when it stands still.
func Reaches(t testing.TB, what string, want int64, count func() int64) {
	t.Helper()
	for last := count(); last < want; last = count() {
		Until(t, fmt.Sprintf("%s: %d of %d", what, last, want), func() bool { return count() > last })
	}
}

// Lost fails the test, which has waited in vain.
func Lost(t testing.TB, missing string) {
	t.Helper()
	t.Fatalf("waited for %s in vain: %s\n%s", Most, missing, Stacks())
}

// Stacks are those of all goroutines.
func Stacks() []byte {
	text := make([]byte, 1<<20)
	return text[:runtime.Stack(text, true)]
}
