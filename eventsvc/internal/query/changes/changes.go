package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

// Bounds of a question for changes.
const (
	DefaultWindow = 15 * time.Minute // long enough for a rollout, short enough that noise stays small
	MinWindow     = time.Minute
	MaxWindow     = 31 * 24 * time.Hour
	DefaultRows   = 20
	MaxRows       = 100
)

// Query asks what changed before an instant.
type Query struct {
	// At is the end of the window that is compared with what was before it.
	At time.Time
	// Window is the length of time before At that is to be explained; 0 is [DefaultWindow].
	Window time.Duration
	// Allows reports whether the caller may list the events of a cluster in a namespace.
	// Everything in the answer is computed from these events alone. The
	// cluster is empty for those without one.
	Allows func(namespace, cluster string) bool
	// Namespaces are those that the question is about; none: all that Allows has. What
	// happened to them may have its reason elsewhere: see [Answer.Scope].
	Namespaces []string
	// Wanted reports whether a row about such events is wanted; nil: all are. What is compared does not depend on it.
	Wanted func(event.Dimensions) bool
	// Finds is what else a search asks of the events; nil: nothing. The verdict counts what it finds.
	Finds *event.Filter
	// Note returns the note of an event.
	Note func(*store.View) ([]byte, error)
	// Cluster restricts the answer to events of this cluster, in any case; empty: any.
	Cluster string
	// Object restricts the answer to changes that an object takes part in.
	Object   query.Subject
	Revision uint64 // state to look at; 0: the newest
	Limit    int    // rows; 0 is [DefaultRows]
}

// Kind says in which way a row differs from what was before.
type Kind string

// The kinds of change.
const (
	New     Kind = "new"     // a reason that was never seen before for this namespace and kind
	More    Kind = "more"    // more often than expected
	Again   Kind = "again"   // more often than expected, as once before: see [Change.Former]
	Less    Kind = "less"    // less often than expected
	Silent  Kind = "silent"  // nothing comes any more of a cluster, a namespace or a reporter
	Failing Kind = "failing" // objects with warnings that had none before
	Changed Kind = "changed" // an object that was changed, made or deleted just before another row began
)

// Change is a row of the answer.
type Change struct {
	// By has the dimensions that all events of the row share. The others are empty.
	By event.Dimensions
	// Object is the name of the object or, with "-*" at its end, of the workload that
	// the row is about. It is empty if there are several.
	Object string
	// Also has other reasons that came as often, at the same time, to the same objects,
	// those of routine steps of the same change, and those of other problems of the same Node.
	Also []string
	// Namespaces are those of a row that spans several, at most 10, most affected first.
	Namespaces []string
	Kind       Kind
	Now        int64   // occurrences in the window
	Before     float64 // occurrences expected in a window of this length
	Score      float64 // rows are ordered by it
	Why        string  // what happened, in one sentence
	Statistics string  // what the score is made of
	// First and Last are the first and the last occurrence in the window. Of what is silent, both are its newest event. If
	// a problem went on already when the window began, First is when it began.
	First, Last time.Time
	Every       time.Duration // the usual distance between two occurrences; 0: not known
	State       query.State
	Former      *Former    // what a row of the kind Again is like
	Follows     *Reference // the first of the changes before it that may have caused it; nil: none
	// Sample is the newest event of the row in the window with the note that tells most. It is nil if later
	// observations have moved the events out of the window.
	Sample *store.Record
	// Link has the parameters that show the events of the row, the same ones tomorrow.
	Link url.Values
}

// Former is a time before at which something came as it comes now.
type Former struct {
	First, Last time.Time
	Count       int64
	Link        url.Values // the parameters that show its events
}

// Reference names a change.
type Reference struct {
	By     event.Dimensions
	Object string
	First  time.Time
	Link   url.Values
}

// Answer is the answer to a [Query].
type Answer struct {
	Range store.Range // the window, and the state that was looked at
	// HistoryFrom is where the history begins that the window is compared with: at the
	// first write to the store, or at the first observation before it that the caller may
	// see; at the window if there is no history.
	HistoryFrom time.Time
	// Scope says what a question about some namespaces looked at; empty: at all that the
	// caller may list.
	Scope string
	// Partial says in sentences what the answer could not take into account.
	Partial []string
	Rows    []Change // most unexpected first
	Verdict Verdict
}

