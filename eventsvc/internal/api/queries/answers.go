package queries

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/fields"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

// head is what every answer begins with.
type head struct {
	Range         interval `json:"range"`
	Revision      string   `json:"revision"` // a string, as resourceVersions are
	HistoryFrom   string   `json:"historyFrom"`
	Gaps          []gap    `json:"gaps"`
	Late          []gap    `json:"late,omitempty"` // mirrors that are late
	Dropped       []drop   `json:"dropped,omitempty"`
	Namespaces    []string `json:"namespaces,omitempty"` // to which the answer is restricted
	Clusters      []string `json:"clusters,omitempty"`   // likewise
	Partial       bool     `json:"partial"`
	PartialReason string   `json:"partialReason,omitempty"`
	Hints         []string `json:"hints,omitempty"` // which terms of the search fit nothing, if nothing was found
	Permalink     string   `json:"permalink"`
}

type interval struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type gap struct {
	interval
	Cluster string `json:"cluster"`
}

// drop is what a rule dropped in hours that overlap the range.
type drop struct {
	gap
	Rule  string `json:"rule"`
	Count int64  `json:"count"`
}

// counted begins the answers with counts. Counted is what they are of.
type counted struct {
	head
	Counted string `json:"counted"`
}

// What counts are of.
const (
	ofOccurrences = "occurrences" // everything that was observed within the range
	ofEvents      = "events"      // what events that exist say, of those last observed within the range
)

