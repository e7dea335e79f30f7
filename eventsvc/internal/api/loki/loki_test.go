package loki_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
)

// lokiEvent is an event for Loki's API, as JSON. It was observed at a time.
type lokiEvent struct {
	name, namespace, kind, reason, note string
	warning                             bool
	at                                  time.Time
	count                               int    // of its series
	cluster                             string // its label
	host                                string
}

func (e lokiEvent) create(w *apitest.World) {
	w.T.Helper()
	kind := "Normal"
	if e.warning {
		kind = "Warning"
	}
	at := e.at.UTC().Format("2006-01-02T15:04:05.000000Z")
	more := ""
	if e.count > 0 {
		more += fmt.Sprintf(`,"series":{"count":%d,"lastObservedTime":%q}`, e.count, at)
	}
	labels := ""
	if e.cluster != "" {
		labels = fmt.Sprintf(`,"labels":{"tidings.example/cluster":%q}`, e.cluster)
	}
	w.Do("POST", "/apis/events.k8s.io/v1/namespaces/"+e.namespace+"/events", fmt.Sprintf(
		`{"metadata":{"name":%q%s},"eventTime":%q,"reportingController":"kubelet","reportingInstance":%q,"action":"Starting","reason":%q,"type":%q,"note":%q,
		"regarding":{"kind":%q,"namespace":%q,"name":"p-%s","uid":"u-%s"}%s}`,
		e.name, labels, at, cmp.Or(e.host, "k1"), e.reason, kind, e.note, e.kind, e.namespace, e.name, e.name, more)).Must(201)
}

// noon is when the events of these tests were observed.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// lokiWorld has five events between noon and ten past, and shows three o'clock.
func lokiWorld(t *testing.T, changes ...func(*api.Config)) *apitest.World {
	t.Helper()
	w := apitest.New(t, append(changes, func(c *api.Config) { c.Now = func() time.Time { return noon.Add(3 * time.Hour) } })...)
	for _, e := range []lokiEvent{
		{name: "a", namespace: "shop", kind: "Pod", reason: "BackOff", note: "Back-off restarting failed container", warning: true, at: noon.Add(time.Minute), count: 7, host: "node-1"},
		{name: "b", namespace: "shop", kind: "Pod", reason: "Pulled", note: "Container image pulled", at: noon.Add(2 * time.Minute)},
		{name: "c", namespace: "shop", kind: "Deployment", reason: "ScalingReplicaSet", note: "Scaled up to 3", at: noon.Add(3*time.Minute + 1500*time.Microsecond)},
		{name: "d", namespace: "pay", kind: "Pod", reason: "BackOff", note: "Back-off pulling image", warning: true, at: noon.Add(4 * time.Minute), cluster: "east"},
		{name: "e", namespace: "pay", kind: "Node", reason: "NodeNotReady", note: "Node is not ready", warning: true, at: noon.Add(4 * time.Minute)},
	} {
		e.create(w)
	}
	return w
}

// span are the parameters of the ten minutes behind noon.
func span(more ...string) string {
	v := url.Values{"start": {fmt.Sprint(noon.UnixNano())}, "end": {fmt.Sprint(noon.Add(10 * time.Minute).UnixNano())}}
	for i := 0; i < len(more); i += 2 {
		v.Add(more[i], more[i+1])
	}
	return v.Encode()
}

// body fails the test unless the body of an answer is as given, without its statistics.
func is(a *apitest.Answer, want string) {
	a.T.Helper()
	got := strings.TrimSpace(string(a.Body))
	if before, after, ok := strings.Cut(got, `,"stats":`); ok {
		got = before + after[strings.LastIndex(after, "}}"):]
	}
	if a.Code != 200 || got != want {
		a.T.Errorf("%d\n got %s\nwant %s", a.Code, got, want)
	}
}

