package apitest

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/store/bolt"
)

// GapReport is an event that reports a gap of the cluster east, until a minute of the hour of queries. Labels and more
// metadata are members in JSON.
func GapReport(name, minute, metadata string) string {
	return fmt.Sprintf(`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":%q%s,"labels":{"tidings.example/cluster":"east"},
		"annotations":{"mirror.tidings.example/gap-from":"2026-03-04T12:20:00Z","mirror.tidings.example/gap-to":"2026-03-04T12:%s:00Z"}},
		"eventTime":"2026-03-04T12:30:00.000000Z","reportingController":"tidings.example/mirror","reportingInstance":"i","action":"Do",
		"type":"Warning","reason":"MirrorGap","note":"n","regarding":{"namespace":"team-a"}}`, name, metadata, minute)
}

// QueryPath is the path of a query. Parameters are pairs of name and value.
func QueryPath(path string, parameters ...string) string {
	q := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		q.Add(parameters[i], parameters[i+1])
	}
	return "/query/v1/" + path + "?" + q.Encode()
}

// StoryEnd is the end of the story that tests of queries ask about: twelve events within an hour.
var StoryEnd = time.Date(2026, 3, 4, 13, 0, 0, 0, time.UTC)

// Tell creates the events of the story.
func (w *World) Tell() {
	w.T.Helper()
	for i := range 12 {
		namespace, typ, reason := []string{"shop", "shop-test", "build"}[i%3], "Normal", "Pulled"
		if i%4 == 0 {
			typ, reason = "Warning", "BackOff"
		}
		labels := ""
		if i%2 == 0 {
			labels = `"tidings.example/cluster":"east"`
		}
		w.Do("POST", "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", fmt.Sprintf(`{"metadata":{"name":"e%02d","labels":{%s}},
			"eventTime":%q,"series":{"count":%d,"lastObservedTime":%q},"reportingController":"example.com/ctl-%s","reportingInstance":"i","action":"Do","type":%q,"reason":%q,
			"note":"Back-off restarting failed container %d","regarding":{"kind":"Pod","namespace":%q,"name":"p-%s","uid":"uid-%s"}}`,
			i, labels, StoryEnd.Add(-time.Hour).Format("2006-01-02T15:04:05.000000Z07:00"), i+2,
			StoryEnd.Add(-time.Duration(60-5*i)*time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"),
			namespace, typ, reason, i, namespace, namespace, namespace)).Must(201)
	}
}

// StoryWorld has the story, and a clock that stands still at its end.
func StoryWorld(t *testing.T, changes ...func(*api.Config)) *World {
	t.Helper()
	now := func() time.Time { return StoryEnd }
	w := Open(t, bolt.Options{Now: now}, append(changes, func(c *api.Config) { c.Now = now })...)
	w.Tell()
	return w
}

// CursorEvent is the cursor of a mirror of a cluster, complete until a minute of an hour.
func CursorEvent(name, cluster string, minute int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"tidings.example/cluster":%q},"annotations":{"mirror.tidings.example/cursor":"7",`+
		`"mirror.tidings.example/cursor-time":"2026-03-04T13:%02d:00Z","mirror.tidings.example/last-event":"2026-03-04T13:%02d:30Z","mirror.tidings.example/mirror-version":"v1"}},`+
		`"involvedObject":{"kind":"Cluster","namespace":"kube-system"},"reason":"Mirrored","type":"Normal","reportingComponent":"tidings.example/mirror"}`, name, cluster, minute, minute)
}
