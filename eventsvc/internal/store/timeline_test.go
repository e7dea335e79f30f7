package store_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// timeliner is a store that knows what happened.
type timeliner interface{ Timeline() store.Timeline }

// modelTimeline is the timeline of a [model]: every answer is worked out from all versions
// that it was ever told of.
type modelTimeline struct {
	m    *model
	held map[uint64]bool // versions that are looked at in what was observed; nil: all
}

// Timeline returns the timeline of the model.
func (m *model) Timeline() store.Timeline { return modelTimeline{m: m} }

// observed is a version and what it reports.
type observed struct {
	*store.Record
	event.Occurrence
}

func occurrence(r *store.Record) event.Occurrence {
	o, ok := r.Attributes.Occurrence()
	if !ok {
		o = event.Occurrence{Time: r.Time.UTC().Truncate(time.Microsecond), Count: 1, New: 1}
	}
	return o
}

// each calls f with all versions up to the revision of a range, and returns that.
func (t modelTimeline) each(in store.Range, f func(observed)) (uint64, error) {
	revision := cmp.Or(in.Revision, t.m.last)
	if revision > t.m.last {
		return 0, &store.FutureError{Revision: revision, Current: t.m.last}
	}
	if revision < t.m.oldest {
		return 0, &store.ExpiredError{Revision: revision, Oldest: t.m.oldest}
	}
	for _, c := range t.m.changes {
		if c.after == nil || c.revision > revision || !t.holds(c.revision) {
			continue
		}
		f(observed{c.after, occurrence(c.after)})
	}
	return revision, nil
}

func (t modelTimeline) holds(revision uint64) bool { return t.held == nil || t.held[revision] }

// seen reports whether a range sees a version.
func (o observed) seen(in store.Range) bool {
	return in.Sees == nil || in.Sees(event.Dimensions{Namespace: o.Namespace, Cluster: o.Attributes.Get(event.ClusterLabel)})
}

// matches reports whether a version matches a filter.
func matches(f *event.Filter, v *store.View) bool {
	note, err := codec.Note(v)
	return f == nil || err == nil && f.Matches(&event.Subject{
		Namespace: v.Namespace, Name: v.Name, Attributes: v.Attributes, Text: event.AppendText(nil, note, v.Attributes),
	})
}

// Count implements [store.Timeline].
func (t modelTimeline) Count(_ context.Context, c store.Count, visit func(store.Occurred)) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if c.Revision > t.m.last {
		return &store.FutureError{Revision: c.Revision, Current: t.m.last}
	}
	for _, change := range t.m.changes {
		if change.after == nil || c.Revision > 0 && change.revision > c.Revision || !c.Light() && !t.holds(change.revision) {
			continue
		}
		o := observed{change.after, occurrence(change.after)}
		if !o.seen(c.Range) || !matches(c.Filter, o.View()) {
			continue
		}
		d := event.DimensionsOf(o.Namespace, o.Attributes)
		if c.Patterns() {
			note, _ := codec.Note(o.View())
			d.Pattern = event.Pattern(note, o.Attributes.Field(event.RegardingName), []byte(o.Namespace))
		}
		for _, name := range event.DimensionNames {
			if c.Counts(name) && c.Values != nil {
				o.Spread(func(second, _, n int64) {
					if n > 0 && second >= c.From.Unix() && second < c.To.Unix() {
						c.Values(name, *d.Text(name))
					}
				})
			}
			if !c.Counts(name) {
				*d.Text(name) = ""
			}
		}
		if c.Values != nil {
			continue
		}
		var object event.Regarding
		if c.Objects {
			object.Name = string(o.Attributes.Field(event.RegardingName))
		}
		g := c.Group(d, object)
		o.Spread(func(second, span, n int64) {
			if g >= 0 && n > 0 && second >= c.From.Unix() && second < c.To.Unix() {
				visit(store.Occurred{Group: g, Second: second, Span: span, Count: n})
			}
		})
	}
	return nil
}

