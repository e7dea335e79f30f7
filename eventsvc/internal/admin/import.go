package admin

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/dump"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Arrival is an event that is to be imported. It has a name, a namespace, a uid and a creationTimestamp.
type Arrival struct {
	Event    *eventsv1.Event
	Version  uint64 // resourceVersion where the event comes from; 0: not known
	Believed bool   // if it is the report of a mirror, that can be believed

	// Deleted removes the event. Replace removes another event of its name that is older, because it was deleted
	// where this one comes from.
	Deleted, Replace bool
	Relabel          bool // it may get another cluster than it has in the store
}

// Arrivals returns events of a dump as arrivals. With deletions, what a watch says was deleted is; with relabel, an
// event may change its cluster.
func Arrivals(items []dump.Item, deletions, relabel bool) []Arrival {
	all := make([]Arrival, len(items))
	for i, it := range items {
		all[i] = Arrival{Event: it.Event, Version: it.Version, Believed: it.Believed, Deleted: it.Deleted && deletions, Replace: deletions, Relabel: relabel}
	}
	return all
}

// Imported counts what became of arrivals.
type Imported struct {
	Created   int64     `json:"created"`
	Changed   int64     `json:"changed"`
	Deleted   int64     `json:"deleted"`
	Unchanged int64     `json:"unchanged"`          // stored already, in this version or a newer one, or deleted already
	Beside    int64     `json:"beside"`             // of these, stored under a longer name, because another event has theirs
	Problems  []Problem `json:"problems,omitempty"` // those that are not stored

	// CompactRevision is the new compact revision of the store, if it was empty and an event had a
	// version that it had not given out.
	CompactRevision uint64 `json:"compactRevision,omitempty"`
}

// Problem says why an arrival is not stored.
type Problem struct {
	Arrival int    `json:"arrival"` // its place in the call
	Reason  string `json:"reason"`
}

// Add adds the outcomes of further arrivals, without their problems.
func (i *Imported) Add(more Imported) {
	i.Created += more.Created
	i.Changed += more.Changed
	i.Deleted += more.Deleted
	i.Unchanged += more.Unchanged
	i.Beside += more.Beside
	i.CompactRevision = max(i.CompactRevision, more.CompactRevision)
}

// importBatch is how many events are imported at the same time. They share commits, which take so many past the
// write-ahead log.
const importBatch = 1024

// arriving is an arrival on its way.
type arriving struct {
	Arrival
	index  int
	key    store.Key // where it is to be stored
	other  store.Key // where it is stored if another event has its name
	beside bool      // the key is the other one
	fresh  bool      // there was no event of its name, nor one beside it, when last looked
	result store.Result
	err    error
}

// Import implements [Store]. Changes of one event are made in order, those of different events in parallel.
//
// Of two versions of an event the newer one stays. An event of a name that another one has is stored beside
// it, under [event.CopyName].
//
// An event with a version that this store has not given out is from another store, whose clients may come to this
// one. If this one is empty, it moves its revisions beyond those of the other one, so that these clients must list
// again (see [Engine]). A store that has events
// keeps its revisions, so that the watches of its own clients go on.
func (l Local) Import(ctx context.Context, arrivals []Arrival) (sum Imported, err error) {
	if _, err := l.DB.Fresh(ctx); err != nil {
		return sum, fmt.Errorf("import: %w", err)
	}
	empty := l.DB.Stats().Events == 0
	var batch []*arriving
	pending := map[store.Key]bool{}
	flush := func() error {
		defer func() { batch = batch[:0]; clear(pending) }()
		return l.importBatch(ctx, batch, &sum)
	}
	for i, a := range arrivals {
		if empty && a.Version > l.DB.Revision() {
			bumped, err := l.DB.BumpRevision(ctx, a.Version)
			if err != nil {
				return sum, fmt.Errorf("import: %w", err)
			}
			sum.CompactRevision = bumped
		}
		key := store.Key{Namespace: a.Event.Namespace, Name: a.Event.Name}
		other := store.Key{Namespace: key.Namespace, Name: event.CopyName(a.Event.Labels[event.ClusterLabel], key.Name, a.Event.UID)}
		if len(batch) == importBatch || pending[key] || pending[other] {
			if err := flush(); err != nil {
				return sum, err
			}
		}
		batch, pending[key] = append(batch, &arriving{Arrival: a, index: i, key: key, other: other}), true
	}
	return sum, flush()
}