// Rank answers what changed before an instant: reasons that are new, reasons that are
// more or less frequent than expected, and objects that began to fail, most unexpected
// first. The same question to the same state has the same answer.
//
// A [*query.ParameterError] names what is wrong with the question. Other errors are those of
// the timeline.
func Rank(ctx context.Context, t store.Timeline, q Query) (Answer, error) {
	if err := q.complete(); err != nil {
		return Answer{}, err
	}
	to := q.At.Truncate(time.Second)
	if to.Before(q.At) {
		to = to.Add(time.Second)
	}
	to = to.UTC()
	a := Answer{Range: store.Range{From: to.Add(-q.Window), To: to, Revision: q.Revision}}
	c := &comparison{timeline: t, q: &q, answer: &a, part: parts.Get().(*part)}
	defer parts.Put(c.part)
	if err := c.objects(ctx); err != nil { // first, as it says which state is the newest
		return Answer{}, err
	}
	if err := c.history(ctx); err != nil {
		return Answer{}, err
	}
	rows, err := c.rank(ctx)
	if err != nil {
		return Answer{}, err
	}
	judged := rows[:min(len(rows), max(q.Limit, maxParted))] // the verdict is about one of these, however many are shown
	if err := c.began(ctx, judged); err != nil {
		return Answer{}, err
	}
	if err := c.apart(ctx, judged); err != nil {
		return Answer{}, err
	}
	err = c.finish(ctx, rows[:min(len(rows), q.Limit)])
	a.Verdict = c.verdict(rows)
	return a, err
}

func (q *Query) complete() error {
	q.Window, q.Limit = cmp.Or(q.Window, DefaultWindow), cmp.Or(q.Limit, DefaultRows)
	switch o := q.Object; {
	case q.Allows == nil || q.Note == nil:
		return errors.New("query: changes without a set of events, or a reader of notes")
	case q.At.IsZero():
		return &query.ParameterError{Parameter: "at", Problem: "is required, as RFC 3339 time or as -6h"}
	case q.Window < MinWindow || q.Window > MaxWindow || q.Window%time.Second != 0:
		return &query.ParameterError{Parameter: "window", Problem: fmt.Sprintf("must be whole seconds from %s to %s", query.FormatDuration(MinWindow), query.FormatDuration(MaxWindow))}
	case q.Limit < 0 || q.Limit > MaxRows:
		return &query.ParameterError{Parameter: "limit", Problem: fmt.Sprintf("must be from 1 to %d", MaxRows)}
	case o.UID == "" && (o.Kind == "") != (o.Name == ""):
		return &query.ParameterError{Parameter: "object", Problem: "needs its uid, or its kind and name"}
	}
	return nil
}

// sees reports whether the caller may list events with these dimensions.
func (q *Query) sees(d event.Dimensions) bool { return q.Allows(d.Namespace, d.Cluster) }

// wanted reports whether a question is about events with these dimensions.
func (q *Query) wanted(d event.Dimensions) bool {
	return q.Allows(d.Namespace, d.Cluster) && (q.Cluster == "" || strings.EqualFold(q.Cluster, d.Cluster)) && (!q.ofObject() || q.asked(d.Namespace))
}

// ofObject reports whether a question is about an object.
func (q *Query) ofObject() bool { return q.Object != query.Subject{} }

// asked reports whether a namespace is one of those that a question is about.
func (q *Query) asked(namespace string) bool {
	return len(q.Namespaces) == 0 || slices.Contains(q.Namespaces, namespace)
}

// comparison is the work on one question.
type comparison struct {
	timeline store.Timeline
	q        *Query
	answer   *Answer

	tallies     tallies
	part        *part
	windows     float64 // of history before the window, by its length
	days, weeks int     // before the window that history has, up to those that are looked at
	warned      warned
}

// partial notes what the answer could not take into account.
func (c *comparison) partial(format string, args ...any) {
	c.answer.Partial = append(c.answer.Partial, fmt.Sprintf(format, args...))
}

