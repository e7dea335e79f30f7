package query_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// newQuerier has a store with events e0, e1 and so on, one a minute from noon on, each
// about a pod of its own. The odd ones were observed twice: a minute later for the second
// time.
func newQuerier(t testing.TB, n int) query.Querier {
	t.Helper()
	db, err := bolt.Open(bolt.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := codectest.New(t, "k8s.io")
	for i := range n {
		put(t, db, c, i, 1)
		if i%2 == 1 {
			put(t, db, c, i, 2)
		}
	}
	return query.Querier{
		Timeline: db.Timeline(), Revision: db.Revision, Origin: codec.Origin, Now: func() time.Time { return noon.Add(time.Hour) },
	}
}

func put(t testing.TB, db *bolt.DB, c *codec.Codec, i, count int) {
	t.Helper()
	at := metav1.NewMicroTime(noon.Add(time.Duration(i+count-1) * time.Minute))
	ev := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("e%d", i)}, EventTime: metav1.NewMicroTime(noon),
		Series: &eventsv1.EventSeries{Count: int32(count), LastObservedTime: at}, Reason: fmt.Sprintf("R%d", i), Note: "hello",
	}
	ev.Regarding.Name = fmt.Sprintf("p%d", i)
	draft, err := c.Draft(ev)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Update(t.Context(), store.Key{Namespace: ev.Namespace, Name: ev.Name}, store.Any, func(current *store.Record) (store.Decision, error) {
		d := draft
		if current != nil {
			d.Attributes = d.Attributes.Since(current.Attributes)
		}
		return store.Decision{Op: store.Put, Draft: d}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func everything(t testing.TB, text string) query.Query {
	t.Helper()
	parsed, err := query.ParseTerms("", "", text)
	if err != nil {
		t.Fatal(err)
	}
	return query.Query{From: noon, To: noon.Add(time.Hour), Allows: func(string, string) bool { return true }, Terms: parsed}
}

// TestLimits: an answer that had to stop early is not whole, and says why.
func TestLimits(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 10)
	for _, c := range []struct {
		name, text string
		limits     query.Limits
		total      int64
		reason     string
	}{
		{"all", "hello", query.Limits{}, 15, ""},
		{"without text", "", query.Limits{Looked: 1}, 15, ""},
		{"groups", "", query.Limits{Groups: 3}, 15, "there are more than 3 groups"},
	} {
		querier.Limits = c.limits
		shot, err := querier.Snapshot(t.Context(), everything(t, c.text))
		if err != nil {
			t.Fatal(err)
		}
		facets, total, err := shot.Facets(t.Context(), []query.Dimension{query.Reason}, 100)
		if err != nil || total != c.total {
			t.Errorf("%s: total %d, want %d (%v)", c.name, total, c.total, err)
		}
		if reason := shot.Describe(); (c.reason == "") != (reason == "") || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: the reason is %q", c.name, reason)
		}
		if c.name == "groups" && (len(facets[0].Values) != 3 || facets[0].Other == 0) {
			t.Errorf("%s: %+v", c.name, facets[0])
		}
	}
}

// paged is a timeline whose pages have two events.
type paged struct{ store.Timeline }

func (p paged) Observed(ctx context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	n := 0
	return p.Timeline.Observed(ctx, q, func(v *store.View, at store.Moment) bool {
		n++
		return visit(v, at) && n < 2
	})
}

// TestLooked: a page of events ends when enough versions were looked at, says where, and goes on with the next one.
func TestLooked(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 10)
	querier.Timeline, querier.Looked = paged{querier.Timeline}, 4
	var page query.Page
	seen := 0
	for pages := 1; ; pages++ {
		shot, err := querier.Snapshot(t.Context(), everything(t, "hello"))
		if err != nil {
			t.Fatal(err)
		}
		next, err := shot.Events(t.Context(), page, func(*store.View, store.Moment) bool { seen++; return true })
		if err != nil {
			t.Fatal(err)
		}
		reason := shot.Describe()
		if until := "4 versions were looked at: this page has the events observed since " + next.After.Time.Format(time.RFC3339); next.More != strings.HasPrefix(reason, until) {
			t.Errorf("page %d: %q, %+v", pages, reason, next)
		}
		if page.After = next.After; !next.More {
			if seen != 10 || pages < 3 {
				t.Errorf("%d events on %d pages", seen, pages)
			}
			return
		}
	}
}

