package queries_test

import (
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// questions are one of each kind, with all that they can be asked.
func questions() map[string]string {
	return map[string]string{
		"events":     apitest.QueryPath("events", "limit", "3", "search", `failed "back-OFF"`),
		"events-csv": apitest.QueryPath("events", "from", "-30m", "order", "oldest"),
		"histogram":  apitest.QueryPath("histogram", "by", "type,reason", "step", "20m"),
		"facets":     apitest.QueryPath("facets", "limit", "2"),
		"overview":   apitest.QueryPath("overview", "by", "type,reason", "values", "2", "over", "type", "step", "20m", "limit", "2", "search", "failed"),
		"groups":     apitest.QueryPath("groups", "by", "namespace,object", "order", "newest", "limit", "2"),
		"object":     apitest.QueryPath("object", "uid", "uid-shop", "limit", "2"),
		"deleted":    apitest.QueryPath("deleted", "limit", "2"),
		"changes":    apitest.QueryPath("changes", "at", "2026-03-04T13:00:00Z", "window", "10m"),
	}
}

// TestQueryGolden: the exact answers, but for what is random in events.
func TestQueryGolden(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	for name, path := range questions() {
		accept := "application/json"
		if strings.HasSuffix(name, "-csv") {
			accept = "text/csv"
		}
		a := w.Do("GET", path, "", "Accept", accept).Must(200)
		body := a.Body
		if accept == "application/json" {
			v := a.Object()
			steady(v)
			body, _ = json.MarshalIndent(v, "", "  ")
		}
		apitest.Golden(t, "query-"+name, append(body, '\n'))
	}
}

// steady drops what differs from one run to the next.
func steady(v any) {
	switch v := v.(type) {
	case map[string]any:
		if meta, ok := v["metadata"].(map[string]any); ok {
			delete(meta, "uid")
			delete(meta, "managedFields")
			delete(meta, "creationTimestamp")
		}
		for _, value := range v {
			steady(value)
		}
	case []any:
		for _, value := range v {
			steady(value)
		}
	}
}

// TestQueryMistakes: each is a 400 that names its parameter, and says what would be right.
func TestQueryMistakes(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	place := w.Do("GET", apitest.QueryPath("events", "limit", "2"), "").Must(200).At("continue").(string)
	for _, c := range []struct{ path, parameter, text string }{
		{apitest.QueryPath("events", "form", "-1h"), "form", "probably from was meant: events knows from, to, namespace,"},
		{apitest.QueryPath("events", "colour", "red"), "colour", "there is none of this name: events knows"},
		{apitest.QueryPath("events", "by", "type"), "by", "there is none of this name"},
		{apitest.QueryPath("events", "from", "-1h", "from", "-2h"), "from", "is there 2 times: give it once"},
		{apitest.QueryPath("events", "from", "yesterday"), "from", "write it as 2026-01-02T15:04:05Z (RFC 3339), or relative to now as -6h, -7d or now"},
		{apitest.QueryPath("events", "from", "-6"), "from", "write it as 90s, 5m, 1h30m, 7d or 2w"},
		{apitest.QueryPath("events", "to", "-5x"), "to", "is no duration"},
		{apitest.QueryPath("events", "from", "-99999999w"), "from", "is no duration"},
		{apitest.QueryPath("events", "from", "-1h", "to", "-2h"), "to", "before it begins at 2026-03-04T12:00:00Z: from must be before to"},
		{apitest.QueryPath("events", "from", "2020-01-01T00:00:00Z", "to", "2020-01-02T00:00:00Z"), "to", "the range ends before history begins, at 2026-03-04T12:00:00Z"},
		{apitest.QueryPath("object", "uid", "x", "to", "2020-01-02T00:00:00Z"), "to", "before history begins"},
		{apitest.QueryPath("changes", "at", "2020-01-02T00:00:00Z"), "at", "before history begins"},
		{apitest.QueryPath("events", "namespace", "Bad_Name"), "namespace", "is no name of a namespace"},
		{apitest.QueryPath("events", "namespace", ""), "namespace", "is no name of a namespace"},
		{apitest.QueryPath("events", "namespace", "shop", "namespace", "shop*"), "namespace", "is no name of a namespace"},
		{apitest.QueryPath("events", "fieldSelector", "colour=red"), "fieldSelector", `there is no field "colour": there are type, reason, kind, namespace, reporter, cluster, owner, node, metadata.name`},
		{apitest.QueryPath("events", "fieldSelector", "reason"), "fieldSelector", "invalid selector"},
		{apitest.QueryPath("events", "labelSelector", "a in ("), "labelSelector", "unable to parse"},
		{apitest.QueryPath("events", "search", strings.Repeat("x", 1025)), "search", "at character 1025: the text is longer than 1024 bytes"},
		{apitest.QueryPath("events", "search", strings.Repeat("x ", 65)), "search", "there are more than 64 words and values"},
		{apitest.QueryPath("events", "search", "type:warning (a OR"), "search", "at character 19: OR has nothing behind it"},
		{apitest.QueryPath("events", "search", `"back off`), "search", "close the phrase"},
		{apitest.QueryPath("events", "search", `""`), "search", "the phrase is empty"},
		{apitest.QueryPath("events", "search", "\xff"), "search", "is no UTF-8"},
		{apitest.QueryPath("events", "order", "count"), "order", "there are newest, oldest"},
		{apitest.QueryPath("groups", "by", "type", "order", "best"), "order", "there are count, newest, oldest"},
		{apitest.QueryPath("events", "limit", "0"), "limit", "is no number from 1 to 1000"},
		{apitest.QueryPath("changes", "limit", "101"), "limit", "is no number from 1 to 100"},
		{apitest.QueryPath("facets", "limit", "x"), "limit", "is no number from 1 to 1000"},
		{apitest.QueryPath("events", "revision", "abc"), "revision", "leave it out for the newest state"},
		{apitest.QueryPath("groups"), "by", "is missing: name what to group by, of type, reason, kind, namespace, reporter, cluster, owner, node, pattern, object"},
		{apitest.QueryPath("groups", "by", "colour"), "by", "is no dimension here: there are type,"},
		{apitest.QueryPath("groups", "by", "type,type"), "by", "is there twice"},
		{apitest.QueryPath("histogram", "by", "object"), "by", "is no dimension here: there are type, reason, kind, namespace, reporter, cluster, owner, node"},
		{apitest.QueryPath("histogram", "by", "type,reason,kind,namespace"), "by", "at most 3"},
		{apitest.QueryPath("histogram", "step", "1.5h"), "step", "is no duration"},
		{apitest.QueryPath("histogram", "from", "-30d", "step", "1s"), "step", "at most 11000 are answered: use "},
		{apitest.QueryPath("object"), "uid", "by its uid, or by kind and name"},
		{apitest.QueryPath("object", "kind", "Pod"), "name", "is missing"},
		{apitest.QueryPath("object", "name", "p"), "kind", "is missing"},
		{apitest.QueryPath("object", "uid", "u", "name", "p"), "uid", "leave out"},
		{apitest.QueryPath("changes", "kind", "Pod"), "name", "is missing"},
		{apitest.QueryPath("changes", "window", "1s"), "window", "is not within 1m and 31d"},
		{apitest.QueryPath("changes", "window", "x"), "window", "is no duration"},
		{apitest.QueryPath("changes", "at", "x"), "at", "is no time"},
		{apitest.QueryPath("events", "continue", "%%%"), "continue", "is none that this service has given"},
		{apitest.QueryPath("events", "continue", "e30"), "continue", "is none that this service has given"},
		{apitest.QueryPath("events", "continue", place, "limit", "2", "order", "oldest"), "continue", "belongs to another query"},
		{apitest.QueryPath("events", "continue", place, "namespace", "shop"), "continue", "belongs to another query"},
		{apitest.QueryPath("object", "continue", place, "uid", "x"), "continue", "belongs to another query"},
	} {
		st := w.Do("GET", c.path, "").Must(400).Status()
		if st.Details == nil || len(st.Details.Causes) != 1 || st.Details.Causes[0].Field != c.parameter || !strings.Contains(st.Details.Causes[0].Message, c.text) ||
			!strings.Contains(st.Message, "query parameter "+c.parameter+": ") {
			t.Errorf("%s: %s\n%+v\nwant %s and %q", c.path, st.Message, st.Details, c.parameter, c.text)
		}
	}
	w.Do("GET", "/query/v1/events?from=%zz", "").Must(400)
	w.Do("GET", apitest.QueryPath("events", "revision", "999999"), "").Must(http.StatusGatewayTimeout) // as in lists
	w.Do("GET", apitest.QueryPath("events", "labelSelector", strings.Repeat("a=b,", 300)+"a=b"), "").Must(400)
	w.Do("GET", apitest.QueryPath("events", "search", strings.Repeat("x", 9000)), "").Must(400)
}

// TestQueryRouting: methods, media types, and paths that are not there.
func TestQueryRouting(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"} {
		w.Do(method, "/query/v1/events", "").Must(http.StatusMethodNotAllowed)
	}
	apitest.Equal(t, string(w.Do("GET", "/query/v1/nothing", "").Must(404).Status().Reason), "NotFound")
	apitest.Equal(t, string(w.Do("GET", "/query/v2/events", "").Must(404).Status().Reason), "NotFound")
	apitest.Equal(t, w.Do("GET", "/query/v1/facets/?limit=1", "").Must(200).At("total"), w.Do("GET", "/query/v1/facets?limit=1", "").Must(200).At("total"))
	w.Do("GET", "/query/v1/events", "", "Authorization", "").Must(401)
	for accept, media := range map[string]string{
		"":                                   "application/json",
		"*/*":                                "application/json",
		"application/*":                      "application/json",
		"text/csv":                           "text/csv; charset=utf-8; header=present",
		"Text/CSV; q=0.5, application/json":  "application/json",
		"application/json;q=0.1, text/*":     "text/csv; charset=utf-8; header=present",
		"text/html, */*;q=0.8":               "application/json",
		"application/json; charset=utf-8":    "application/json",
		"application/yaml, application/json": "application/json",
	} {
		a := w.Do("GET", "/query/v1/events", "", "Accept", accept).Must(200)
		apitest.Equal(t, a.Header.Get("Content-Type"), media)
		apitest.Equal(t, a.Header.Get("Vary"), "Accept")
	}
	for _, accept := range []string{"text/html", "application/json;q=0", "image/png"} {
		apitest.Equal(t, string(w.Do("GET", "/query/v1/events", "", "Accept", accept).Must(406).Status().Reason), "NotAcceptable")
	}
}

