package alerts

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event"
)

// The limits of what is kept.
const (
	maxAlerts  = 10_000
	maxCounted = 100_000 // events
	maxEarlier = 1000    // begins and ends of one alert that nobody has taken
	tellFor    = 5 * time.Minute
	keepClosed = 15 * time.Minute // after its end was taken it is still sent, as to an Alertmanager that has restarted
	resend     = time.Minute
)

// alert is what is known of the alerts with the same labels: the occurrences that go on, and the alert to send, if
// there is one.
type alert struct {
	Rule                string
	Labels, Annotations map[string]string
	Link                string

	Last time.Time // of the occurrences that go on; zero: there are none
	Seen []seen    `json:",omitempty"` // as many of them as it takes, until they are enough
	Met  time.Time // when they were enough

	span
	Earlier      []span    `json:",omitempty"` // before that, which nobody has taken
	Waits        time.Time // since when it is to be sent
	Told, Closed time.Time // when the first Alertmanager took the alert, and its end
}

type seen struct {
	At time.Time
	N  int64
}

// span is from when to when an alert goes on; zero Ends: still.
type span struct{ Starts, Ends time.Time }

func (a *alert) firing() bool { return !a.Starts.IsZero() && a.Ends.IsZero() }

// add takes occurrences into account.
func (a *alert) add(r *Rule, at time.Time, n int64) {
	if !at.After(a.Ends) {
		return // it is part of what is over
	}
	a.advance(r, at.Add(-1))
	if at.After(a.Last) {
		a.Last = at
	}
	if a.Met.IsZero() {
		a.Seen = slices.DeleteFunc(append(a.Seen, seen{at, n}), func(s seen) bool { return a.Last.Sub(s.At) > r.Within })
		var total int64
		for _, s := range a.Seen {
			total += s.N
		}
		if total >= r.Occurrences {
			a.Met, a.Seen = at, nil
		}
	}
	a.begin(r, at)
}

// begin begins the alert if it is due at a time.
func (a *alert) begin(r *Rule, now time.Time) {
	due := a.Met.Add(r.For)
	if a.Met.IsZero() || a.firing() || now.Before(due) {
		return
	}
	if !a.Starts.IsZero() && a.Told.IsZero() && len(a.Earlier) < maxEarlier {
		a.Earlier = append(a.Earlier, a.span)
	}
	a.span, a.Waits, a.Told, a.Closed = span{Starts: due}, time.Time{}, time.Time{}, time.Time{}
}

// over ends what goes on.
func (a *alert) over(r *Rule, at time.Time) {
	a.begin(r, at)
	if a.firing() {
		a.Ends = at
	}
	a.Last, a.Met, a.Seen = time.Time{}, time.Time{}, nil
}

// advance ends what goes on if its silence has passed at a time up to which everything is known, or begins the alert if
// it is due.
func (a *alert) advance(r *Rule, to time.Time) {
	if over := a.Last.Add(r.Silence); a.Last.IsZero() {
	} else if to.Before(over) {
		a.begin(r, to)
	} else {
		a.over(r, over)
	}
}

// counted is how many observations of an event are counted, and when it was last looked at.
type counted struct {
	N  int64
	At time.Time
}

// book has all alerts. It is not safe for concurrent use.
type book struct {
	Alerts  map[string]*alert
	Counted map[string]counted

	rules   []*Rule
	console string
	full    int // alerts for which there was no room
}

func newBook(rules []*Rule, console string) book {
	return book{map[string]*alert{}, map[string]counted{}, rules, console, 0}
}

// observe takes a version of an event into account. All of the observations of one that is new count, and of another
// one those that were made since it was last seen; one if it was not.
func (b *book) observe(ev *eventsv1.Event, isNew bool, now time.Time) {
	var facts *Facts
	var o event.Occurrence
	s := event.SubjectOf(ev)
	for _, r := range b.rules {
		begins, ends := r.matches(s)
		if !begins && !ends {
			continue
		}
		if facts == nil {
			if o = b.count(ev, s, isNew, now); o.New == 0 {
				return
			}
			facts = newFacts(ev, s, o, b.console)
		}
		labels := render(r.labels, facts, event.MaxDimension)
		labels[nameLabel] = r.Name
		key := keyOf(labels)
		a := b.Alerts[key]
		if ends && a != nil && !o.Time.Before(a.Last) {
			a.over(r, o.Time)
		}
		switch {
		case !begins:
			continue
		case a == nil && len(b.Alerts) >= maxAlerts:
			b.full++
			continue
		case a == nil:
			a = &alert{Rule: r.Name, Labels: labels}
			b.Alerts[key] = a
		}
		a.Annotations, a.Link = render(r.annotations, facts, maxText), facts.Link
		o.Spread(func(second, _, n int64) { a.add(r, time.Unix(second, 0).UTC(), n) })
	}
}