// TestCancelled: a query ends when nobody waits for it any more.
func TestCancelled(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 3)
	shot, err := querier.Snapshot(t.Context(), everything(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shot.Histogram(ctx, nil, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("histogram: %v", err)
	}
	if _, err := shot.Events(ctx, query.Page{}, func(*store.View, store.Moment) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("events: %v", err)
	}
	if err := shot.FindGaps(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("gaps: %v", err)
	}
}

// reports is a timeline with reports of gaps, the newest first, of which it shows as many as it is asked for.
type reports struct {
	store.Timeline
	gaps []store.Gap
}

func (r reports) Gaps(_ context.Context, _ uint64, most int) ([]store.Gap, bool, error) {
	return r.gaps[:min(len(r.gaps), most)], len(r.gaps) > most, nil
}

// TestFindGaps: an answer has each gap of its range once, of the state that it shows. It looks at 256 reports, or at
// more if some are not for the caller, and says if there are more.
func TestFindGaps(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 1)
	gap := func(from, to int, cluster string) event.Gap {
		return event.Gap{From: noon.Add(time.Duration(from) * time.Minute), To: noon.Add(time.Duration(to) * time.Minute), Cluster: cluster}
	}
	of := func(g event.Gap, namespace string, revision uint64) store.Gap {
		return store.Gap{Gap: g, Namespace: namespace, Revision: revision}
	}
	few := []store.Gap{
		of(gap(10, 20, "a"), "shop", 1), of(gap(10, 20, "a"), "shop", 1), of(gap(10, 20, "b"), "shop", 1), of(gap(-5, 1, "a"), "shop", 1),
		of(gap(-5, 0, "a"), "shop", 1), of(gap(60, 70, "a"), "shop", 1), of(gap(59, 70, "a"), "shop", 1),
		of(gap(30, 31, "a"), "hidden", 1), of(gap(32, 33, "a"), "shop", querier.Revision()+1),
	}
	want := []event.Gap{gap(-5, 1, "a"), gap(10, 20, "a"), gap(10, 20, "b"), gap(59, 70, "a")}
	own := slices.DeleteFunc(slices.Clone(few), func(g store.Gap) bool { return g.Namespace == "hidden" })
	repeat := func(namespace string, n int) []store.Gap {
		return slices.Repeat([]store.Gap{of(gap(10, 20, "a"), namespace, 1)}, n)
	}
	for name, c := range map[string]struct {
		gaps   []store.Gap
		want   []event.Gap
		reason string
	}{
		"few":          {few, want, ""},
		"many":         {slices.Concat(own, repeat("shop", 256)), want, "only the newest 256 reports of gaps were looked at, there are more"},
		"with hidden":  {slices.Concat(few, repeat("shop", 256)), want, ""},
		"many of both": {slices.Concat(few, repeat("shop", 5000)), want, "only the newest 1024 reports of gaps were looked at, there are more"},
		"behind":       {slices.Concat(repeat("hidden", 4000), few), want, ""},
		"far behind":   {slices.Concat(repeat("hidden", 5000), few), nil, "only the newest 4096 reports of gaps were looked at, there are more"},
	} {
		querier.Timeline = reports{querier.Timeline, c.gaps}
		q := everything(t, "")
		q.Allows = func(namespace, _ string) bool { return namespace == "shop" }
		shot, err := querier.Snapshot(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if err := shot.FindGaps(t.Context()); err != nil || !slices.Equal(shot.Gaps, c.want) || shot.Describe() != c.reason {
			t.Errorf("%s: %v, %q, %v", name, shot.Gaps, shot.Describe(), err)
		}
	}
}

// drops is a timeline with so many reports of what one rule dropped, and perhaps more that are not looked at.
type drops struct {
	store.Timeline
	most, visited int
	more          bool
}

func (d *drops) Observed(_ context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	if !q.Selector.Dropped || !q.From.Equal(noon.Add(-time.Hour)) || !q.To.Equal(noon.Add(2*time.Hour)) {
		return store.TimePage{}, fmt.Errorf("asked for %+v", q)
	}
	a := event.NewAttributes([event.NumFields]string{}, nil).With(event.Occurrence{}).WithReport(event.Report{Gap: event.Gap{From: noon, To: noon.Add(time.Hour), Rule: "noise", Count: 1}})
	for d.visited = 0; d.visited < d.most; {
		d.visited++
		if !visit(&store.View{Attributes: a}, store.Moment{}) {
			return store.TimePage{More: true}, nil
		}
	}
	return store.TimePage{More: d.more}, nil
}

// TestFindDropped: an answer has one sum for each rule. It looks at 4,096 reports of one page, and says if there are
// more.
func TestFindDropped(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 1)
	timeline := querier.Timeline
	for _, c := range []struct {
		most  int
		more  bool
		count int
	}{{3, false, 3}, {3, true, 3}, {5000, false, 4096}} {
		d := &drops{Timeline: timeline, most: c.most, more: c.more}
		querier.Timeline = d
		q := everything(t, "")
		q.From, q.To = noon, noon.Add(time.Hour)
		shot, err := querier.Snapshot(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		err = shot.FindDropped(t.Context())
		partly := strings.Contains(shot.Describe(), "only the newest reports of what rules dropped were looked at")
		if err != nil || len(shot.Dropped) != 1 || shot.Dropped[0].Count != int64(c.count) || d.visited != c.count || partly != (c.more || c.most > c.count) {
			t.Errorf("%+v: %+v after %d, %q, %v", c, shot.Dropped, d.visited, shot.Describe(), err)
		}
	}
}

// TestFirstVersion: an event that comes with a count is spread between its first and its last
// observation: evenly over a histogram, at its begin in a group, and also before the store was
// written to.
func TestFirstVersion(t *testing.T) {
	t.Parallel()
	db, err := bolt.Open(bolt.Options{Dir: t.TempDir(), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	week := 7 * 24 * time.Hour
	for name, ev := range map[string]*eventsv1.Event{
		"dump":   {DeprecatedFirstTimestamp: metav1.NewTime(noon.Add(-week)), DeprecatedLastTimestamp: metav1.NewTime(noon.Add(-time.Second)), DeprecatedCount: 2689},
		"series": {EventTime: metav1.NewMicroTime(noon.Add(-week)), Series: &eventsv1.EventSeries{Count: 2689, LastObservedTime: metav1.NewMicroTime(noon.Add(-time.Second))}},
	} {
		ev.Namespace, ev.Name, ev.Reason, ev.Note = "shop", name, name, "hello"
		draft, err := codectest.New(t, "k8s.io").Draft(ev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Create(t.Context(), db, store.Key{Namespace: "shop", Name: name}, draft); err != nil {
			t.Fatal(err)
		}
	}
	querier := query.Querier{Timeline: db.Timeline(), Revision: db.Revision, Now: func() time.Time { return noon }}
	for _, text := range []string{"", "hello"} {
		q := everything(t, text)
		q.From, q.To = noon.Add(-week), noon
		shot, err := querier.Snapshot(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		h, err := shot.Histogram(t.Context(), []query.Dimension{query.Reason}, 2*time.Hour)
		if err != nil || len(h.Buckets) != 84 || h.Total != 2*2689 {
			t.Fatalf("%d buckets, %d in all: %v", len(h.Buckets), h.Total, err)
		}
		for _, b := range h.Buckets {
			for i, n := range b.Counts {
				if n < 31 || n > 34 {
					t.Errorf("%s: %d of %s at %s", text, n, h.Values[i], b.Start)
				}
			}
		}
		groups, _, err := shot.Groups(t.Context(), []query.Dimension{query.Reason}, query.GroupPage{Order: query.Newest, Limit: 10, Bytes: 1 << 20})
		if err != nil || len(groups) != 2 {
			t.Fatal(err)
		}
		for _, g := range groups {
			if !g.First.Equal(noon.Add(-week)) || !g.Last.Equal(noon.Add(-time.Second)) || g.Count != 2689 {
				t.Errorf("%s: %+v", text, g)
			}
		}
	}
	q := everything(t, "")
	q.From, q.To = noon.Add(-week), noon.Add(-week/2)
	shot, err := querier.Snapshot(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if _, total, err := shot.Facets(t.Context(), []query.Dimension{query.Reason}, 10); err != nil || total < 2600 || total > 2780 {
		t.Errorf("%d in the first half: %v", total, err)
	}
}

// TestEmptyTime: a range may be as long as times can be.
func TestEmptyTime(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 3)
	q := everything(t, "")
	q.From, q.To = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	shot, err := querier.Snapshot(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	h, err := shot.Histogram(t.Context(), nil, 0)
	if err != nil || h.Total != 4 {
		t.Errorf("%d observations: %v", h.Total, err)
	}
}

// TestSteps: the step that is chosen gives at most 120 buckets, and is the smallest round
// one that does.
func TestSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ length, want time.Duration }{
		{time.Second, time.Second},
		{2 * time.Minute, time.Second},
		{121 * time.Second, 2 * time.Second},
		{time.Hour, 30 * time.Second},
		{6 * time.Hour, 5 * time.Minute},
		{24 * time.Hour, 15 * time.Minute},
		{7 * 24 * time.Hour, 2 * time.Hour},
		{30 * 24 * time.Hour, 6 * time.Hour},
		{365 * 24 * time.Hour, 7 * 24 * time.Hour},
	} {
		if got := query.StepOf(noon, noon.Add(c.length), 120); got != c.want {
			t.Errorf("%s: %s, want %s", c.length, got, c.want)
		}
	}
	from, to := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if step := query.StepOf(from, to, 120); (to.Unix()-from.Unix())/int64(step/time.Second) > 120 {
		t.Errorf("%s for 10,000 years", step)
	}
	if err := query.CheckStep(time.Second, noon, noon.Add(11_000*time.Second)); err != nil {
		t.Error(err)
	}
	for _, bad := range []time.Duration{0, -time.Second, time.Millisecond, 1500 * time.Millisecond} {
		if query.CheckStep(bad, noon, noon.Add(time.Minute)) == nil {
			t.Errorf("%s is no step", bad)
		}
	}
	if query.CheckStep(time.Second, noon, noon.Add(11_001*time.Second)) == nil {
		t.Error("11,001 buckets are too many")
	}
}

// TestGroupBytes: a page of groups ends when its samples are large, and goes on behind it.
func TestGroupBytes(t *testing.T) {
	t.Parallel()
	querier := newQuerier(t, 10)
	page, seen := query.GroupPage{Order: query.Newest, Limit: 4, Bytes: 1}, []string{}
	for range 10 {
		shot, err := querier.Snapshot(t.Context(), everything(t, ""))
		if err != nil {
			t.Fatal(err)
		}
		groups, next, err := shot.Groups(t.Context(), []query.Dimension{query.Reason}, page)
		if err != nil || len(groups) != 1 || groups[0].Sample == nil {
			t.Fatalf("%d groups: %v", len(groups), err)
		}
		seen = append(seen, groups[0].Key.Dimensions.Reason)
		page.After = next
	}
	if got := strings.Join(seen, " "); got != "R9 R7 R8 R5 R6 R3 R4 R1 R2 R0" || page.After != nil {
		t.Errorf("the groups are %s, and there are more: %v", got, page.After != nil)
	}
}

// TestHistogramOther: what is counted of values that are not shown apart is in Other.
func TestHistogramOther(t *testing.T) {
	t.Parallel()
	shot, err := newQuerier(t, query.MaxValues+5).Snapshot(t.Context(), everything(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	h, err := shot.Histogram(t.Context(), []query.Dimension{query.Reason}, time.Hour)
	if err != nil || len(h.Buckets) != 1 || len(h.Values) != query.MaxValues {
		t.Fatalf("%d buckets, %d values, %v", len(h.Buckets), len(h.Values), err)
	}
	shown := int64(0)
	for _, n := range h.Buckets[0].Counts {
		shown += n
	}
	// 27 events were observed twice, and 23 of those that were observed once are shown.
	if b := h.Buckets[0]; shown != 77 || b.Other != 5 || b.Count != 82 || h.Total != 82 {
		t.Errorf("%d are shown, %d are others, %d in the bucket, %d in all", shown, b.Other, b.Count, h.Total)
	}
}

// TestOverview: one pass counts what facets and a histogram count, also if some groups are not counted apart.
func TestOverview(t *testing.T) {
	t.Parallel()
	by := []query.Dimension{query.Namespace, query.Reason}
	for _, groups := range []int{100, 7} {
		querier := newQuerier(t, 30)
		querier.Groups = groups
		snapshot := func() *query.Snapshot {
			shot, err := querier.Snapshot(t.Context(), everything(t, ""))
			if err != nil {
				t.Fatal(err)
			}
			return shot
		}
		one, two := snapshot(), snapshot()
		o, err := one.Overview(t.Context(), query.OverviewQuery{By: by, Values: 5, Over: []query.Dimension{query.Namespace}, Most: 12})
		if err != nil {
			t.Fatal(err)
		}
		facets, h := o.Facets, o.Histogram
		wantFacets, total, err := two.Facets(t.Context(), by, 5)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wantFacets, facets); diff != "" || !slices.Equal(one.Partial, two.Partial) || h.Total != total {
			t.Errorf("%d groups: %d in all, %v (-apart +together):\n%s", groups, h.Total, one.Partial, diff)
		}
		want, err := two.Histogram(t.Context(), []query.Dimension{query.Namespace}, 5*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, h); diff != "" {
			t.Errorf("%d groups (-apart +together):\n%s", groups, diff)
		}
	}
}

// TestCompressedCounts: a store whose files are compressed gives the answers that it gave before.
func TestCompressedCounts(t *testing.T) {
	t.Parallel()
	db, err := bolt.Open(bolt.Options{Dir: t.TempDir(), SegmentBytes: 32 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := codectest.New(t, "k8s.io")
	for i := range 200 {
		put(t, db, c, i, 1+i%3*20)
	}
	querier := query.Querier{Timeline: db.Timeline(), Revision: db.Revision, Now: func() time.Time { return noon.Add(5 * time.Hour) }}
	by, empty := []query.Dimension{query.Namespace, query.Reason}, 0
	answers := func() (all []any) {
		for _, minutes := range [][2]int{{0, 300}, {-30, 185}, {29, 62}, {60, 180}, {121, 239}} {
			q := everything(t, "")
			q.From, q.To = noon.Add(time.Duration(minutes[0])*time.Minute), noon.Add(time.Duration(minutes[1])*time.Minute)
			shot, err := querier.Snapshot(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []time.Duration{10 * time.Minute, 90 * time.Minute, time.Hour, 3 * time.Hour} {
				h, err := shot.Histogram(t.Context(), by, step)
				if all = append(all, h); err != nil {
					t.Fatal(err)
				}
				if len(h.Buckets) == 0 {
					empty++
				}
			}
			facets, _, err := shot.Facets(t.Context(), by, 20)
			groups, _, err2 := shot.Groups(t.Context(), by, query.GroupPage{Order: query.Newest, Limit: 300, Bytes: 1 << 20})
			over, err3 := shot.Overview(t.Context(), query.OverviewQuery{By: by, Values: 20, Over: by, Most: 2, Limit: 20, Bytes: 1 << 20})
			if all = append(all, facets, groups, over, shot.Partial); errors.Join(err, err2, err3) != nil {
				t.Fatal(err, err2, err3)
			}
		}
		return all
	}
	want := answers()
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, answers()); diff != "" {
		t.Errorf("(-before +compressed): %s", diff)
	}
	if empty > 0 {
		t.Errorf("%d histograms are empty", empty)
	}
}
