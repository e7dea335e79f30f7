package loki_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api/apitest"
)

// TestLokiShares: a namespace that fills every limit takes nothing from the others, and what is left out is a warning
// and no error.
func TestLokiShares(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	lines := make([]string, 500)
	for i := range 21 {
		for j := range lines {
			lines[j] = fmt.Sprintf(`{"metadata":{"name":"e%d-%d","namespace":"noisy"},"involvedObject":{"kind":"K%d-%d","namespace":"noisy","name":"p"},"reason":"R%d-%d","type":"Normal"}`, i, j, i, j, i, j)
		}
		for _, r := range w.Bulk("good", "", lines...).Results(len(lines)) {
			if r.Code != 201 {
				t.Fatalf("%+v", r)
			}
		}
	}
	w.Do("POST", "/api/v1/namespaces/shop/events", `{"metadata":{"name":"a"},"involvedObject":{"kind":"Pod","namespace":"shop","name":"p"},"reason":"BackOff","type":"Warning"}`).Must(201)
	get := func(path string, warned bool, parameters ...string) any {
		t.Helper()
		v := url.Values{}
		for i := 0; i < len(parameters); i += 2 {
			v.Set(parameters[i], parameters[i+1])
		}
		a := w.Do("GET", "/loki/api/v1/"+path+"?"+v.Encode(), "").Must(200)
		if warnings, ok := a.At("warnings").([]any); ok != warned || warned && len(warnings) != 1 {
			t.Errorf("%s: the warnings are %v", path, warnings)
		}
		if path == "detected_labels" {
			return a.At("detectedLabels")
		}
		return a.At("data")
	}
	if labels := get("labels", true).([]any); len(labels) != 5 {
		t.Errorf("the labels are %v", labels)
	}
	for label, value := range map[string]string{"namespace": "shop", "type": "Warning", "level": "warning"} {
		if values := get("label/"+label+"/values", false).([]any); !slices.Contains(values, any(value)) {
			t.Errorf("%s: %v", label, values)
		}
	}
	for label, value := range map[string]string{"kind": "Pod", "reason": "BackOff"} {
		if values := get("label/"+label+"/values", true).([]any); !slices.Contains(values, any(value)) || len(values) < 5000 {
			t.Errorf("%s: %d values without %s", label, len(values), value)
		}
	}
	if all := get("detected_labels", true).([]any); len(all) != 5 {
		t.Errorf("%v", all)
	}
	series := get("series", true).([]any)
	if !slices.ContainsFunc(series, func(s any) bool { return apitest.Field(s, "namespace") == any("shop") }) {
		t.Error("the series lack a namespace")
	}
	now := strconv.FormatInt(time.Now().Add(time.Minute).UnixNano(), 10)
	get("index/stats", true)
	get("index/volume", true, "query", `{reason=~".+"}`, "limit", "5000", "end", now)
	get("index/volume_range", true, "query", `{reason=~".+"}`, "limit", "5000", "step", "10m", "end", now)
	const byReason = `sum by (reason) (count_over_time({}[1h]))`
	for _, path := range []string{"query", "query_range"} {
		v := url.Values{"query": {byReason}, "time": {now}, "end": {strconv.FormatInt(time.Now().Add(20*time.Minute).UnixNano(), 10)}, "step": {"10m"}}
		a := w.Do("GET", "/loki/api/v1/"+path+"?"+v.Encode(), "").Must(200)
		if n := len(a.At("data.result").([]any)); n != 500 || len(a.At("warnings").([]any)) != 2 {
			t.Errorf("%s has %d series and warns of %v", path, n, a.At("warnings"))
		}
	}
	v := url.Values{"query": {`sum by (reason) (count_over_time({namespace="shop"}[1h]))`}, "time": {now}}
	apitest.Equal(t, len(w.Do("GET", "/loki/api/v1/query?"+v.Encode(), "").Must(200).At("data.result").([]any)), 1)
}

// TestLokiVolumeRange: the pieces of a range are together what the range is, wherever it begins and ends.
func TestLokiVolumeRange(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	for i := range 12 {
		lokiEvent{name: fmt.Sprint("m", i), namespace: "shop", kind: "Pod", reason: "R", note: "n", at: noon.Add(time.Duration(i-3) * time.Minute), count: 2 + i}.create(w)
	}
	for _, of := range []struct{ from, to, step time.Duration }{
		{0, 10 * time.Minute, 5 * time.Minute}, {2 * time.Minute, 9 * time.Minute, 5 * time.Minute}, {-time.Minute, 4*time.Minute + time.Second, time.Hour},
		{90 * time.Second, 7*time.Minute + 500*time.Millisecond, time.Minute}, {-10 * time.Minute, 20 * time.Minute, 7 * time.Minute},
	} {
		parameters := url.Values{
			"query": {`{namespace=~".+"}`}, "step": {of.step.String()},
			"start": {fmt.Sprint(noon.Add(of.from).UnixNano())}, "end": {fmt.Sprint(noon.Add(of.to).UnixNano())},
		}.Encode()
		sums := map[string]float64{}
		for _, s := range w.Do("GET", "/loki/api/v1/index/volume_range?"+parameters, "").Must(200).At("data.result").([]any) {
			for _, sample := range apitest.Field(s, "values").([]any) {
				at, n := sample.([]any)[0].(float64), sample.([]any)[1].(string)
				value, _ := strconv.ParseFloat(n, 64)
				sums[apitest.Field(s, "metric.namespace").(string)] += value
				if second := at - float64(noon.Unix()); second <= of.from.Seconds() || second > of.to.Seconds() {
					t.Errorf("%+v has a sample at %v s", of, second)
				}
			}
		}
		want := map[string]float64{}
		for _, s := range w.Do("GET", "/loki/api/v1/index/volume?"+parameters, "").Must(200).At("data.result").([]any) {
			want[apitest.Field(s, "metric.namespace").(string)], _ = strconv.ParseFloat(apitest.Field(s, "value").([]any)[1].(string), 64)
		}
		apitest.Equal(t, sums, want)
	}
}
