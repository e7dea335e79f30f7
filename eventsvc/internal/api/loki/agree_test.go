package loki_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/randtest"
)

// A question is asked of Loki's API and of /query/v1.
type question struct {
	*apitest.World
	from, to time.Time
	step     time.Duration
	equal    map[string]string // labels
	word     string            // of the note; empty: any
	json     bool              // the event decides in Loki, although its labels could
	revision uint64
}

// TestAgreement: lines, counts and patterns of Loki's API are the list, the histograms and the facets of /query/v1 in
// the state of the same revision, as every version counts when it was observed, and each event is shown as it was last
// observed in the range.
func TestAgreement(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	w := apitest.New(t)
	lokiEvent{name: "first", namespace: "other", kind: "Pod", reason: "D", note: "the beginning of history", at: noon.Add(-time.Hour)}.create(w)
	names := []string{}
	var asked []question
	var answers []map[string]string
	for range 12 {
		for range 12 {
			names = writeRandom(w, r, names)
		}
		for range 4 {
			q := randomQuestion(w, r)
			asked, answers = append(asked, q), append(answers, q.loki())
		}
	}
	total := 0
	for i, q := range asked {
		want := q.query()
		for name, is := range answers[i] {
			if is != want[name] {
				t.Errorf("%s of %s at revision %d\n/loki     %s\n/query/v1 %s", name, q.selector(), q.revision, is, want[name])
			}
			total += len(is)
		}
		if t.Failed() {
			return
		}
	}
	if total < 10_000 {
		t.Errorf("all answers have only %d bytes", total)
	}
}

// writeRandom creates, changes or deletes an event, and returns the names of those that exist.
func writeRandom(w *apitest.World, r *rand.Rand, names []string) []string {
	w.T.Helper()
	at := noon.Add(time.Duration(r.Int64N(int64(20*time.Minute))) / 1000 * 1000)
	micro := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000Z") }
	words := []string{"apple", "banana", "cherry"}
	note := strings.Join([]string{apitest.Pick(r, words...), apitest.Pick(r, words...), fmt.Sprint(r.IntN(100))}, " ")
	if len(names) < 5 || r.IntN(4) == 0 {
		name := fmt.Sprintf("e%d", w.DB.Revision())
		namespace := apitest.Pick(r, "shop", "pay")
		count := 2 + r.IntN(8)
		w.Do("POST", "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", fmt.Sprintf(
			`{"metadata":{"name":%q},"eventTime":%q,"reportingController":"kubelet","reportingInstance":"k1","action":"Do","reason":%q,"type":%q,"note":%q,
			"series":{"count":%d,"lastObservedTime":%q},"regarding":{"kind":"Pod","namespace":%q,"name":"p-%s","uid":"u-%s"}}`,
			name, micro(at.Add(-time.Duration(r.IntN(2)*r.IntN(300))*time.Second)), apitest.Pick(r, "A", "B", "C"), apitest.Pick(r, "Normal", "Warning"), note,
			count, micro(at), namespace, name, name)).Must(201)
		return append(names, namespace+"/events/"+name)
	}
	i := r.IntN(len(names))
	path := "/api/v1/namespaces/" + names[i]
	if r.IntN(8) == 0 {
		w.Do("DELETE", path, "").Must(200)
		return slices.Delete(names, i, i+1)
	}
	count, _ := w.Do("GET", path, "").Must(200).At("series.count").(float64)
	w.Do("PATCH", path, fmt.Sprintf(`{"message":%q,"series":{"count":%d,"lastObservedTime":%q}}`, note, int(count)+r.IntN(4), micro(at)),
		"Content-Type", "application/merge-patch+json").Must(200)
	return names
}

func randomQuestion(w *apitest.World, r *rand.Rand) question {
	q := question{World: w, equal: map[string]string{}, json: r.IntN(3) == 0, revision: w.DB.Revision()}
	q.step = apitest.Pick(r, 10*time.Second, time.Minute, 5*time.Minute)
	q.from = noon.Add(-5 * time.Minute).Truncate(q.step).Add(time.Duration(r.Int64N(int64(20*time.Minute/q.step))) * q.step)
	q.to = q.from.Add(time.Duration(1+r.Int64N(int64(15*time.Minute/q.step))) * q.step)
	for name, values := range map[string][]string{"namespace": {"shop", "pay"}, "reason": {"A", "B"}, "type": {"Warning", "Normal"}} {
		if r.IntN(4) == 0 {
			q.equal[name] = apitest.Pick(r, values...)
		}
	}
	if r.IntN(2) == 0 {
		q.word = apitest.Pick(r, "apple", "banana", "cherry")
	}
	return q
}

func (q *question) selector() string {
	var all []string
	for name, value := range q.equal {
		all = append(all, fmt.Sprintf("%s=%q", name, value))
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ",") + "}"
}