// finish makes the rows of the answer.
func (c *comparison) finish(ctx context.Context, rows []*candidate) error {
	for _, r := range rows {
		change := r.change(c)
		var err error
		if change.Sample, err = c.choose(ctx, r); err != nil {
			return err
		}
		if change.Sample != nil && r.note == "" {
			note, err := c.q.Note(change.Sample.View())
			if err != nil {
				return err
			}
			r.note = string(note)
		}
		change.Why, change.Statistics = r.why(c), r.statistics()
		c.answer.Rows = append(c.answer.Rows, change)
	}
	return nil
}

// choose returns the event that stands for a row.
func (c *comparison) choose(ctx context.Context, r *candidate) (*store.Record, error) {
	if r.parts != nil && len(r.parts.going) > 0 { // what tells most may be over
		if sample, err := c.sampleOf(ctx, r); sample != nil || err != nil {
			r.note = ""
			return sample, err
		}
	}
	if known := cmp.Or(r.record, r.telling); known != nil {
		return known, nil
	}
	return c.sample(ctx, r)
}

// sampleReads bounds the events that are read to find a sample of one row.
const sampleReads = 500

// sample returns the newest event of a row in the window.
func (c *comparison) sample(ctx context.Context, r *candidate) (*store.Record, error) {
	keys := map[tallyKey]bool{}
	last := c.answer.Range
	last.From = time.Time{}
	for _, t := range r.tallies {
		keys[t.tallyKey] = true
		if at := time.Unix(t.came.Last, 0).UTC(); t.came.Count > 0 && at.After(last.From) {
			last.From, last.To = at, at.Add(time.Second)
		}
	}
	if last.From.IsZero() {
		return nil, nil // nothing came
	}
	sample, err := c.newest(ctx, r, last, keys)
	if sample == nil && err == nil { // it was observed again later, or is not one of the row
		sample, err = c.newest(ctx, r, c.answer.Range, keys)
	}
	return sample, err
}

// newest returns the newest event of a row in a range.
func (c *comparison) newest(ctx context.Context, r *candidate, in store.Range, keys map[tallyKey]bool) (sample *store.Record, err error) {
	wanted := func(d event.Dimensions) bool { return keys[keyOf(&d)] }
	in.Revision = c.answer.Range.Revision
	err = c.observed(ctx, store.TimeQuery{Range: in, Wanted: wanted}, sampleReads, func(v *store.View, _ store.Moment) bool {
		if !r.about(c, v.Attributes) {
			return true
		}
		sample = new(v.Clone())
		return false
	})
	return sample, err
}

// sampleOf returns the newest event with the note that tells most of what goes on of a row, nil if it is not read.
func (c *comparison) sampleOf(ctx context.Context, r *candidate) (sample *store.Record, err error) {
	going := slices.MaxFunc(r.parts.going, func(a, b *outcome) int { return cmp.Compare(a.came.Count, b.came.Count) })
	q := store.TimeQuery{Range: c.answer.Range, Wanted: func(d event.Dimensions) bool {
		return slices.ContainsFunc(r.tallies, func(s *tally) bool { return s.tallyKey == keyOf(&d) })
	}}
	readErr := c.observed(ctx, q, sampleReads, func(v *store.View, _ store.Moment) bool {
		var note []byte
		if note, err = c.q.Note(v); err != nil {
			return false
		}
		d, name := event.DimensionsOf(v.Namespace, v.Attributes), v.Attributes.Field(event.RegardingName)
		if !going.of[workCell{d.Cluster, d.Namespace, workload(string(name)), going.tells}] || event.Pattern(note, name, []byte(v.Namespace)) != going.tells {
			return true
		}
		sample = new(v.Clone())
		return false
	})
	return sample, cmp.Or(err, readErr)
}

