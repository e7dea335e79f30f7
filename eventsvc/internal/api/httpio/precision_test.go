package httpio_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/api/apitest"
)

// writeForm is a way to set members of an event that is there: in the view of a path, with
// the names of that view.
type writeForm struct {
	name   string
	method string
	media  string
	body   func(name string, core bool, members string) string
}

// writeForms are all of them but protobuf, which package request tests. members are JSON,
// which is YAML too.
var writeForms = []writeForm{
	{"replace", "PUT", "application/json", eventWith},
	{"replace with an unknown field", "PUT", "application/json", func(name string, core bool, members string) string {
		return eventWith(name, core, members+`,"unknown":1`)
	}},
	{"replace in YAML", "PUT", "application/yaml", eventWith},
	{"JSON patch", "PATCH", apitest.JSONPatch, func(_ string, _ bool, members string) string {
		var ops []string
		name, value, _ := strings.Cut(members, ":")
		ops = append(ops, fmt.Sprintf(`{"op":"add","path":"/%s","value":%s}`, strings.Trim(name, `"`), value))
		return "[" + strings.Join(ops, ",") + "]"
	}},
	{"merge patch", "PATCH", apitest.MergePatch, func(_ string, _ bool, members string) string { return "{" + members + "}" }},
	{"merge patch with a null", "PATCH", apitest.MergePatch, func(_ string, _ bool, members string) string { return `{"related":null,` + members + "}" }},
	{"strategic merge patch", "PATCH", apitest.StrategicPatch, func(_ string, _ bool, members string) string { return "{" + members + "}" }},
	{"strategic merge patch with a null", "PATCH", apitest.StrategicPatch, func(_ string, _ bool, members string) string {
		return `{"related":null,` + members + "}"
	}},
	{"apply", "PATCH", apitest.ApplyPatch, func(name string, core bool, members string) string {
		version := "events.k8s.io/v1"
		if core {
			version = "v1"
		}
		return fmt.Sprintf(`{"apiVersion":%q,"kind":"Event","metadata":{"name":%q},%s}`, version, name, members)
	}},
}

// eventWith is an event with members that may be among its own.
func eventWith(name string, core bool, members string) string {
	all := map[string]string{
		"metadata": fmt.Sprintf(`{"name":%q}`, name), "eventTime": `"2026-01-02T03:04:05.000006Z"`, "reportingController": `"example.com/ctl"`, "reportingInstance": `"ctl-1"`,
		"action": `"Do"`, "reason": `"Because"`, "type": `"Normal"`, "note": `"hello"`, "regarding": `{"kind":"Pod","namespace":"default","name":"p1"}`,
	}
	if core {
		for from, to := range map[string]string{"reportingController": "reportingComponent", "note": "message", "regarding": "involvedObject"} {
			all[to] = all[from]
			delete(all, from)
		}
	}
	name, _, _ = strings.Cut(members, ":")
	delete(all, strings.Trim(name, `"`))
	var text []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text = append(text, fmt.Sprintf("%q:%s", name, all[name]))
	}
	return "{" + strings.Join(append(text, members), ",") + "}"
}

// in calls test for each form of write through each view, with the path of an event of its own.
func (f writeForm) in(t *testing.T, w *apitest.World, test func(t *testing.T, core bool, path, name string)) {
	for view, path := range map[string]string{"events": apitest.EventsPath, "core": apitest.CorePath} {
		t.Run(f.name+" "+view, func(t *testing.T) {
			name := strings.ReplaceAll(strings.ToLower(f.name), " ", "-") + "-" + view
			w.Do("POST", apitest.EventsPath, apitest.NewEvent(name)).Must(201)
			test(t, view == "core", path+"/"+name, name)
		})
	}
}

// TestNumbersThatDoNotFit: a number beyond its type is refused in every form of write,
// where the library cuts it in some.
func TestNumbersThatDoNotFit(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	numbers := []string{"2147483648", "5000000000", "-2147483649", "-5000000000", "99999999999999999999", "-99999999999999999999", "5e9", "1e30", "1.5", "2147483648.0"}
	refused := func(t *testing.T, a *apitest.Answer, number string) {
		t.Helper()
		if text := string(a.Body); a.Code != 400 && a.Code != 422 || !strings.Contains(text, "ount of type int32") {
			t.Errorf("%s: %d %s", number, a.Code, text)
		}
	}
	for _, number := range numbers {
		for path, count := range map[string]string{apitest.EventsPath: "deprecatedCount", apitest.CorePath: "count"} {
			for _, members := range []string{`"` + count + `":` + number, `"series":{"count":` + number + `,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}`} {
				refused(t, w.Do("POST", path, eventWith("x", path == apitest.CorePath, members)), number)
				refused(t, w.Do("POST", path, eventWith("x", path == apitest.CorePath, members), "Content-Type", "application/yaml"), number)
			}
		}
	}
	for _, f := range writeForms {
		f.in(t, w, func(t *testing.T, core bool, path, name string) {
			count := "deprecatedCount"
			if core {
				count = "count"
			}
			before := string(w.Do("GET", path, "").Must(200).Body)
			for _, number := range numbers {
				for _, members := range []string{`"` + count + `":` + number, `"series":{"count":` + number + `,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}`} {
					for _, query := range []string{"?fieldManager=me", "?fieldManager=me&fieldValidation=Ignore", "?fieldManager=me&fieldValidation=Strict"} {
						a := w.Do(f.method, path+query, f.body(name, core, members), "Content-Type", f.media)
						if strings.Contains(f.name, "unknown") && strings.Contains(query, "Strict") && a.Code == 400 {
							continue
						}
						refused(t, a, number)
					}
				}
			}
			apitest.Equal(t, string(w.Do("GET", path, "").Must(200).Body), before)
		})
	}
}