func TestLokiStreams(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	categorize := []string{"X-Loki-Response-Encoding-Flags", "categorize-labels"}
	is(w.Do("GET", "/loki/api/v1/query_range?"+span("query", `{namespace="shop"} |= "Back-off"`), "", categorize...),
		`{"status":"success","data":{"resultType":"streams","encodingFlags":["categorize-labels"],"result":[`+
			`{"stream":{"kind":"Pod","level":"warning","namespace":"shop","node":"node-1","reason":"BackOff","reporter":"kubelet","service_name":"kubelet","type":"Warning"},`+
			`"values":[["1795176060000000000","Back-off restarting failed container",{"structuredMetadata":`+
			`{"action":"Starting","count":"7","detected_level":"warning","host":"node-1","name":"p-a","uid":"u-a"}}]]}]}}`)
	is(w.Do("GET", "/loki/api/v1/query_range?"+span("query", `{namespace="shop"} | json | keep kind, metadata_name | kind="Deployment"`), "", categorize...),
		`{"status":"success","data":{"resultType":"streams","encodingFlags":["categorize-labels"],"result":[`+
			`{"stream":{"kind":"Deployment"},"values":[["1795176180001500000","Scaled up to 3",{"parsed":{"metadata_name":"c"}}]]}]}}`)
	is(w.Do("GET", "/loki/api/v1/query_range?"+span("query", `{namespace="shop"} |= "Back-off"`), ""),
		`{"status":"success","data":{"resultType":"streams","result":[`+
			`{"stream":{"action":"Starting","count":"7","detected_level":"warning","host":"node-1","kind":"Pod","level":"warning","name":"p-a","namespace":"shop","node":"node-1",`+
			`"reason":"BackOff","reporter":"kubelet","service_name":"kubelet","type":"Warning","uid":"u-a"},`+
			`"values":[["1795176060000000000","Back-off restarting failed container"]]}]}}`)
	is(w.Do("GET", "/loki/api/v1/query_range?"+span("query", `{namespace="none"}`), ""), `{"status":"success","data":{"resultType":"streams","result":[]}}`)
}

// notes are the lines of an answer, in its order.
func notes(a *apitest.Answer) string {
	a.T.Helper()
	var all []string
	for _, s := range a.Must(200).At("data.result").([]any) {
		for _, v := range apitest.Field(s, "values").([]any) {
			all = append(all, v.([]any)[1].(string))
		}
	}
	return strings.Join(all, ", ")
}

// TestLokiRange: direction, limit, and which end belongs to a range.
func TestLokiRange(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	at := func(d time.Duration) string { return fmt.Sprint(noon.Add(d).UnixNano()) }
	for params, want := range map[string]string{
		span("query", `{namespace="shop",kind="Pod"} | keep kind`):                                                                                                              "Container image pulled, Back-off restarting failed container",
		span("query", `{namespace="shop",kind="Pod"} | keep kind`, "direction", "FORWARD"):                                                                                      "Back-off restarting failed container, Container image pulled",
		span("query", `{} | keep x`, "limit", "2"):                                                                                                                              "Node is not ready, Back-off pulling image",
		span("query", `{} | keep x`, "limit", "1", "direction", "forward"):                                                                                                      "Back-off restarting failed container",
		url.Values{"query": {`{} | keep x`}, "start": {at(2 * time.Minute)}, "end": {at(3*time.Minute + 1500*time.Microsecond)}}.Encode():                                       "Container image pulled",
		url.Values{"query": {`{} | keep x`}, "start": {at(2*time.Minute + 1)}, "end": {at(3*time.Minute + 1501*time.Microsecond)}}.Encode():                                     "Scaled up to 3",
		url.Values{"query": {`{} | keep x`}, "start": {"1795176180"}, "end": {"1795176180.002"}}.Encode():                                                                       "Scaled up to 3",
		url.Values{"query": {`{} | keep x`}, "start": {"2026-11-20T12:03:00Z"}, "end": {"2026-11-20T13:03:00.1+01:00"}}.Encode():                                                "Scaled up to 3",
		url.Values{"query": {`{} | keep x`}, "since": {"1m"}, "end": {"2026-11-20T12:02:30Z"}}.Encode():                                                                         "Container image pulled",
		url.Values{"query": {`{} | name="p-b"`}, "start": {at(0)}, "end": {at(time.Hour)}}.Encode():                                                                             "Container image pulled",
		url.Values{"query": {`{} | count > 6 | host=~"node-.*"`}, "start": {at(0)}, "end": {at(time.Hour)}}.Encode():                                                            "Back-off restarting failed container",
		url.Values{"query": {`{} | json | reason_extracted="BackOff" | drop __error__ | regarding_uid!="u-a"`}, "start": {at(0)}, "end": {at(time.Hour)}}.Encode():              "Back-off pulling image",
		url.Values{"query": {`{} | json | logfmt | drop __error__, __error_details__ | detected_level="info" | name="p-b"`}, "start": {at(0)}, "end": {at(time.Hour)}}.Encode(): "Container image pulled",
	} {
		if got := notes(w.Do("GET", "/loki/api/v1/query_range?"+params, "")); got != want {
			t.Errorf("%s:\n got %s\nwant %s", params, got, want)
		}
		for _, media := range []string{"application/x-www-form-urlencoded", "Application/X-WWW-Form-URLEncoded ;charset=UTF-8"} {
			if got := notes(w.Do("POST", "/loki/api/v1/query_range", params, "Content-Type", media)); got != want {
				t.Errorf("as %s, %s:\n got %s\nwant %s", media, params, got, want)
			}
		}
	}
}

