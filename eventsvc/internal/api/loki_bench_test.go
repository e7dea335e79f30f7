package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// benchEvents is how many events there are in the benchmarks of Loki's API, over a week.
const benchEvents = 100_000

// BenchmarkLoki asks what Grafana asks.
func BenchmarkLoki(b *testing.B) {
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	start := end.Add(-7 * 24 * time.Hour)
	s := benchServerOf(b, benchEvents, func(i int) (path, body string) {
		at := start.Add(time.Duration(i) * (7 * 24 * time.Hour / benchEvents)).Format("2006-01-02T15:04:05.000000Z")
		ns := fmt.Sprintf("ns-%03d", i%200)
		kind := "Normal"
		if i%10 == 0 {
			kind = "Warning"
		}
		return "/apis/events.k8s.io/v1/namespaces/" + ns + "/events", fmt.Sprintf(
			`{"metadata":{"name":"e%d"},"eventTime":%q,"reportingController":"kubelet","reportingInstance":"n1","action":"A","reason":"R%d","type":%q,`+
				`"note":"note number %d of pod","regarding":{"kind":"Pod","namespace":%q,"name":"p%d"}}`, i, at, i%52, kind, i, ns, i%5000)
	})
	week := url.Values{"start": {fmt.Sprint(start.UnixNano())}, "end": {fmt.Sprint(end.UnixNano())}, "step": {"1h"}, "limit": {"100"}}
	for name, query := range map[string]string{
		"count by level": `sum by (level) (count_over_time({namespace=~".+"}[1h]))`,
		"top reasons":    `topk(10, sum by (reason) (count_over_time({level="warning"}[1h])))`,
		"newest":         `{namespace=~".+"}`,
		"text":           `{namespace="ns-007"} |= "7 of pod"`,
		"text nowhere":   `{namespace=~".+"} |= "nowhere"`,
		"count of text":  `sum(count_over_time({namespace=~".+"} |= "number 12" [1h]))`,
	} {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			week.Set("query", query)
			path := "/loki/api/v1/query_range?" + week.Encode()
			for b.Loop() {
				if code, _ := request(b, s, "GET", path, ""); code != 200 {
					b.Fatal(code)
				}
			}
		})
	}
}