// TestQueryRanges: relative times are those of the clock, and what is given is widened to
// whole seconds.
func TestQueryRanges(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	for _, c := range []struct{ from, to, wantFrom, wantTo string }{
		{"", "", "2026-03-04T12:00:00Z", "2026-03-04T13:00:01Z"},
		{"-6h", "", "2026-03-04T07:00:00Z", "2026-03-04T13:00:01Z"},
		{"now-1d12h", "now", "2026-03-03T01:00:00Z", "2026-03-04T13:00:00Z"},
		{"-1w", "+30m", "2026-02-25T13:00:00Z", "2026-03-04T13:30:00Z"},
		{"", "-10m", "2026-03-04T11:50:00Z", "2026-03-04T12:50:00Z"},
		{"2026-03-04T13:10:05.7+02:00", "2026-03-04T12:30:05.000001Z", "2026-03-04T11:10:05Z", "2026-03-04T12:30:06Z"},
	} {
		q := url.Values{}
		for name, value := range map[string]string{"from": c.from, "to": c.to} {
			if value != "" {
				q.Set(name, value)
			}
		}
		a := w.Do("GET", "/query/v1/events?"+q.Encode(), "").Must(200)
		apitest.Equal(t, a.At("range"), any(map[string]any{"from": c.wantFrom, "to": c.wantTo}))
		apitest.Equal(t, a.At("historyFrom"), any("2026-03-04T12:00:00Z"))
		before := c.wantFrom < "2026-03-04T12:00:00Z"
		apitest.Equal(t, a.At("partial"), any(before))
		if before {
			apitest.Equal(t, a.At("partialReason"), any("history begins at 2026-03-04T12:00:00Z"))
		}
	}
	// A plus sign that was not escaped.
	w.Do("GET", "/query/v1/events?from=2026-03-04T13:10:05+02:00", "").Must(200)
}