// Observed implements [store.Timeline].
func (t modelTimeline) Observed(_ context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	compare := func(a, b store.Moment) int {
		n := cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Revision, b.Revision))
		if !q.OldestFirst {
			n = -n
		}
		return n
	}
	state := t.m.state(cmp.Or(q.Revision, t.m.last))
	in := func(o observed) (store.Moment, bool) {
		at, ok := o.LastIn(q.From, q.To)
		ok = ok && (q.Window || q.Versions || at.Equal(o.Occurrence.Time))
		return store.Moment{Time: at, Revision: o.Revision}, ok
	}
	moment := func(o observed) store.Moment {
		at, _ := in(o)
		return at
	}
	wants := func(o observed) bool {
		_, ok := in(o)
		return ok && o.seen(q.Range) && (q.Wanted == nil || q.Wanted(event.DimensionsOf(o.Namespace, o.Attributes))) &&
			q.Selector.Matches(o.Namespace, o.Name, o.Attributes) && matches(q.Filter, o.View())
	}
	var found []observed
	revision, err := t.each(q.Range, func(o observed) {
		if wants(o) && (q.Versions || state[o.Key] == o.Record || q.Window && t.newestThere(o, cmp.Or(q.Revision, t.m.last), q.Range, wants)) && (q.After == (store.Moment{}) || compare(moment(o), q.After) > 0) {
			found = append(found, o)
		}
	})
	if err != nil {
		return store.TimePage{}, err
	}
	slices.SortFunc(found, func(a, b observed) int { return compare(moment(a), moment(b)) })
	p := store.TimePage{Revision: revision, Last: q.After}
	for _, o := range found {
		p.Last = moment(o)
		if !visit(o.View(), p.Last) {
			p.More = true
			break
		}
	}
	return p, nil
}

// Survey implements [store.Timeline].
func (t modelTimeline) Survey(ctx context.Context, s store.Survey) (store.TimePage, error) {
	for _, c := range s.Counts {
		c.Range, c.Filter = s.Range, s.Filter
		if err := t.Count(ctx, c.Count, c.Visit); err != nil {
			return store.TimePage{}, err
		}
	}
	q := store.TimeQuery{Range: s.Range, Window: true, OldestFirst: s.OldestFirst, Filter: s.Filter}
	q.Revision = s.State
	return t.Observed(ctx, q, s.Visit)
}

// newestThere reports whether none that a query wants follows a version before one that was observed behind the range,
// and the event exists.
func (t modelTimeline) newestThere(o observed, revision uint64, in store.Range, wants func(observed) bool) bool {
	for _, c := range t.m.changes {
		if c.key != o.Key || c.revision <= o.Revision || c.revision > revision {
			continue
		}
		if c.after == nil {
			return false
		}
		if !t.holds(c.revision) {
			continue
		}
		next := observed{c.after, occurrence(c.after)}
		if wants(next) {
			return false
		}
		if _, there := next.LastIn(in.From, in.To); !there && !next.Occurrence.Time.Before(in.To) {
			break
		}
	}
	last := t.m.state(revision)[o.Key]
	return last != nil && bytes.Equal(codec.UID(last.View()), codec.UID(o.View()))
}

// Versions implements [store.Timeline].
func (t modelTimeline) Versions(_ context.Context, s *event.Selector, visit func(v *store.View, gone bool) bool) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	wanted := map[store.Key]bool{}
	for _, c := range t.m.changes {
		if c.after != nil && s.Matches(c.key.Namespace, c.key.Name, c.after.Attributes) {
			wanted[c.key] = true
		}
	}
	changes := slices.Clone(t.m.changes)
	slices.SortStableFunc(changes, func(a, b modelChange) int { return cmp.Compare(a.key.String(), b.key.String()) })
	for _, c := range changes {
		if !wanted[c.key] {
			continue
		}
		shown := c.after
		if shown == nil {
			gone := *c.before
			gone.Revision, gone.Time = c.revision, c.time
			shown = &gone
		}
		if !visit(shown.View(), c.after == nil) {
			break
		}
	}
	return nil
}

// Deleted implements [store.Timeline].
func (t modelTimeline) Deleted(_ context.Context, key store.Key, visit func(*store.View) bool) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	for _, c := range slices.Backward(t.m.changes) {
		if c.key == key && c.after == nil && !visit(c.before.View()) {
			break
		}
	}
	return nil
}

// Deletions implements [store.Timeline].
func (t modelTimeline) Deletions(_ context.Context, q store.DeletionQuery, visit func(v *store.View, by []byte) bool) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	for _, c := range t.m.changes {
		if c.after != nil || len(c.by) == 0 || c.revision <= q.After || c.revision > q.Until || c.time.Before(q.From) || !c.time.Before(q.To) {
			continue
		}
		last := *c.before
		last.Revision, last.Time = c.revision, c.time
		if !visit(last.View(), c.by) {
			break
		}
	}
	return nil
}

