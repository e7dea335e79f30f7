package changes

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

const (
	// causeTime is how long before a failure a change of an object counts as its cause.
	causeTime = 10 * time.Minute
	// maxCauseTime is how long before a failure that comes seldom a problem counts as its cause.
	maxCauseTime = time.Hour
	maxCauses    = 5   // rows about changed objects
	maxEdits     = 500 // events about changed objects that are read
	// tiedWeight is for a change of the object that fails, or of its owner or node.
	tiedWeight = 1.0
	// namedWeight is for a change of an object that notes name: a failure that names a deleted Secret says itself what
	// is missing, while a change of the owner may only have shown it.
	namedWeight = 1.5
	// nearWeight is for a change of another object of the namespace, if few have changed there.
	nearWeight = 0.3
	// fewEdits is how many objects of a namespace may have changed until a change that nothing ties to the failure
	// counts less.
	fewEdits = 3
	// manyWeight is the part of the failure's score that such a change has.
	manyWeight = 0.8
	// recentWeight is for a change at the moment of the failure; the weight falls to 0 within causeTime.
	recentWeight = 0.5
)

// edit is a change of an object, or that it was made or deleted, as a mirror has recorded.
type edit struct {
	subject
	name, owner string
	reporter    string
	at          int64 // second, of the first of several
	record      store.Record
}

// isEdit reports whether occurrences are changes of objects that a mirror has recorded. They are causes and not
// failures, so that they are not compared with their own past.
func isEdit(d *event.Dimensions) bool {
	return d.Reporter == event.GapReporter && (d.Reason == event.ObjectChanged || d.Reason == event.ObjectCreated || d.Reason == event.ObjectDeleted)
}

// causes adds rows for objects that were changed just before a row began.
func (c *comparison) causes(ctx context.Context, rows []*candidate) ([]*candidate, error) {
	if len(rows) == 0 {
		return rows, nil
	}
	edits, err := c.edits(ctx)
	if err != nil || len(edits) == 0 {
		return rows, err
	}
	named, err := c.named(ctx, edits, rows)
	if err != nil {
		return nil, err
	}
	in, all := map[[2]string]int{}, map[string]int64{}
	for _, e := range edits {
		if all[e.object]++; all[e.object] == 1 {
			in[[2]string{e.cluster, e.namespace}]++
		}
	}
	best := map[string]*candidate{} // of the changes of an object the one that explains most: a later one may have mended it
	for _, e := range edits {
		for _, r := range rows {
			if score := c.explained(e, r, named, in[[2]string{e.cluster, e.namespace}]); score > 0 && (best[e.object] == nil || score > best[e.object].score) {
				best[e.object] = e.row(r, score, all[e.object])
			}
		}
	}
	found := slices.SortedFunc(maps.Values(best), byScore)
	rows = append(rows, found[:min(len(found), maxCauses)]...)
	slices.SortStableFunc(rows, byScore)
	return rows, nil
}

// edits reads the changes of objects in the window and just before it, the newest first.
func (c *comparison) edits(ctx context.Context) (edits []*edit, err error) {
	r := c.answer.Range
	r.From = r.From.Add(-causeTime)
	wanted := func(d event.Dimensions) bool {
		return isEdit(&d) && c.q.Allows(d.Namespace, d.Cluster) && (c.q.Cluster == "" || c.q.Cluster == d.Cluster)
	}
	err = c.observed(ctx, store.TimeQuery{Range: r, Wanted: wanted}, maxEdits, func(v *store.View, at store.Moment) bool {
		edits = append(edits, editOf(v, at.Time))
		return true
	})
	return edits, err
}

// editOf returns what an event says of a change of its object, last at a time.
func editOf(v *store.View, first time.Time) *edit {
	d := event.DimensionsOf(v.Namespace, v.Attributes)
	if o, ok := v.Attributes.Occurrence(); ok && o.Count > 1 {
		first = o.First
	}
	name := string(v.Attributes.Field(event.RegardingName))
	object := subject{keyOf(&d), strings.Join([]string{d.Cluster, d.Namespace, d.Kind, name}, "/")}
	return &edit{subject: object, name: name, owner: d.Owner, reporter: d.Reporter, at: first.Unix(), record: v.Clone()}
}

// subject is an object in a series: the series and kind/name.
type subject struct {
	tallyKey
	object string
}