// TestLokiMetrics: occurrences are counted, whatever decides which.
func TestLokiMetrics(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	at := fmt.Sprint(noon.Add(10 * time.Minute).UnixNano())
	for query, want := range map[string]string{
		`vector(1)+vector(1)`: `[{"metric":{},"value":[1795176600,"2"]}]`,
		`sum by (level, detected_level) (count_over_time({namespace="shop"} | drop __error__[10m]))`: `[{"metric":{"detected_level":"info","level":"info"},"value":[1795176600,"2"]},{"metric":{"detected_level":"warning","level":"warning"},"value":[1795176600,"7"]}]`,
		`sum(count_over_time({namespace="shop"} |= "Back-off" [10m]))`:                               `[{"metric":{},"value":[1795176600,"7"]}]`,
		`sum(count_over_time({namespace="shop"}[8m]))`:                                               `[{"metric":{},"value":[1795176600,"2"]}]`,
		`sum(count_over_time({namespace="shop"}[8m] offset 1m))`:                                     `[{"metric":{},"value":[1795176600,"9"]}]`,
		`sum(count_over_time({namespace="none"}[8m]))`:                                               `[]`,
		`sum(rate({namespace="shop"}[10m])) * 600`:                                                   `[{"metric":{},"value":[1795176600,"9"]}]`,
		`topk(1, sum by (reason) (count_over_time({}[10m])))`:                                        `[{"metric":{"reason":"BackOff"},"value":[1795176600,"8"]}]`,
		`max(sum by (namespace) (count_over_time({}[10m])))`:                                         `[{"metric":{},"value":[1795176600,"9"]}]`,
		`avg(sum by (namespace) (count_over_time({}[10m])))`:                                         `[{"metric":{},"value":[1795176600,"5.5"]}]`,
		`sum by (name) (count_over_time({kind="Pod"}[10m]))`:                                         `[{"metric":{"name":"p-a"},"value":[1795176600,"7"]},{"metric":{"name":"p-b"},"value":[1795176600,"1"]},{"metric":{"name":"p-d"},"value":[1795176600,"1"]}]`,
		`count_over_time({cluster="east"}[10m])`:                                                     `[{"metric":{"cluster":"east","kind":"Pod","level":"warning","namespace":"pay","node":"k1","reason":"BackOff","reporter":"kubelet","service_name":"kubelet","type":"Warning"},"value":[1795176600,"1"]}]`,
		`sum(count_over_time({}[10m])) / sum(count_over_time({level="warning"}[10m]))`:               `[{"metric":{},"value":[1795176600,"1.2222222222222223"]}]`,
		`sum(count_over_time({} | json | reason_extracted="BackOff" [10m]))`:                         `[{"metric":{},"value":[1795176600,"8"]}]`,
	} {
		a := w.Do("GET", "/loki/api/v1/query?"+url.Values{"query": {query}, "time": {at}}.Encode(), "")
		is(a, `{"status":"success","data":{"resultType":"vector","result":`+want+`}}`)
		if t.Failed() {
			t.Fatal(query)
		}
	}
	is(w.Do("GET", "/loki/api/v1/query?query=1%2B1&time=1795176600", ""), `{"status":"success","data":{"resultType":"scalar","result":[1795176600,"2"]}}`)
	is(w.Do("GET", "/loki/api/v1/query_range?"+span("query", `sum by (kind) (count_over_time({namespace="shop"}[1m]))`, "step", "1m"), ""),
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"kind":"Deployment"},"values":[[1795176240,"1"]]},`+
			`{"metric":{"kind":"Pod"},"values":[[1795176120,"7"],[1795176180,"1"]]}]}}`)
	// Below a second occurrences are at the beginning of their second.
	for query, want := range map[string]string{
		`sum(count_over_time({namespace="shop"}[500ms]))`:                 `[1795176180.5,"1"]`,
		`sum(count_over_time({namespace="shop"}[250ms] offset 250ms))`:    `[1795176180.5,"1"]`,
		`sum(rate({namespace="shop"}[500ms]))`:                            `[1795176180.5,"2"]`,
		`sum(count_over_time({namespace="shop"} |= "up" [1ms]))`:          ``,
		`sum(count_over_time({namespace="shop"} |= "up" [0.5s]))`:         `[1795176180.5,"1"]`,
		`sum(count_over_time({namespace="shop"} |= "up" [499ms]))`:        ``,
		`sum(count_over_time({namespace="shop"} |= "up" [500ms])) * 1000`: `[1795176180.5,"1000"]`,
	} {
		for _, step := range []string{"0.5", "500ms", "0.5005"} {
			v := url.Values{"query": {query}, "step": {step}, "start": {fmt.Sprint(noon.Add(179500 * time.Millisecond).UnixNano())}, "end": {fmt.Sprint(noon.Add(181 * time.Second).UnixNano())}}
			result := `[{"metric":{},"values":[` + want + `]}]`
			if want == "" {
				result = `[]`
			}
			is(w.Do("GET", "/loki/api/v1/query_range?"+v.Encode(), ""), `{"status":"success","data":{"resultType":"matrix","result":`+result+`}}`)
			if t.Failed() {
				t.Fatal(query, step)
			}
		}
	}
	is(w.Do("GET", "/loki/api/v1/query_range?"+span("query", `sum (count_over_time({namespace="shop"}[5m]))`, "step", "120000ms"), ""),
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1795176120,"7"],[1795176240,"9"],[1795176360,"9"],[1795176480,"1"]]}]}}`)
}