// Gaps implements [store.Timeline].
func (t modelTimeline) Gaps(_ context.Context, revision uint64, most int) (gaps []store.Gap, more bool, err error) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	revision, err = t.each(store.Range{Revision: revision}, func(observed) {})
	for _, r := range t.m.state(revision) {
		if gap, ok := r.Attributes.Gap(); ok && gap.Rule == "" && err == nil {
			gaps = append(gaps, store.Gap{Gap: gap, Namespace: r.Namespace, Revision: r.Revision})
		}
	}
	slices.SortFunc(gaps, func(a, b store.Gap) int { return cmp.Compare(b.Revision, a.Revision) })
	more = len(gaps) > most
	return gaps[:min(len(gaps), most)], more, err
}

// Begin implements [store.Timeline].
func (t modelTimeline) Begin(context.Context) (begin, written time.Time, err error) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	begin, written = t.m.now(), t.m.now()
	if len(t.m.changes) > 0 {
		written = t.m.changes[0].time
	}
	for _, c := range t.m.changes {
		if c.after != nil {
			occurrence(c.after).Spread(func(second, _, _ int64) {
				if at := time.Unix(second, 0); at.Before(begin) {
					begin = at
				}
			})
		}
	}
	return begin, written, nil
}

// compareTimelines asks both timelines the same, and compares the answers.
func (r *random) compareTimelines() {
	timed, ok := r.store.(timeliner)
	if !ok {
		return
	}
	got, want := timed.Timeline(), r.model.Timeline()
	in := r.timeRange()
	r.compareBegin(got)
	r.compareValues(in, got, want)
	held := modelTimeline{r.model, r.heldBy(got)}
	r.compareObserved(in, got, held)
	r.compareCounts(in, got, held)
	r.compareSurvey(in, got, held)
	r.compareVersions(got)
	r.compareGaps(in.Revision, got, want)
	r.compareDeleted(got, want)
	r.compareDeletions(got, want)
}

// compareDeleted asks for the deleted events of a key. If history was given up, those that are held are the newest
// ones.
func (r *random) compareDeleted(got, want store.Timeline) {
	key, most := r.key(), 1+r.rnd.IntN(20)
	read := func(t store.Timeline) (revisions []uint64) {
		err := t.Deleted(r.t.Context(), key, func(v *store.View) bool {
			revisions = append(revisions, v.Revision)
			return len(revisions) < most
		})
		if err != nil {
			r.t.Error(err)
		}
		return revisions
	}
	held, all := read(got), read(want)
	if len(held) > len(all) || !slices.Equal(held, all[:len(held)]) || len(held) < len(all) && r.model.oldest == firstRevision {
		r.t.Errorf("%s was deleted after the versions %v, want %v", key, held, all)
	}
}

// compareDeletions asks what was deleted. Of what was deleted in states that are no longer held, some may be missing.
func (r *random) compareDeletions(got, want store.Timeline) {
	q := store.DeletionQuery{From: time.Unix(-1000, 0), To: r.now.Add(time.Hour), Until: r.revision()}
	if r.rnd.IntN(2) == 0 {
		q.From = r.now.Add(-time.Duration(r.rnd.Int64N(int64(time.Hour))))
		q.To = q.From.Add(time.Duration(r.rnd.Int64N(int64(time.Hour))))
	}
	if r.rnd.IntN(2) == 0 {
		q.After = r.revision()
	}
	read := func(t store.Timeline) (held, all []string) {
		err := t.Deletions(r.t.Context(), q, func(v *store.View, by []byte) bool {
			line := fmt.Sprintf("%d %s %s %x by %s", v.Revision, v.Key, v.Time.UTC(), v.Value, by)
			if all = append(all, line); v.Revision > r.model.oldest {
				held = append(held, line)
			}
			return true
		})
		if err != nil {
			r.t.Error(err)
		}
		return held, all
	}
	gotHeld, gotAll := read(got)
	wantHeld, wantAll := read(want)
	if !slices.Equal(gotHeld, wantHeld) || slices.ContainsFunc(gotAll, func(line string) bool { return !slices.Contains(wantAll, line) }) {
		r.t.Errorf("deletions of %+v: %q, want %q", q, gotAll, wantAll)
	}
}

