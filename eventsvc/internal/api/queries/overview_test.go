package queries_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// counting is a timeline for which a second goes by with each table. It fails behind so many of them; 0: it does not.
type counting struct {
	store.Timeline
	*apitest.Clock
	fails, told int
	failure     error
}

func (c *counting) Survey(ctx context.Context, s store.Survey) (store.TimePage, error) {
	if tell := s.Counted; tell != nil {
		s.Counted = func(upTo time.Time) {
			c.told++
			c.Add(time.Second)
			tell(upTo)
		}
	}
	page, err := c.Timeline.Survey(ctx, s)
	if err == nil && c.fails > 0 {
		err = c.failure
	}
	return page, err
}

// TestOverviewInLines: lines say how far counting has come, with what is counted so far, and one of them has the
// events. The last line is the answer, or why there is none.
func TestOverviewInLines(t *testing.T) {
	t.Parallel()
	c := &apitest.Clock{Now: apitest.StoryEnd}
	w := apitest.Open(t, bolt.Options{Now: c.Read, SegmentBytes: 2 << 10}, func(config *api.Config) { config.Now = c.Read })
	w.Tell()
	timeline := &counting{Timeline: w.Config.Timeline, Clock: c}
	w.Config.Timeline = timeline
	again(t, w)
	for _, order := range []string{"newest", "oldest"} {
		path := apitest.QueryPath("overview", "from", "2026-03-04T12:00:00Z", "to", "2026-03-04T13:00:00Z", "over", "type", "step", "20m", "limit", "2", "order", order)
		whole := w.Do("GET", path, "").Must(200)
		timeline.told = 0
		a := w.Do("GET", path, "", "Accept", "application/x-ndjson").Must(200)
		apitest.Equal(t, a.Header.Get("Content-Type"), "application/x-ndjson")
		lines := strings.Split(strings.TrimSuffix(string(a.Body), "\n"), "\n")
		if timeline.told < 2 || len(lines) < 2 {
			t.Fatalf("%s: %d lines of %d tables: %s", order, len(lines), timeline.told, a.Body)
		}
		last := len(lines) - 1
		apitest.Equal(t, lines[last]+"\n", string(whole.Body))
		listed := 0
		for _, line := range lines[:last] {
			var part struct {
				Counting struct{ Since, Until, Progress string }
				Total    *float64
				Items    []any
				Buckets  []any
			}
			if err := json.Unmarshal([]byte(line), &part); err != nil {
				t.Fatal(err)
			}
			if part.Items != nil {
				listed++
				apitest.Equal(t, len(part.Items), 2)
			}
			if (part.Counting.Since == "") != (order == "oldest") || (part.Counting.Until == "") == (order == "oldest") ||
				!strings.HasSuffix(part.Counting.Progress, " of 60 minutes") || part.Total == nil || *part.Total > whole.At("total").(float64) {
				t.Errorf("%s: %s", order, line)
			}
		}
		if listed > 1 {
			t.Errorf("%d lines have the events", listed)
		}
	}
	timeline.fails, timeline.failure = 1, errors.New("the disk is gone")
	path := apitest.QueryPath("overview", "from", "2026-03-04T12:00:00Z", "to", "2026-03-04T13:00:00Z")
	a := w.Do("GET", path, "", "Accept", "application/x-ndjson").Must(200)
	lines := strings.Split(strings.TrimSuffix(string(a.Body), "\n"), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `{"error":{"kind":"Status"`) || !strings.Contains(last, `"code":500`) {
		t.Errorf("the last line is %s", last)
	}
	w.Do("GET", path, "").Must(500)
	w.Do("GET", apitest.QueryPath("overview", "over", "object"), "", "Accept", "application/x-ndjson").Must(400)
	w.Do("GET", path, "", "Accept", "text/csv").Must(406)
}

// TestOverviewOfNobody: lines end with their client.
func TestOverviewOfNobody(t *testing.T) {
	t.Parallel()
	c := &apitest.Clock{Now: apitest.StoryEnd}
	w := apitest.Open(t, bolt.Options{Now: c.Read, SegmentBytes: 2 << 10}, func(config *api.Config) { config.Now = c.Read })
	w.Tell()
	ended := make(chan error, 1)
	w.Config.Timeline = waiting{w.Config.Timeline, c, ended}
	again(t, w)
	req := httptest.NewRequestWithContext(t.Context(), "GET", apitest.QueryPath("overview", "from", "-1d"), nil)
	req.Header.Set("Authorization", "Bearer good")
	req.Header.Set("Accept", "application/x-ndjson")
	func() {
		defer func() { _ = recover() }() // http.ErrAbortHandler cuts the connection
		w.Handler().ServeHTTP(&watched{ResponseRecorder: httptest.NewRecorder(), leaves: -1}, req)
	}()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// waiting is a timeline that tells how far it has come, and goes on until its context ends.
type waiting struct {
	store.Timeline
	*apitest.Clock
	ended chan error
}

func (l waiting) Survey(ctx context.Context, s store.Survey) (store.TimePage, error) {
	l.Add(time.Second)
	s.Counted(s.To)
	<-ctx.Done()
	l.ended <- ctx.Err()
	return store.TimePage{}, ctx.Err()
}

// again makes the server of a world anew, for what was changed in its configuration.
func again(t *testing.T, w *apitest.World) {
	t.Helper()
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
}
