package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Imported counts the outcomes of the lines of an export.
type Imported struct {
	Created   int64    `json:"created"`
	Changed   int64    `json:"changed"`
	Deleted   int64    `json:"deleted"`
	Unchanged int64    `json:"unchanged"`          // stored already, or deleted already
	LeftOut   int64    `json:"leftOut"`            // could not be imported
	Problems  []string `json:"problems,omitempty"` // the reasons of the first ones

	// CompactRevision is the new compact revision of the store, if a line had a
	// revision that the store had not given out.
	CompactRevision uint64 `json:"compactRevision,omitempty"`
}

// maxProblems is the largest number of problems that are reported.
const maxProblems = 20

// Add adds the outcomes of further lines.
func (i *Imported) Add(more Imported) {
	i.Created += more.Created
	i.Changed += more.Changed
	i.Deleted += more.Deleted
	i.Unchanged += more.Unchanged
	i.LeftOut += more.LeftOut
	i.CompactRevision = max(i.CompactRevision, more.CompactRevision)
	i.Problems = append(i.Problems, more.Problems[:min(len(more.Problems), maxProblems-len(i.Problems))]...)
}

// importBatch is how many events are imported at the same time. They share commits.
const importBatch = 256

// errNewer leaves out an event because the store has a newer one of the same name.
var errNewer = errors.New("there is a newer event of this name, with another uid; delete that first to have this one")

// A line is one event of an export, to be put or deleted, or a bookmark.
type line struct {
	key      store.Key
	event    *eventsv1.Event // nil: a bookmark
	deleted  bool
	revision uint64 // in the store that was exported; 0: not known
	believed bool   // if the event reports a gap of a mirror

	result store.Result // of the import
	err    error
}

// Import implements [Store]. The last line of an event determines its final state.
// Changes of one event are made in order, those of different events in parallel.
//
// A line with a revision that this store has not given out is from another store, whose
// clients may come to this one. Its revisions mean other versions here, so these
// clients must list again. For that, the revisions of this store are first moved beyond
// those of the other one (see [Engine]).
func (l Local) Import(ctx context.Context, lines []byte) (sum Imported, err error) {
	if _, err := l.DB.Fresh(ctx); err != nil {
		return sum, fmt.Errorf("import: %w", err)
	}
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
		if in.revision > l.DB.Revision() {
			bumped, err := l.DB.BumpRevision(ctx, in.revision)
			if err != nil {
				return sum, fmt.Errorf("import: %w", err)
			}
			sum.CompactRevision = bumped
		}
		if in.event == nil {
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

// parse reads one line.
func (l Local) parse(text []byte) (*line, error) {
	var frame struct {
		Type     watch.EventType `json:"type"`
		Object   json.RawMessage `json:"object"`
		Believed *bool           `json:"believed"`
	}
	if err := json.Unmarshal(text, &frame); err != nil {
		return nil, fmt.Errorf("no line of an export: %w", err)
	}
	switch frame.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark:
		var bookmark metav1.PartialObjectMetadata
		if err := json.Unmarshal(frame.Object, &bookmark); err != nil {
			return nil, fmt.Errorf("no line of an export: %w", err)
		}
		return &line{revision: knownRevision(bookmark.ResourceVersion)}, nil
	default:
		return nil, fmt.Errorf("no line of an export: its type is %q", frame.Type)
	}
	ev, _, err := l.Codec.Decoder.DecodeEvent(event.EventsV1, "application/json", frame.Object, "Strict")
	if err != nil {
		return nil, err
	}
	if errs := event.ValidateStored(ev); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return &line{
		key: store.Key{Namespace: ev.Namespace, Name: ev.Name}, event: ev, deleted: frame.Type == watch.Deleted,
		revision: knownRevision(ev.ResourceVersion), believed: frame.Believed == nil || *frame.Believed,
	}, nil
}

// maxKnownRevision is larger than any revision of a store in this century, and a
// float64 holds it exactly.
const maxKnownRevision = 1 << 52

// knownRevision parses the resourceVersion of an event of another store, which may be
// any text. It returns 0 for a text that is no number, or too large to matter.
func knownRevision(text string) uint64 {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n <= maxKnownRevision {
		return n
	}
	return 0
}

// importBatch imports lines of different events in parallel. An error means that
// further lines would fail as well.
func (l Local) importBatch(ctx context.Context, batch []*line, sum *Imported) error {
	var wg sync.WaitGroup
	for _, in := range batch {
		wg.Go(func() {
			for in.err = l.importLine(ctx, in); errors.Is(in.err, store.ErrBusy) && ctx.Err() == nil; in.err = l.importLine(ctx, in) {
				select {
				case <-time.After(5 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	wg.Wait()
	var failed error
	for _, in := range batch {
		switch {
		case errors.Is(in.err, errNewer):
			sum.leaveOut([]byte(in.key.String()), in.err)
		case in.err != nil:
			failed = cmp.Or(failed, fmt.Errorf("import of %s: %w", in.key, in.err))
		case in.result.Op == store.Keep:
			sum.Unchanged++
		case in.result.Op == store.Delete:
			sum.Deleted++
		case in.result.Created:
			sum.Created++
		default:
			sum.Changed++
		}
	}
	return failed
}

// gap returns the gap that the event of a line is marked with.
func (in *line) gap() (g event.Gap, ok bool) {
	g, ok = event.GapOf(in.event)
	return g, ok && in.believed
}

// importLine creates, replaces or deletes the event of a line.
func (l Local) importLine(ctx context.Context, in *line) (err error) {
	replaced := false
	in.result, err = l.DB.Update(ctx, in.key, store.Any, func(current *store.Record) (store.Decision, error) {
		same, other, err := l.compare(current, in)
		if replaced = other; err != nil || same {
			return store.Decision{Op: store.Keep}, err
		}
		if in.deleted || other {
			return store.Decision{Op: store.Delete}, nil
		}
		draft, err := l.Codec.Draft(in.event)
		if err != nil {
			return store.Decision{}, err
		}
		if gap, ok := in.gap(); ok {
			draft.Attributes = draft.Attributes.WithGap(gap)
		}
		if current == nil {
			draft, err = store.Resume(ctx, l.DB.Timeline(), in.key, draft, event.Origin(in.event), codec.Origin)
		}
		return store.Decision{Op: store.Put, Draft: draft}, err
	})
	if err == nil && replaced { // the older event was deleted; now create this one
		return l.importLine(ctx, in)
	}
	return err
}

// compare reports whether the store already has the state of a line (same), and whether
// an older event of that name with another uid must be deleted first (other).
func (l Local) compare(current *store.Record, in *line) (same, other bool, err error) {
	if current == nil {
		return in.deleted, false, nil
	}
	live, err := l.Codec.Event(current.View())
	switch {
	case err != nil:
		return false, false, err
	case live.UID != in.event.UID && in.deleted:
		return true, false, nil // the deleted event is gone; current was created later
	case live.UID != in.event.UID && in.event.CreationTimestamp.Before(&live.CreationTimestamp):
		return false, false, errNewer
	case live.UID != in.event.UID:
		return false, true, nil
	default:
		_, marked := current.Attributes.Gap()
		_, mark := in.gap()
		return !in.deleted && marked == mark && fields.Same(in.event, live), false, nil
	}
}
