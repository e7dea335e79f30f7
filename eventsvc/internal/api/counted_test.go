package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/dump"
	"tidings.example/eventsvc/internal/store/bolt"
)

// restored is a world whose event is written, deleted and brought back.
type restored struct {
	*world
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

// The steps.

func post(count int, uid string) func(*restored) {
	return func(r *restored) { r.do("POST", restoredPath, r.body(count, uid)).must(201) }
}

func put(count int, uid string) func(*restored) {
	return func(r *restored) { r.do("PUT", restoredPath+"/e", r.body(count, uid)).must(201) }
}

func patch(count int) func(*restored) {
	return func(r *restored) {
		r.do("PATCH", restoredPath+"/e", fmt.Sprintf(`{"count":%d}`, count), "Content-Type", "application/merge-patch+json").must(200)
	}
}

func remove(r *restored) { r.do("DELETE", restoredPath+"/e", "").must(200) }

func export(r *restored) {
	var out bytes.Buffer
	if err := r.files().Export(r.t.Context(), admin.Exported{}, func(uint64, int64) io.Writer { return &out }); err != nil {
		r.t.Fatal(err)
	}
	r.exports = append(r.exports, out.String())
}

// load imports an export.
func load(i int) func(*restored) {
	return func(r *restored) { importLines(r.t, r.files(), r.exports[i]) }
}

// importLines imports the lines of an export, with what was deleted.
func importLines(t testing.TB, to admin.Local, lines string) admin.Imported {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var sum admin.Imported
	report, err := dump.Read(t.Context(), []string{file}, dump.Options{}, func(items []dump.Item) error {
		more, err := to.Import(t.Context(), admin.Arrivals(items, true))
		sum.Add(more)
		sum.Problems = append(sum.Problems, more.Problems...)
		return err
	})
	if err != nil || report.Failed > 0 || len(sum.Problems) > 0 {
		t.Fatalf("%+v: %v: %q", sum, err, report.Lines())
	}
	return sum
}

func restart(r *restored) {
	r.stop()
	r.start()
}

func (r *restored) files() admin.Local { return admin.Local{DB: r.db, Codec: r.config.Codec} }

// TestCountedOnce: an observation is counted once, although its event is deleted and comes back: by an import, of this or of
// an older version, or because a mirror copies it again. An event that only has the same name counts for itself.
func TestCountedOnce(t *testing.T) {
	t.Parallel()
	type steps = []func(*restored)
	for name, c := range map[string]struct {
		steps  steps
		all    int // observations
		exists int // those of the event that exists
	}{
		"imported again":            {steps{post(3, ""), export, remove, load(0)}, 3, 3},
		"after a restart":           {steps{post(3, ""), export, remove, restart, load(0)}, 3, 3},
		"imported twice":            {steps{post(3, ""), export, remove, load(0), remove, load(0)}, 3, 3},
		"imported over itself":      {steps{post(3, ""), export, load(0)}, 3, 3},
		"an older version":          {steps{post(3, ""), export, patch(5), remove, load(0)}, 5, 5},
		"older, then newer":         {steps{post(3, ""), export, patch(5), export, load(0), load(1)}, 5, 5},
		"older, then newer, gone":   {steps{post(3, ""), export, patch(5), export, remove, load(0), load(1)}, 5, 5},
		"a newer version":           {steps{post(3, ""), export, remove, load(0), patch(7)}, 7, 7},
		"a newer one is imported":   {steps{post(3, ""), export, patch(5), export, remove, load(1), remove, load(0), patch(6)}, 6, 6},
		"a count that falls":        {steps{post(3, ""), patch(1), patch(2), patch(4)}, 4, 4},
		"another of its name":       {steps{post(3, ""), remove, post(3, "")}, 6, 3},
		"another, then the first":   {steps{post(3, ""), export, remove, post(4, ""), load(0)}, 7, 3},
		"another, the first, again": {steps{post(3, ""), export, remove, post(4, ""), export, load(0), load(1)}, 7, 4},
		"copied again":              {steps{post(3, "a"), remove, post(3, "a")}, 3, 3},
		"copied again, later":       {steps{post(3, "a"), remove, post(5, "a"), remove, put(6, "a")}, 6, 6},
		"copied and imported":       {steps{post(3, "a"), export, remove, post(5, "a"), remove, load(0)}, 5, 5},
		"a copy of another":         {steps{post(3, "a"), remove, post(3, "b")}, 6, 3},
		"a copy of the same uid":    {steps{post(3, "a"), remove, post(3, "b"), remove, post(4, "a")}, 7, 4},
		"tried only": {steps{post(3, "a"), remove, func(r *restored) {
			r.do("POST", restoredPath+"?dryRun=All", r.body(3, "a")).must(201)
		}}, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := func() time.Time { return storyEnd }
			r := &restored{world: openWorld(t, bolt.Options{Now: now}, func(c *api.Config) { c.Now = now })}
			const days = `{"metadata":{"name":"before"},"reason":"Before","lastTimestamp":"2026-03-01T09:00:00Z","source":{"component":"c"},
				"involvedObject":{"kind":"Pod","namespace":"before","name":"p"}}` // so that changes have something to compare with
			r.do("POST", "/api/v1/namespaces/before/events", days).must(201)
			for _, step := range c.steps {
				step(r)
			}
			for path, want := range map[string]int{"facets": c.all, "histogram": c.all} {
				equal(t, r.do("GET", queryPath(path), "").must(200).at("total"), any(float64(want)))
				equal(t, r.do("GET", queryPath(path, "search", "found"), "").must(200).at("total"), any(float64(c.exists)))
			}
			for by, want := range map[string]int{"reason": c.all, "object": c.exists} {
				n := 0.0
				for _, g := range r.do("GET", queryPath("groups", "by", by), "").must(200).at("groups").([]any) {
					n += field(g, "count").(float64)
				}
				equal(t, n, float64(want))
			}
			query := url.Values{"query": {`sum(count_over_time({namespace="shop"}[2h]))`}, "time": {strconv.FormatInt(storyEnd.Unix(), 10)}}
			result := r.do("GET", "/loki/api/v1/query?"+query.Encode(), "").must(200).at("data.result").([]any)
			equal(t, field(result[0], "value").([]any)[1], any(strconv.Itoa(c.all)))
			changes := r.do("GET", queryPath("changes", "at", storyEnd.Format(time.RFC3339), "window", "1h"), "").must(200).at("changes").([]any)
			if len(changes) == 0 {
				t.Fatal("nothing has changed")
			}
			equal(t, field(changes[0], "now"), any(float64(c.all)))
		})
	}
}
