package queries_test

import (
	"context"
	"net/url"
	"testing"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// seeing is a timeline that notes what it is told of what the caller sees.
type seeing struct {
	store.Timeline
	asked, blind, hidden int // reads, those that see everything, and those that see what the caller may not
}

func (s *seeing) look(r store.Range) {
	s.asked++
	switch {
	case r.Sees == nil:
		s.blind++
	case r.Sees(event.Dimensions{Namespace: "default"}) || !r.Sees(event.Dimensions{Namespace: "team-a"}):
		s.hidden++
	}
}

func (s *seeing) Count(ctx context.Context, c store.Count, visit func(store.Occurred)) error {
	s.look(c.Range)
	return s.Timeline.Count(ctx, c, visit)
}

func (s *seeing) Survey(ctx context.Context, what store.Survey) (store.TimePage, error) {
	s.look(what.Range)
	return s.Timeline.Survey(ctx, what)
}

func (s *seeing) Observed(ctx context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	s.look(q.Range)
	return s.Timeline.Observed(ctx, q, visit)
}

// TestUnseenIsNotRead: every question tells the store what its caller sees, so that what others have written costs it
// nothing. What the store makes of that is tested there (TestUnseenCostsNothing).
func TestUnseenIsNotRead(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), apitest.WithMCP)
	for _, namespace := range []string{"team-a", "default"} {
		w.As("root", "POST", "/api/v1/namespaces/"+namespace+"/events", `{"metadata":{"name":"a"},"involvedObject":{"kind":"Pod","namespace":"`+namespace+`","name":"p","uid":"u"},"reason":"R","message":"words","type":"Warning"}`).Must(201)
	}
	s := &seeing{Timeline: w.DB.Timeline()}
	w.Config.Timeline = s
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		if s.asked == 0 || s.blind+s.hidden > 0 {
			t.Errorf("%s: of %d reads %d see everything, and %d what the caller may not", what, s.asked, s.blind, s.hidden)
		}
		s.asked, s.blind, s.hidden = 0, 0, 0
	}
	for _, path := range []string{
		"events?search=words", "events?search=reason:nothing", "events?search=node:n", "histogram?by=node", "histogram?step=1m", "facets?by=reason,node", "facets?search=words", "overview", "overview?search=words", "groups?by=reason", "groups?by=pattern", "groups?by=object",
		"changes?window=1h", "changes?kind=Pod&name=p", "changes?search=words",
	} {
		w.As("team", "GET", "/query/v1/"+path, "").Must(200)
		check(path)
	}
	all := url.QueryEscape(`{namespace=~".+"}`)
	for _, path := range []string{
		"query_range?query=" + all, "query_range?query=" + url.QueryEscape(`sum by (node) (count_over_time({reason=~".+"}[5m]))`), "query?query=" + url.QueryEscape(`sum(count_over_time({} |= "w" [5m]))`),
		"labels", "label/node/values", "series", "index/stats", "index/volume?query=" + all, "index/volume_range?query=" + all, "detected_labels", "patterns", "detected_fields?query=" + all, "detected_field/name/values?query=" + all,
	} {
		w.As("team", "GET", "/loki/api/v1/"+path, "").Must(200)
		check(path)
	}
	for tool, arguments := range map[string]string{"events_overview": "{}", "events_changes": "{}", "events_search": `{"reason":"x"}`, "events_groups": `{"by":"object"}`} {
		if text, failed := w.Tool("team", tool, arguments); failed {
			t.Errorf("%s: %s", tool, text)
		}
		check(tool)
	}
}