// TestTimesOfAnyPrecision: the times of an event may have nought to nine digits of a
// fraction in every form of write. Six are stored and answered, and an event whose time
// is as it was has not changed.
func TestTimesOfAnyPrecision(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for text, want := range map[string]string{
		"05Z": "05.000000Z", "05.1Z": "05.100000Z", "05.12345Z": "05.123450Z", "05.1234567Z": "05.123456Z", "05.999999999Z": "05.999999Z",
	} {
		for path, core := range map[string]bool{apitest.EventsPath: false, apitest.CorePath: true} {
			for _, media := range []string{"application/json", "application/yaml"} {
				for _, more := range []string{"", `,"unknown":1`} {
					members := fmt.Sprintf(`"eventTime":"2026-01-02T03:04:%s","series":{"count":2,"lastObservedTime":"2026-01-02T03:05:%s"}`, text, text)
					a := w.Do("POST", path+"?dryRun=All", eventWith("x", core, members+more), "Content-Type", media).Must(201)
					apitest.Equal(t, a.At("eventTime"), any("2026-01-02T03:04:"+want))
					apitest.Equal(t, a.At("series.lastObservedTime"), any("2026-01-02T03:05:"+want))
				}
			}
		}
	}
	for _, f := range writeForms {
		f.in(t, w, func(t *testing.T, core bool, path, name string) {
			send := func(members string) *apitest.Answer {
				return w.Do(f.method, path+"?fieldManager=me", f.body(name, core, members), "Content-Type", f.media)
			}
			// 1. The time that it has, in other words.
			send(`"eventTime":"2026-01-02T03:04:05.000006Z"`).Must(200)
			version := w.Do("GET", path, "").At("metadata.resourceVersion")
			for _, same := range []string{"2026-01-02T03:04:05.0000060Z", "2026-01-02T03:04:05.000006789Z", "2026-01-02T04:04:05.000006+01:00"} {
				a := send(`"eventTime":"` + same + `"`).Must(200)
				apitest.Equal(t, a.At("eventTime"), any("2026-01-02T03:04:05.000006Z"))
				apitest.Equal(t, a.At("metadata.resourceVersion"), version)
			}
			// 2. Another time of its series.
			for sent, want := range map[string]string{"05Z": "05.000000Z", "06.5Z": "06.500000Z", "07.123456789Z": "07.123456Z"} {
				a := send(`"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:` + sent + `"}`).Must(200)
				apitest.Equal(t, a.At("series.lastObservedTime"), any("2026-01-02T03:04:"+want))
			}
			// 3. What is no time.
			for _, bad := range []string{"2026-01-02T03:04:05.1234567890Z", "2026-01-02T03:04:05.Z", "2026-01-02", ""} {
				if a := send(`"eventTime":"` + bad + `"`); a.Code != 400 && a.Code != 422 || !strings.Contains(string(a.Body), "parsing time") {
					t.Errorf("%q: %d %s", bad, a.Code, a.Body)
				}
			}
		})
	}
	// Nobody conflicts with a manager who has applied the same time in other words.
	applied := func(manager, at string) *apitest.Answer {
		return w.Do("PATCH", apitest.EventsPath+"/shared?fieldManager="+manager, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"shared"},"eventTime":"`+at+`",`+
			`"type":"Normal","reason":"R","action":"A","reportingController":"example.com/c","reportingInstance":"i","regarding":{"namespace":"default"}}`, "Content-Type", apitest.ApplyPatch)
	}
	applied("one", "2026-01-02T03:04:05Z").Must(201)
	a := applied("two", "2026-01-02T04:04:05.000+01:00").Must(200)
	apitest.Equal(t, a.At("eventTime"), any("2026-01-02T03:04:05.000000Z"))
	applied("two", "2026-01-02T03:04:06Z").Must(409)
}
