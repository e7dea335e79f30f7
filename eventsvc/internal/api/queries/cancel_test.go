package queries_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// endless is a timeline whose pages of events have another one behind them, and which goes on counting until its
// context has ended. Its reader leaves during the third page or round.
type endless struct {
	store.Timeline
	leave context.CancelFunc
	calls int
}

func (e *endless) call(ctx context.Context) error {
	if e.calls++; e.calls == 3 {
		e.leave()
	}
	return ctx.Err() // as an engine does
}

func (e *endless) Begin(context.Context) (observed, written time.Time, err error) {
	return began, began, nil
}

func (e *endless) Count(ctx context.Context, c store.Count, visit func(store.Occurred)) error {
	n := c.Group(event.Dimensions{Namespace: "default", Type: "Normal", Reason: "R"}, event.Regarding{Kind: "Pod", Name: "p"})
	for e.call(ctx) == nil { // a round
		if n >= 0 {
			visit(store.Occurred{Group: n, Second: c.From.Unix(), Count: 1})
		}
	}
	return ctx.Err()
}

func (e *endless) Survey(ctx context.Context, s store.Survey) (store.TimePage, error) {
	c := s.Counts[0]
	c.Range = s.Range
	return store.TimePage{}, e.Count(ctx, c.Count, c.Visit)
}

func (e *endless) Observed(ctx context.Context, q store.TimeQuery, _ func(*store.View, store.Moment) bool) (store.TimePage, error) {
	if q.After.Time.IsZero() {
		q.After.Time = q.To
	}
	q.After.Time = q.After.Time.Add(-time.Second)
	return store.TimePage{Revision: max(1, q.Revision), Last: q.After, More: true}, e.call(ctx)
}

// TestCancelledQueries: a query whose client has left asks the store for nothing more.
func TestCancelledQueries(t *testing.T) {
	t.Parallel()
	week := []string{"from", began.Format(time.RFC3339), "to", began.AddDate(0, 0, 30).Format(time.RFC3339)}
	loki := func(query string) string {
		return "/loki/api/v1/query_range?" + url.Values{
			"query": {query}, "start": {began.Format(time.RFC3339)}, "end": {began.AddDate(0, 0, 30).Format(time.RFC3339)}, "step": {"3600"},
		}.Encode()
	}
	for name, path := range map[string]string{
		"events":     apitest.QueryPath("events", append(week, "search", "nowhere")...),
		"histogram":  apitest.QueryPath("histogram", week...),
		"facets":     apitest.QueryPath("facets", append(week, "search", "nowhere")...),
		"overview":   apitest.QueryPath("overview", append(week, "search", "nowhere")...),
		"groups":     apitest.QueryPath("groups", append(week, "by", "object")...),
		"lines":      loki(`{namespace="default"} |= "nowhere"`),
		"counts":     loki(`sum by (level) (count_over_time({namespace="default"}[1h]))`),
		"line count": loki(`count_over_time({namespace="default"} |= "nowhere" [1h])`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apitest.New(t)
			ctx, leave := context.WithCancel(t.Context())
			timeline := &endless{Timeline: w.DB.Timeline(), leave: leave}
			config := w.Config
			config.Timeline = timeline
			s, err := api.New(config)
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			req.Header.Set("Authorization", "Bearer good")
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, req)
			if timeline.calls != 3 {
				t.Errorf("%d calls, want 3: %d %.300s", timeline.calls, answer.Code, answer.Body)
			}
		})
	}
}
