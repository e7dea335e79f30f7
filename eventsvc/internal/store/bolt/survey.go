package bolt

import (
	"cmp"
	"context"
	"slices"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/columns"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Survey implements [store.Timeline].
func (r *reader) Survey(ctx context.Context, s store.Survey) (store.TimePage, error) {
	state, err := r.state(s.State)
	if err != nil {
		return store.TimePage{}, err
	}
	q := store.TimeQuery{Range: s.Range, Window: true, OldestFirst: s.OldestFirst, Filter: s.Filter}
	p := &surveyor{Survey: &s, timePager: timePager{query: &q, visit: s.Visit, page: store.TimePage{Revision: state}}, full: s.Visit == nil}
	err = r.Log.View(func(log *seglog.Reader) error {
		p.turns = r.turns(ctx, log)
		return p.run(ctx)
	})
	if ctx.Err() != nil {
		return store.TimePage{}, ctx.Err()
	}
	if err := r.ended(state, err); err != nil {
		return store.TimePage{}, err
	}
	return p.page, nil
}

// A surveyor goes over tables in the order of a page. Of each it selects the rows that match once, and counts them. As
// long as the page is not full, it keeps those that can be on it, and looks at them when no other table can have
// anything before them.
type surveyor struct {
	timePager
	*store.Survey
	full bool
}

func (p *surveyor) run(ctx context.Context) error {
	if err := p.begin(); err != nil {
		return err
	}
	for len(p.places) > 0 {
		next := p.places[len(p.places)-1].table
		p.places = p.places[:len(p.places)-1]
		if err := p.table(next); err != nil {
			return err
		}
		if err := p.rows(ctx); err != nil {
			return err
		}
		if p.Counted != nil && len(p.places) > 0 {
			p.Counted(p.rest().Time)
		}
	}
	return nil
}

// table counts the rows of a table that match, and finds those that can be on the page.
func (p *surveyor) table(t *columns.Table) error {
	q := columns.Query{
		From: p.From.Unix(), To: p.To.Unix(), Spans: true, Last: cmp.Or(p.Revision, p.page.Revision), Filter: p.query.Matching(), Whole: !p.Light(), Held: p.held,
	}
	scan, err := t.Scan(&q)
	if err != nil || scan == nil {
		return err
	}
	counters := make([]*columns.Counter, len(p.Counts))
	for i := range p.Counts {
		if counters[i], err = scan.Counter(&p.Counts[i].Count, p.Counts[i].Visit); err != nil {
			return err
		}
	}
	for chunk := 0; err == nil && chunk < scan.Chunks(); chunk++ {
		if err = p.next(); err == nil {
			err = p.chunk(scan, counters, chunk)
		}
	}
	for _, c := range counters {
		c.Flush()
	}
	p.order()
	return err
}

func (p *surveyor) chunk(scan *columns.Scan, counters []*columns.Counter, chunk int) error {
	n, err := scan.Select(chunk)
	if err != nil || n == 0 {
		return err
	}
	for _, c := range counters {
		if err := c.Selected(); err != nil {
			return err
		}
	}
	if p.full {
		return nil
	}
	if err := scan.Whole(); err != nil {
		return err
	}
	if p.found, err = scan.Found(p.found); len(p.found) >= 4*pageLooked {
		p.order()
	}
	return err
}

// order sorts what was found, and forgets what is behind the last version that a page looks at.
func (p *surveyor) order() {
	slices.SortFunc(p.found, func(a, b columns.Found) int { return -moment(a).Compare(moment(b), p.OldestFirst) })
	if behind := len(p.found) - pageLooked - 1; behind > 0 {
		p.found = slices.Delete(p.found, 0, behind)
	}
}

// rows looks at the versions that come before all tables that are left.
func (p *surveyor) rows(ctx context.Context) error {
	for n := len(p.found); n > 0 && !p.full; n-- {
		if len(p.places) > 0 && !p.before(p.found[n-1].Micro, p.places[len(p.places)-1].bound) {
			return nil
		}
		if err := p.next(); err != nil {
			return err
		}
		more, err := p.look(ctx, p.found[n-1])
		if err != nil {
			return err
		}
		if p.found, p.full = p.found[:n-1], !more; p.full {
			p.found = nil
		}
	}
	return nil
}
