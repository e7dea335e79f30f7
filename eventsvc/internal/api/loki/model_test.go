package loki_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/randtest"
)

// modelEvent is what the model knows of an event: all versions, of which each adds some observations.
type modelEvent struct {
	versions []modelVersion
	gone     bool
}

type modelVersion struct {
	lokiEvent
	added int
	turn  int // of the write: later ones have greater revisions
}

// label returns a label of a stream or structured metadata.
func (e *modelVersion) label(name string) string {
	level := map[bool]string{true: "warning", false: "info"}[e.warning]
	return map[string]string{
		"namespace": e.namespace, "kind": e.kind, "reason": e.reason, "cluster": e.cluster, "level": level, "detected_level": level,
		"type": map[bool]string{true: "Warning", false: "Normal"}[e.warning], "reporter": "kubelet", "service_name": "kubelet",
		"name": "p-" + e.name, "uid": "u-" + e.name, "action": "Starting", "host": cmp.Or(e.host, "k1"), "count": strconv.Itoa(max(1, e.count)),
	}[name]
}

// lokiModel writes random events, updates and deletions to a server and to itself.
func lokiModel(t *testing.T, w *apitest.World, r *rand.Rand) []*modelEvent {
	t.Helper()
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	when := func() time.Time {
		return noon.Add(time.Duration(r.IntN(600)) * time.Second).Add(time.Duration(r.IntN(2)*r.IntN(1_000_000)) * time.Microsecond)
	}
	var all []*modelEvent
	for turn := range 120 {
		if len(all) > 0 && r.IntN(2) == 0 {
			e := all[r.IntN(len(all))]
			v := e.versions[len(e.versions)-1]
			path := "/api/v1/namespaces/" + v.namespace + "/events/" + v.name
			if e.gone {
				continue
			}
			if r.IntN(4) == 0 {
				w.Do("DELETE", path, "").Must(200)
				e.gone = true
				continue
			}
			v.added = 1 + r.IntN(5)
			v.at, v.note, v.count, v.turn = when(), pick(modelNotes...), max(1, v.count)+v.added, turn
			w.Do("PATCH", path, fmt.Sprintf(`{"message":%q,"series":{"count":%d,"lastObservedTime":%q}}`, v.note, v.count, v.at.Format("2006-01-02T15:04:05.000000Z")),
				"Content-Type", "application/merge-patch+json").Must(200)
			e.versions = append(e.versions, v)
			continue
		}
		v := modelVersion{turn: turn, lokiEvent: lokiEvent{
			name: fmt.Sprintf("e%d", turn), namespace: pick("shop", "pay", "kube-system"), kind: pick("Pod", "Node"), reason: pick("A", "B", "C"),
			note: pick(modelNotes...), warning: r.IntN(2) == 0, at: when(), cluster: pick("", "", "east"),
		}}
		if r.IntN(3) == 0 {
			v.count = 2 + r.IntN(4)
		}
		v.create(w)
		v.added = max(1, v.count)
		all = append(all, &modelEvent{versions: []modelVersion{v}})
	}
	return all
}

var modelNotes = []string{"Back-off restarting", "image pulled", "probe failed: timeout"}

// modelQuery is a random query, as LogQL and as what it means.
type modelQuery struct {
	selector, pipeline string
	selects            []func(*modelVersion) bool // the selector, and stages
}

func (q *modelQuery) matches(e *modelVersion) bool {
	return !slices.ContainsFunc(q.selects, func(f func(*modelVersion) bool) bool { return !f(e) })
}

