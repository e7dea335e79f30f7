package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
)

// The bounds of a histogram.
const (
	maxBuckets = 11_000 // as Prometheus and Loki have it
	MaxValues  = 50     // so many are shown apart
	MaxBy      = 3      // dimensions
	maxCells   = 1 << 20

	usualBuckets = 120 // if no step is asked for
)

// Histogram says how often something was observed over time.
type Histogram struct {
	Step   time.Duration
	By     []Dimension
	Values [][]string // of the dimensions, most frequent first
	// Buckets are those that are not empty, in the order of time. They begin at multiples
	// of the step since 1970 UTC, so the first and the last may lie in the range in part.
	Buckets []Bucket
	Total   int64
}

// Bucket is what was observed within one step.
type Bucket struct {
	Start  time.Time
	Count  int64
	Counts []int64 // of each of the values
	Other  int64   // of values that are not shown apart
}

// steps are the steps that are chosen, from which people read times easily.
var steps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 28 * day,
}

const day = 24 * time.Hour

// StepOf returns the smallest of the usual steps of which at most so many fill a range.
func StepOf(from, to time.Time, most int64) time.Duration {
	for _, step := range steps {
		if to.Sub(from) <= time.Duration(most)*step {
			return step
		}
	}
	years := int64(to.Unix()-from.Unix())/(most*int64(364*day/time.Second)) + 1
	return time.Duration(years) * 364 * day
}

// CheckStep returns an error if a step is no whole number of seconds, or too small for a
// range.
func CheckStep(step time.Duration, from, to time.Time) error {
	if step < time.Second || step%time.Second != 0 {
		return invalid("step", "%s is no whole number of seconds", step)
	}
	if n := buckets(step, from, to); n > maxBuckets {
		return invalid("step", "%s gives %d buckets, at most %d are answered: use %s or more", step, n, maxBuckets,
			time.Duration((to.Unix()-from.Unix())/(maxBuckets-1)+1)*time.Second)
	}
	return nil
}

// buckets returns how many steps overlap a range.
func buckets(step time.Duration, from, to time.Time) int64 {
	size := int64(step / time.Second)
	return floor(to.Unix()-1, size) - floor(from.Unix(), size) + 1
}

