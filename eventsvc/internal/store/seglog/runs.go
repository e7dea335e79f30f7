package seglog

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/observed"
)

// A part is the runs of one segment, or of the pending records that its index lacks.
type part struct {
	base   uint64        // of the segment, 0 of the pending records
	tx     *bbolt.Tx     // nil of the pending records
	cursor *bbolt.Cursor // nil if the segment has no index by time
	k, v   []byte        // where the cursor is

	texts []string // of the pending records
	runs  []observed.Run
	at    int
}

var errSegmentNote = fmt.Errorf("what a segment says of its index by time: %w", boltfile.ErrChecksum)

// parts returns what readers count: all segments but those of which what was observed was
// carried to a later one, and of a range of seconds the pending records up to a revision.
func (r *Reader) parts(last uint64, from, to int64) ([]*part, error) {
	var carried uint64
	for i := range r.segments {
		s, err := r.segment(i)
		if err != nil {
			return nil, err
		}
		carried = max(carried, noted(s.tx, metaCarried))
	}
	if carried == damagedNote {
		return nil, errSegmentNote
	}
	var all []*part
	for i, s := range r.segments {
		if s.Base <= carried {
			continue
		}
		p := &part{base: s.Base, tx: r.opened[i].tx}
		if b := p.tx.Bucket([]byte(observed.BucketRuns)); b != nil {
			p.cursor = b.Cursor()
		} else if observedIn(p.tx) > 0 { // a segment has the bucket before it has the note
			return nil, errSegmentNote
		}
		all = append(all, p)
	}
	head, tx := r.segments.Head(), r.opened[len(r.opened)-1].tx
	p, err := r.pendingPart(max(head.Base-1, min(observedIn(tx), recordsIn(head, tx).Last(0))), last, from, to)
	return append(all, p), err
}

// seek moves to the first run of a minute or a later one or, newest first, to the last run
// of the minute or an earlier one.
func (p *part) seek(minute int64, oldestFirst bool) {
	switch {
	case p.tx == nil && oldestFirst:
		p.at, _ = slices.BinarySearchFunc(p.runs, minute, compareMinute)
	case p.tx == nil:
		p.at, _ = slices.BinarySearchFunc(p.runs, minute+1, compareMinute)
		p.at--
	case p.cursor == nil:
	case oldestFirst:
		p.k, p.v = p.cursor.Seek(observed.Key(minute, 0))
	default:
		if p.k, p.v = p.cursor.Seek(observed.Key(minute+1, 0)); p.k == nil {
			p.k, p.v = p.cursor.Last()
		} else {
			p.k, p.v = p.cursor.Prev()
		}
	}
}

func compareMinute(r observed.Run, minute int64) int { return cmp.Compare(r.Minute, minute) }

// next moves to the next run.
func (p *part) next(oldestFirst bool) {
	switch {
	case p.tx == nil && oldestFirst:
		p.at++
	case p.tx == nil:
		p.at--
	case oldestFirst:
		p.k, p.v = p.cursor.Next()
	default:
		p.k, p.v = p.cursor.Prev()
	}
}

// minute returns the minute of the run that the part is at. It reports false at the end.
func (p *part) minute() (minute int64, ok bool, err error) {
	switch {
	case p.tx == nil && p.at >= 0 && p.at < len(p.runs):
		return p.runs[p.at].Minute, true, nil
	case p.k == nil:
		return 0, false, nil
	}
	minute, err = observed.MinuteOfKey(p.k)
	return minute, true, err
}

// run returns the run that the part is at.
func (p *part) run() (observed.Run, error) {
	if p.tx == nil {
		return p.runs[p.at], nil
	}
	return observed.Parse(p.k, p.v)
}

// dimensions returns those of a series.
func (p *part) dimensions(series uint32) (event.Dimensions, error) {
	if p.tx == nil {
		return observed.ParseSeries([]byte(p.texts[series]))
	}
	texts, err := observed.SeriesIn(p.tx, series)
	if err != nil {
		return event.Dimensions{}, err
	}
	return observed.ParseSeries(texts)
}

// A grouping remembers the groups of the series of one part.
type grouping []int

// ungrouped is the place of a series that was not asked for yet.
const ungrouped = -2

// of returns the group of a series, a negative number if it is left out.
func (g *grouping) of(p *part, series uint32, group func(event.Dimensions) int) (int, error) {
	for uint32(len(*g)) <= series && len(*g) < 1<<20 {
		*g = append(*g, ungrouped)
	}
	if int(series) < len(*g) && (*g)[series] != ungrouped {
		return (*g)[series], nil
	}
	d, err := p.dimensions(series)
	if err != nil {
		return 0, err
	}
	n := max(group(d), -1)
	if int(series) < len(*g) {
		(*g)[series] = n
	}
	return n, nil
}

// Occurrences calls visit with what was observed from one second to before another and
// written up to a revision: see [store.Timeline].
func (r *Reader) Occurrences(ctx context.Context, from, to int64, last uint64, group func(event.Dimensions) int, visit func(store.Occurred)) error {
	parts, err := r.parts(last, from, to)
	if err != nil {
		return err
	}
	first, _ := observed.MinuteOf(from)
	end, _ := observed.MinuteOf(to - 1)
	for _, p := range parts {
		var o store.Occurred
		var known grouping
		var start int64 // of the minute
		wanted := func(series uint32) (bool, error) {
			var err error
			o.Group, err = known.of(p, series, group)
			return o.Group >= 0, err
		}
		each := func(e observed.Entry) {
			o.Second, o.Revision, o.Count = start+int64(e.Second), e.Revision, e.Count
			if o.Count > 0 && o.Revision <= last && o.Second >= from && o.Second < to {
				visit(o)
			}
		}
		n := 0
		for p.seek(first, true); ; p.next(true) {
			minute, ok, err := p.minute()
			if err != nil {
				return err
			}
			if !ok || minute > end {
				break
			}
			if n++; n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			run, err := p.run()
			if err != nil {
				return err
			}
			start = minute * 60
			if err := run.Each(wanted, each); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// First returns the first second of the first minute in which something was observed, since
// a time or, if a record that is held reports it, before.
func (r *Reader) First(since time.Time) (second int64, ok bool, err error) {
	var minute int64
	parts, err := r.parts(r.seen, math.MinInt64, math.MaxInt64)
	if err != nil {
		return 0, false, err
	}
	for _, p := range parts {
		for p.seek(math.MinInt64, true); ; p.next(true) {
			at, there, err := p.minute()
			if err != nil {
				return 0, false, err
			}
			if !there || ok && at >= minute {
				break
			}
			run, err := p.run()
			if err != nil {
				return 0, false, err
			}
			held := at >= observed.MinuteSince(since)
			if err := run.Each(observed.All, func(e observed.Entry) { held = held || e.Revision != 0 }); err != nil {
				return 0, false, err
			}
			if held {
				minute, ok = at, true
				break
			}
		}
	}
	return minute * 60, ok, nil
}