func randomQuery(r *rand.Rand) *modelQuery {
	q := &modelQuery{}
	labels := []string{"namespace", "kind", "reason", "cluster", "level", "type", "service_name", "unknown"}
	values := []string{"shop", "pay", "Pod", "A", "B", "east", "warning", "Warning", "kubelet", ""}
	compare := func(name, op, value string) func(*modelVersion) bool {
		re := regexp.MustCompile("^(?:" + value + ")$")
		return func(e *modelVersion) bool {
			switch op {
			case "=":
				return e.label(name) == value
			case "!=":
				return e.label(name) != value
			case "=~":
				return re.MatchString(e.label(name))
			}
			return !re.MatchString(e.label(name))
		}
	}
	var matchers []string
	for range r.IntN(3) {
		name, op, value := labels[r.IntN(len(labels))], []string{"=", "!=", "=~", "!~"}[r.IntN(4)], values[r.IntN(len(values))]
		if op[1:] == "~" && r.IntN(2) == 0 {
			value = "s.*|P.+|.*a.*"
		}
		matchers = append(matchers, fmt.Sprintf("%s%s%q", name, op, value))
		q.selects = append(q.selects, compare(name, op, value))
	}
	q.selector = "{" + strings.Join(matchers, ",") + "}"
	switch r.IntN(8) {
	case 0:
		q.pipeline = `|= "off"`
		q.selects = append(q.selects, func(e *modelVersion) bool { return strings.Contains(e.note, "off") })
	case 1:
		q.pipeline = `!~ "(?i)IMAGE|probe"`
		q.selects = append(q.selects, func(e *modelVersion) bool { return strings.HasPrefix(e.note, "Back") })
	case 2:
		q.pipeline = `| count > 2`
		q.selects = append(q.selects, func(e *modelVersion) bool { return e.count > 2 })
	case 3:
		q.pipeline = `| json | series_count >= 3 or regarding_kind="Node"`
		q.selects = append(q.selects, func(e *modelVersion) bool { return e.count >= 3 || e.kind == "Node" })
	case 4:
		q.pipeline = `| detected_level="warning" or kind="Node" | drop __error__, uid`
		q.selects = append(q.selects, func(e *modelVersion) bool { return e.warning || e.kind == "Node" })
	case 5:
		q.pipeline = `| name =~ "p-e.*[0-4]" and host != "x"`
		q.selects = append(q.selects, func(e *modelVersion) bool { return e.name[len(e.name)-1] <= '4' })
	}
	return q
}

// TestLokiModel compares answers about random events with those of a model that has all of
// them in a list.
func TestLokiModel(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	w := apitest.New(t)
	all := lokiModel(t, w, r)
	lines, counts := 0, 0
	for range 150 {
		q := randomQuery(r)
		from := noon.Add(time.Duration(r.IntN(300)) * time.Second)
		to := from.Add(time.Duration(1+r.IntN(600)) * time.Second)
		v := url.Values{"start": {fmt.Sprint(from.UnixNano())}, "end": {fmt.Sprint(to.UnixNano())}, "limit": {"5000"}}
		v.Set("query", q.selector+" "+q.pipeline+" | keep x")
		v.Set("direction", []string{"forward", "backward"}[r.IntN(2)])
		want := q.lines(all, from, to, v.Get("direction") == "forward")
		if got := notes(w.Do("GET", "/loki/api/v1/query_range?"+v.Encode(), "")); got != want {
			t.Fatalf("%s\n got %s\nwant %s", v, got, want)
		}
		by := []string{"namespace", "kind", "reason", "level", "detected_level", "cluster", "name"}[r.IntN(7)]
		window, step := time.Duration(1+r.IntN(200))*time.Second, time.Duration(10+r.IntN(100))*time.Second
		if r.IntN(3) == 0 { // below a second, as for short ranges
			window, step = time.Duration(1+r.IntN(1500))*time.Millisecond, time.Duration(100+r.IntN(900))*time.Millisecond
		}
		v.Set("query", fmt.Sprintf("sum by (%s) (count_over_time(%s %s [%s]))", by, q.selector, q.pipeline, window))
		v.Set("step", step.String())
		wanted := q.counts(all, by, from, to, window, step)
		if got := matrix(w.Do("GET", "/loki/api/v1/query_range?"+v.Encode(), ""), by); got != wanted {
			t.Fatalf("%s\n got %s\nwant %s", v, got, wanted)
		}
		lines, counts = lines+len(want), counts+len(wanted)
	}
	if lines == 0 || counts == 0 {
		t.Errorf("%d bytes of lines, %d of counts", lines, counts)
	}
}

