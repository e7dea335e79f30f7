package observed

import (
	"cmp"
	"math"
	"slices"

	"tidings.example/eventsvc/internal/event"
)

// An Observation is an entry of a run with its minute.
type Observation struct {
	Minute int64
	Entry
}

// A Collection is what records report. Its series have numbers of their own.
type Collection struct {
	Entries []Observation
	Texts   []string // of the series, by number, as [AppendSeries] encodes them

	numbers map[string]uint32
	room    []byte
}

// NewCollection returns an empty collection.
func NewCollection() *Collection { return &Collection{numbers: map[string]uint32{}} }

// Add adds what a record reports: a version of an event that was observed like this.
func (o *Collection) Add(namespace []byte, a event.Attributes, revision uint64, seen event.Occurrence) {
	o.room = AppendSeries(o.room[:0], namespace, a)
	number, ok := o.numbers[string(o.room)]
	if !ok {
		number = uint32(len(o.Texts))
		o.Texts = append(o.Texts, string(o.room))
		o.numbers[o.Texts[number]] = number
	}
	seen.Spread(func(at, span, n int64) {
		minute, second := MinuteOf(at)
		o.Entries = append(o.Entries, Observation{minute, Entry{Series: number, Second: second, Revision: revision, Count: n, Span: uint32(min(span, math.MaxUint32))}})
	})
}

// ByMinute calls f with the entries of each minute, in the order of a run. They are valid
// until f returns.
func (o *Collection) ByMinute(f func(minute int64, entries []Entry) error) error {
	slices.SortStableFunc(o.Entries, func(a, b Observation) int { return cmp.Compare(a.Minute, b.Minute) })
	var run []Entry
	for i, e := range o.Entries {
		run = append(run, e.Entry)
		if i+1 < len(o.Entries) && o.Entries[i+1].Minute == e.Minute {
			continue
		}
		if run = Merge(run); len(run) > 0 {
			if err := f(e.Minute, run); err != nil {
				return err
			}
		}
		run = run[:0]
	}
	return nil
}

// Last returns the last revision of entries.
func Last(entries []Entry) (last uint64) {
	for _, e := range entries {
		last = max(last, e.Revision)
	}
	return last
}
