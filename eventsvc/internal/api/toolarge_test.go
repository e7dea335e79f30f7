package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
)

// TestTooLargeAmongOtherMistakes: for an event that is too large and has
// another mistake, the answer names the same mistake as if the checks were made
// in full. Nothing of the event is recorded in managed fields.
func TestTooLargeAmongOtherMistakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config) { c.Namespaces = []string{"default"} })
	w.create("live")
	var many strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&many, `"key-%d":"x",`, i)
	}
	large := map[string]string{
		"one": `"a":"` + strings.Repeat("x", 300<<10) + `"`, "many": many.String() + `"a":""`, "text": `"a":"` + strings.Repeat(`ä\n\"`, 70<<10) + `"`,
		"not plain": `"a":"` + strings.Repeat(`\ud83c\udf89`, 70<<10) + `"`,
	}
	tooLong := func(name string) string {
		return `Event "` + name + `" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes`
	}
	elsewhere := strings.Replace(eventsPath, "default", "elsewhere", 1)
	for kind, annotations := range large {
		with := func(name, members string) string {
			return newEvent(name, `"metadata":{"name":"`+name+`",`+members+`"annotations":{`+annotations+`}}`)
		}
		for _, c := range []struct {
			name, method, path, body string
			code                     int32
			message                  string
		}{
			{"nothing else", "POST", eventsPath, with("a", ""), 422, tooLong("a")},
			{"another namespace", "POST", eventsPath, with("a", `"namespace":"other",`), 400, `the namespace of the provided object does not match the namespace sent on the request`},
			{"an unknown namespace", "POST", elsewhere, with("a", ""), 404, `namespaces "elsewhere" not found`},
			{"a version", "POST", eventsPath, with("a", `"resourceVersion":"1",`), 400, `resourceVersion should not be set on objects to be created`},
			{"a broken rule", "POST", eventsPath, with("A B", ""), 422, tooLong("A B")},
			{"a wrong time", "POST", eventsPath, strings.Replace(with("a", ""), "2026-01-02", "2026-13-02", 1), 400, `Event in version "v1" cannot be handled as a Event: parsing time "2026-13-02T03:04:05.000006Z": month out of range`},
			{"a wrong type behind it", "POST", eventsPath, strings.Replace(with("a", ""), `"hello"`, "1", 1), 400, `Event in version "v1" cannot be handled as a Event: json: cannot unmarshal number into Go struct field Event.note of type string`},
			{"an end too early", "POST", eventsPath, strings.TrimSuffix(with("a", ""), "}"), 400, `the object provided is unrecognized (must be of type Event): couldn't get version/kind; json parse error: unexpected end of JSON input `},
			{"an unknown field", "POST", eventsPath + "?fieldValidation=Strict", strings.Replace(with("a", ""), `"note"`, `"nota"`, 1), 400, `Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field "nota"`},
			{"a key twice", "POST", eventsPath + "?fieldValidation=Strict", strings.Replace(with("a", ""), `"annotations":{`, `"annotations":{"a":"",`, 1), 400, `Event in version "v1" cannot be handled as a Event: strict decoding error: duplicate field "metadata.annotations.a"`},
			{"a wrong timeout", "POST", eventsPath + "?timeout=x", with("a", ""), 400, `invalid timeout specified in the request URL - time: invalid duration "x"`},
			{"a wrong field manager", "POST", eventsPath + "?fieldManager=%01", with("a", ""), 422, `CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "\x01": invalid character U+0001 (at position 0)`},
			{"managed fields that are none", "POST", eventsPath, with("a", `"managedFields":[{"operation":"x"}],`), 422, tooLong("a")},
			{"put, new", "PUT", eventsPath + "/a", with("a", ""), 422, tooLong("a")},
			{"put under another name", "PUT", eventsPath + "/b", with("a", ""), 400, `the name of the object (a) does not match the name on the URL (b)`},
			{"put", "PUT", eventsPath + "/live", with("live", ""), 422, tooLong("live")},
			{"put over another version", "PUT", eventsPath + "/live", with("live", `"resourceVersion":"999",`), 409, `Operation cannot be fulfilled on events.events.k8s.io "live": the object has been modified; please apply your changes to the latest version and try again`},
			{"put over another uid", "PUT", eventsPath + "/live", with("live", `"uid":"x",`), 409, `Operation cannot be fulfilled on events.events.k8s.io "live": Precondition failed: UID in precondition: x, UID in object meta: `},
			{"patch", "PATCH", eventsPath + "/live", `{"metadata":{"annotations":{` + annotations + `}}}`, 422, tooLong("live")},
			{"patch of what is fixed", "PATCH", eventsPath + "/live", `{"note":"x","metadata":{"annotations":{` + annotations + `}}}`, 422, tooLong("live")},
			{"patch of nothing", "PATCH", eventsPath + "/none", `{"metadata":{"annotations":{` + annotations + `}}}`, 404, `events.events.k8s.io "none" not found`},
		} {
			media := "application/json"
			if c.method == "PATCH" {
				media = "application/merge-patch+json"
			}
			a := w.do(c.method, c.path, c.body, "Content-Type", media)
			var st metav1.Status
			if err := json.Unmarshal(a.body, &st); err != nil {
				t.Fatal(err)
			}
			if st.Code != c.code || !strings.HasPrefix(st.Message, c.message) {
				t.Errorf("%s, %s: %d %q, want %d %q", kind, c.name, st.Code, st.Message, c.code, c.message)
			}
		}
	}
}