// TestPermalinks: they show the same tomorrow, whatever was written meanwhile.
func TestPermalinks(t *testing.T) {
	t.Parallel()
	now := apitest.StoryEnd
	clock := func() time.Time { return now }
	w := apitest.Open(t, bolt.Options{Now: clock}, func(c *api.Config) { c.Now = clock })
	w.Tell()
	before := map[string]map[string]any{}
	for name, path := range questions() {
		before[name] = w.Do("GET", path, "").Must(200).Object()
	}
	now = now.Add(20 * time.Minute)
	w.Do("DELETE", "/apis/events.k8s.io/v1/namespaces/shop/events/e03", "").Must(200)
	late := strings.NewReplacer("2026-01-02T03:04:05", "2026-03-04T12:40:00", `"namespace":"default"`, `"namespace":"shop"`).Replace(apitest.NewEvent("late"))
	w.Do("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", late).Must(201)
	w.Do("PATCH", "/apis/events.k8s.io/v1/namespaces/shop/events/e06", `{"series":{"count":99,"lastObservedTime":"2026-03-04T12:59:00.000000Z"}}`,
		"Content-Type", "application/merge-patch+json").Must(200)
	for name, was := range before {
		link := was["permalink"].(string)
		is := w.Do("GET", link, "").Must(200).Object()
		for _, answer := range []map[string]any{was, is} {
			delete(answer, "permalink")
			delete(answer, "continue") // is of another query
		}
		if name == "object" { // its history ends when it is asked for
			continue
		}
		apitest.Equal(t, is, was)
	}
}

