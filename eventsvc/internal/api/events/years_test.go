package events_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/event"
)

// TestYearsBeyondRFC3339: no way of writing stores a time that RFC 3339 cannot write in UTC, whatever field it is in.
// From then on no client could read a list with the event.
func TestYearsBeyondRFC3339(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Do("POST", apitest.EventsPath, apitest.NewEvent("new", `"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.000000Z"}`)).Must(201)
	core := func(name, more string) string {
		return `{"apiVersion":"v1","kind":"Event","metadata":{"name":"` + name + `","namespace":"default"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},` +
			`"reason":"R","type":"Normal","action":"A","reportingComponent":"example.com/ctl","reportingInstance":"i",` + more + `}`
	}
	w.Do("POST", apitest.CorePath, core("core", `"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.000000Z"}`)).Must(201)
	type place struct{ core, events, micro string } // the field in each view, as a path with one slash, and the fraction of its times
	places := map[string]place{
		"series.lastObservedTime": {"series/lastObservedTime", "series/lastObservedTime", ".000000"},
		"eventTime":               {"eventTime", "eventTime", ".000000"},
		"firstTimestamp":          {"firstTimestamp", "deprecatedFirstTimestamp", ""},
		"lastTimestamp":           {"lastTimestamp", "deprecatedLastTimestamp", ""},
	}
	set := func(path, at string) string { // the member of a merge patch, or of an event
		if parent, child, nested := strings.Cut(path, "/"); nested {
			return fmt.Sprintf(`%q:{"count":3,%q:%q}`, parent, child, at)
		}
		return fmt.Sprintf(`%q:%q`, path, at)
	}
	for _, at := range []string{"9999-12-31T23:59:59%s-01:00", "0000-01-01T00:00:00%s+00:01"} {
		for name, p := range places {
			when := fmt.Sprintf(at, p.micro)
			check := func(how string, a *apitest.Answer) {
				t.Helper()
				if a.Code != 422 || !strings.Contains(string(a.Body), name+": Invalid value") || !strings.Contains(string(a.Body), "years are from 0 to 9999") {
					t.Errorf("%s with %s %s: %d %s", how, name, when, a.Code, a.Body)
				}
			}
			for view, path := range map[string]string{apitest.CorePath: p.core, apitest.EventsPath: p.events} {
				stored, whole := "core", core("core", set(path, when))
				if view == apitest.EventsPath {
					stored, whole = "new", apitest.NewEvent("new", `"apiVersion":"events.k8s.io/v1","kind":"Event"`, set(path, when))
				}
				if stored == "core" || name == "series.lastObservedTime" || name == "eventTime" { // others must be unset through events/v1
					check("create in a dry run", w.Do("POST", view+"?dryRun=All", strings.Replace(whole, `"name":"`+stored, `"name":"other`, 1)))
					check("create", w.Do("POST", view, strings.Replace(whole, `"name":"`+stored, `"name":"other`, 1)))
				}
				if stored == "new" && !strings.Contains(path, "/") {
					continue // events/v1 lets nobody change it
				}
				check("update", w.Do("PUT", view+"/"+stored, whole))
				check("merge patch", w.Do("PATCH", view+"/"+stored, "{"+set(path, when)+"}", "Content-Type", "application/merge-patch+json"))
				check("strategic patch", w.Do("PATCH", view+"/"+stored, "{"+set(path, when)+"}", "Content-Type", "application/strategic-merge-patch+json"))
				check("JSON patch", w.Do("PATCH", view+"/"+stored, fmt.Sprintf(`[{"op":"add","path":"/%s","value":%s}]`, strings.Split(path, "/")[0], strings.SplitN(set(path, when), ":", 2)[1]), "Content-Type", "application/json-patch+json"))
				check("apply", w.Do("PATCH", view+"/"+stored+"?fieldManager=m&force=true", whole, "Content-Type", "application/apply-patch+yaml"))
			}
			result := w.Bulk("good", "", core("other", set(p.core, when))).Results(1)[0]
			if result.Code != 422 || !strings.Contains(result.Reason, name) {
				t.Errorf("bulk with %s %s: %+v", name, when, result)
			}
		}
	}
	// What is stored can be read, and what only the server sets is not taken from a patch.
	for _, path := range []string{"/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/metadata/managedFields/0/time"} {
		for view, name := range map[string]string{apitest.CorePath: "/core", apitest.EventsPath: "/new"} {
			w.Do("PATCH", view+name, fmt.Sprintf(`[{"op":"add","path":%q,"value":"9999-12-31T23:59:59-01:00"}]`, path), "Content-Type", "application/json-patch+json")
		}
	}
	var list corev1.EventList
	if err := json.Unmarshal(w.Do("GET", apitest.CorePath, "").Must(200).Body, &list); err != nil {
		t.Fatal(err)
	}
	apitest.Equal(t, len(list.Items), 2)
	for _, ev := range list.Items {
		times := []time.Time{ev.CreationTimestamp.Time, ev.EventTime.Time, ev.FirstTimestamp.Time, ev.LastTimestamp.Time, ev.Series.LastObservedTime.Time}
		for _, m := range ev.ManagedFields {
			times = append(times, m.Time.Time)
		}
		if slices.ContainsFunc(times, func(at time.Time) bool { return !event.Writable(at) || at.Year() > 9000 }) {
			t.Errorf("%s has the times %v", ev.Name, times)
		}
	}
}
