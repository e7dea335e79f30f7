package seglog

import (
	"cmp"
	"math"
	"slices"

	"tidings.example/eventsvc/internal/event"
)

// An observation is an entry of a run with its minute.
type observation struct {
	Minute int64
	runEntry
}

// A collection is what records report. Its series have numbers of their own.
type collection struct {
	Entries []observation
	Texts   []string // of the series, by number, as [appendSeries] encodes them, and those of the nodes

	numbers map[string]uint32
	room    []byte
}

// newCollection returns an empty collection.
func newCollection() *collection { return &collection{numbers: map[string]uint32{}} }

// Add adds what a record reports: a version of an event that was observed like this.
func (o *collection) Add(namespace []byte, a event.Attributes, revision uint64, seen event.Occurrence) {
	texts, node := appendSeries(o.room[:0], namespace, a)
	o.room = texts
	entry := runEntry{Series: o.number(texts), Revision: revision}
	if node != "" {
		o.room = appendText(o.room[:0], node)
		entry.Node = o.number(o.room) + 1
	}
	seen.Spread(func(at, span, n int64) {
		minute, second := minuteOf(at)
		entry.Second, entry.Count, entry.Span = second, n, uint32(min(span, math.MaxUint32))
		o.Entries = append(o.Entries, observation{minute, entry})
	})
}

// number returns the number of texts.
func (o *collection) number(texts []byte) uint32 {
	number, ok := o.numbers[string(texts)]
	if !ok {
		number = uint32(len(o.Texts))
		o.Texts = append(o.Texts, string(texts))
		o.numbers[o.Texts[number]] = number
	}
	return number
}

// ByMinute calls f with the entries of each minute, in the order of a run. They are valid
// until f returns.
func (o *collection) ByMinute(f func(minute int64, entries []runEntry) error) error {
	slices.SortStableFunc(o.Entries, func(a, b observation) int { return cmp.Compare(a.Minute, b.Minute) })
	var run []runEntry
	for i, e := range o.Entries {
		run = append(run, e.runEntry)
		if i+1 < len(o.Entries) && o.Entries[i+1].Minute == e.Minute {
			continue
		}
		if run = mergeEntries(run); len(run) > 0 {
			if err := f(e.Minute, run); err != nil {
				return err
			}
		}
		run = run[:0]
	}
	return nil
}

// lastOf returns the last revision of entries.
func lastOf(entries []runEntry) (last uint64) {
	for _, e := range entries {
		last = max(last, e.Revision)
	}
	return last
}
