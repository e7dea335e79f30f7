package changes

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/store"
)

const (
	// steady is the longest distance between two occurrences of one outbreak, in those between later ones: what comes more
	// and more often began slowly.
	steady = 2
	// unsteady bounds the first distance, for which there are no others yet.
	unsteady = time.Hour
	// likelyUsual is how many occurrences have to be usual in a time until those on both sides of it are no outbreak.
	likelyUsual = 0.3
)

// outbreak is what came of a row before the end of the window, as far as it came without a break.
type outbreak struct {
	row     *candidate
	first   int64 // second
	longest int64 // distance
	usual   float64
	ended   bool
	seen    []store.Occurred // of one second
}

// bound is the longest distance to what came before.
func (b *outbreak) bound() int64 {
	if b.usual > 0 {
		return min(steady*b.longest, int64(likelyUsual/b.usual))
	}
	return steady * b.longest
}

// add looks at what came before the others.
func (b *outbreak) add(o store.Occurred) {
	if b.ended {
		return
	}
	away := b.first - o.Second - o.Span
	if b.ended = away > b.bound(); !b.ended {
		b.first, b.longest = min(b.first, o.Second), max(b.longest, away)
	}
}

// walk adds what was seen in a second, the longest first: counts visit a second in no order.
func (b *outbreak) walk() {
	slices.SortFunc(b.seen, func(x, y store.Occurred) int { return cmp.Compare(y.Span, x.Span) })
	for _, o := range b.seen {
		b.add(o)
	}
	b.seen = b.seen[:0]
}

// outbreaks returns those of the rows of problems that may have begun before the window, by their series.
func (c *comparison) outbreaks(rows []*candidate) map[*tally][]*outbreak {
	all := map[*tally][]*outbreak{}
	for _, r := range rows {
		if !r.alarming() || r.way != More && r.way != Again {
			continue
		}
		b := &outbreak{row: r, first: r.came().Last, longest: int64(min(c.q.Window, unsteady)/time.Second) / steady}
		for _, s := range r.tallies {
			b.usual += s.usual / c.windows / c.q.Window.Seconds()
			all[s] = append(all[s], b)
		}
	}
	return all
}

// began finds when the problems of some rows began that went on already when the window began.
func (c *comparison) began(ctx context.Context, rows []*candidate) error {
	from, to := c.answer.Range.From.Unix(), c.answer.Range.To.Unix()
	all := c.outbreaks(rows)
	begin, end := from, to
	for more := len(all) > 0; more; begin, end = begin-2*(to-begin), begin {
		begin = max(begin, c.answer.HistoryFrom.Unix())
		if begin >= end {
			return nil
		}
		err := c.count(ctx, begin, end, 1, nil, func(s *tally, o store.Occurred) {
			for _, b := range all[s] {
				if len(b.seen) > 0 && b.seen[0].Second != o.Second {
					b.walk()
				}
				b.seen = append(b.seen, o)
			}
		})
		if err != nil {
			return err
		}
		more = false
		for s, of := range all {
			for _, b := range of {
				b.walk()
				if end == to && s.since > 0 { // counted in the window, and found before it
					b.first = min(b.first, s.since)
				}
				if b.first < from {
					b.row.began = b.first
				}
				more = more || !b.ended && b.first-begin <= b.bound()
			}
		}
	}
	return nil
}