// TestQueryCursors: pages show one state, whatever is written, deleted or restarted between
// them, and go on when that state is no longer held.
func TestQueryCursors(t *testing.T) {
	t.Parallel()
	c := &apitest.Clock{Now: apitest.StoryEnd}
	w := apitest.Open(t, bolt.Options{Retention: 48 * time.Hour, History: time.Hour, Now: c.Read, SegmentBytes: 1 << 10},
		func(config *api.Config) { config.Now = c.Read })
	w.Tell()
	names := func(a *apitest.Answer) (names []string) {
		for _, item := range a.At("items").([]any) {
			names = append(names, apitest.Field(item, "metadata.name").(string))
		}
		return names
	}
	page := func(place any) *apitest.Answer {
		return w.Do("GET", apitest.QueryPath("events", "from", "-2h", "limit", "3", "continue", place.(string)), "").Must(200)
	}
	first := w.Do("GET", apitest.QueryPath("events", "limit", "3", "from", "-2h"), "").Must(200)
	apitest.Equal(t, names(first), []string{"e11", "e10", "e09"})
	oldest := w.Do("GET", apitest.QueryPath("events", "limit", "3", "from", "-2h", "order", "oldest"), "").Must(200)
	apitest.Equal(t, names(oldest), []string{"e00", "e01", "e02"})
	counts := w.Do("GET", apitest.QueryPath("facets", "from", "-2h", "by", "namespace"), "").Must(200)
	observe := func(path string) {
		w.Do("PATCH", "/apis/events.k8s.io/v1/namespaces/"+path, `{"series":{"count":99,"lastObservedTime":"2026-03-04T12:59:59.000000Z"}}`,
			"Content-Type", "application/merge-patch+json").Must(200)
	}
	observe("build/events/e08") // comes first from now on
	w.Do("DELETE", "/apis/events.k8s.io/v1/namespaces/shop-test/events/e07", "").Must(200)
	c.Add(10 * time.Minute)
	w.Stop()
	w.Start()
	second := page(first.At("continue"))
	apitest.Equal(t, names(second), []string{"e08", "e07", "e06"})
	apitest.Equal(t, second.At("range"), first.At("range"))
	apitest.Equal(t, second.At("revision"), first.At("revision"))
	// Much later the state is gone: what has changed since is left out, and the answer
	// says so.
	c.Add(5 * time.Hour)
	observe("shop/events/e03")
	if err := w.DB.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	third := page(second.At("continue"))
	apitest.Equal(t, names(third), []string{"e05", "e04", "e02"})
	apitest.Equal(t, third.At("partial"), any(true))
	if reason := third.At("partialReason").(string); !strings.Contains(reason, "is no longer held: events that were changed or deleted since are left out") {
		t.Errorf("the reason is %q", reason)
	}
	// In the other direction, what was shown and observed again since is not shown again.
	observe("shop/events/e00")
	rest := w.Do("GET", apitest.QueryPath("events", "limit", "100", "from", "-2h", "order", "oldest", "continue", oldest.At("continue").(string)), "").Must(200)
	apitest.Equal(t, names(rest), []string{"e04", "e05", "e06", "e09", "e10", "e11"})
	// Counts are those of then: nothing that happened is taken away or added.
	again := w.Do("GET", counts.At("permalink").(string), "").Must(200)
	apitest.Equal(t, again.At("facets"), counts.At("facets"))
	apitest.Equal(t, again.At("partial"), any(true))
	// A cursor of another store.
	other := apitest.StoryWorld(t)
	for i := range 100 {
		other.Do("PATCH", "/apis/events.k8s.io/v1/namespaces/shop/events/e00", fmt.Sprintf(`{"metadata":{"labels":{"x":"%d"}}}`, i),
			"Content-Type", "application/merge-patch+json").Must(200)
	}
	place := other.Do("GET", apitest.QueryPath("events", "from", "-2h", "limit", "3"), "").Must(200).At("continue").(string)
	st := w.Do("GET", apitest.QueryPath("events", "from", "-2h", "limit", "3", "continue", place), "").Must(400).Status()
	if !strings.Contains(st.Message, "continue: belongs to another store") {
		t.Error(st.Message)
	}
}

// slowly is a timeline whose pages read two events, and then use up the time of a query.
type slowly struct {
	store.Timeline
	*apitest.Clock
}

func (s slowly) Observed(ctx context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	n := 0
	page, err := s.Timeline.Observed(ctx, q, func(v *store.View, at store.Moment) bool {
		n++
		return visit(v, at) && n < 2
	})
	page.Looked = query.DefaultLimits.Looked
	return page, err
}

// TestQueryTime: a page of a search that takes too long says how far it has come, and the next page goes on from there.
// All pages together have the events of one page that has enough time.
func TestQueryTime(t *testing.T) {
	t.Parallel()
	c := &apitest.Clock{Now: apitest.StoryEnd}
	w := apitest.Open(t, bolt.Options{Now: c.Read}, func(config *api.Config) { config.Now = c.Read })
	w.Tell()
	search := []string{"search", `note:"failed container" -reason:BackOff`, "from", "2026-03-04T12:00:00Z", "to", "2026-03-05T00:00:00Z"}
	for order, reached := range map[string]string{"newest": "observed since 2026-03-04T12:", "oldest": "observed until 2026-03-04T12:"} {
		asked := append(slices.Clone(search), "order", order)
		whole := w.Do("GET", apitest.QueryPath("events", asked...), "").Must(200)
		if n := len(whole.Names()); n != 9 {
			t.Fatalf("%d events match, want all without a warning", n)
		}
		config := w.Config
		config.Timeline = slowly{w.DB.Timeline(), c}
		late := &apitest.World{T: t, Config: config, DB: w.DB}
		var err error
		if late.Server, err = api.New(config); err != nil {
			t.Fatal(err)
		}
		var found []string
		pages := 0
		for place := ""; ; pages++ {
			a := late.Do("GET", apitest.QueryPath("events", append(asked, "continue", place)...), "").Must(200)
			found = append(found, a.Names()...)
			next, more := a.Object()["continue"].(string)
			reason, _ := a.Object()["partialReason"].(string)
			if said := strings.HasPrefix(reason, "500000 versions were looked at: ") && strings.Contains(reason, reached); said != more || a.At("partial") != any(more) {
				t.Errorf("%s, page %d: continue %q, %q", order, pages, next, reason)
			}
			if !more {
				break
			}
			place = next
		}
		if apitest.Equal(t, found, whole.Names()); pages < 4 {
			t.Errorf("%s: %d pages went on", order, pages)
		}
	}
}