// matches reports whether an event begins the alert of a rule, or ends it.
func (r *Rule) matches(s *event.Subject) (begins, ends bool) {
	return r.Search.Matches(s), r.EndedBy != nil && r.EndedBy.Matches(s)
}

// count returns the occurrence of a version, with the observations that are not counted yet.
func (b *book) count(ev *eventsv1.Event, s *event.Subject, isNew bool, now time.Time) event.Occurrence {
	o, _ := s.Attributes.Written(now).Occurrence()
	key := ev.Namespace + "/" + ev.Name + "/" + string(ev.UID)
	before, known := b.Counted[key]
	switch {
	case known:
		o.New = max(0, o.Count-before.N)
	case !isNew:
		o.New = 1
	}
	if known || len(b.Counted) < maxCounted {
		b.Counted[key] = counted{max(o.Count, before.N), now}
	}
	return o
}

// keyOf is the same text for the same labels.
func keyOf(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(name + "=" + strconv.Quote(labels[name]) + ",")
	}
	return b.String()
}

// rule returns the rule of an alert; one that is gone is over at once.
func (b *book) rule(a *alert) *Rule {
	if i := slices.IndexFunc(b.rules, func(r *Rule) bool { return r.Name == a.Rule }); i >= 0 {
		return b.rules[i]
	}
	return &Rule{}
}

// advance begins and ends alerts, as everything up to a time is known.
func (b *book) advance(to time.Time) {
	for _, a := range b.Alerts {
		a.advance(b.rule(a), to)
	}
}

// clean forgets what is told, and gives up what nobody has taken in time. It returns how many alerts it gave up.
func (b *book) clean(now time.Time, wait time.Duration) (lost int) {
	passed := func(t time.Time, d time.Duration) bool { return !t.IsZero() && now.Sub(t) > d }
	maps.DeleteFunc(b.Alerts, func(_ string, a *alert) bool {
		switch {
		case !a.Last.IsZero() || a.firing():
			return false
		case a.Told.IsZero() && passed(a.Waits, wait):
			lost += 1 + len(a.Earlier)
			return true
		}
		return a.Starts.IsZero() || passed(a.Closed, keepClosed) || passed(a.Told, wait+tellFor)
	})
	maps.DeleteFunc(b.Counted, func(_ string, c counted) bool { return passed(c.At, maxSilence) })
	lost, b.full = lost+b.full, 0
	return lost
}

// Alert is an alert as Alertmanager reads it.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	Link        string            `json:"generatorURL"`
}

// times returns an alert for each time that it went on: the earlier ones first, as long as nobody has taken them.
func (a *alert) times() (all []Alert) {
	for _, s := range append(slices.Clone(a.Earlier), a.span) {
		all = append(all, Alert{a.Labels, a.Annotations, s.Starts, s.Ends, a.Link})
	}
	return all
}

// post returns what is sent of an alert at a time, and whether its end is.
func (b *book) post(a *alert, now time.Time) (all []Alert, closed bool) {
	all = a.times()
	last, held := &all[len(all)-1], now
	if !a.Told.IsZero() {
		held = a.Told
	}
	if held = held.Add(tellFor); a.firing() {
		// What ends by silence ends at that time also if nobody is left to say so.
		if last.EndsAt = a.Last.Add(b.rule(a).Silence); last.EndsAt.Before(now.Add(4 * resend)) {
			last.EndsAt = now.Add(4 * resend)
		}
		return all, false
	}
	last.Annotations = maps.Clone(a.Annotations)
	last.Annotations["over"] = a.Ends.Format(time.RFC3339)
	if closed = !now.Before(held); !closed {
		last.EndsAt = held.Add(resend)
	}
	return all, closed
}