// stamp writes a time in whole seconds, or with its microseconds if it has some.
func stamp(t time.Time) string {
	if t.Nanosecond() == 0 {
		return t.UTC().Format(time.RFC3339)
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// head describes what the answer covers, once it is made.
func (r *request) head() head {
	h := r.shot.Head
	out := head{
		Range: interval{stamp(h.From), stamp(h.To)}, Revision: strconv.FormatUint(h.Revision, 10),
		HistoryFrom: stamp(h.Begin.Truncate(time.Second)), Gaps: []gap{}, Namespaces: r.readable.Namespaces(), Clusters: r.readable.Clusters(),
		Partial: len(h.Partial) > 0, PartialReason: h.Describe(), Hints: h.Hints, Permalink: r.permalink(),
	}
	for _, g := range h.Gaps {
		out.Gaps = append(out.Gaps, gap{interval{stamp(g.From), stamp(g.To)}, g.Cluster})
	}
	for _, l := range r.late() {
		out.Late = append(out.Late, gap{interval{stamp(l.Since), stamp(h.To)}, l.Cluster})
	}
	for _, g := range h.Dropped {
		out.Dropped = append(out.Dropped, drop{gap{interval{stamp(g.From), stamp(g.To)}, g.Cluster}, g.Rule, g.Count})
	}
	return out
}

func (r *request) counted() counted {
	c := counted{r.head(), ofOccurrences}
	if r.shot.OverEvents {
		c.Counted = ofEvents
	}
	return c
}

// permalink returns the path of this answer.
func (r *request) permalink() string {
	if !r.endpoint.instant {
		return r.link(r.endpoint.name, r.given, nil)
	}
	out := maps.Clone(r.given)
	out.Set("at", stamp(r.shot.To))
	out.Set("window", query.FormatDuration(r.shot.To.Sub(r.shot.From)))
	out.Set("revision", strconv.FormatUint(r.shot.Revision, 10))
	return Path + "/" + r.endpoint.name + "?" + out.Encode()
}

// link returns a path that shows the same rows tomorrow: with the absolute range and the
// revision of this answer, and more terms on fields.
func (r *request) link(name string, parameters url.Values, terms []fields.Selector) string {
	out := maps.Clone(parameters)
	out.Del("continue")
	out.Set("from", stamp(r.shot.From))
	out.Set("to", stamp(r.shot.To))
	if !r.endpoint.ofNow {
		out.Set("revision", strconv.FormatUint(r.shot.Revision, 10))
	}
	if len(terms) > 0 {
		selector := fields.AndSelectors(terms...).String()
		if before := out.Get("fieldSelector"); before != "" {
			selector = before + "," + selector
		}
		out.Set("fieldSelector", selector)
	}
	return Path + "/" + name + "?" + out.Encode()
}

// linkEvents returns the path of the events of a group.
func (r *request) linkEvents(by []query.Dimension, k query.Key) string {
	parameters := url.Values{}
	for _, name := range []string{"namespace", "fieldSelector", "labelSelector", "search"} {
		if values := r.given[name]; len(values) > 0 {
			parameters[name] = values
		}
	}
	var terms []fields.Selector
	values := k.Values(by)
	for i, field := range namesOfValues(by, "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid") {
		terms = append(terms, fields.OneTermEqualSelector(field, values[i]))
	}
	for _, d := range []query.Dimension{query.Namespace, query.Cluster} {
		if slices.Contains(by, query.Object) && k.Object.UID == "" && !slices.Contains(by, d) {
			terms = append(terms, fields.OneTermEqualSelector(string(d), *k.Dimensions.Text(string(d))))
		}
	}
	return r.link("events", parameters, terms)
}

// send sends an answer in the form that the client prefers.
func (r *request) send(ctx context.Context, c echo.Context, media string, a *answer) error {
	h := c.Response().Header()
	h.Set("Vary", "Accept")
	if a.next != "" {
		page := maps.Clone(r.given)
		page.Set("continue", a.next)
		h.Set("Link", "<"+Path+"/"+r.endpoint.name+"?"+page.Encode()+`>; rel="next"`)
	}
	p := &pieces{ctx: ctx, turns: flow.NewTurns(ctx)}
	if media != mediaCSV {
		if r.lines.end() {
			p.to = r.lines.to
		} else {
			p.to = r.IO.Writer(c, http.StatusOK, media)
		}
		var err error
		if media == mediaTable {
			t := table{head: r.head(), Scope: a.scope, Continue: a.next, Columns: a.columns}
			if of, ok := a.json.(changesAnswer); ok {
				t.Verdict = &of.Verdict
			}
			err = p.table(t, a)
		} else {
			err = p.object(a.json, a.lists...)
		}
		if err != nil {
			return err
		}
		return p.to.Send(p.b)
	}
	var warnings []string
	for _, reason := range r.shot.Partial {
		warnings = append(warnings, "the answer is not whole: "+reason)
	}
	httpio.Warn(c, append(warnings, r.shot.Hints...))
	p.to = r.IO.Writer(c, http.StatusOK, mediaCSV+"; charset=utf-8; header=present")
	w := csv.NewWriter(p)
	_ = w.Write(a.columns) // the error comes with the next row
	escape := r.given.Has("formulas")
	err := a.rows(func(row []string) error {
		if escape {
			query.EscapeFormulas([][]string{row})
		}
		if !p.turns.Next() {
			return p.turns.Err()
		}
		return w.Write(row)
	})
	if w.Flush(); err == nil {
		err = w.Error()
	}
	if err != nil {
		return err
	}
	return p.to.Send(p.b)
}

// table is an answer in JSON whose rows are those of CSV.
type table struct {
	head
	Scope    string   `json:"scope,omitempty"`
	Verdict  *verdict `json:"verdict,omitempty"`
	Continue string   `json:"continue,omitempty"`
	Columns  []string `json:"columns"`
}

// pieces sends an answer while it is made, in pieces between which others have their turn. It ends with its client.
type pieces struct {
	ctx   context.Context
	turns *flow.Turns    // nil: there are no turns
	to    *httpio.Writer // nil: nothing is sent
	b     []byte         // not sent yet
}

// Write appends bytes of the answer.
func (p *pieces) Write(b []byte) (int, error) {
	p.b = append(p.b, b...)
	return len(b), p.next()
}

// next sends what is there, if it is worth a piece.
func (p *pieces) next() error {
	if p.to == nil || len(p.b) < httpio.Piece {
		return nil
	}
	err := p.to.Write(p.ctx, p.b)
	p.b = p.b[:0]
	return err
}

// step is called behind each row.
func (p *pieces) step() error {
	if err := p.next(); err != nil {
		return err
	}
	if p.turns != nil && !p.turns.Next() {
		return p.turns.Err()
	}
	return nil
}

// table appends an answer as a table, of which t has all but the rows.
func (p *pieces) table(t table, a *answer) (err error) {
	if p.b, err = appendJSON(p.b, t); err != nil {
		return err
	}
	p.b = append(p.b[:len(p.b)-1], `,"rows":[`...)
	separator := ""
	err = a.rows(func(row []string) error {
		if p.b, err = appendJSON(append(p.b, separator...), row); err != nil {
			return err
		}
		separator = ","
		return p.step()
	})
	p.b = append(p.b, "]}\n"...)
	return err
}

// object appends an object with lists behind its other members.
func (p *pieces) object(object any, lists ...elements) (err error) {
	if p.b, err = appendJSON(p.b, object); err != nil {
		return err
	}
	for _, list := range lists {
		p.b = append(append(append(p.b[:len(p.b)-1], `,"`...), list.name...), `":[`...)
		for i := range list.n {
			if i > 0 {
				p.b = append(p.b, ',')
			}
			if p.b, err = list.append(p.b, i); err != nil {
				return err
			}
			if err = p.step(); err != nil {
				return err
			}
		}
		p.b = append(p.b, "]}"...)
	}
	p.b = append(p.b, '\n')
	return nil
}

// appendJSON appends a value. Links stay readable, and nothing here is a page.
func appendJSON(b []byte, v any) ([]byte, error) {
	out := bytes.NewBuffer(b)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// appendWith appends an object with one more member behind its others: an event of the store.
func (r *request) appendWith(b []byte, object any, name string, v *store.View) ([]byte, error) {
	b, err := appendJSON(b, object)
	if err != nil || v == nil {
		return b, err
	}
	b = append(append(append(b[:len(b)-1], `,"`...), name...), `":`...)
	b, err = r.render(b, v)
	return append(bytes.TrimSuffix(b, []byte("\n")), '}'), err
}