// TestQueryCSV: a table of every kind of answer, with the same rows as in JSON, where its
// next page is, and why it is not whole.
func TestQueryCSV(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	for name, path := range questions() {
		if name == "overview" { // which is no table
			continue
		}
		path += "&revision=" + fmt.Sprint(w.DB.Revision())
		whole := w.Do("GET", path, "").Must(200)
		a := w.Do("GET", path, "", "Accept", "text/csv").Must(200)
		rows, err := csv.NewReader(strings.NewReader(string(a.Body))).ReadAll()
		if err != nil || len(rows) == 0 {
			t.Fatalf("%s: %v: %s", name, err, a.Body)
		}
		items := 0
		for _, member := range []string{"items", "groups", "changes"} {
			if list, ok := whole.At(member).([]any); ok {
				items = len(list)
			}
		}
		if want := items + 1; items > 0 && len(rows) != want {
			t.Errorf("%s: %d rows, want %d", name, len(rows), want)
		}
		warned := strings.Contains(a.Header.Get("Warning"), "the answer is not whole: ")
		apitest.Equal(t, warned, whole.At("partial").(bool))
		link := a.Header.Get("Link")
		apitest.Equal(t, strings.HasSuffix(link, `>; rel="next"`), whole.At("continue") != nil)
		if link != "" {
			next, _, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
			w.Do("GET", next, "", "Accept", "text/csv").Must(200)
		}
	}
}

// TestQueryCSVFormulas: cells that a spreadsheet takes for formulas are escaped if the client asks for it, on every
// page.
func TestQueryCSVFormulas(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for i, note := range []string{"=1+1", "@SUM(A1)", "plain"} {
		w.Do("POST", apitest.EventsPath, apitest.NewEvent(fmt.Sprintf("e%d", i), `"note":"`+note+`"`)).Must(201)
	}
	notes := func(path string) (all []string) {
		for path != "" {
			a := w.Do("GET", path, "", "Accept", "text/csv").Must(200)
			rows, err := csv.NewReader(strings.NewReader(string(a.Body))).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows[1:] {
				all = append(all, row[slices.Index(rows[0], "note")])
			}
			path, _, _ = strings.Cut(strings.TrimPrefix(a.Header.Get("Link"), "<"), ">")
		}
		slices.Sort(all)
		return all
	}
	path := "/query/v1/events?from=2000-01-01T00:00:00Z&limit=1"
	apitest.Equal(t, notes(path), []string{"=1+1", "@SUM(A1)", "plain"})
	apitest.Equal(t, notes(path+"&formulas=escape"), []string{"'=1+1", "'@SUM(A1)", "plain"})
	w.Do("GET", path+"&formulas=escape", "").Must(200)
	if st := w.Do("GET", path+"&formulas=yes", "").Must(400).Status(); !strings.Contains(st.Message, "formulas") {
		t.Error(st.Message)
	}
	for _, name := range []string{"histogram", "facets", "groups?by=reason", "object?kind=Pod&name=p1", "changes"} {
		separator := "?"
		if strings.Contains(name, "?") {
			separator = "&"
		}
		w.Do("GET", "/query/v1/"+name+separator+"formulas=escape", "", "Accept", "text/csv").Must(200)
	}
}

// TestQueryGaps: hours in which a mirror was away are told to those who may see its
// namespace, if they overlap the range.
func TestQueryGaps(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return apitest.StoryEnd }
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), func(c *api.Config) { c.Now = now })
	for i, c := range []struct{ from, to, reporter string }{
		{"2026-03-04T09:00:00Z", "2026-03-04T12:10:00Z", "tidings.example/mirror"},
		{"2026-03-04T12:20:00Z", "2026-03-04T12:30:00Z", "tidings.example/mirror"},
		{"2026-03-04T12:50:00Z", "2026-03-04T13:10:00Z", "tidings.example/mirror"},
		{"2026-03-04T07:00:00Z", "2026-03-04T08:00:00Z", "tidings.example/mirror"},
		{"2026-03-04T12:20:00Z", "2026-03-04T12:30:00Z", "example.com/other"},
		{"whenever", "2026-03-04T12:30:00Z", "tidings.example/mirror"},
	} {
		at := c.to
		w.As("root", "POST", "/apis/events.k8s.io/v1/namespaces/team-a/events", fmt.Sprintf(`{"metadata":{"name":"gap-%d","labels":{"tidings.example/cluster":"east"},
			"annotations":{"mirror.tidings.example/gap-from":%q,"mirror.tidings.example/gap-to":%q}},"eventTime":%q,"reportingController":%q,"reportingInstance":"i",
			"action":"Do","type":"Warning","reason":"MirrorGap","regarding":{"namespace":"team-a"}}`, i, c.from, c.to, strings.Replace(at, "Z", ".000000Z", 1), c.reporter)).Must(201)
	}
	w.As("root", "POST", "/apis/events.k8s.io/v1/namespaces/default/events", `{"metadata":{"name":"gap","labels":{"tidings.example/cluster":"west"},
		"annotations":{"mirror.tidings.example/gap-from":"2026-03-04T12:20:00Z","mirror.tidings.example/gap-to":"2026-03-04T12:30:00Z"}},"eventTime":"2026-03-04T12:30:00.000000Z",
		"reportingController":"tidings.example/mirror","reportingInstance":"i","action":"Do","type":"Warning","reason":"MirrorGap","regarding":{"namespace":"default"}}`).Must(201)
	gaps := func(caller, path string) any { return w.As(caller, "GET", path, "").Must(200).At("gaps") }
	gap := func(from, to string) any { return map[string]any{"from": from, "to": to, "cluster": "east"} }
	apitest.Equal(t, gaps("root", apitest.QueryPath("histogram", "namespace", "team-a")), any([]any{
		gap("2026-03-04T09:00:00Z", "2026-03-04T12:10:00Z"), gap("2026-03-04T12:20:00Z", "2026-03-04T12:30:00Z"), gap("2026-03-04T12:50:00Z", "2026-03-04T13:10:00Z"),
	}))
	apitest.Equal(t, gaps("team", apitest.QueryPath("facets", "from", "-45m", "to", "-35m")), any([]any{gap("2026-03-04T12:20:00Z", "2026-03-04T12:30:00Z")}))
	apitest.Equal(t, gaps("root", apitest.QueryPath("events", "from", "-6h")).([]any)[0], gap("2026-03-04T07:00:00Z", "2026-03-04T08:00:00Z"))
	apitest.Equal(t, len(gaps("root", apitest.QueryPath("events", "namespace", "default")).([]any)), 1)
	apitest.Equal(t, len(gaps("root", apitest.QueryPath("events")).([]any)), 4)
	apitest.Equal(t, len(gaps("prefix", apitest.QueryPath("events")).([]any)), 3)
}