// compareGaps asks for all gaps, and for fewer. Those that few marked versions report are the first ones, of which some
// may be missing.
func (r *random) compareGaps(revision uint64, got, want store.Timeline) {
	wantGaps, _, wantErr := want.Gaps(r.t.Context(), revision, math.MaxInt)
	gaps, more, err := got.Gaps(r.t.Context(), revision, 1<<20)
	if sameExpiry(err, wantErr) {
		return
	}
	r.compare("gaps", wantGaps, gaps, wantErr, err)
	if err != nil { // the revision is yet to come
		return
	}
	most := r.rnd.IntN(4)
	few, moreThanFew, err := got.Gaps(r.t.Context(), revision, most)
	if more || err != nil || len(few) > most || !slices.Equal(few, gaps[:min(len(few), len(gaps))]) || !moreThanFew && len(few) < len(gaps) {
		r.t.Errorf("%d of %v: %v, more %v, %v", most, gaps, few, moreThanFew, err)
	}
}

// observedAt returns a time around which things are said to have been observed, in no order. Some are not credible.
func (r *random) observedAt() time.Time {
	around := []time.Time{r.now, r.now, r.now, r.now.Add(-time.Hour), r.now.Add(24 * time.Hour), time.Unix(0, 0), {}}[r.rnd.IntN(7)]
	return around.Add(time.Duration(r.rnd.Int64N(int64(4*time.Minute))) - 2*time.Minute).UTC().Truncate(time.Microsecond)
}

func (r *random) timeRange() store.Range {
	in := store.Range{From: time.Unix(-1000, 0), To: r.now.Add(time.Hour).Truncate(time.Second)}
	if r.rnd.IntN(2) == 0 {
		in.From = r.observedAt().Truncate(time.Second)
		in.To = in.From.Add(time.Duration(r.rnd.IntN(100)) * time.Second)
	}
	if r.rnd.IntN(3) == 0 {
		in.Revision = r.revision()
	}
	if hidden := r.key().Namespace; r.rnd.IntN(3) == 0 {
		in.Sees = func(d event.Dimensions) bool {
			if d.Node != "" {
				r.t.Errorf("Sees is asked about the node %q", d.Node)
			}
			return d.Namespace != hidden
		}
	}
	return in
}

// compareBegin asks when history begins.
func (r *random) compareBegin(got store.Timeline) {
	// Whole minutes, of the first version that reports something or of one that does not.
	var first, early time.Time // may be in the future
	for _, c := range r.model.changes {
		if c.after == nil {
			continue
		}
		occurrence(c.after).Spread(func(second, _, n int64) {
			at := time.Unix(second, 0)
			if n > 0 && (first.IsZero() || at.Before(first)) {
				first = at
			}
			if early.IsZero() || at.Before(early) {
				early = at
			}
		})
	}
	if first.IsZero() {
		if first = r.now; early.After(first) {
			first = early
		}
	}
	begin, _, err := got.Begin(r.t.Context())
	if len(r.model.changes) > 0 && (err != nil || begin.After(first) || begin.Before(first.Add(-time.Minute)) && begin.Before(early.Add(-time.Minute))) {
		r.t.Errorf("begins at %v, %v; want %v", begin, err, first)
	}
}

// heldBy returns the versions that a timeline holds.
func (r *random) heldBy(t store.Timeline) map[uint64]bool {
	held := map[uint64]bool{}
	err := t.Versions(r.t.Context(), nil, func(v *store.View, gone bool) bool {
		held[v.Revision] = held[v.Revision] || !gone
		return true
	})
	if err != nil {
		r.t.Error(err)
	}
	return held
}

// compareValues asks for the values of two dimensions. Some of them may be of other times.
func (r *random) compareValues(in store.Range, got, want store.Timeline) {
	values := func(t store.Timeline, in store.Range) map[string]bool {
		all := map[string]bool{}
		c := store.Count{Range: in, By: []string{"reason", "namespace"}, Values: func(dimension, value string) { all[dimension+" "+value] = true }}
		if err := t.Count(r.t.Context(), c, nil); err != nil && !errors.As(err, new(*store.FutureError)) {
			r.t.Error(err)
		}
		return all
	}
	found, must := values(got, in), values(want, in)
	in.From, in.To = time.Unix(-1e9, 0), time.Unix(1e11, 0)
	may := values(want, in)
	for value := range must {
		if !found[value] {
			r.t.Errorf("values of %+v: %s is missing", in, value)
		}
	}
	for value := range found {
		if !may[value] {
			r.t.Errorf("values of %+v: there is no %s", in, value)
		}
	}
}

