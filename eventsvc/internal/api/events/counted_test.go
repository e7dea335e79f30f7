package events_test

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store/bolt"
)

// restored is a world whose event is written, deleted and brought back.
type restored struct {
	*apitest.World
	exports []string
}

const restoredPath = "/api/v1/namespaces/shop/events"

// body is the event with a count, as the copy that a mirror makes of an event with a uid; "": no copy.
func (r *restored) body(count int, uid string) string {
	metadata := `"name":"e"`
	if uid != "" {
		metadata += fmt.Sprintf(`,"annotations":{"mirror.tidings.example/uid":%q,"mirror.tidings.example/resource-version":"%d"}`, uid, count)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{%s},"reason":"R","type":"Warning","message":"found","count":%d,"lastTimestamp":"2026-03-04T12:30:00Z",
		"source":{"component":"c"},"involvedObject":{"kind":"Pod","namespace":"shop","name":"p"}}`, metadata, count)
}

func post(count int, uid string) func(*restored) {
	return func(r *restored) { r.Do("POST", restoredPath, r.body(count, uid)).Must(201) }
}

func put(count int, uid string) func(*restored) {
	return func(r *restored) { r.Do("PUT", restoredPath+"/e", r.body(count, uid)).Must(201) }
}

func patch(count int) func(*restored) {
	return func(r *restored) {
		r.Do("PATCH", restoredPath+"/e", fmt.Sprintf(`{"count":%d}`, count), "Content-Type", "application/merge-patch+json").Must(200)
	}
}

func remove(r *restored) { r.Do("DELETE", restoredPath+"/e", "").Must(200) }

func export(r *restored) {
	var out bytes.Buffer
	if err := r.files().Export(r.T.Context(), 0, func(uint64, int64) io.Writer { return &out }); err != nil {
		r.T.Fatal(err)
	}
	r.exports = append(r.exports, out.String())
}

// load imports an export.
func load(i int) func(*restored) {
	return func(r *restored) { apitest.ImportLines(r.T, r.files(), r.exports[i]) }
}

func restart(r *restored) {
	r.Stop()
	r.Start()
}

func (r *restored) files() admin.Local { return admin.Local{DB: r.DB, Codec: r.Config.Codec} }

// TestCountedOnce: an observation is counted once, although its event is deleted and comes back: by an import, of this
// or of an older version, or because a mirror copies it again. An event that only has the same name counts for itself.
func TestCountedOnce(t *testing.T) {
	t.Parallel()
	type steps = []func(*restored)
	for name, c := range map[string]struct {
		steps steps
		all   int // observations
	}{
		"imported again":            {steps{post(3, ""), export, remove, load(0)}, 3},
		"after a restart":           {steps{post(3, ""), export, remove, restart, load(0)}, 3},
		"imported twice":            {steps{post(3, ""), export, remove, load(0), remove, load(0)}, 3},
		"imported over itself":      {steps{post(3, ""), export, load(0)}, 3},
		"an older version":          {steps{post(3, ""), export, patch(5), remove, load(0)}, 5},
		"older, then newer":         {steps{post(3, ""), export, patch(5), export, load(0), load(1)}, 5},
		"older, then newer, gone":   {steps{post(3, ""), export, patch(5), export, remove, load(0), load(1)}, 5},
		"a newer version":           {steps{post(3, ""), export, remove, load(0), patch(7)}, 7},
		"a newer one is imported":   {steps{post(3, ""), export, patch(5), export, remove, load(1), remove, load(0), patch(6)}, 6},
		"a count that falls":        {steps{post(3, ""), patch(1), patch(2), patch(4)}, 4},
		"another of its name":       {steps{post(3, ""), remove, post(3, "")}, 6},
		"another, then the first":   {steps{post(3, ""), export, remove, post(4, ""), load(0)}, 7},
		"another, the first, again": {steps{post(3, ""), export, remove, post(4, ""), export, load(0), load(1)}, 7},
		"copied again":              {steps{post(3, "a"), remove, post(3, "a")}, 3},
		"copied again, later":       {steps{post(3, "a"), remove, post(5, "a"), remove, put(6, "a")}, 6},
		"copied and imported":       {steps{post(3, "a"), export, remove, post(5, "a"), remove, load(0)}, 5},
		"a copy of another":         {steps{post(3, "a"), remove, post(3, "b")}, 6},
		"a copy of the same uid":    {steps{post(3, "a"), remove, post(3, "b"), remove, post(4, "a")}, 7},
		"tried only": {steps{post(3, "a"), remove, func(r *restored) {
			r.Do("POST", restoredPath+"?dryRun=All", r.body(3, "a")).Must(201)
		}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := func() time.Time { return apitest.StoryEnd }
			r := &restored{World: apitest.Open(t, bolt.Options{Now: now}, func(c *api.Config) { c.Now = now })}
			const days = `{"metadata":{"name":"before"},"reason":"Before","lastTimestamp":"2026-03-01T09:00:00Z","source":{"component":"c"},
				"involvedObject":{"kind":"Pod","namespace":"before","name":"p"}}` // so that changes have something to compare with
			r.Do("POST", "/api/v1/namespaces/before/events", days).Must(201)
			for _, step := range c.steps {
				step(r)
			}
			for path, want := range map[string]int{"facets": c.all, "histogram": c.all} {
				apitest.Equal(t, r.Do("GET", apitest.QueryPath(path), "").Must(200).At("total"), any(float64(want)))
				apitest.Equal(t, r.Do("GET", apitest.QueryPath(path, "search", "found"), "").Must(200).At("total"), any(float64(want)))
			}
			for by, want := range map[string]int{"reason": c.all, "object": c.all} {
				n := 0.0
				for _, g := range r.Do("GET", apitest.QueryPath("groups", "by", by), "").Must(200).At("groups").([]any) {
					n += apitest.Field(g, "count").(float64)
				}
				apitest.Equal(t, n, float64(want))
			}
			query := url.Values{"query": {`sum(count_over_time({namespace="shop"}[2h]))`}, "time": {strconv.FormatInt(apitest.StoryEnd.Unix(), 10)}}
			result := r.Do("GET", "/loki/api/v1/query?"+query.Encode(), "").Must(200).At("data.result").([]any)
			apitest.Equal(t, apitest.Field(result[0], "value").([]any)[1], any(strconv.Itoa(c.all)))
			changes := r.Do("GET", apitest.QueryPath("changes", "at", apitest.StoryEnd.Format(time.RFC3339), "window", "1h"), "").Must(200).At("changes").([]any)
			if len(changes) == 0 {
				t.Fatal("nothing has changed")
			}
			apitest.Equal(t, apitest.Field(changes[0], "now"), any(float64(c.all)))
		})
	}
}