// TestQueryOpenAPI: the document has exactly the paths and parameters that are accepted,
// and the answers have exactly the members that it says.
func TestQueryOpenAPI(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	index := w.Do("GET", "/openapi/v3", "").Must(200)
	path := index.At("paths").(map[string]any)["query/v1"].(map[string]any)["serverRelativeURL"].(string)
	doc := w.Do("GET", path, "").Must(200).Object()
	schemas := apitest.Field(doc, "components.schemas").(map[string]any)
	apitest.Equal(t, len(doc["paths"].(map[string]any)), 10)
	apitest.EveryReference(t, doc, "#/components/schemas/", schemas)
	w.Do("GET", path, "", "Accept", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf").Must(200) // which is parsed for it
	all := []string{}
	known := map[string][]string{}
	for path, item := range doc["paths"].(map[string]any) {
		for _, p := range apitest.Field(item, "get.parameters").([]any) {
			known[path] = append(known[path], apitest.Field(p, "name").(string))
		}
		all = append(all, known[path]...)
	}
	slices.Sort(all)
	all = append(slices.Compact(all), "watch", "pretty", "resourceVersion")
	for path, names := range known {
		for _, name := range all {
			st := w.Do("GET", path+"?"+name+"=%20", "")
			unknown := strings.Contains(string(st.Body), "there is none of this name")
			if unknown == slices.Contains(names, name) {
				t.Errorf("%s: %s is described: %v, but refused: %v", path, name, !unknown, unknown)
			}
		}
	}
	for name, path := range questions() {
		name, _, _ = strings.Cut(name, "-")
		conforms(t, name, w.Do("GET", path, "").Must(200).Object(), schemas[name], schemas)
	}
	for _, text := range []string{`a OR -note:"b c",d label:app pattern:x NOT ns:shop`, "(", ""} {
		conforms(t, "search", w.Do("GET", apitest.QueryPath("search", "text", text), "").Must(200).Object(), schemas["search"], schemas)
	}
}

// conforms checks that a value is what a schema describes.
func conforms(t *testing.T, where string, v, schema any, schemas map[string]any) {
	t.Helper()
	s := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		conforms(t, where, v, schemas[ref[strings.LastIndex(ref, "/")+1:]], schemas)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		properties, described := s["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if inner, ok := properties[name]; ok {
				conforms(t, where+"."+name, v[name], inner, schemas)
			} else if described {
				t.Errorf("%s: there is a member %s", where, name)
			} else if additional, ok := s["additionalProperties"]; ok {
				conforms(t, where+"."+name, v[name], additional, schemas)
			}
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				t.Errorf("%s: there is no %s", where, name)
			}
		}
	case []any:
		for _, item := range v {
			conforms(t, where, item, s["items"], schemas)
		}
	default:
		kind := map[string]string{"string": "string", "float64": "integer", "bool": "boolean"}[fmt.Sprintf("%T", v)]
		if want := s["type"]; want != nil && want != kind && (want != "number" || kind != "integer") {
			t.Errorf("%s is %v, not a %v", where, v, want)
		}
	}
}