// concern notes how often warnings came of the object of an event, its owner, its workload and its node.
func (w *warned) concern(k tallyKey, name string, d *event.Dimensions, n int64) {
	if w.subjects == nil {
		w.subjects = map[subject]int64{}
	}
	for _, object := range []string{k.kind + "/" + name, d.Owner, "/" + workload(name), "Node/" + d.Node} {
		w.subjects[subject{k, object}] += n
	}
	if set := strings.LastIndexByte(name, '-'); k.kind == "Pod" && set > 0 {
		w.subjects[subject{k, "ReplicaSet/" + name[:set]}] += n
	}
}

// named finds the changed objects that notes of rows name.
func (c *comparison) named(ctx context.Context, edits []*edit, rows []*candidate) (map[subject]bool, error) {
	named, keys := map[subject]bool{}, map[tallyKey]bool{}
	for _, r := range rows[:min(len(rows), maxCauses*2)] {
		for _, s := range r.tallies {
			keys[s.tallyKey] = true
		}
	}
	err := c.notes(ctx, func(k tallyKey) bool { return keys[k] }, func(v *store.View, note []byte) {
		d := event.DimensionsOf(v.Namespace, v.Attributes)
		for _, e := range edits {
			if e.cluster != d.Cluster || !hasName(note, e.name) {
				continue
			}
			if whole := e.namespace + "/" + e.name; e.namespace == d.Namespace || e.kind == "Node" || hasName(note, whole) {
				named[subject{keyOf(&d), e.kind + "/" + whole}] = true
			}
		}
	})
	return named, err
}

// hasName reports whether a note has a name that is no part of a longer one.
func hasName(note []byte, name string) bool {
	for at := 0; name != ""; {
		i := bytes.Index(note[at:], []byte(name))
		if i < 0 {
			break
		}
		if at += i; !isNamePart(note, at-1) && !isNamePart(note, at+len(name)) {
			return true
		}
		at += len(name)
	}
	return false
}

// explained returns the score of a change as the cause of a row, 0 if the change cannot be the cause. So many objects
// were changed in its namespace as several says.
func (c *comparison) explained(e *edit, r *candidate, named map[subject]bool, several int) float64 {
	onset, longest := r.onset, int64(causeTime/time.Second)
	if r.way == Less { // what became less has no onset
		onset = c.answer.Range.To.Unix()
		longest += int64(c.q.Window / time.Second)
	}
	before := onset - e.at
	if e.cluster != r.cluster || before < -onsetTolerance || before > longest {
		return 0
	}
	tie, near := c.ties(e, r, named)
	recent := recentWeight * max(0, 1-float64(max(before, 0))/causeTime.Seconds())
	switch {
	case tie > 0:
		return r.score + tie + recent
	case near && several <= fewEdits:
		return r.score + nearWeight + recent*nearWeight
	case near:
		return r.score*manyWeight + recent
	}
	return 0
}

// ties returns the weight by which warnings of a row name the object that was changed or its owner, 0 if they do not,
// and whether some are of its namespace.
func (c *comparison) ties(e *edit, r *candidate, named map[subject]bool) (tie float64, near bool) {
	for _, s := range r.tallies {
		is := func(object string) bool { return c.warned.subjects[subject{s.tallyKey, object}] > 0 }
		near = near || s.namespace == e.namespace
		switch {
		case named[subject{s.tallyKey, e.kind + "/" + e.namespace + "/" + e.name}]:
			tie = namedWeight
		case e.kind == "Node" && is("Node/"+e.name), s.namespace == e.namespace && (is(e.kind+"/"+e.name) || is(cmp.Or(e.owner, "-")) || is("/"+e.name)):
			tie = max(tie, tiedWeight)
		}
	}
	return tie, near
}

// row returns the row of a change that explains another row.
func (e *edit) row(of *candidate, score float64, count int64) *candidate {
	return &candidate{
		tallyKey: e.tallyKey, tallies: []*tally{{tallyKey: e.tallyKey, came: query.Rhythm{Count: count, First: e.at, Last: e.at}, reporter: e.reporter}},
		way: Changed, now: count, object: e.name, exact: e.name, first: e.at, onset: e.at, objects: 1, dispersion: 1,
		score: round(score), explained: of, record: &e.record,
	}
}
