package bolt_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// R10: watchers that never read hold up neither writers nor those who do, and
// find everything when they come back, for the log serves what the ring has lost.
func TestStalledWatchersHinderNobody(t *testing.T) {
	t.Parallel()
	writes, stalled := 3000, 200
	if *long {
		writes, stalled = 20_000, 1000
	}
	db := open(t, bolt.Options{Dir: t.TempDir(), RingEntries: 64, SegmentBytes: 256 << 10, MemtableLimit: 500})
	defer closeDB(t, db)
	watchers := make([]store.Watcher, stalled)
	for i := range watchers {
		w, err := db.Watch(t.Context(), store.WatchQuery{})
		if err != nil {
			t.Fatal(err)
		}
		watchers[i] = w
	}
	create(t, db, writes, "value")
	var delivered atomic.Int64
	var wg sync.WaitGroup
	for _, w := range watchers[:20] {
		wg.Go(func() {
			for next := uint64(2); next < uint64(writes)+2; {
				b, err := w.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for _, d := range b.Changes {
					if d.Revision != next {
						t.Errorf("revision %d, want %d", d.Revision, next)
						return
					}
					next++
					delivered.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d writes beside %d watchers that do not read; %d deliveries to 20 of them later", writes, stalled, delivered.Load())
}

// A watcher that even the log has left behind is told so, and nothing after
// the gap.
func TestWatcherBehindTheHorizon(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	db := open(t, bolt.Options{Dir: t.TempDir(), Now: clock.now, RingEntries: 8, History: time.Minute})
	defer closeDB(t, db)
	w, err := db.Watch(t.Context(), store.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, db, 50, "value")
	clock.add(time.Hour)
	maintain(t, db)
	b, err := w.Next(t.Context())
	expired, ok := err.(*store.ExpiredError) //nolint:errorlint // the interface promises the type
	if !ok || len(b.Changes) != 0 || expired.Oldest != db.Stats().Oldest {
		t.Errorf("%+v, %v; want an ExpiredError", b, err)
	}
}

// registerInput is an operation on one event, for the checker.
type registerInput struct {
	op    string
	key   int
	value string
}

type registerOutput struct {
	value string // "": there is no event
	ok    bool
}

// registerUnknown is the output of a write that was cut off, which nobody has
// seen. What it does when it happens is known; that it does not happen is left
// to the checker, as if it came at the very end.
type registerUnknown struct{}

// register is what one event is: absent, or a value.
func register() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			byKey := map[int][]porcupine.Operation{}
			for _, o := range history {
				k := o.Input.(registerInput).key
				byKey[k] = append(byKey[k], o)
			}
			for _, p := range byKey {
				parts = append(parts, p)
			}
			return parts
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(string), input.(registerInput)
			out, known := output.(registerOutput)
			if !known {
				return true, in.after(s)
			}
			switch in.op {
			case "get":
				return out.value == s, s
			case "create":
				if s == "" {
					return out.ok, in.value
				}
				return !out.ok, s
			case "append":
				return out.value == s+in.value, s + in.value
			default: // delete
				return out.ok == (s != ""), ""
			}
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
	}
}

// after is the state after a write.
func (in registerInput) after(s string) string {
	switch {
	case in.op == "append", in.op == "create" && s == "":
		return s + in.value
	case in.op == "delete":
		return ""
	}
	return s
}

// R5: what concurrent callers see of one event is as if they had come one
// after the other.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	each := 150
	if *long {
		each = 3000
	}
	db := open(t, bolt.Options{Dir: t.TempDir(), SegmentBytes: 32 << 10, MemtableLimit: 3})
	defer closeDB(t, db)
	start := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	for client := range 6 {
		wg.Go(func() {
			for i := range each {
				in := registerInput{[]string{"get", "create", "append", "get", "delete"}[(client*7+i*3)%5], (client + i/5) % 4, fmt.Sprintf("%d.%d ", client, i)}
				o := porcupine.Operation{ClientId: client, Input: in, Call: time.Since(start).Nanoseconds()}
				o.Output = apply(t, db, in)
				o.Return = time.Since(start).Nanoseconds()
				mu.Lock()
				history = append(history, o)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if !porcupine.CheckOperations(register(), history) {
		t.Errorf("%d operations: in no order are they what was seen", len(history))
	}
}

func apply(t *testing.T, db *bolt.DB, in registerInput) (out registerOutput) {
	ctx, k := context.WithoutCancel(t.Context()), key(in.key)
	switch in.op {
	case "get":
		r, err := store.Read(ctx, db, k)
		return registerOutput{string(r.Value), err == nil}
	case "create":
		_, err := store.Create(ctx, db, k, store.Draft{Value: []byte(in.value)})
		return registerOutput{"", err == nil}
	case "append":
		r, err := db.Update(ctx, k, func(c *store.Record) (store.Decision, error) {
			d := store.Decision{Op: store.Put}
			if c != nil {
				d.Draft.Value = append(d.Draft.Value, c.Value...)
			}
			d.Draft.Value = append(d.Draft.Value, in.value...)
			return d, nil
		})
		if err != nil {
			t.Error(err)
		}
		return registerOutput{string(r.Record.Value), true}
	default:
		_, err := db.Update(ctx, k, remove)
		return registerOutput{"", err == nil}
	}
}
