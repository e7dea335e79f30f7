package queries

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/query"
)

// overviewAnswer has the members of an answer to histogram, to facets and to events. Its lists are written behind it.
type overviewAnswer struct {
	counted
	overviewCounts
	Continue string `json:"continue,omitempty"`
}

// overviewCounts are the counts of an overview without buckets.
type overviewCounts struct {
	Total    int64                         `json:"total"`
	Facets   map[string][]query.ValueCount `json:"facets"`
	Other    map[string]int64              `json:"other"`
	Distinct map[string]int                `json:"distinct"`
	Step     string                        `json:"step"`
	Over     []string                      `json:"over,omitempty"`
}

func countsOf(o *query.Overview) overviewCounts {
	out := overviewCounts{
		Total: o.Total, Facets: map[string][]query.ValueCount{}, Other: map[string]int64{}, Distinct: map[string]int{},
		Step: query.FormatDuration(o.Histogram.Step), Over: names(o.Histogram.By),
	}
	for _, f := range o.Facets {
		d := string(f.Dimension)
		out.Facets[d], out.Other[d], out.Distinct[d] = f.Values, f.Other, f.Distinct
	}
	return out
}

// answerOverview counts, and lists the first events, in one pass.
func answerOverview(ctx context.Context, r *request) (*answer, error) {
	by := r.by
	if by == nil {
		by = query.Indexed
	}
	ask := query.OverviewQuery{
		By: by, Values: r.values, Over: r.over, Step: r.step, OldestFirst: r.order == query.Oldest, Limit: r.limit, Bytes: pageBytes,
	}
	if r.lines != nil {
		ask.Counted = r.lines.counted(r)
	}
	o, err := r.shot.Overview(ctx, ask)
	if err != nil {
		return nil, err
	}
	if err := r.hint(ctx, o.Total == 0 && len(o.Events) == 0); err != nil {
		return nil, err
	}
	out := overviewAnswer{counted: r.counted(), overviewCounts: countsOf(o), Continue: r.pageBehind(o)}
	return &answer{
		json: out, held: len(o.Histogram.Buckets) * (bucketBytes + 8*len(o.Histogram.Values)),
		lists: []elements{bucketList(&o.Histogram), r.eventList(o.Events)},
	}, nil
}

// ofCounts are the parameters of an overview that the question events does not know.
var ofCounts = []string{"by", "values", "over", "step"}

// pageBehind returns the continue of the events behind the page, for the endpoint of events.
func (r *request) pageBehind(o *query.Overview) string {
	if !o.Complete || !o.Next.More {
		return ""
	}
	given := maps.Clone(r.given)
	maps.DeleteFunc(given, func(name string, _ []string) bool { return slices.Contains(ofCounts, name) })
	return r.cursorOf(fingerprint("events", given), cursor{Micros: o.Next.After.Time.UnixMicro(), Row: o.Next.After.Revision})
}

// lines sends a line of JSON now and then while an answer is made, and the answer as the last one. A goroutine sends
// them, because who makes them holds files of the store and must not wait for the client. A client that reads slowly
// gets fewer.
type lines struct {
	to     *httpio.Writer
	asked  time.Time
	last   time.Time     // when a line was made
	listed bool          // a line has the events
	next   chan []byte   // the line that waits
	done   chan struct{} // closed when all lines were sent; nil: there was none
	leave  context.CancelFunc
}

const (
	// firstLine is when the first line is made, if there is no answer before, and betweenLines when others are.
	firstLine    = 50 * time.Millisecond
	betweenLines = 200 * time.Millisecond
	// maxLine is the most bytes of a line that is not the last one. If it would be longer, it has no counts.
	maxLine = 1 << 20
)

// newLines returns the lines of a request, which ends with leave if its client goes.
func (s *Service) newLines(c echo.Context, leave context.CancelFunc) *lines {
	return &lines{to: s.IO.Writer(c, 200, mediaLines), asked: s.Now(), leave: leave}
}

// counting says how far an answer has come.
type counting struct {
	Since    string `json:"since,omitempty"` // all from then on is counted
	Until    string `json:"until,omitempty"` // likewise before
	Progress string `json:"progress"`
}

// partAnswer is a line before the last one.
type partAnswer struct {
	Counting counting `json:"counting"`
	Counted  string   `json:"counted"`
	*overviewCounts
	Continue string `json:"continue,omitempty"`
}

// counted returns what is called when everything up to a time was counted.
func (l *lines) counted(r *request) func(time.Time, func() (*query.Overview, error)) {
	return func(upTo time.Time, soFar func() (*query.Overview, error)) {
		now := r.Now()
		if now.Sub(l.asked) < firstLine || now.Sub(l.last) < betweenLines {
			return
		}
		if l.done == nil {
			l.begin()
		}
		o, err := soFar()
		if err != nil {
			return // the answer will say so
		}
		part := partAnswer{Counting: r.counting(upTo), Counted: r.counted().Counted, overviewCounts: new(countsOf(o))}
		lists := []elements{bucketList(&o.Histogram)}
		listed := o.Complete && !l.listed
		if listed {
			part.Continue = r.pageBehind(o)
			lists = append(lists, r.eventList(o.Events))
		}
		b, err := appendLine(part, lists)
		if err == nil && len(b) > maxLine {
			part.overviewCounts, part.Continue, listed = nil, "", false
			b, err = appendLine(part, nil)
		}
		if err != nil {
			return
		}
		select {
		case l.next <- b:
			l.last, l.listed = now, l.listed || listed
		default:
		}
	}
}

// counting returns how far an answer has come.
func (r *request) counting(upTo time.Time) counting {
	from, to := r.shot.From, r.shot.To
	if begin := r.shot.Begin.Truncate(time.Second); begin.After(from) {
		from = begin
	}
	upTo = time.Unix(max(from.Unix(), min(upTo.Unix(), to.Unix())), 0)
	unit, name := time.Minute, "minutes"
	switch whole := to.Sub(from); {
	case whole >= 48*time.Hour:
		unit, name = 24*time.Hour, "days"
	case whole >= 2*time.Hour:
		unit, name = time.Hour, "hours"
	}
	out, done := counting{Since: stamp(upTo)}, to.Sub(upTo)
	if r.order == query.Oldest {
		out, done = counting{Until: stamp(upTo)}, upTo.Sub(from)
	}
	out.Progress = fmt.Sprintf("%d of %d %s", done/unit, (to.Sub(from)+unit-1)/unit, name)
	return out
}

func appendLine(part any, lists []elements) ([]byte, error) {
	p := &pieces{}
	err := p.object(part, lists...)
	return p.b, err
}

// begin starts sending.
func (l *lines) begin() {
	next, done := make(chan []byte, 1), make(chan struct{})
	l.next, l.done = next, done
	go func() {
		defer close(done)
		for b := range next {
			if l.to.Line(b) != nil {
				l.leave()
				return
			}
		}
	}()
}

// end waits until all lines but the last are sent. It reports whether there were some.
func (l *lines) end() bool {
	if l == nil || l.done == nil {
		return false
	}
	if l.next != nil {
		close(l.next)
		l.next = nil
		<-l.done
	}
	return true
}

// fail sends an error as the last line.
func (l *lines) fail(st *metav1.Status) error {
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	b, err := appendJSON(nil, map[string]any{"error": st})
	if err != nil {
		return err
	}
	return l.to.Send(append(b, '\n'))
}
