package bolt_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/randtest"
	"tidings.example/shared/waittest"
)

// historyDir tells the test binary that it is the child of the test below.
const historyDir = "TIDINGS_TEST_HISTORY_DIR"

// R5: what is seen of one event is as if all had come one after the other,
// also over a process that is killed. What was under way then has happened
// wholly or not at all.
func TestLinearizableOverCrashes(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(historyDir); dir != "" {
		recordUntilKilled(t, dir)
		return
	}
	random := randtest.New(t)
	rounds := 3
	if *storetest.Long {
		rounds = 100
	}
	dir, start := t.TempDir(), time.Now()
	var history []porcupine.Operation
	open := 0
	for round := range rounds {
		done, pending := runHistory(t, random, dir, round, start)
		history = append(history, done...)
		open += len(pending)
		history = append(history, pending...)
	}
	end := time.Since(start).Nanoseconds()
	for i := range history {
		if history[i].Return == 0 { // nobody knows: it may have happened at any time since
			history[i].Return = end
		}
	}
	t.Logf("%d operations, %d of them cut off by %d kills", len(history), open, rounds)
	if !porcupine.CheckOperations(storetest.Register(), history) {
		t.Error("in no order are they what was seen")
	}
}

// step is the beginning or the end of an operation, as the child prints it.
type step struct {
	Client int
	Op     string
	Key    int
	Value  string
	End    bool
	Seen   string // at the end: value and ok of the output
	OK     bool
}

// runHistory has a child record operations until it is killed.
func runHistory(t *testing.T, random *rand.Rand, dir string, round int, start time.Time) (done, pending []porcupine.Operation) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLinearizableOverCrashes$", "-test.timeout=10m", fmt.Sprint("-compress=", *storetest.Compress))
	cmd.Env = append(os.Environ(), historyDir+"="+dir, fmt.Sprintf("TIDINGS_TEST_ROUND=%d", round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := map[int]porcupine.Operation{} // by client
	lost, heard := waittest.Context(t)
	defer heard()
	silent := context.AfterFunc(lost, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // which has it print its stacks
	defer silent()
	var kill *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var s step
		if json.Unmarshal(lines.Bytes(), &s) != nil {
			continue // the line that the kill cut off
		}
		if kill == nil {
			silent()
			kill = time.AfterFunc(time.Duration(5+random.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		}
		now, client := time.Since(start).Nanoseconds(), round*crashWriters+s.Client
		if !s.End {
			begun[s.Client] = porcupine.Operation{ClientId: client, Input: storetest.Operation{Kind: s.Op, Key: s.Key, Value: s.Value}, Call: now}
			continue
		}
		o := begun[s.Client]
		delete(begun, s.Client)
		o.Output, o.Return = storetest.Outcome{Value: s.Seen, OK: s.OK}, now
		done = append(done, o)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended by itself: %v", err)
	}
	for _, o := range begun {
		if o.Input.(storetest.Operation).Kind != "get" { // of which nobody has seen anything
			o.Output = storetest.Unknown{}
			pending = append(pending, o)
		}
	}
	return done, pending
}

// recordUntilKilled is the child. A step that begins is printed before it does,
// one that ends after it has.
func recordUntilKilled(t *testing.T, dir string) {
	db := bolttest.Open(t, bolt.Options{Dir: dir, SegmentBytes: 32 << 10, MemtableLimit: 5})
	var mu sync.Mutex
	say := func(s step) {
		line, err := json.Marshal(s)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf("%s\n", line)
	}
	var wg sync.WaitGroup
	for client := range 6 {
		wg.Go(func() {
			for i := 0; ; i++ {
				o := storetest.NextOperation(client, i, os.Getenv("TIDINGS_TEST_ROUND")+".")
				s := step{Client: client, Op: o.Kind, Key: o.Key, Value: o.Value}
				say(s)
				out, err := o.Do(t.Context(), db)
				if err != nil {
					t.Error(err)
				}
				s.End, s.Seen, s.OK = true, out.Value, out.OK
				say(s)
			}
		})
	}
	wg.Wait()
}
