package queries

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/query"
)

// Table is an answer as the rows of its CSV, with what it covers.
type Table struct {
	query.Head
	Asked    []string // the namespaces that the question names
	Listable []string // those to which the caller is restricted; nil: to none
	Clusters []string // likewise
	Late     []Late   // mirrors of which something may be missing
	Scope    string   // what a question for changes in some namespaces looked at
	Verdict  string   // of an answer to changes, in one sentence
	Columns  []string
	Rows     [][]string
	Next     string               // the continue of the next page; empty: there is none
	Behind   func(row int) string // the continue behind a row; nil: the question has no pages
}

// Ask answers a question as its path does: with the rights of the caller, the same rows, limits and errors. Name is the
// last part of the path. The request must have a seat.
func (s *Service) Ask(c echo.Context, name string, given url.Values) (*Table, error) {
	return s.table(c, named(name), given)
}

// Overview answers the question facets, and how often something was observed over time by one of its dimensions, in at
// most so many buckets and one. It looks at everything once.
func (s *Service) Overview(c echo.Context, given url.Values, over query.Dimension, most int64) (t *Table, h query.Histogram, err error) {
	p := *named("facets")
	p.answer = func(ctx context.Context, r *request) (*answer, error) {
		o, err := r.shot.Overview(ctx, query.OverviewQuery{By: r.by, Values: r.limit, Over: []query.Dimension{over}, Most: most})
		if err != nil {
			return nil, err
		}
		if err := r.hint(ctx, o.Total == 0); err != nil {
			return nil, err
		}
		h = o.Histogram
		return &answer{columns: facetColumns, rows: each(facetRows(o.Facets))}, nil
	}
	t, err = s.table(c, &p, given)
	return t, h, err
}

// each returns what calls a function with each of some rows.
func each(rows [][]string) func(row func([]string) error) error {
	return func(row func([]string) error) error {
		for _, cells := range rows {
			if err := row(cells); err != nil {
				return err
			}
		}
		return nil
	}
}

func named(name string) *endpoint {
	return endpoints[slices.IndexFunc(endpoints, func(p *endpoint) bool { return p.name == name })]
}

func (s *Service) table(c echo.Context, p *endpoint, given url.Values) (*Table, error) {
	r, err := s.request(c, p, given)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), httpio.MaxRequestTime)
	defer cancel()
	a, err := r.ask(ctx)
	if err != nil {
		return nil, p.wrong(err)
	}
	in, err := r.listable()
	if err != nil {
		return nil, err
	}
	var rows [][]string
	err = a.rows(func(row []string) error {
		rows = append(rows, row)
		return nil
	})
	return &Table{r.shot.Head, r.asked, in.Namespaces(), r.readable.Clusters(), r.late(), a.scope, a.verdict, a.columns, rows, a.next, a.behind}, err
}

// ParseTime reads a time in the forms of the parameters from and to. Parameter is named by the error.
func ParseTime(parameter, text string, now time.Time) (time.Time, error) {
	return instant(parameter, text, now, now)
}

// Stamp writes a time as answers do.
func Stamp(t time.Time) string { return stamp(t) }
