package query

import (
	"cmp"
	"context"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// Page says which part of an answer is asked for.
type Page struct {
	OldestFirst bool         // newest first otherwise
	After       store.Moment // only behind this place; zero: from the first
	Limit       int          // about so many events are wanted; 0: not known
}

// Next says where an answer goes on.
type Next struct {
	After store.Moment
	More  bool // there may be more behind it
}

// Events calls visit with the events that exist in the state of the snapshot and were observed within its range, each
// as it was last observed there, until visit returns false: the page ends behind that event. It also ends when so many
// versions were looked at as a query may look at, and the answer says how far it has come. So a page may have few
// events or none although there are more.
func (s *Snapshot) Events(ctx context.Context, p Page, visit func(*store.View, store.Moment) bool) (next Next, err error) {
	looked := 0
	err = s.pages(ctx, s.timeQuery(ctx, p), func(v *store.View, at store.Moment) (bool, error) {
		return visit(v, at), nil
	}, func(n Next, versions int) (bool, error) {
		next, looked = n, looked+versions
		if !n.More || looked < s.querier.Looked {
			return true, nil
		}
		since := "since"
		if p.OldestFirst {
			since = "until"
		}
		s.Partly("%d versions were looked at: this page has the events observed %s %s, and the next page goes on from there",
			s.querier.Looked, since, n.After.Time.UTC().Format(time.RFC3339))
		return false, nil
	})
	return next, err
}

// timeQuery is the query of a page of all events that a query may be about.
func (s *Snapshot) timeQuery(ctx context.Context, p Page) store.TimeQuery {
	return store.TimeQuery{
		Range:  store.Range{From: s.begin(), To: s.To, Sees: s.sees},
		Window: true, OldestFirst: p.OldestFirst, After: p.After, Filter: s.query.Terms.Filter(), Limit: p.Limit,
	}
}

// pages calls visit with events until it returns false or fails, page by page. After each
// page it calls between with the place that it has come to, and how many versions it has looked at; if that returns
// false, no other page is read.
func (s *Snapshot) pages(
	ctx context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) (bool, error), between func(n Next, looked int) (bool, error),
) error {
	for {
		var page store.TimePage
		var failed error
		on := true
		err := s.reading(func() (err error) {
			q.Revision = s.held
			page, err = s.querier.Timeline.Observed(ctx, q, func(v *store.View, at store.Moment) bool {
				q.After = at                        // what has been visited is not visited again
				if at.Revision <= s.Head.Revision { // the state that is read may be newer
					on, failed = visit(v, at)
				}
				return on && failed == nil
			})
			return err
		})
		if err := cmp.Or(failed, err); err != nil {
			return err
		}
		if on {
			q.After = page.Last
		}
		if further, err := between(Next{q.After, page.More}, page.Looked); err != nil || !further || !on || !page.More {
			return err
		}
	}
}
