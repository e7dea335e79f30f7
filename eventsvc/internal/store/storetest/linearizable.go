package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"tidings.example/eventsvc/internal/store"
)

// Operation is what a client does to one of a few events, for the checker of histories. It can be printed and read.
type Operation struct {
	Kind  string // get, create, append or delete
	Key   int
	Value string // what a create or an append writes; no two write the same
}

// Outcome is what the client has seen.
type Outcome struct {
	Value string // "": there is no event
	OK    bool
}

// Unknown is the outcome of a write that was cut off, which nobody has seen. What it does when it happens is known.
// That it does not happen is left to the checker, as if it came at the very end.
type Unknown struct{}

// NextOperation returns the operation number i of a client, in an order that makes clients meet.
func NextOperation(client, i int, prefix string) Operation {
	return Operation{
		[]string{"get", "create", "append", "get", "delete"}[(client*7+i*3)%5], (client + i/5) % 4, fmt.Sprintf("%s%d.%d ", prefix, client, i),
	}
}

// after is the state after a write.
func (o Operation) after(s string) string {
	switch {
	case o.Kind == "append", o.Kind == "create" && s == "":
		return s + o.Value
	case o.Kind == "delete":
		return ""
	}
	return s
}

// Do does the operation. That an event exists or does not is an outcome, and no error.
func (o Operation) Do(ctx context.Context, s store.Store) (out Outcome, err error) {
	k := store.Key{Namespace: "a", Name: fmt.Sprint(o.Key)}
	switch o.Kind {
	case "get":
		var r store.Record
		r, err = store.Read(ctx, s, k)
		out.Value = string(r.Value)
	case "create":
		_, err = store.Create(ctx, s, k, store.Draft{Value: []byte(o.Value)})
	case "append":
		var r store.Result
		r, err = s.Update(ctx, k, store.Any, func(c *store.Record) (store.Decision, error) {
			d := store.Decision{Op: store.Put}
			if c != nil {
				d.Draft.Value = append(d.Draft.Value, c.Value...)
			}
			d.Draft.Value = append(d.Draft.Value, o.Value...)
			return d, nil
		})
		out.Value = string(r.Record.Value)
	default:
		_, err = s.Update(ctx, k, store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Delete}, nil
		})
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
		return Outcome{}, nil
	}
	out.OK = err == nil
	return out, err
}

// Register is what one event is, for the checker: absent, or a value.
func Register() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			byKey := map[int][]porcupine.Operation{}
			for _, o := range history {
				k := o.Input.(Operation).Key
				byKey[k] = append(byKey[k], o)
			}
			for _, p := range byKey {
				parts = append(parts, p)
			}
			return parts
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(string), input.(Operation)
			out, known := output.(Outcome)
			if !known {
				return true, in.after(s)
			}
			switch in.Kind {
			case "get":
				return out.Value == s, s
			case "create":
				if s == "" {
					return out.OK, in.Value
				}
				return !out.OK, s
			case "append":
				return out.Value == s+in.Value, s + in.Value
			default: // delete
				return out.OK == (s != ""), ""
			}
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
	}
}

// Linearizable has six clients do operations at the same time, each through one of the stores, which are views of the
// same events. What they see of one event must be as if the operations had come one after the other. A write that is
// refused with [store.ErrUnavailable] must not have happened; what another error says of a write, nobody knows.
func Linearizable(t *testing.T, each int, stores ...store.Store) {
	t.Helper()
	start := time.Now()
	now := func() int64 { return time.Since(start).Nanoseconds() }
	var mu sync.Mutex
	var history []porcupine.Operation
	refused, unknown := 0, 0
	var wg sync.WaitGroup
	for client := range 6 {
		wg.Go(func() {
			for i := range each {
				in := NextOperation(client, i, "")
				o := porcupine.Operation{ClientId: client, Input: in, Call: now()}
				out, err := in.Do(context.WithoutCancel(t.Context()), stores[client%len(stores)])
				o.Output, o.Return = out, now()
				mu.Lock()
				switch {
				case err == nil:
					history = append(history, o)
				case in.Kind == "get", errors.Is(err, store.ErrUnavailable):
					refused++
				default:
					unknown++
					o.Output, o.Return, o.ClientId = Unknown{}, 0, 6+unknown
					history = append(history, o)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range history {
		if history[i].Return == 0 { // it may have happened at any time since
			history[i].Return = now()
		}
	}
	t.Logf("%d operations, %d refused, of %d nobody knows", len(history), refused, unknown)
	if !porcupine.CheckOperations(Register(), history) {
		t.Errorf("%d operations: in no order are they what was seen", len(history))
	}
}