// compareCounts counts by some dimensions, and by the object. Of what asks for more than dimensions, the versions that
// are held are counted, and no others.
func (r *random) compareCounts(in store.Range, got, want store.Timeline) {
	c := store.Count{Range: in, By: [][]string{nil, {"reason"}, {"namespace", "node"}, {}, {"pattern"}}[r.rnd.IntN(5)], Objects: r.rnd.IntN(2) == 0}
	c.Step = []int64{0, 1, 60, 1e6}[r.rnd.IntN(4)]
	switch r.rnd.IntN(4) {
	case 0:
		c.Filter = r.words()
	case 1:
		c.Filter = &event.Filter{Kind: event.FilterDimension, Dimension: "reason", Fits: func(reason string) bool { return reason != "T" }}
	}
	leaveOut := []string{"", "R"}[r.rnd.IntN(2)]
	counts := func(t store.Timeline) (sums map[string]int64, err error) {
		sums = map[string]int64{}
		var groups []string
		c.Group = func(d event.Dimensions, o event.Regarding) int {
			if in.Sees != nil && c.By == nil && !in.Sees(event.Dimensions{Namespace: d.Namespace, Cluster: d.Cluster}) {
				r.t.Errorf("asked for the group of %v, which the caller may not see", d)
			}
			if d.Reason == leaveOut {
				return -7
			}
			groups = append(groups, fmt.Sprint(d, o.Name))
			return len(groups) - 1
		}
		err = t.Count(r.t.Context(), c, func(o store.Occurred) {
			if c.Step > 0 && o.Span == 0 {
				o.Second = o.Second / c.Step * c.Step
			}
			sums[fmt.Sprint(groups[o.Group], o.Second, o.Span)] += o.Count
		})
		return sums, err
	}
	wanted, wantErr := counts(want)
	found, err := counts(got)
	r.compare(fmt.Sprintf("count %+v by %v and objects %v of %+v", in, c.By, c.Objects, c.Filter), wanted, found, wantErr, err)
}

// compareSurvey counts twice and reads a page together.
func (r *random) compareSurvey(in store.Range, got, want store.Timeline) {
	s := store.Survey{Range: in, State: in.Revision, OldestFirst: r.rnd.IntN(2) == 0, Filter: []*event.Filter{nil, r.words()}[r.rnd.IntN(2)]}
	size := 1 + r.rnd.IntN(20)
	ask := func(t store.Timeline) (all []string, err error) {
		s.Counts = nil
		for _, by := range [][]string{{"reason"}, {"namespace", "node"}} {
			sums := map[string]int64{}
			var groups []string
			c := store.Counting{Count: store.Count{By: by, Step: 1e6}, Visit: func(o store.Occurred) { sums[groups[o.Group]] += o.Count }}
			c.Group = func(d event.Dimensions, _ event.Regarding) int {
				groups = append(groups, fmt.Sprint(d))
				return len(groups) - 1
			}
			s.Counts = append(s.Counts, c)
			defer func() { all = append(all, fmt.Sprint(sums)) }()
		}
		rows := []string{}
		upTo := time.Time{}
		s.Visit = func(v *store.View, at store.Moment) bool {
			if !upTo.IsZero() && at.Time.Before(upTo) == s.OldestFirst {
				r.t.Errorf("%s comes when all up to %s was counted", at.Time, upTo)
			}
			rows = append(rows, fmt.Sprintf("%s %d %s %x %s", v.Key, v.Revision, at.Time, v.Attributes, v.Value))
			return len(rows) < size
		}
		s.Counted = func(at time.Time) { upTo = at }
		_, err = t.Survey(r.t.Context(), s)
		return rows, err
	}
	wanted, wantErr := ask(want)
	found, err := ask(got)
	if !sameExpiry(err, wantErr) {
		r.compare(fmt.Sprintf("survey %+v", s), wanted, found, wantErr, err)
	}
}

// sameExpiry reports whether both answers are that a revision is no longer held.
func sameExpiry(a, b error) bool {
	var x, y *store.ExpiredError
	return errors.As(a, &x) && errors.As(b, &y) && *x == *y
}