// TestLokiAligned: the points of a range are the same for every beginning of the range,
// so that Grafana can ask for it piece by piece.
func TestLokiAligned(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	query := `sum(count_over_time({}[2m]))`
	whole := w.Do("GET", "/loki/api/v1/query_range?"+span("query", query, "step", "2m"), "").Must(200)
	for _, shift := range []time.Duration{time.Nanosecond, time.Second, 119 * time.Second} {
		v := url.Values{"query": {query}, "step": {"120"}, "start": {fmt.Sprint(noon.Add(shift).UnixNano())}, "end": {fmt.Sprint(noon.Add(10*time.Minute + shift).UnixNano())}}
		apitest.Equal(t, string(w.Do("GET", "/loki/api/v1/query_range?"+v.Encode(), "").Must(200).Body), string(whole.Body))
	}
}

func TestLokiNames(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	is(w.Do("GET", "/loki/api/v1/labels?"+span(), ""), `{"status":"success","data":["cluster","kind","level","namespace","node","reason","reporter","service_name","type"]}`)
	is(w.Do("GET", "/loki/api/v1/label?"+span("query", `{namespace="shop"}`), ""), `{"status":"success","data":["kind","level","namespace","node","reason","reporter","service_name","type"]}`)
	is(w.Do("GET", "/loki/api/v1/label/kind/values?"+span(), ""), `{"status":"success","data":["Deployment","Node","Pod"]}`)
	is(w.Do("GET", "/loki/api/v1/label/kind/values?"+span("query", `{namespace=~"sh.p"}`), ""), `{"status":"success","data":["Deployment","Pod"]}`)
	is(w.Do("GET", "/loki/api/v1/label/unknown/values?"+span(), ""), `{"status":"success","data":[]}`)
	is(w.Do("GET", "/loki/api/v1/label/kind/values", ""), `{"status":"success","data":[]}`) // within the last hour
	pulled := `{"kind":"Pod","level":"info","namespace":"shop","node":"k1","reason":"Pulled","reporter":"kubelet","service_name":"kubelet","type":"Normal"}`
	is(w.Do("GET", "/loki/api/v1/series?"+span("match[]", `{reason="Pulled"}`), ""), `{"status":"success","data":[`+pulled+`]}`)
	is(w.Do("POST", "/loki/api/v1/series", span("match", `{reason="Pulled"}`, "match[]", `{reason="none"}`), "Content-Type", "application/x-www-form-urlencoded"),
		`{"status":"success","data":[`+pulled+`]}`)
	is(w.Do("GET", "/loki/api/v1/index/stats?"+span("query", `{namespace="shop"}`), ""), `{"streams":3,"chunks":3,"bytes":9216,"entries":9}`)
	is(w.Do("GET", "/loki/api/v1/index/volume?"+span("query", `{namespace=~".+"}`), ""),
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"shop"},"value":[1795176600,"9"]},{"metric":{"namespace":"pay"},"value":[1795176600,"2"]}]}}`)
	is(w.Do("GET", "/loki/api/v1/index/volume_range?"+span("query", `{namespace="pay"}`, "step", "5m"), ""),
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"pay"},"values":[[1795176300,"2"]]}]}}`)
	is(w.Do("GET", "/loki/api/v1/detected_labels?"+span("query", `{namespace="shop"}`), ""),
		`{"detectedLabels":[{"label":"kind","cardinality":2},{"label":"level","cardinality":2},{"label":"namespace","cardinality":1},{"label":"node","cardinality":2},{"label":"reason","cardinality":3},`+
			`{"label":"reporter","cardinality":1},{"label":"service_name","cardinality":1},{"label":"type","cardinality":2}]}`)
	fields := string(w.Do("GET", "/loki/api/v1/detected_fields?"+span("query", `{namespace="shop"}`), "").Must(200).Body)
	for _, want := range []string{
		`{"label":"count","type":"int","cardinality":2,"parsers":null}`, `{"label":"host","type":"string","cardinality":2,"parsers":null}`,
		`{"label":"regarding_kind","type":"string","cardinality":2,"parsers":["json"]}`, `"limit":1000`,
	} {
		if !strings.Contains(fields, want) {
			t.Errorf("no %s in %s", want, fields)
		}
	}
	is(w.Do("GET", "/loki/api/v1/detected_field/name/values?"+span("query", `{namespace="shop"}`), ""), `{"limit":1000,"values":["p-a","p-b","p-c"]}`)
	is(w.Do("GET", "/loki/api/v1/patterns?"+span("query", `{namespace="shop"}`), ""), `{"status":"success","data":[`+
		`{"pattern":"Back-off restarting failed container","samples":[[1795176060,7]]},{"pattern":"Container image pulled","samples":[[1795176120,1]]},`+
		`{"pattern":"Scaled up to \u003c_\u003e","samples":[[1795176180,1]]}]}`)
	for op, want := range map[string]int{"|>": 1, "!>": 2} { // with which Grafana shows the lines of a pattern
		a := w.Do("GET", "/loki/api/v1/query_range?"+span("query", `{namespace="shop"} `+op+` "Scaled up to <_>"`), "").Must(200)
		apitest.Equal(t, len(a.At("data.result").([]any)), want)
	}
	is(w.Do("GET", "/loki/api/v1/format_query?query="+url.QueryEscape(`{a="b"}|="c"`), ""), `{"status":"success","data":"{a=\"b\"} |= \"c\""}`)
	apitest.Equal(t, w.Do("GET", "/loki/api/v1/drilldown-limits", "").Must(200).At("pattern_ingester_enabled"), any(true))
	apitest.Equal(t, w.Do("GET", "/loki/api/v1/status/buildinfo", "").Must(200).At("version"), any("3.7.8"))
}

