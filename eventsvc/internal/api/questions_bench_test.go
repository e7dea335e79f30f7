package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

const week = 7 * 24 * time.Hour

// BenchmarkQuestions asks about a week of events in compressed files what people ask a log store. The events are those
// in the directory named by TIDINGS_BENCH_DIR, which it fills with a million if it is empty and keeps; else it makes a
// tenth of that.
func BenchmarkQuestions(b *testing.B) {
	dir, n := os.Getenv("TIDINGS_BENCH_DIR"), 1_000_000
	if dir == "" {
		dir, n = b.TempDir(), n/10
	}
	s, db := benchServerIn(b, bolt.Options{Dir: dir, MaxBytes: -1, SegmentBytes: 16 << 20})
	if db.Stats().Events == 0 {
		fill(b, s, n, weekOf(n))
		if err := db.Compact(b.Context(), true, nil); err != nil {
			b.Fatal(err)
		}
	}
	end, _ := newestBefore(b, db, time.Now().Add(24*time.Hour))
	_, uid := newestBefore(b, db, end.Add(-week/2))
	for _, q := range []struct {
		name, path string
		reach      time.Duration
	}{
		{"word", "events?search=zzqqnothere&limit=100", week},
		{"part", "events?search=qnotherez&limit=100", week},
		{"phrase", "events?namespace=team-07&limit=100&search=" + url.QueryEscape(`"back-off"`), week},
		{"object", "events?limit=1000&fieldSelector=regarding.uid=" + uid, week},
		{"warnings", "groups?by=namespace&fieldSelector=type=Warning", 24 * time.Hour},
		{"histogram", "histogram?step=1h&by=type", week},
		{"reasons", "facets?by=reason", week},
		{"facets", "facets?limit=10", week},
		{"overview", "overview?over=type&step=1h", week},
		{"overview-rare", "overview?over=type&step=1h&search=app-3-00413_", week},
		{"overview-phrase", "overview?over=type&step=1h&search=" + url.QueryEscape(`"restarting failed"`), week},
		{"patterns", "groups?by=pattern&limit=10", week},
		{"phrase-histogram", "histogram?step=1h&search=" + url.QueryEscape(`"restarting failed"`), week},
		{"warned-objects", "groups?by=object&limit=10&fieldSelector=type=Warning", 24 * time.Hour},
		{"node-of-phrase", "facets?by=node&search=" + url.QueryEscape(`node:node-017 OR "failed container app-7"`), week},
		{"rare", "events?limit=100&search=app-3-00413_", week},
	} {
		path := "/query/v1/" + q.path + "&" + url.Values{"from": {end.Add(-q.reach).Format(time.RFC3339)}, "to": {end.Format(time.RFC3339)}}.Encode()
		b.Run(q.name, func(b *testing.B) {
			b.ReportAllocs()
			size, least := 0, time.Hour // on a busy machine the least says most
			for b.Loop() {
				before := cpuTime(b)
				var code int
				if code, size = request(b, s, "GET", path, ""); code != 200 {
					b.Fatal(code)
				}
				least = min(least, cpuTime(b)-before)
			}
			b.ReportMetric(float64(least.Microseconds())/1e3, "least-cpu-ms")
			b.ReportMetric(float64(size), "B/answer")
		})
	}
}

// newestBefore returns when the newest event before a time was observed, and the UID of its object.
func newestBefore(b *testing.B, db *bolt.DB, before time.Time) (seen time.Time, uid string) {
	b.Helper()
	_, err := db.Timeline().Observed(b.Context(), store.TimeQuery{Range: store.Range{To: before}}, func(v *store.View, at store.Moment) bool {
		seen, uid = store.Ceil(at.Time), string(v.Attributes.Field(event.RegardingUID))
		return false
	})
	if err != nil || uid == "" {
		b.Fatal(err)
	}
	return seen, uid
}

// weekOf returns n events of the week before noon: those of 20,000 pods, as kubelets report them.
func weekOf(n int) func(i int) (path, body string) {
	reasons := []string{"Scheduled", "Pulling", "Pulled", "Created", "Started", "Killing", "BackOff", "Unhealthy", "FailedMount", "Evicted"}
	return func(i int) (path, body string) {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		pod, app := i%500+i/32_000*500, i%10
		ns, node, reason, kind := fmt.Sprintf("team-%02d", pod%40), fmt.Sprintf("node-%03d", pod%100), reasons[r.IntN(len(reasons))], "Normal"
		if r.IntN(10) == 0 {
			kind = "Warning"
		}
		note := fmt.Sprintf("%s of app-%d in %s on %s", reason, app, ns, node)
		if reason == "BackOff" {
			note = fmt.Sprintf("Back-off restarting failed container app-%d in pod app-%d-%05d_%s", app, app, pod, ns)
		}
		at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(week / time.Duration(n) * time.Duration(i-n)).Format("2006-01-02T15:04:05.000000Z")
		return "/apis/events.k8s.io/v1/namespaces/" + ns + "/events", fmt.Sprintf(
			`{"metadata":{"name":"app-%d-%05d.%016x"},"eventTime":%q,"reportingController":"kubelet","reportingInstance":%q,"action":%q,"reason":%q,"type":%q,`+
				`"note":%q,"regarding":{"apiVersion":"v1","kind":"Pod","namespace":%q,"name":"app-%d-%05d","uid":"9c1f0e0a-3b7e-4f6e-9d1c-%012d"}}`,
			app, pod, i, at, node, reason, reason, kind, note, ns, app, pod, pod)
	}
}

// cpuTime is the processor time of this process: on a busy machine it says more than the time that passed.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