// TestReadSearch: who has a token learns what a text means, or what is wrong with it. The tree leaves out what
// mirrors say of their own work, unless that is asked for.
func TestReadSearch(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	own := `,{"not":{"all":[{"field":"reporter","values":["tidings.example/mirror"]},{"field":"reason","values":["Mirrored","EventsDropped","MirrorGap"]}]}}`
	for text, want := range map[string]string{
		`-ns:Shop,b (x OR note:y)`: `{"terms":[{"field":"namespace","values":["Shop","b"],"not":true},{"field":"()","values":["x OR note:y"]}],` +
			`"tree":{"all":[{"all":[{"not":{"field":"namespace","values":["SHOP","B"]}},{"any":[{"word":"X"},{"word":"Y","note":true}]}]}` + own + `]}}`,
		"reason:mirrored": `{"terms":[{"field":"reason","values":["mirrored"]}],"tree":{"field":"reason","values":["MIRRORED"]}}`,
		"":                `{"terms":[],"tree":{"all":[` + own[1:] + `]}}`,
		"a OR":            `{"terms":[],"mistake":"at character 5: OR has nothing behind it: write a term there, or \"OR\" for the word"}`,
	} {
		w.As("nobody", "GET", apitest.QueryPath("search", "text", text), "").Must(401)
		if got := strings.TrimSpace(string(w.Do("GET", apitest.QueryPath("search", "text", text), "").Must(200).Body)); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// FuzzQuery: whatever is asked, the answer is one of the few that are meant, and a 400
// names what is wrong.
func FuzzQuery(f *testing.F) {
	w := apitest.FuzzWorld(f)
	place := w.Do("GET", apitest.QueryPath("events", "limit", "1", "from", "2026-01-01T00:00:00Z"), "").Must(200).At("continue").(string)
	for name, path := range questions() {
		f.Add(strings.TrimSuffix(name, "-csv"), path[strings.Index(path, "?")+1:])
	}
	f.Add("events", "limit=1&from=2026-01-01T00:00:00Z&continue="+place)
	f.Add("groups", "by=object&fieldSelector=reason%3DX,kind!%3D&labelSelector=!a,b+in+(c)&search=%22a%20b%22+c&order=oldest")
	f.Add("histogram", "from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z")
	f.Add("histogram", "from=-200d&to=%2B100w&step=28d&by=cluster")
	f.Add("changes", "at=now&window=31d&kind=Pod&name=p1")
	f.Add("object", "kind=Pod&name=p1&from=-300d&order=newest")
	log := w.Config.Log
	w.Config.Log = slog.New(slog.DiscardHandler)
	defer func() { w.Config.Log = log }()
	f.Fuzz(func(t *testing.T, path, query string) {
		if strings.ContainsAny(path, "/?# %\\") || strings.ContainsFunc(path+query, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return
		}
		a := (&apitest.World{T: t, Config: w.Config, Server: w.Server}).Do("GET", "/query/v1/"+path+"?"+query, "")
		switch a.Code {
		case 200, 404, 405:
		case 400, 504:
			if st := a.Status(); st.Message == "" {
				t.Errorf("%s", a.Body)
			}
		default:
			t.Errorf("%s?%s: %d %s", path, query, a.Code, a.Body)
		}
	})
}

// FuzzCursor: whatever a cursor says, it is refused or there is a page.
func FuzzCursor(f *testing.F) {
	w := apitest.FuzzWorld(f)
	w.Do("POST", apitest.EventsPath, strings.Replace(apitest.NewEvent("c"), "Because", "Other", 1)).Must(201)
	paths := []string{"events?", "object?kind=Pod&name=p1&", "groups?by=reason,object&order=newest&"}
	const more = "limit=1&from=2026-01-01T00:00:00Z"
	cursors := make([]map[string]any, len(paths))
	for i, path := range paths {
		raw, err := base64.RawURLEncoding.DecodeString(w.Do("GET", "/query/v1/"+path+more, "").Must(200).At("continue").(string))
		if err != nil || json.Unmarshal(raw, &cursors[i]) != nil {
			f.Fatal(err)
		}
	}
	f.Add(uint8(0), int64(0), int64(1), uint64(1), int64(0), uint64(0), int64(0), "")
	f.Add(uint8(1), int64(math.MinInt64), int64(math.MaxInt64), uint64(3), int64(math.MaxInt64), uint64(math.MaxUint64), int64(-1), "x")
	f.Add(uint8(2), int64(1767225600), int64(1867225600), uint64(4), int64(1), uint64(1), int64(-1767225600), "Because")
	f.Fuzz(func(t *testing.T, path uint8, from, to int64, revision uint64, micros int64, row uint64, value int64, key string) {
		i := int(path) % len(paths)
		c := maps.Clone(cursors[i])
		maps.Copy(c, map[string]any{"f": from, "t": to, "r": revision, "m": micros, "n": row, "o": value, "k": []string{key}})
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		a := (&apitest.World{T: t, Config: w.Config, Server: w.Server}).Do("GET", "/query/v1/"+paths[i]+more+"&continue="+base64.RawURLEncoding.EncodeToString(raw), "")
		if a.Code != 200 && (a.Code != 400 || len(a.Status().Details.Causes) != 1) {
			t.Errorf("%s: %d %s", raw, a.Code, a.Body)
		}
	})
}

// TestChangesOfNamespace: naming the only namespace that has events changes no row. It
// names no object whose part the rows would have to be.
func TestChangesOfNamespace(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Now = func() time.Time { return apitest.StoryEnd } })
	report := func(i int, before time.Duration, typ, reason string) {
		w.Do("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", fmt.Sprintf(`{"metadata":{"name":"%s-%d"},"eventTime":%q,
			"reportingController":"example.com/kubelet","reportingInstance":"i","action":"Pull","type":%q,"reason":%q,"note":"an image",
			"regarding":{"kind":"Pod","namespace":"shop","name":"checkout-7d9f-%d"}}`, strings.ToLower(reason), i,
			apitest.StoryEnd.Add(-before).Format("2006-01-02T15:04:05.000000Z07:00"), typ, reason, i%3)).Must(201)
	}
	for i := range 30 {
		report(i, time.Duration(i+1)*10*time.Minute, "Normal", "Pulled")
	}
	for i := range 12 {
		report(i, time.Duration(i+1)*10*time.Second, "Warning", "Failed")
	}
	rows := func(parameters ...string) string {
		var a struct {
			Changes []struct {
				By                map[string]string
				Kind, Object, Why string
				Now               int64
			}
		}
		body := w.Do("GET", apitest.QueryPath("changes", append(parameters, "at", apitest.StoryEnd.Format(time.RFC3339))...), "").Must(200).Body
		if err := json.Unmarshal(body, &a); err != nil {
			t.Fatal(err)
		}
		if len(a.Changes) == 0 {
			t.Fatalf("no rows: %s", body)
		}
		return fmt.Sprint(a.Changes)
	}
	if all, one := rows(), rows("namespace", "shop"); all != one {
		t.Errorf("of all namespaces: %s\nof the only one: %s", all, one)
	}
}