// TestLokiVolumes: which labels and streams count, as Loki 3.7 has it
// (util.PrepareLabelsAndMatchers and TSDBIndex.Volume in its source).
func TestLokiVolumes(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	for _, c := range []struct {
		query, target, by, want string
	}{
		{`{}`, "", "series", `{"kind":"Pod","level":"warning","namespace":"shop","node":"node-1","reason":"BackOff","reporter":"kubelet","service_name":"kubelet","type":"Warning"} 7, ` +
			`{"cluster":"east","kind":"Pod","level":"warning","namespace":"pay","node":"k1","reason":"BackOff","reporter":"kubelet","service_name":"kubelet","type":"Warning"} 1, ` +
			`{"kind":"Deployment","level":"info","namespace":"shop","node":"k1","reason":"ScalingReplicaSet","reporter":"kubelet","service_name":"kubelet","type":"Normal"} 1, ` +
			`{"kind":"Node","level":"warning","namespace":"pay","node":"p-e","reason":"NodeNotReady","reporter":"kubelet","service_name":"kubelet","type":"Warning"} 1, ` +
			`{"kind":"Pod","level":"info","namespace":"shop","node":"k1","reason":"Pulled","reporter":"kubelet","service_name":"kubelet","type":"Normal"} 1`},
		{`{namespace="pay"}`, "", "", `{"namespace":"pay"} 2`},
		{`{namespace="pay", kind!=""}`, "", "series", `{"kind":"Node","namespace":"pay"} 1, {"kind":"Pod","namespace":"pay"} 1`},
		// only streams that have all the labels
		{`{}`, "kind,cluster", "series", `{"cluster":"east","kind":"Pod"} 1`},
		{`{namespace="shop"}`, "kind,cluster", "series", ``},
		{`{namespace="shop"}`, "kind,reason,kind", "", `{"kind":"Pod","reason":"BackOff"} 7, {"kind":"Deployment","reason":"ScalingReplicaSet"} 1, {"kind":"Pod","reason":"Pulled"} 1`},
		{`{}`, "kind,unknown", "", ``},
		// unless the selector says itself which ones
		{`{namespace="pay", cluster!="west"}`, "cluster", "series", `{} 1, {"cluster":"east"} 1`},
		// by labels: those that are named, else all
		{`{namespace="pay"}`, "kind,cluster", "labels", `{"cluster":""} 1, {"kind":""} 1`},
		{`{namespace="shop"}`, "kind", "labels", `{"kind":""} 9`},
		{`{namespace="shop"}`, "unknown", "labels", ``},
		{`{namespace="pay"}`, "", "labels", `{"kind":""} 2, {"level":""} 2, {"namespace":""} 2, {"node":""} 2, {"reason":""} 2, {"reporter":""} 2, {"service_name":""} 2, {"type":""} 2, {"cluster":""} 1`},
	} {
		for _, path := range []string{"volume", "volume_range"} {
			var a struct {
				Data struct {
					Result []struct {
						Metric json.RawMessage
						Value  [2]any
						Values [][2]any
					}
				}
			}
			text := w.Do("GET", "/loki/api/v1/index/"+path+"?"+span("query", c.query, "targetLabels", c.target, "aggregateBy", c.by, "step", "10m"), "").Must(200).Body
			if err := json.Unmarshal(text, &a); err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, s := range a.Data.Result {
				for _, v := range append(s.Values, s.Value) {
					if v[1] != nil {
						all = append(all, fmt.Sprintf("%s %s", s.Metric, v[1]))
					}
				}
			}
			if got := strings.Join(all, ", "); got != c.want {
				t.Errorf("%s of %s, target %q by %q:\n got %s\nwant %s", path, c.query, c.target, c.by, got, c.want)
			}
		}
	}
	is(w.Do("GET", "/loki/api/v1/index/volume_range?"+span("query", `{reason="ScalingReplicaSet"}`, "step", "500ms"), ""),
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"reason":"ScalingReplicaSet"},"values":[[1795176180.5,"1"]]}]}}`)
	a := w.Do("GET", "/loki/api/v1/index/volume?"+span("query", `{}`, "targetLabels", strings.Repeat("kind,", 50)+"kind"), "").Must(400)
	apitest.Equal(t, string(a.Body), "more than 50 names in targetLabels\n")
}

// TestLokiErrors: they are texts, with what would be right.
func TestLokiErrors(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	for path, want := range map[string]string{
		"query_range?query=" + url.QueryEscape(`{a="b"} | unwrap x`): "parse error at line 1, col 11: syntax error: unexpected unwrap, which is not supported here: supported are json, drop, keep, label filters",
		"query?query=" + url.QueryEscape(`{a="b"}`):                  "log queries are not supported as an instant query type, please change your query to a range query type",
		"query_range?query={}&start=yesterday":                       "could not parse 'start' parameter: \"yesterday\" is no time: want seconds or nanoseconds since 1970, or RFC 3339",
		"query_range?query={}&start=NaN":                             "could not parse 'start' parameter: \"NaN\" is no time: want seconds or nanoseconds since 1970, or RFC 3339",
		"query_range?query={}&start=20&end=10":                       "end timestamp must not be before or equal to start time",
		"query_range?query={}&since=soon":                            "could not parse 'since' parameter: not a valid duration string: \"soon\"",
		"query_range?query={}&limit=5001":                            "max entries limit per query exceeded, limit > max_entries_limit_per_query (5001 > 5000)",
		"query_range?query={}&limit=0":                               "limit must be a positive value",
		"query_range?query={}&limit=x":                               "limit is no number: \"x\"",
		"query_range?query={}&direction=up":                          "invalid direction 'up': want forward or backward",
		"query_range?query={}&step=0":                                "zero or negative query resolution step widths are not accepted. Try a positive integer",
		"query_range?query={}&step=soon":                             "cannot parse \"soon\" to a valid duration: step is a number of seconds, or a duration such as 1m or 500ms",
		"query_range?query={}&step=0.0001":                           "the step 100µs is less than a millisecond",
		"query_range?query={}&start=0&end=11001&step=1":              "exceeded maximum resolution of 11,000 points per time series. Try increasing the value of the step parameter",
		"query_range?query={}&interval=5":                            "interval is not supported: lines are never thinned out",
		"series?match[]=" + url.QueryEscape(`{a="b"} |= "c"`):        "parse error : only label matchers are supported",
		"index/volume?aggregateBy=x":                                 "invalid aggregation option: \"x\", want series or labels",
		"query_range?" + span("query", `sum(count_over_time({} | name > 5 [5m]))`): "pipeline error: 'LabelFilterErr'. Use a label filter to intentionally skip this error. (e.g | __error__!=\"LabelFilterErr\"). " +
			"To skip all potential errors you can match empty errors.(e.g __error__=\"\")",
		"tail?query={}": "this path is a WebSocket: the request must ask for an upgrade",
	} {
		a := w.Do("GET", "/loki/api/v1/"+path, "").Must(400)
		if got := strings.TrimSpace(string(a.Body)); got != want || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %s\n got %s\nwant %s", path, a.Header.Get("Content-Type"), got, want)
		}
	}
	apitest.Equal(t, string(w.Do("GET", "/loki/api/v1/nothing", "").Must(404).Body), "the server could not find the requested resource\n")
	apitest.Equal(t, string(w.Do("DELETE", "/loki/api/v1/labels", "").Must(405).Body), "the server does not allow this method on the requested resource\n")
	w.Do("POST", "/loki/api/v1/labels", "query="+strings.Repeat("x", 70<<10), "Content-Type", "application/x-www-form-urlencoded").Must(400)
}

// TestLokiToken: the token is a bearer token or the password of Basic authentication, the
// latter only here.
func TestLokiToken(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for header, want := range map[string]int{
		"Bearer good": 200, basic("any", "good"): 200, basic("", "good"): 200, "basic " + basic("any", "good")[6:]: 200,
		basic("good", "bad"): 401, basic("good", ""): 401, "Basic !": 401, "Bearer bad": 401, "": 401,
	} {
		a := w.Do("GET", "/loki/api/v1/labels", "", "Authorization", header).Must(want)
		if want == 401 && (string(a.Body) != "Unauthorized\n" || !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer")) {
			t.Errorf("%q: %s %s", header, a.Body, a.Header)
		}
	}
	w.Do("GET", apitest.EventsPath, "", "Authorization", basic("any", "good")).Must(401)
}

// TestLokiTenant: the header that names a tenant selects a cluster.
func TestLokiTenant(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	path := "/loki/api/v1/label/namespace/values?" + span()
	is(w.Do("GET", path, "", "X-Scope-OrgID", "east"), `{"status":"success","data":["pay"]}`)
	is(w.Do("GET", path, "", "X-Scope-OrgID", "west"), `{"status":"success","data":[]}`)
	is(w.Do("GET", "/loki/api/v1/query_range?"+span("query", `{} | keep x`), "", "X-Scope-OrgID", "east"),
		`{"status":"success","data":{"resultType":"streams","result":[{"stream":{},"values":[["1795176240000000000","Back-off pulling image"]]}]}}`)
	for header, want := range map[string]string{"east|west": "several tenants", "../x": "no name of a cluster"} {
		if a := w.Do("GET", path, "", "X-Scope-OrgID", header).Must(http.StatusBadRequest); !strings.Contains(string(a.Body), want) {
			t.Errorf("%s: %s", header, a.Body)
		}
	}
}