// in returns the version of an event that a range has: the newest one there that matches, if none follows it after one
// behind the range.
func (q *modelQuery) in(e *modelEvent, from, to time.Time) (found []*modelVersion) {
	shown := false // one that follows before any behind the range
	for i := range slices.Backward(e.versions) {
		v := &e.versions[i]
		switch there := !v.at.Before(from) && v.at.Before(to); {
		case e.gone:
		case there && q.matches(v):
			if !shown {
				found = append(found, v)
			}
			shown = true
		case !v.at.Before(to):
			shown = false
		}
	}
	return found
}

// lines are the notes of entries in a range.
func (q *modelQuery) lines(all []*modelEvent, from, to time.Time, forward bool) string {
	var found []*modelVersion
	for _, e := range all {
		found = append(found, q.in(e, from, to)...)
	}
	slices.SortFunc(found, func(a, b *modelVersion) int {
		n := cmp.Or(a.at.Compare(b.at), cmp.Compare(a.turn, b.turn))
		if !forward {
			n = -n
		}
		return n
	})
	var notes []string
	for _, v := range found {
		notes = append(notes, v.note)
	}
	return strings.Join(notes, ", ")
}

// counts are the values of each series at each point, which are milliseconds. Occurrences
// are in the windows that have the beginning of their second.
func (q *modelQuery) counts(all []*modelEvent, by string, from, to time.Time, window, step time.Duration) string {
	values := map[string]map[int64]int{}
	add := func(e *modelVersion, at time.Time, n int) {
		for p := from.UnixNano() / int64(step) * int64(step); p <= to.UnixNano(); p += int64(step) {
			if at.UnixNano() < p && at.UnixNano() >= p-int64(window) {
				if values[e.label(by)] == nil {
					values[e.label(by)] = map[int64]int{}
				}
				values[e.label(by)][p/1e6] += n
			}
		}
	}
	for _, e := range all {
		for _, v := range e.versions {
			if q.matches(&v) {
				add(&v, v.at.Truncate(time.Second), v.added)
			}
		}
	}
	b, _ := json.Marshal(values)
	return string(b)
}

// matrix is a matrix in the form of the model.
func matrix(a *apitest.Answer, by string) string {
	a.T.Helper()
	values := map[string]map[int64]int{}
	for _, s := range a.Must(200).At("data.result").([]any) {
		label, _ := apitest.Field(s, "metric."+by).(string)
		values[label] = map[int64]int{}
		for _, v := range apitest.Field(s, "values").([]any) {
			n, err := strconv.Atoi(v.([]any)[1].(string))
			if err != nil {
				a.T.Fatal(err)
			}
			values[label][int64(math.Round(v.([]any)[0].(float64)*1000))] = n
		}
	}
	b, _ := json.Marshal(values)
	return string(b)
}

// FuzzLoki: no parameters make a request fail inside.
func FuzzLoki(f *testing.F) {
	w := apitest.FuzzWorld(f)
	for _, seed := range []string{
		span("query", `{} | json`), span("query", `sum by (name) (rate({} |= "x" [5m] offset 1h))`, "step", "5m"), "query=vector(1)&time=1e300&start=-5&end=9e18", "step=NaN&query=1",
		"query={}&start=1900-01-01T00:00:00Z&end=2150-01-01T00:00:00Z&step=1000000000", "match[]={}&since=100y&targetLabels=,&limit=0",
		"query=count_over_time({}[36500d])&start=5124095576030431&end=9223372036854775807",
		"query=count_over_time({}[36500d] offset 36500d)&start=1900-01-01T00:00:00Z&end=1900-01-01T00:00:01Z&step=0.5", "query=rate({}[1ns])&step=0.0019",
	} {
		for i := range 11 {
			f.Add(uint8(i), seed, "east")
		}
	}
	paths := []string{
		"query", "query_range", "labels", "label/kind/values", "series", "index/stats", "index/volume", "index/volume_range", "detected_labels", "detected_fields",
		"detected_field/name/values",
	}
	f.Fuzz(func(t *testing.T, path uint8, form, tenant string) {
		w := *w
		w.T = t
		a := w.Do("POST", "/loki/api/v1/"+paths[int(path)%len(paths)], form, "Content-Type", "application/x-www-form-urlencoded", "X-Scope-OrgID", tenant)
		switch a.Code {
		case 200:
			a.Object()
		case 400:
		default:
			t.Fatalf("%d: %s", a.Code, a.Body)
		}
	})
}
