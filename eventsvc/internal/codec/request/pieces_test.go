package request_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
)

// TestLargeBodiesArePaused: while a large body is checked and decoded on one
// processor, other goroutines run after every piece. The test counts how often
// another goroutine runs, so it runs alone.
func TestLargeBodiesArePaused(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const size = 3<<20 - 1000
	c := codectest.New(t, "k8s.io")
	decode := func(body string) func() {
		return func() {
			if _, _, err := c.Decoder.DecodeEvent(event.EventsV1, jsonType, []byte(body), ""); err != nil {
				t.Error(err)
			}
		}
	}
	operation := `{"op":"test","path":"/note","value":"` + strings.Repeat("x", 300) + `"}`
	patch := []byte("[" + strings.Repeat(operation+",", size/len(operation)-20) + operation + "]")
	for name, tt := range map[string]struct {
		work   func()
		passes int // over the body
	}{
		"text":     {decode(`{"metadata":{"annotations":{"a":"` + strings.Repeat("x", size) + `"}}}`), 2},
		"escapes":  {decode(`{"metadata":{"annotations":{"a":"` + strings.Repeat(`\n`, size/2) + `"}}}`), 2},
		"brackets": {decode(`{"metadata":{"annotations":{"a":"` + strings.Repeat(`[{`, size/2) + `"}}}`), 2},
		"patch": {func() {
			if err := c.Decoder.CheckPatch(patch); err != nil {
				t.Error(err)
			}
		}, 2},
	} {
		if others, want := runsOfOthers(tt.work), tt.passes*(size/request.Piece-2); others < want {
			t.Errorf("%s: others ran %d times, want %d", name, others, want)
		}
	}
}

// runsOfOthers counts how often another goroutine runs meanwhile.
func runsOfOthers(work func()) int {
	var runs atomic.Int64
	var done atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !done.Load() {
			runs.Add(1)
			runtime.Gosched()
		}
	}()
	for runs.Load() == 0 {
		runtime.Gosched()
	}
	before := runs.Load()
	work()
	others := runs.Load() - before
	done.Store(true)
	<-ended
	return int(others)
}