// text writes an answer as JSON, of which the order says nothing.
func text[V any](t testing.TB, answer V) string {
	t.Helper()
	b, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// line is what is compared of an event in a list.
func line(name, count, note any) string { return fmt.Sprintf("%v ×%v %v", name, count, note) }

// loki asks Loki's API.
func (q *question) loki() map[string]string {
	q.T.Helper()
	get := func(path, query string, more ...string) []any {
		v := url.Values{"query": {query}, "end": {fmt.Sprint(q.to.UnixNano())}, "limit": {"5000"}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		a := q.Do("GET", "/loki/api/v1/"+path+"?"+v.Encode(), "").Must(200)
		if path == "patterns" {
			return a.At("data").([]any)
		}
		return a.At("data.result").([]any)
	}
	start, pipeline := fmt.Sprint(q.from.UnixNano()), q.selector()
	if q.word != "" {
		pipeline += fmt.Sprintf(" |= %q", q.word)
	}
	if q.json {
		pipeline += " | json"
	}
	lines := []string{}
	for _, s := range get("query_range", pipeline, "start", start) {
		for _, v := range apitest.Field(s, "values").([]any) {
			lines = append(lines, line(apitest.Field(s, "stream.name"), apitest.Field(s, "stream.count"), v.([]any)[1]))
		}
	}
	slices.Sort(lines)
	buckets := map[string]map[int64]string{}
	counts := fmt.Sprintf("sum by (reason) (count_over_time(%s [%s]))", pipeline, q.step)
	for _, s := range get("query_range", counts, "start", fmt.Sprint(q.from.Add(q.step).UnixNano()), "step", q.step.String()) {
		of := map[int64]string{}
		for _, v := range apitest.Field(s, "values").([]any) {
			of[int64(v.([]any)[0].(float64))-int64(q.step.Seconds())] = v.([]any)[1].(string)
		}
		buckets[apitest.Field(s, "metric.reason").(string)] = of
	}
	whole := map[string]string{}
	for _, s := range get("query", fmt.Sprintf("sum by (reason) (count_over_time(%s [%s]))", pipeline, q.to.Sub(q.from)), "time", fmt.Sprint(q.to.UnixNano())) {
		whole[apitest.Field(s, "metric.reason").(string)] = apitest.Field(s, "value").([]any)[1].(string)
	}
	answers := map[string]string{"lines": text(q.T, lines), "counts": text(q.T, buckets), "count": text(q.T, whole)}
	if q.word != "" {
		return answers
	}
	volumes, patterns := map[string]string{}, 0.0
	for _, s := range get("index/volume", q.selector(), "start", start, "targetLabels", "reason") {
		volumes[apitest.Field(s, "metric.reason").(string)] = apitest.Field(s, "value").([]any)[1].(string)
	}
	for _, p := range get("patterns", q.selector(), "start", start, "step", q.step.String()) {
		for _, v := range apitest.Field(p, "samples").([]any) {
			patterns += v.([]any)[1].(float64)
		}
	}
	answers["volumes"], answers["patterns"] = text(q.T, volumes), text(q.T, patterns)
	return answers
}

// query asks /query/v1.
func (q *question) query() map[string]string {
	q.T.Helper()
	var fields []string
	for name, value := range q.equal {
		fields = append(fields, name+"="+value)
	}
	get := func(path string, more ...string) *apitest.Answer {
		return q.Do("GET", apitest.QueryPath(path, append([]string{
			"from", q.from.Format(time.RFC3339), "to", q.to.Format(time.RFC3339), "revision", strconv.FormatUint(q.revision, 10),
			"fieldSelector", strings.Join(fields, ","), "search", q.word,
		}, more...)...), "").Must(200)
	}
	lines := []string{}
	for _, e := range get("events", "limit", "500").At("items").([]any) {
		lines = append(lines, line(apitest.Field(e, "regarding.name"), apitest.Field(e, "series.count"), apitest.Field(e, "note")))
	}
	slices.Sort(lines)
	buckets, total := map[string]map[int64]string{}, 0.0
	for _, b := range get("histogram", "by", "reason", "step", q.step.String()).At("buckets").([]any) {
		start, err := time.Parse(time.RFC3339, apitest.Field(b, "start").(string))
		if err != nil {
			q.T.Fatal(err)
		}
		for reason, n := range apitest.Field(b, "counts").(map[string]any) {
			if buckets[reason] == nil {
				buckets[reason] = map[int64]string{}
			}
			buckets[reason][start.Unix()] = fmt.Sprint(n)
			total += n.(float64)
		}
	}
	whole := map[string]string{}
	for _, v := range get("facets", "by", "reason").At("facets.reason").([]any) {
		whole[apitest.Field(v, "value").(string)] = fmt.Sprint(apitest.Field(v, "count"))
	}
	return map[string]string{"lines": text(q.T, lines), "counts": text(q.T, buckets), "count": text(q.T, whole), "volumes": text(q.T, whole), "patterns": text(q.T, total)}
}