// TestChangesSearched: whatever a search may ask for chooses among the rows of changes.
func TestChangesSearched(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Now = func() time.Time { return apitest.StoryEnd } })
	report := func(i int, before time.Duration, typ, reason, node string) {
		w.Do("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", fmt.Sprintf(`{"metadata":{"name":"%s-%d","labels":{"app":"%s"}},"eventTime":%q,
			"reportingController":"kubelet","reportingInstance":%q,"action":"Pull","type":%q,"reason":%q,"note":"note of %s",
			"regarding":{"kind":"Pod","namespace":"shop","name":"pod-of-%s"}}`, strings.ToLower(reason), i, strings.ToLower(reason),
			apitest.StoryEnd.Add(-before).Format("2006-01-02T15:04:05.000000Z07:00"), node, typ, reason, reason, strings.ToLower(reason))).Must(201)
	}
	for i := range 30 {
		report(i, time.Duration(i+1)*10*time.Minute, "Normal", "Pulled", "node-0")
	}
	for i := range 12 {
		report(i, time.Duration(i+1)*10*time.Second, "Warning", "FailedMount", "node-1")
		report(i, time.Duration(i+1)*9*time.Second, "Warning", "BackOff", "node-2")
	}
	report(0, 5*time.Minute, "Warning", "Evicted", "node-3") // too little for a row, unless it is asked for
	for search, want := range map[string]string{
		"": "BackOff FailedMount", "node:node-1": "FailedMount", "-node:node-1": "BackOff Evicted", `"note of backoff"`: "BackOff", "name:pod-of-failedmount": "FailedMount",
		"label:app=backoff": "BackOff", "node:node-1 OR name:pod-of-backoff": "BackOff FailedMount", "ns:shop node-2": "BackOff", "type:warning (node:node-1 OR nothing)": "FailedMount",
		"reason:BackOff node:node-1": "", "node:node-9": "", "reason:Evicted": "Evicted", "reason:evict* node:node-3": "Evicted", strings.Repeat(`"note of backoff" `, 56): "BackOff",
	} {
		var a struct {
			Changes []struct {
				By   map[string]string
				Also []string
			}
			PartialReason string
		}
		body := w.Do("GET", apitest.QueryPath("changes", "at", apitest.StoryEnd.Format(time.RFC3339), "search", search), "").Must(200).Body
		if err := json.Unmarshal(body, &a); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range a.Changes {
			if c.By["type"] == "Warning" {
				got = append(append(got, c.By["reason"]), c.Also...)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want || strings.Contains(a.PartialReason, "search") {
			t.Errorf("%q: %q, want %q; %s", search, got, want, a.PartialReason)
		}
	}
}

// TestLongDimensions: texts that core/v1 accepts at any length are cut where they are counted, so that answers, and the
// places in them, stay short. Whoever asks for the whole text or for the cut one gets the events.
func TestLongDimensions(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	long := strings.Repeat("r", 100<<10)
	for i := range 4 {
		w.Do("POST", apitest.CorePath, fmt.Sprintf(`{"metadata":{"name":"e%d"},"reason":"%d%s","type":"%[2]d%[3]s","involvedObject":{"namespace":"default","kind":"%[2]d%[3]s","name":"%[2]d%[3]s"},
			"source":{"component":"%[2]d%[3]s","host":"%[2]d%[3]s"}}`, i, i, long)).Must(201)
	}
	for _, path := range []string{"facets", "histogram?by=reason", "groups?by=reason", "groups?by=type,reason,kind,node&limit=1", "groups?by=object&limit=1"} {
		for _, format := range []string{"application/json", "text/csv"} {
			a := w.Do("GET", "/query/v1/"+path, "", "Accept", format).Must(200)
			samples := format == "application/json" && strings.HasPrefix(path, "groups") // samples are whole events
			if link := a.Header.Get("Link"); len(a.Body) > 64<<10 && !samples || len(link) > 8<<10 {
				t.Errorf("%s as %s: %d bytes, and a link of %d", path, format, len(a.Body), len(link))
			}
		}
	}
	for _, by := range []string{"reason", "object", "type,reason,kind,node"} {
		path, n := "/query/v1/groups?limit=1&by="+by, 0
		for next := ""; n == 0 || next != ""; n++ {
			a := w.Do("GET", path+"&continue="+url.QueryEscape(next), "").Must(200)
			apitest.Equal(t, len(a.At("groups").([]any)), 1)
			next, _ = a.Object()["continue"].(string)
		}
		apitest.Equal(t, n, 4)
	}
	for _, reason := range []string{"1" + long[:600], "1" + long[:508] + "…"} {
		apitest.Equal(t, w.Do("GET", "/query/v1/facets?by=reason&fieldSelector="+url.QueryEscape("reason="+reason), "").Must(200).At("total"), any(1.0))
	}
}