// importBatch imports different events: in one commit, as far as that is possible, and the rest in parallel. An error
// means that further ones would fail as well.
func (l Local) importBatch(ctx context.Context, batch []*arriving, sum *Imported) error {
	var wg sync.WaitGroup
	for _, in := range l.importTogether(ctx, batch) {
		wg.Go(func() {
			for in.err = l.importOne(ctx, in); errors.Is(in.err, store.ErrBusy) && ctx.Err() == nil; in.err = l.importOne(ctx, in) {
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
		if in.beside && in.err == nil {
			sum.Beside++
		}
		switch {
		case errors.Is(in.err, errRefused):
			sum.Problems = append(sum.Problems, Problem{in.index, strings.TrimPrefix(in.err.Error(), errRefused.Error()+": ")})
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

// deleter is who deletes what files say was deleted.
var deleter = codec.Deleter{Client: "eventsvc import"}.Stored()

// errRefused is the error of an event that cannot be stored, whatever is tried.
var errRefused = errors.New("refused")

// report returns the report that an event is marked with.
func (in *arriving) report() (r event.Report, ok bool) {
	r, ok = event.ReportOf(in.Event)
	return r, ok && in.Believed
}

// step is what an attempt to store an event has found.
type step uint8

const (
	done    step = iota
	beside       // the event belongs beside another one of its name
	removed      // another event of its name was removed, and it can be created now
)

// together is an engine that knows in one look which events never existed.
type together interface {
	Unknown(keys []store.Key) []bool
}

// importTogether creates, replaces or deletes different events. It returns those that need more than that.
func (l Local) importTogether(ctx context.Context, batch []*arriving) (rest []*arriving) {
	db, ok := l.DB.(together)
	if !ok {
		return batch
	}
	n := len(batch)
	keys, next := make([]store.Key, 2*n), make([]step, n)
	for i, in := range batch {
		keys[i], keys[n+i] = in.key, in.other
	}
	unknown := db.Unknown(keys)
	for i, in := range batch {
		in.fresh = unknown[i] && unknown[n+i]
	}
	expect := func(i int) store.Expect {
		if unknown[i] {
			return store.Absent
		}
		return store.Any
	}
	outcomes := l.DB.UpdateMany(ctx, keys[:n], expect, func(i int, current *store.Record) (d store.Decision, err error) {
		d, next[i], err = l.decide(ctx, batch[i], current)
		return d, err
	})
	for i, in := range batch {
		in.result, in.err = outcomes[i].Result, outcomes[i].Err
		if errors.Is(in.err, store.ErrBusy) || in.err == nil && next[i] != done {
			rest = append(rest, in)
		}
	}
	return rest
}

// importOne creates, replaces or deletes an event.
func (l Local) importOne(ctx context.Context, in *arriving) (err error) {
	for {
		var next step
		in.result, err = l.DB.Update(ctx, in.key, store.Any, func(current *store.Record) (d store.Decision, err error) {
			d, next, err = l.decide(ctx, in, current)
			return d, err
		})
		if err != nil || next == done {
			return err
		}
		if next == beside {
			in.key, in.beside = in.other, true
			renamed := *in.Event
			renamed.Name = in.key.Name
			in.Event = &renamed
		}
	}
}

// decide says what becomes of the event that has the name of an arrival.
func (l Local) decide(ctx context.Context, in *arriving, current *store.Record) (store.Decision, step, error) {
	if current == nil {
		return l.decideNew(ctx, in)
	}
	live, err := l.Codec.Event(current.View())
	if err != nil {
		return store.Decision{}, done, err
	}
	switch {
	case live.UID == in.Event.UID:
		d, err := l.decideSame(in, current, live)
		return d, done, err
	case live.Annotations[event.SourceUID] == string(in.Event.UID): // a mirror's copy of it
		return store.Decision{}, done, nil
	case in.Replace && in.Event.CreationTimestamp.Before(&live.CreationTimestamp), in.Replace && in.Deleted:
		return store.Decision{}, done, nil // it was deleted before the other one was made
	case in.Replace:
		return store.Decision{Op: store.Delete, By: deleter}, removed, nil
	case in.beside:
		return store.Decision{}, done, fmt.Errorf("%w: another event has the name %s", errRefused, in.key.Name)
	default:
		return store.Decision{}, beside, nil
	}
}

// decideSame says what becomes of an event when it arrives again.
func (l Local) decideSame(in *arriving, current *store.Record, live *eventsv1.Event) (store.Decision, error) {
	if in.Deleted {
		return store.Decision{Op: store.Delete, By: deleter}, nil
	}
	if len(in.Event.ManagedFields) == 0 { // kubectl leaves them out of what it prints
		whole := *in.Event
		whole.ManagedFields = live.ManagedFields
		in.Event = &whole
	}
	if err := in.stay(live); err != nil || l.stays(current, live, in) {
		return store.Decision{}, err
	}
	return l.put(in)
}

// stay keeps an event in its cluster: an arrival without one gets that of the stored event, another one is refused.
func (in *arriving) stay(live *eventsv1.Event) error {
	is, to := live.Labels[event.ClusterLabel], in.Event.Labels[event.ClusterLabel]
	switch {
	case is == "" || is == to || in.Relabel && to != "":
		return nil
	case to != "":
		return fmt.Errorf("%w: it is stored as one of cluster %s: import it with --cluster %s, or say --relabel to make it one of %s", errRefused, is, is, to)
	}
	whole := *in.Event
	whole.Labels = maps.Clone(whole.Labels)
	if whole.Labels == nil {
		whole.Labels = map[string]string{}
	}
	for name, value := range live.Labels {
		if value == is { // --cluster sets two
			whole.Labels[name] = value
		}
	}
	in.Event = &whole
	return nil
}

// decideNew says what becomes of an arrival whose name no event has.
func (l Local) decideNew(ctx context.Context, in *arriving) (store.Decision, step, error) {
	fresh := in.fresh
	in.fresh = false          // if it is asked again, something has changed
	if !fresh && !in.beside { // it may be stored beside one that is gone now
		err := l.DB.Get(ctx, in.other, func(*store.View) error { return nil })
		if err == nil {
			return store.Decision{}, beside, nil
		} else if !errors.Is(err, store.ErrNotFound) {
			return store.Decision{}, done, err
		}
	}
	if in.Deleted {
		return store.Decision{}, done, nil
	}
	d, err := l.put(in)
	if err == nil && !fresh {
		d.Draft, err = store.Resume(ctx, l.DB.Timeline(), in.key, d.Draft, event.Origin(in.Event), codec.Origin)
	}
	return d, done, err
}

func (l Local) put(in *arriving) (store.Decision, error) {
	draft, err := l.Codec.Draft(in.Event)
	if err != nil {
		return store.Decision{}, fmt.Errorf("%w: %w", errRefused, err)
	}
	if report, ok := in.report(); ok {
		draft.Attributes = draft.Attributes.WithReport(report)
	}
	if in.Version > 0 {
		draft.Attributes = draft.Attributes.WithVersion(in.Version)
	}
	return store.Decision{Op: store.Put, Draft: draft}, nil
}

// stays reports whether the stored version of an event is the arriving one, or a newer one. If the versions do not
// tell, the observations do. Of one version with other contents, such as labels of an import, the arriving one counts.
func (l Local) stays(current *store.Record, live *eventsv1.Event, in *arriving) bool {
	_, mark := in.report()
	if current.Attributes.Believed() == mark && fields.Same(in.Event, live) {
		return true
	}
	version := current.Attributes.Version()
	told := version > 0 && in.Version > 0
	if told && version != in.Version {
		return in.Version < version
	}
	order := cmp.Or(event.LastSeen(in.Event).Compare(event.LastSeen(live)), cmp.Compare(count(in.Event), count(live)), managed(in.Event).Compare(managed(live)))
	relabelled := in.Event.Labels[event.ClusterLabel] != live.Labels[event.ClusterLabel] // as stay allows
	return order < 0 || order == 0 && !told && !relabelled
}

// count is how often an event was observed.
func count(ev *eventsv1.Event) int64 { return event.OccurrenceOf(ev).Count }

// managed is when an event was last changed by a field manager.
func managed(ev *eventsv1.Event) (last time.Time) {
	for i := range ev.ManagedFields {
		if at := ev.ManagedFields[i].Time; at != nil && at.After(last) {
			last = at.Time
		}
	}
	return last
}

// The marks of an arrival on its way to a running service.
const (
	markBelieved = 1 << iota
	markDeleted
	markReplace
	markRelabel
)

func (a *Arrival) marks() (m byte) {
	if a.Believed {
		m |= markBelieved
	}
	if a.Deleted {
		m |= markDeleted
	}
	if a.Replace {
		m |= markReplace
	}
	if a.Relabel {
		m |= markRelabel
	}
	return m
}

// encodeArrivals writes arrivals one after the other: a byte with the marks, version and length as varints, and the
// event in protobuf, which takes a fifth of the time of JSON.
func encodeArrivals(arrivals []Arrival) ([]byte, error) {
	size := 0
	for i := range arrivals {
		size += 1 + 2*binary.MaxVarintLen64 + arrivals[i].Event.Size()
	}
	b := make([]byte, 0, size)
	for i := range arrivals {
		a := &arrivals[i]
		n := a.Event.Size()
		b = binary.AppendUvarint(binary.AppendUvarint(append(b, a.marks()), a.Version), uint64(n))
		if _, err := a.Event.MarshalToSizedBuffer(b[len(b) : len(b)+n]); err != nil {
			return nil, fmt.Errorf("encode event as protobuf: %w", err)
		}
		b = b[:len(b)+n]
	}
	return b, nil
}

// decodeArrivals reads what encodeArrivals has written, and checks it again: it comes from elsewhere.
func decodeArrivals(b []byte) (all []Arrival, err error) {
	for len(b) > 0 {
		var a Arrival
		if a, b, err = decodeArrival(b); err != nil {
			return nil, fmt.Errorf("arrival %d: %w", len(all), err)
		}
		all = append(all, a)
	}
	return all, nil
}

// decodeArrival reads the first arrival, and returns what follows it.
func decodeArrival(b []byte) (a Arrival, rest []byte, err error) {
	marks, b := b[0], b[1:]
	version, used := binary.Uvarint(b)
	if used <= 0 {
		return a, nil, io.ErrUnexpectedEOF
	}
	b = b[used:]
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) {
		return a, nil, io.ErrUnexpectedEOF
	}
	b, rest = b[used:used+int(n)], b[used+int(n):]
	ev := new(eventsv1.Event)
	if err := ev.Unmarshal(b); err != nil {
		return a, nil, err
	}
	if errs := event.ValidateStored(ev); len(errs) > 0 {
		return a, nil, errs.ToAggregate()
	}
	return Arrival{
		Event: ev, Version: version,
		Believed: marks&markBelieved != 0, Deleted: marks&markDeleted != 0, Replace: marks&markReplace != 0, Relabel: marks&markRelabel != 0,
	}, rest, nil
}
