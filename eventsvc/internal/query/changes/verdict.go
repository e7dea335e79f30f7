package changes

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/query"
)

// The states of a verdict that names no change.
const (
	Usual   query.State = "usual"   // nothing differs from what was before
	Unknown query.State = "unknown" // there is nothing to compare with
)

// Verdict is an answer in one sentence: what happened, to which object, since when, whether it goes on, and what came
// before it.
type Verdict struct {
	Text  string
	State query.State
	// Change is the change that the sentence is about, without a sample; nil if nothing differs. The sentence says then
	// how much was compared.
	Change *Change
	// Cause is what came before it and may have caused it; nil: nothing did.
	Cause *Reference
}

// verdict judges by the first row or, if that is over, by what goes on beside it. If the row is a changed object, it is
// the cause of what the verdict is about.
func (c *comparison) verdict(rows []*candidate) Verdict {
	window := query.FormatDuration(c.q.Window)
	switch {
	case c.windows <= 0:
		return Verdict{Text: "There is no history before these " + window + " to compare with.", State: Unknown}
	case len(rows) == 0:
		text := fmt.Sprintf("Nothing in these %s differs from what is usual: %s.", window, c.compared())
		if c.q.Finds != nil {
			text = touched + text
		}
		return Verdict{Text: text, State: Usual}
	}
	r, past := c.ongoing(rows)
	cause := c.cause(r)
	if r.way == Changed {
		if r, cause = r.explained, r; r.later() {
			cause = nil
		}
	}
	change := r.change(c)
	found := c.found(r, &change)
	v := Verdict{State: change.State, Change: &change}
	var b strings.Builder
	if c.q.Wanted != nil {
		b.WriteString(found.whose)
	}
	fmt.Fprintf(&b, "%s of %s", cmp.Or(r.reason, "Silence"), found.subject)
	switch r.way {
	case Silent:
		fmt.Fprintf(&b, " since %s", stamp(change.Last))
	case Less:
		fmt.Fprintf(&b, ": %s in %s, against %s expected", times(r.now), window, whole(r.expected))
	default:
		in, before := "", ""
		if change.First.Before(c.answer.Range.From) {
			in, before = " in "+window, " (before this window)"
		}
		fmt.Fprintf(&b, ": %s%s since %s%s, %s", times(found.n), in, stamp(change.First), before, going(&change, c.answer.Range.To))
	}
	b.WriteString(found.beside)
	if change.Former != nil {
		b.WriteString("; " + again(change.Former))
	}
	if cause != nil {
		v.Cause = cause.reference(c)
		fmt.Fprintf(&b, "; %s after %s of %s", roughly(time.Duration(max(0, r.onset-cause.onset))*time.Second), cause.reason, cause.subject())
	}
	if past != nil && past != cause {
		other := past.change(c)
		fmt.Fprintf(&b, "; besides, %s of %s: %s", past.reason, past.subject(), going(&other, c.answer.Range.To))
	}
	b.WriteString(".")
	v.Text = b.String()
	return v
}

// ongoing returns the row that a verdict is about: the first one or, if that is over, the first of the next ones that
// goes on and is much more than usual. past is then the first one.
func (c *comparison) ongoing(rows []*candidate) (r, past *candidate) {
	goes := func(r *candidate) bool {
		change := r.change(c)
		return change.State == query.Ongoing
	}
	first := rows[0]
	if first.way == Silent || first.way == Less || first.way == Changed || goes(first) {
		return first, nil
	}
	for _, r := range rows[1:min(len(rows), maxParted)] {
		if r.alarming() && r.way != Less && r.way != Silent && r.way != Changed && float64(r.now) >= patent*r.expected && 2*r.score >= first.score && goes(r) {
			return r, first
		}
	}
	return first, nil
}

// patent is how many times what is expected came of a problem that goes on, if the verdict is about it though another
// one is ranked before it.
const patent = 4

// What a verdict is about, of a question with a search.
const (
	ofSearch = "In what the search finds: "
	touched  = "In all events that the search touches: "
)

// found is what a verdict counts.
type found struct {
	whose, subject string
	n              int64
	beside         string // what it does not count
}

// found counts what a verdict is about: of one incident, and of what a search finds.
func (c *comparison) found(r *candidate, change *Change) found {
	out := found{ofSearch, r.subject(), r.now, ""}
	p := r.parts
	if p == nil || p.found.Count == 0 {
		if c.q.Finds != nil {
			out.whose = touched
		}
		return out
	}
	if p.live.Count > 0 {
		if out.n = p.live.Count; p.over != nil {
			out.beside = "; " + p.before()
		}
		if p.name != "" && r.name() == "" {
			out.subject = r.kind + " " + p.name + "-*" + strings.TrimPrefix(r.subject(), r.kind)
		}
		return out
	}
	if c.q.Finds != nil && p.found.Count < r.now {
		change.First, change.Last = time.Unix(p.found.First, 0).UTC(), time.Unix(p.found.Last, 0).UTC()
		change.Every, change.State = p.found.Every(), p.found.At(c.answer.Range.To)
		out.n = p.found.Count
		out.beside = fmt.Sprintf("; compared with what is usual were all %d of them", r.now)
		if p.found.Count < leastPart {
			out.beside += ", as the search finds too few"
		}
	}
	return out
}

// before says in words what is over of a row that goes on.
func (p *parted) before() string {
	first, last := time.Unix(p.over.came.First, 0), time.Unix(p.over.came.Last, 0)
	text := fmt.Sprintf("%s more until %s, which is over", times(p.over.came.Count), stamp(last))
	if first.Before(last) {
		text = fmt.Sprintf("%s more from %s to %s, which is over", times(p.over.came.Count), stamp(first), stamp(last))
	}
	if p.over.tells == "" {
		return text
	}
	return text + ": “" + brief(p.over.tells) + "”"
}

// going says in words whether a change goes on.
func going(c *Change, now time.Time) string {
	ago := roughly(now.Sub(c.Last).Truncate(time.Second))
	switch c.State {
	case query.Over:
		return fmt.Sprintf("over for %s (had come every %s)", ago, roughly(c.Every))
	case query.Once:
		return ago + " ago"
	}
	every := roughly(c.Every)
	if 2*now.Sub(c.Last) > 3*c.Every { // the next one is late, but not by enough to say that there is none
		every += ", the last one " + ago + " ago"
	}
	return "goes on (every " + every + ")"
}

// formerly returns when a recurrence came before: of a row of several namespaces all of it, else of its series the one
// that came most often. It returns nil if the row is no recurrence.
func (r *candidate) formerly(c *comparison) *Former {
	var most query.Rhythm
	for _, s := range r.tallies {
		if r.namespace == "" && s.namespace != "" {
			s = s.family
		}
		if s.former.Count > most.Count {
			most = s.former
		}
	}
	if r.way != Again || most.Count == 0 {
		return nil
	}
	f := &Former{First: time.Unix(most.First, 0).UTC(), Last: time.Unix(most.Last, 0).UTC(), Count: most.Count, Link: r.link(c.answer)}
	f.Link.Set("from", stamp(f.First))
	f.Link.Set("to", stamp(f.Last.Add(time.Second)))
	return f
}

// again says in words when something came before.
func again(f *Former) string {
	long := ""
	if f.Count > 1 {
		long = " in " + roughly(max(f.Last.Sub(f.First), time.Second))
	}
	return fmt.Sprintf("again, as on %s (%s%s)", f.First.Format("Monday 2006-01-02 15:04 MST"), times(f.Count), long)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