// compareObserved reads all pages of a timeline.
func (r *random) compareObserved(in store.Range, got, want store.Timeline) {
	q := store.TimeQuery{Range: in, Window: r.rnd.IntN(3) > 0, OldestFirst: r.rnd.IntN(2) == 0}
	q.Versions = !q.Window && r.rnd.IntN(2) == 0
	if r.rnd.IntN(2) == 0 {
		q.From, q.To = in.From.Add(time.Duration(r.rnd.Int64N(2e9))), in.To.Add(-time.Duration(r.rnd.Int64N(2e9)))
	}
	if r.rnd.IntN(3) == 0 {
		q.Selector = selector(r.t, "S", []string{"", "app=web"}[r.rnd.IntN(2)])
	}
	if r.rnd.IntN(4) == 0 {
		q.Selector = &event.Selector{Dropped: true}
	}
	if r.rnd.IntN(3) == 0 {
		q.Wanted = func(d event.Dimensions) bool {
			return d.Reason != "T" && d.Namespace != "b" && d.Node != "web"
		}
	}
	if r.rnd.IntN(3) == 0 {
		q.Filter = r.words()
	}
	wantAll, wantErr := r.observed(want, q, 1<<30)
	all, err := r.observed(got, q, 1+r.rnd.IntN(20))
	if sameExpiry(err, wantErr) {
		return
	}
	r.compare(fmt.Sprintf("observed %+v", q), wantAll, all, wantErr, err)
}

// observed returns what all pages of so many events have.
func (r *random) observed(t store.Timeline, q store.TimeQuery, size int) (all []string, err error) {
	for {
		n := 0
		p, err := t.Observed(r.t.Context(), q, func(v *store.View, at store.Moment) bool {
			all = append(all, fmt.Sprintf("%s %d %s %x %s", v.Key, v.Revision, at.Time, v.Attributes, v.Value))
			n++
			return n < size
		})
		if err != nil || !p.More {
			return all, err
		}
		if q.After == p.Last {
			r.t.Errorf("a page that ends where it begins: %+v", p)
			return all, err
		}
		q.Revision, q.After = p.Revision, p.Last
	}
}

// compareVersions wants all versions that a state which is held needs, and none that there
// never were.
func (r *random) compareVersions(got store.Timeline) {
	s := selector(r.t, []string{"", "S"}[r.rnd.IntN(2)], []string{"", "app=web"}[r.rnd.IntN(2)])
	r.model.mu.Lock()
	if n := len(r.model.changes); n > 0 && r.rnd.IntN(3) == 0 { // one event by its name
		k := r.model.changes[r.rnd.IntN(n)].key
		s = &event.Selector{Fields: []event.FieldRequirement{{Field: event.FieldNamespace, Value: k.Namespace}, {Field: event.FieldName, Value: k.Name}}}
	}
	there := map[string]int{}
	needed := map[store.Key]bool{}
	last := map[store.Key]int{}
	var lines []string
	var held []bool
	for _, c := range r.model.changes {
		rev, shown := c.revision, c.after
		if i, ok := last[c.key]; ok && rev <= r.model.oldest {
			held[i] = false
		}
		if shown == nil {
			shown = c.before
		}
		last[c.key] = len(lines)
		there[versionLine(c.key, rev, c.after == nil, shown.Attributes, shown.Value)] = len(lines)
		lines = append(lines, versionLine(c.key, rev, c.after == nil, shown.Attributes, shown.Value))
		held = append(held, c.after != nil || rev > r.model.oldest)
	}
	for i, c := range r.model.changes {
		needed[c.key] = needed[c.key] || held[i] && c.after != nil && s.Matches(c.key.Namespace, c.key.Name, c.after.Attributes)
	}
	var want, all []string
	for i, c := range r.model.changes {
		if held[i] && needed[c.key] {
			want = append(want, lines[i])
		}
	}
	r.model.mu.Unlock()
	shown := map[string]bool{}
	before := ""
	err := got.Versions(r.t.Context(), s, func(v *store.View, gone bool) bool {
		line := versionLine(v.Key, v.Revision, gone, v.Attributes, v.Value)
		if _, ok := there[line]; !ok {
			r.t.Errorf("versions: there never was %s", line)
		}
		if at := fmt.Sprintf("%s %020d", v.Key, v.Revision); at <= before {
			r.t.Errorf("versions: %s is not behind %s", at, before)
		} else {
			before = at
		}
		shown[line] = true
		return true
	})
	if err != nil {
		r.t.Errorf("versions: %v", err)
	}
	for _, line := range want {
		if shown[line] {
			all = append(all, line)
		}
	}
	if diff := gocmp.Diff(want, all); diff != "" {
		r.t.Errorf("versions of %+v: %s", s, diff)
	}
}

func versionLine(k store.Key, revision uint64, gone bool, a event.Attributes, value []byte) string {
	return fmt.Sprintf("%s %d %v %x %s", k, revision, gone, a, value)
}