// observed reads pages of events until visit returns false, all are read, or limit of
// them are.
func (c *comparison) observed(ctx context.Context, q store.TimeQuery, limit int, visit func(*store.View, store.Moment) bool) error {
	q.Sees = c.q.sees
	for more := true; more && limit > 0; {
		page, err := c.timeline.Observed(ctx, q, func(v *store.View, at store.Moment) bool {
			limit--
			more = visit(v, at)
			return more && limit > 0
		})
		if err != nil {
			return err
		}
		if c.answer.Range.Revision == 0 { // all that follows shows the same state
			c.answer.Range.Revision = page.Revision
		}
		q.Revision, q.After, more = page.Revision, page.Last, more && page.More
	}
	return nil
}

// link returns the parameters that show the events of a row.
func (r *candidate) link(a *Answer) url.Values {
	from := a.Range.From
	if first := time.Unix(r.first, 0).UTC(); (r.way == Changed || r.way == Silent) && first.Before(from) {
		from = first
	}
	v := url.Values{
		"from": {from.Format(time.RFC3339)}, "to": {a.Range.To.Format(time.RFC3339)},
		"revision": {strconv.FormatUint(a.Range.Revision, 10)},
	}
	if r.namespace != "" {
		v.Set("namespace", r.namespace)
	}
	var terms []fields.Selector
	for _, term := range [][2]string{{"regarding.kind", r.kind}, {"reason", r.reason}, {"type", r.typ}, {"regarding.name", r.exact}, {"reportingController", r.silent.reporter}} {
		if term[1] != "" {
			terms = append(terms, fields.OneTermEqualSelector(term[0], term[1]))
		}
	}
	v.Set("fieldSelector", fields.AndSelectors(terms...).String())
	if r.cluster != "" {
		v.Set("labelSelector", event.ClusterLabel+"="+r.cluster)
	}
	return v
}

// topNamespaces bounds the namespaces that a row names.
const topNamespaces = 10

func (r *candidate) change(c *comparison) Change {
	change := Change{
		By:     event.Dimensions{Cluster: r.cluster, Namespace: r.namespace, Kind: r.kind, Reason: r.reason, Type: r.typ, Reporter: r.reporter()},
		Object: r.name(), Also: r.also, Kind: r.way, Now: r.now, Before: round(r.expected), Score: r.score, State: query.Ongoing, Link: r.link(c.answer),
	}
	if came := r.came(); came.Count > 0 {
		change.First, change.Last = time.Unix(cmp.Or(r.began, r.first), 0).UTC(), time.Unix(came.Last, 0).UTC()
		if r.parts != nil && r.parts.live.Count > 0 {
			if came = r.parts.live; r.began == 0 || !c.already(came) {
				change.First = time.Unix(came.First, 0).UTC()
			}
			change.Last = time.Unix(came.Last, 0).UTC()
		}
		change.Every, change.State = came.Every(), came.At(c.answer.Range.To)
	}
	if r.way == Silent {
		change.First = time.Unix(r.first, 0).UTC()
		change.Last = change.First
	}
	change.Former = r.formerly(c)
	if f := c.cause(r); f != nil {
		change.Follows = f.reference(c)
	}
	if r.namespace == "" && r.way != Silent {
		for _, t := range r.tallies[:min(len(r.tallies), topNamespaces)] {
			change.Namespaces = append(change.Namespaces, t.namespace)
		}
	}
	return change
}

// came returns how all events of a row came in the window.
func (r *candidate) came() (all query.Rhythm) {
	for _, t := range r.tallies {
		all.Merge(t.came)
	}
	return all
}

// reference returns what names a row.
func (r *candidate) reference(c *comparison) *Reference {
	return &Reference{
		By:     event.Dimensions{Cluster: r.cluster, Namespace: r.namespace, Kind: r.kind, Reason: r.reason, Type: r.typ},
		Object: r.name(), First: time.Unix(r.first, 0).UTC(), Link: r.link(c.answer),
	}
}

// reporter returns the component that reports all events of a row, "" if there are
// several.
func (r *candidate) reporter() string {
	reporters := make([]string, 0, len(r.tallies))
	for _, t := range r.tallies {
		if t.came.Count > 0 || len(r.tallies) == 1 {
			reporters = append(reporters, t.reporter)
		}
	}
	slices.Sort(reporters)
	if reporters = slices.Compact(reporters); len(reporters) == 1 && reporters[0] != several {
		return reporters[0]
	}
	return ""
}
