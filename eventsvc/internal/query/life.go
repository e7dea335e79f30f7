package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Subject names the object whose life is asked for: by its UID, or by its kind and name.
type Subject struct{ UID, Kind, Name string }

// Check returns an error unless a subject names one object.
func (o Subject) Check() error {
	switch {
	case o.UID != "" && (o.Kind != "" || o.Name != ""):
		return invalid("uid", "names one object, and so do kind and name: leave out the one or the others")
	case strings.Contains(o.Kind+o.Name+o.UID, "*"):
		return invalid("name", "* is no pattern here: name one object, or search for events with name:web-*")
	case o.UID == "" && o.Kind == "" && o.Name == "":
		return invalid("uid", "is missing: name an object by its uid, or by kind and name")
	case o.UID == "" && o.Name == "":
		return invalid("name", "is missing: an object is named by its uid, or by kind and name")
	case o.UID == "" && o.Kind == "":
		return invalid("kind", "is missing: an object is named by its uid, or by kind and name")
	}
	return nil
}

func (o Subject) selector() *event.Selector {
	if o.UID != "" {
		return &event.Selector{Fields: []event.FieldRequirement{{Field: event.RegardingUID, Value: o.UID}}}
	}
	return &event.Selector{Fields: []event.FieldRequirement{
		{Field: event.RegardingKind, Value: o.Kind}, {Field: event.RegardingName, Value: o.Name},
	}}
}

// Written returns a subject whose kind is spelled as events of the range spell it: Pod for pod. A kind that the range
// does not have stays as it is.
func (s *Snapshot) Written(ctx context.Context, o Subject) (Subject, error) {
	if o.Kind == "" {
		return o, nil
	}
	written := ""
	err := s.values(ctx, []string{string(Kind)}, s.sees, func(_, kind string) {
		if strings.EqualFold(kind, o.Kind) && written != o.Kind && (written == "" || kind == o.Kind || kind < written) {
			written = kind
		}
	})
	o.Kind = cmp.Or(written, o.Kind)
	return o, err
}

// Happened is one version of an event about an object, or its deletion.
type Happened struct {
	store.Record
	At      store.Moment // of the last observation or, with Deleted, of the deletion
	Count   int64        // of the observations up to this version
	Deleted bool
}

// ObjectPage says which part of the life of an object is asked for. A page has at most so
// many versions, and at most so many bytes, except that the first version always fits.
type ObjectPage struct {
	Page
	Limit, Bytes int
}

// Life is what happened to an object within the range: every version of every event about it, superseded ones and
// deletions too, as far as it is held, wanted and on the page, and how often each reason came on all pages.
type Life struct {
	Happened []Happened
	Next     Next
	Series   []Series // the newest first
}

// Series is how a reason came.
type Series struct {
	Reason, Type string
	Rhythm
}

// Object returns the life of an object.
func (s *Snapshot) Object(ctx context.Context, o Subject, p ObjectPage) (Life, error) {
	if err := o.Check(); err != nil {
		return Life{}, err
	}
	found, err := s.object(ctx, o, p)
	if err != nil || len(found.Happened) > 0 {
		return found, err
	}
	written, err := s.Written(ctx, o)
	if err != nil || written == o {
		return found, err
	}
	return s.object(ctx, written, p)
}

func (s *Snapshot) object(ctx context.Context, o Subject, p ObjectPage) (Life, error) {
	life := life{page: p}
	series := map[[2]string]*Series{}
	wanted := s.wants()
	err := s.querier.Timeline.Versions(ctx, o.selector(), func(v *store.View, gone bool) bool {
		if v.Revision > s.Head.Revision || !wanted(v) {
			return true
		}
		h := Happened{Deleted: gone, Count: 1, At: store.Moment{Time: v.Time.UTC().Truncate(time.Microsecond), Revision: v.Revision}}
		if occurrence, ok := v.Attributes.Occurrence(); ok {
			h.Count = occurrence.Count
			if !gone {
				h.At.Time = occurrence.Time
				s.cameIn(series, v.Attributes, occurrence)
			}
		}
		if !h.At.Time.Before(s.From) && h.At.Time.Before(s.To) {
			life.add(h, v)
		}
		return true
	})
	next := Next{After: p.After, More: life.more}
	if n := len(life.happened); n > 0 {
		next.After = life.happened[n-1].At
	}
	found := Life{Happened: life.happened, Next: next}
	for _, one := range series {
		found.Series = append(found.Series, *one)
	}
	slices.SortFunc(found.Series, func(a, b Series) int {
		return cmp.Or(cmp.Compare(b.Last, a.Last), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Type, b.Type))
	})
	return found, err
}

// maxSeries is the most reasons of an object that are told apart.
const maxSeries = 1000

// cameIn adds the observations of a version within the range to the series of its reason.
func (s *Snapshot) cameIn(series map[[2]string]*Series, a event.Attributes, o event.Occurrence) {
	key := [2]string{string(a.Field(event.Reason)), string(a.Field(event.Type))}
	from, to := s.From.Unix(), s.To.Unix()
	o.Spread(func(second, _, n int64) {
		if n == 0 || second < from || second >= to {
			return
		}
		if series[key] == nil {
			if len(series) >= maxSeries {
				return
			}
			series[key] = &Series{Reason: key[0], Type: key[1]}
		}
		series[key].Add(store.Occurred{Second: second, Count: n})
	})
}

// life is the beginning of what happened to an object, behind a place.
type life struct {
	page     ObjectPage
	happened []Happened // in order
	bytes    int
	more     bool // something has been dropped at the end
}

// add adds a version, and drops the last ones that are too many.
func (l *life) add(h Happened, v *store.View) {
	if l.page.After != (store.Moment{}) && h.At.Compare(l.page.After, l.page.OldestFirst) <= 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(l.happened, h.At, func(in Happened, at store.Moment) int { return in.At.Compare(at, l.page.OldestFirst) })
	if full := len(l.happened) >= l.page.Limit || l.bytes >= l.page.Bytes; full && i == len(l.happened) && i > 0 {
		l.more = true
		return
	}
	h.Record = v.Clone()
	l.happened = slices.Insert(l.happened, i, h)
	l.bytes += len(h.Value)
	for n := len(l.happened); n > 1 && (n > l.page.Limit || l.bytes-len(l.happened[n-1].Value) >= l.page.Bytes); n-- {
		l.bytes -= len(l.happened[n-1].Value)
		l.happened = l.happened[:n-1]
		l.more = true
	}
}
