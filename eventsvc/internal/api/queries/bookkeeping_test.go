package queries_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/event"
)

// TestBookkeeping: what a mirror says of its own work is in no list, count or change, unless it is asked for.
func TestBookkeeping(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	w.Do("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", fmt.Sprintf(`{"metadata":{"name":"cursor"},"eventTime":%q,
		"reportingController":%q,"reportingInstance":"i","action":"Mirror","type":"Normal","reason":%q,"regarding":{"kind":"Cluster","namespace":"shop","name":"east"}}`,
		apitest.StoryEnd.Add(-time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), event.GapReporter, event.CursorReason)).Must(201)
	asked := map[[2]string]bool{
		{}: false, {"search", "type:normal"}: false, {"search", "cluster"}: false, {"search", "-reason:Mirrored"}: false,
		{"search", "reason:Mirrored"}: true, {"search", "mirrored"}: true, {"fieldSelector", "reportingController=" + event.GapReporter}: true,
	}
	for ask, want := range asked {
		for path, part := range map[string]string{"events": "items", "facets": "facets", "groups": "groups"} {
			parameters := []string{}
			if ask[0] != "" {
				parameters = append(parameters, ask[0], ask[1])
			}
			if path != "events" {
				parameters = append(parameters, "by", "reason")
			}
			a := w.Do("GET", apitest.QueryPath(path, parameters...), "").Must(200)
			text := strings.ReplaceAll(fmt.Sprint(a.At(part)), url.QueryEscape(ask[1]), "") // in links
			if got := strings.Contains(text, event.CursorReason); got != want {
				t.Errorf("%s %s: has the cursor: %v, want %v", path, ask, got, want)
			}
		}
	}
	a := w.Do("GET", "/query/v1/changes?at="+apitest.StoryEnd.Format(time.RFC3339), "").Must(200)
	if strings.Contains(fmt.Sprint(a.At("changes")), event.CursorReason) {
		t.Errorf("changes have the cursor: %s", a.Body)
	}
}
