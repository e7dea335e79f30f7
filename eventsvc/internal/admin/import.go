package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Imported is what has become of the lines of an export.
type Imported struct {
	Created   int64    `json:"created"`
	Changed   int64    `json:"changed"`
	Deleted   int64    `json:"deleted"`
	Unchanged int64    `json:"unchanged"`          // there already, or gone already
	LeftOut   int64    `json:"leftOut"`            // could not be imported
	Problems  []string `json:"problems,omitempty"` // why, of the first of them
}

// maxProblems bounds what is told of lines that were left out.
const maxProblems = 20

// Add adds what became of further lines.
func (i *Imported) Add(more Imported) {
	i.Created += more.Created
	i.Changed += more.Changed
	i.Deleted += more.Deleted
	i.Unchanged += more.Unchanged
	i.LeftOut += more.LeftOut
	i.Problems = append(i.Problems, more.Problems[:min(len(more.Problems), maxProblems-len(i.Problems))]...)
}

// importBatch is how many events are imported at a time: they share commits.
const importBatch = 256

// errNewer is why an event is left out although it is not there.
var errNewer = errors.New("there is a newer event of this name, with another uid; delete that first to have this one")

// A line is one event of an export, to be put or deleted.
type line struct {
	key     store.Key
	event   *eventsv1.Event
	deleted bool

	outcome func(*Imported) *int64
	err     error
}

// Import implements [Store]. What an event is afterwards is what its last line
// says. Changes of one event are made in their order, others side by side.
func (l Local) Import(ctx context.Context, lines []byte) (sum Imported, err error) {
	var batch []*line
	pending := map[store.Key]bool{}
	flush := func() error {
		defer func() { batch = batch[:0]; clear(pending) }()
		return l.importBatch(ctx, batch, &sum)
	}
	for text := range bytes.Lines(lines) {
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		in, err := l.parse(text)
		if err != nil {
			sum.leaveOut(text, err)
			continue
		}
		if in == nil {
			continue
		}
		if len(batch) == importBatch || pending[in.key] {
			if err := flush(); err != nil {
				return sum, err
			}
		}
		batch, pending[in.key] = append(batch, in), true
	}
	return sum, flush()
}

func (i *Imported) leaveOut(text []byte, err error) {
	i.LeftOut++
	if len(i.Problems) < maxProblems {
		i.Problems = append(i.Problems, fmt.Sprintf("%.80q: %v", text, err))
	}
}

// parse reads one line, nil if it is about no event.
func (l Local) parse(text []byte) (*line, error) {
	var frame struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(text, &frame); err != nil {
		return nil, fmt.Errorf("no line of an export: %w", err)
	}
	switch frame.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark:
		return nil, nil
	default:
		return nil, fmt.Errorf("no line of an export: its type is %q", frame.Type)
	}
	ev, _, err := l.Codec.DecodeEvent(event.EventsV1, "application/json", frame.Object, "Strict")
	if err != nil {
		return nil, err
	}
	if errs := event.ValidateStored(ev); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return &line{key: store.Key{Namespace: ev.Namespace, Name: ev.Name}, event: ev, deleted: frame.Type == watch.Deleted}, nil
}

// importBatch imports lines about different events. The error is one that the
// next lines would meet as well.
func (l Local) importBatch(ctx context.Context, batch []*line, sum *Imported) error {
	var wg sync.WaitGroup
	for _, in := range batch {
		wg.Go(func() {
			for in.err = l.importLine(ctx, in); errors.Is(in.err, store.ErrBusy) && ctx.Err() == nil; in.err = l.importLine(ctx, in) {
				wait(ctx, 5*time.Millisecond)
			}
		})
	}
	wg.Wait()
	var failed error
	for _, in := range batch {
		switch {
		case in.err == nil:
			*in.outcome(sum)++
		case errors.Is(in.err, errNewer):
			sum.leaveOut([]byte(in.key.String()), in.err)
		case failed == nil:
			failed = fmt.Errorf("import of %s: %w", in.key, in.err)
		}
	}
	return failed
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// importLine makes an event what the line says.
func (l Local) importLine(ctx context.Context, in *line) error {
	replaced := false
	result, err := l.DB.Update(ctx, in.key, func(current *store.Record) (store.Decision, error) {
		same, other, err := l.compare(current, in)
		if replaced = other; err != nil || same {
			return store.Decision{Op: store.Keep}, err
		}
		if in.deleted || other {
			return store.Decision{Op: store.Delete}, nil
		}
		draft, err := l.Codec.Draft(in.event)
		return store.Decision{Op: store.Put, Draft: draft}, err
	})
	switch {
	case err != nil:
		return err
	case replaced: // the event before is gone
		return l.importLine(ctx, in)
	case result.Op == store.Keep:
		in.outcome = func(i *Imported) *int64 { return &i.Unchanged }
	case result.Op == store.Delete:
		in.outcome = func(i *Imported) *int64 { return &i.Deleted }
	case result.Created:
		in.outcome = func(i *Imported) *int64 { return &i.Created }
	default:
		in.outcome = func(i *Imported) *int64 { return &i.Changed }
	}
	return nil
}

// compare reports whether the store has already come to what a line says, and
// whether there is another event of that name, from before, in its way.
func (l Local) compare(current *store.Record, in *line) (same, other bool, err error) {
	if current == nil {
		return in.deleted, false, nil
	}
	live, err := l.Codec.Event(current)
	switch {
	case err != nil:
		return false, false, err
	case live.UID != in.event.UID && in.deleted:
		return true, false, nil // that one is gone; this one came after it
	case live.UID != in.event.UID && in.event.CreationTimestamp.Before(&live.CreationTimestamp):
		return false, false, errNewer
	case live.UID != in.event.UID:
		return false, true, nil
	default:
		return !in.deleted && l.Codec.SameObject(in.event, live), false, nil
	}
}