// floor divides and rounds down.
func floor(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

// Histogram counts by time and by some dimensions. A step of 0 is chosen.
func (s *Snapshot) Histogram(ctx context.Context, by []Dimension, step time.Duration) (Histogram, error) {
	if step == 0 {
		step = StepOf(s.begin(), s.To, usualBuckets)
	} else if err := CheckStep(step, s.From, s.To); err != nil {
		return Histogram{}, err
	}
	t, g, err := s.countOver(ctx, by, step, nil)
	if err == nil && g.full {
		t, g, err = s.countMost(ctx, t, g, by, step)
	}
	if err != nil {
		return Histogram{}, err
	}
	return g.histogram(ctx, t)
}

// countMost counts once more where the cells of all groups were too many. Those of the groups that are shown are not,
// so it counts them alone.
func (s *Snapshot) countMost(ctx context.Context, t *table, g *grid, by []Dimension, step time.Duration) (*table, *grid, error) {
	shown, err := g.most(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	only := map[Key]bool{}
	for _, id := range shown {
		only[t.keys[id]] = true
	}
	return s.countOver(ctx, by, step, only)
}

// countOver counts by some dimensions and in buckets. If only is not nil, groups that are not in it are counted as the
// rest.
func (s *Snapshot) countOver(ctx context.Context, by []Dimension, step time.Duration, only map[Key]bool) (t *table, g *grid, err error) {
	t, err = s.count(ctx, by, step, func(t *table) func(store.Occurred) {
		g = s.newGrid(t.memory, step)
		if only == nil {
			return g.count
		}
		var to []int // by group: itself, or the rest
		return func(o store.Occurred) {
			for id := len(to); id <= o.Group; id++ {
				to = append(to, rest)
				if only[t.keys[id]] {
					to[id] = id
				}
			}
			o.Group = to[o.Group]
			g.count(o)
		}
	})
	return t, g, err
}

func (s *Snapshot) newGrid(m *memory, step time.Duration) *grid {
	from, size := s.begin(), int64(step/time.Second)
	return &grid{memory: m, width: int(buckets(step, from, s.To)), size: size, first: floor(from.Unix(), size), end: s.To.Unix()}
}

// histogram returns what was counted, with the most frequent groups apart.
func (g *grid) histogram(ctx context.Context, t *table) (Histogram, error) {
	h := Histogram{Step: time.Duration(g.size) * time.Second, By: t.by}
	shown, err := g.most(ctx, t)
	if err != nil {
		return h, err
	}
	for _, id := range shown {
		h.Values = append(h.Values, t.keys[id].Values(t.by))
	}
	g.grow(g.width * (bucketBytes + 8*len(shown)))
	turns := flow.NewTurns(ctx)
	for i := 0; i < g.width && g.err == nil && turns.Next(); i++ {
		b := Bucket{Start: time.Unix((g.first+int64(i))*g.size, 0).UTC()}
		for _, row := range g.rows {
			if row != nil {
				b.Count += row[i]
			}
		}
		if b.Count == 0 {
			continue
		}
		b.Other, b.Counts = b.Count, make([]int64, len(shown))
		for j, id := range shown {
			if g.rows[id] != nil {
				b.Counts[j] = g.rows[id][i]
				b.Other -= b.Counts[j]
			}
		}
		h.Total += b.Count
		h.Buckets = append(h.Buckets, b)
	}
	return h, cmp.Or(g.err, turns.Err())
}

// bucketBytes is what a bucket takes without its counts, also while a slice of them grows.
const bucketBytes = 160

// grid counts by group and bucket.
type grid struct {
	*memory
	size, first, end int64 // seconds of a bucket, number of the first bucket, end of the range

	// The bucket of what was counted last, and where it begins and ends: most of what follows is in it too.
	bucket, from, to int64

	width  int
	cells  int
	rows   [][]int64 // by group; nil: nothing
	totals []int64   // by group, also of those without a row
	full   bool      // a group has no row because there are too many: it is counted in that of the rest
}

// count counts in the buckets in which something was observed.
func (g *grid) count(o store.Occurred) {
	if o.Second < g.from || o.Second >= g.to {
		g.bucket = floor(o.Second, g.size)
		g.from, g.to = g.bucket*g.size, (g.bucket+1)*g.size
	}
	if o.Span == 0 {
		g.add(o.Group, int(g.bucket-g.first), o.Count)
		return
	}
	bucket, counted := g.bucket, int64(0)
	for end := g.to; end < g.end && o.Before(end) < o.Count; bucket, end = bucket+1, end+g.size {
		g.add(o.Group, int(bucket-g.first), o.Before(end)-counted)
		counted = o.Before(end)
	}
	g.add(o.Group, int(bucket-g.first), o.Count-counted)
}

func (g *grid) add(group, bucket int, n int64) {
	for len(g.rows) <= group {
		g.rows, g.totals = append(g.rows, nil), append(g.totals, 0)
		g.grow(64)
	}
	g.totals[group] += n
	if g.rows[group] == nil {
		if group != rest && g.cells+g.width > maxCells {
			g.full = true
			group = rest
		}
		if g.rows[group] == nil {
			g.cells += g.width
			g.grow(8 * g.width)
			g.rows[group] = make([]int64, g.width)
		}
	}
	g.rows[group][bucket] += n
}

// most returns the groups that are shown apart, most frequent first.
func (g *grid) most(ctx context.Context, t *table) ([]int, error) {
	var ids []int
	for id, n := range g.totals {
		if id != rest && n > 0 {
			ids = append(ids, id)
		}
	}
	found, err := best(ctx, len(ids), MaxValues, func(a, b int) int {
		a, b = ids[a], ids[b]
		if c := cmp.Compare(g.totals[b], g.totals[a]); c != 0 {
			return c
		}
		return slices.Compare(t.keys[a].Values(t.by), t.keys[b].Values(t.by))
	})
	for i := range found {
		found[i] = ids[found[i]]
	}
	return found, err
}
