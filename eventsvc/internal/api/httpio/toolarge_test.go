package httpio_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
)

// TestTooLargeAmongOtherMistakes: for an event that is too large and has
// another mistake, the answer names the same mistake as if the checks were made
// in full. Nothing of the event is recorded in managed fields.
func TestTooLargeAmongOtherMistakes(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Namespaces = []string{"default"} })
	w.Create("live")
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
	elsewhere := strings.Replace(apitest.EventsPath, "default", "elsewhere", 1)
	for kind, annotations := range large {
		with := func(name, members string) string {
			return apitest.NewEvent(name, `"metadata":{"name":"`+name+`",`+members+`"annotations":{`+annotations+`}}`)
		}
		for _, c := range []struct {
			name, method, path, body string
			code                     int32
			message                  string
		}{
			{"nothing else", "POST", apitest.EventsPath, with("a", ""), 422, tooLong("a")},
			{"another namespace", "POST", apitest.EventsPath, with("a", `"namespace":"other",`), 400, `the namespace of the provided object does not match the namespace sent on the request`},
			{"an unknown namespace", "POST", elsewhere, with("a", ""), 404, `namespaces "elsewhere" not found`},
			{"a version", "POST", apitest.EventsPath, with("a", `"resourceVersion":"1",`), 400, `resourceVersion should not be set on objects to be created`},
			{"a broken rule", "POST", apitest.EventsPath, with("A B", ""), 422, tooLong("A B")},
			{"a wrong time", "POST", apitest.EventsPath, strings.Replace(with("a", ""), "2026-01-02", "2026-13-02", 1), 400, `Event in version "v1" cannot be handled as a Event: parsing time "2026-13-02T03:04:05.000006Z": month out of range`},
			{"a wrong type behind it", "POST", apitest.EventsPath, strings.Replace(with("a", ""), `"hello"`, "1", 1), 400, `Event in version "v1" cannot be handled as a Event: json: cannot unmarshal number into Go struct field Event.note of type string`},
			{"an end too early", "POST", apitest.EventsPath, strings.TrimSuffix(with("a", ""), "}"), 400, `the object provided is unrecognized (must be of type Event): couldn't get version/kind; json parse error: unexpected end of JSON input `},
			{"an unknown field", "POST", apitest.EventsPath + "?fieldValidation=Strict", strings.Replace(with("a", ""), `"note"`, `"nota"`, 1), 400, `Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field "nota"`},
			{"a key twice", "POST", apitest.EventsPath + "?fieldValidation=Strict", strings.Replace(with("a", ""), `"annotations":{`, `"annotations":{"a":"",`, 1), 400, `Event in version "v1" cannot be handled as a Event: strict decoding error: duplicate field "metadata.annotations.a"`},
			{"a wrong timeout", "POST", apitest.EventsPath + "?timeout=x", with("a", ""), 400, `invalid timeout specified in the request URL - time: invalid duration "x"`},
			{"a wrong field manager", "POST", apitest.EventsPath + "?fieldManager=%01", with("a", ""), 422, `CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "\x01": invalid character U+0001 (at position 0)`},
			{"managed fields that are none", "POST", apitest.EventsPath, with("a", `"managedFields":[{"operation":"x"}],`), 422, tooLong("a")},
			{"put, new", "PUT", apitest.EventsPath + "/a", with("a", ""), 422, tooLong("a")},
			{"put under another name", "PUT", apitest.EventsPath + "/b", with("a", ""), 400, `the name of the object (a) does not match the name on the URL (b)`},
			{"put", "PUT", apitest.EventsPath + "/live", with("live", ""), 422, tooLong("live")},
			{"put over another version", "PUT", apitest.EventsPath + "/live", with("live", `"resourceVersion":"999",`), 409, `Operation cannot be fulfilled on events.events.k8s.io "live": the object has been modified; please apply your changes to the latest version and try again`},
			{"put over another uid", "PUT", apitest.EventsPath + "/live", with("live", `"uid":"x",`), 409, `Operation cannot be fulfilled on events.events.k8s.io "live": Precondition failed: UID in precondition: x, UID in object meta: `},
			{"patch", "PATCH", apitest.EventsPath + "/live", `{"metadata":{"annotations":{` + annotations + `}}}`, 422, tooLong("live")},
			{"patch of what is fixed", "PATCH", apitest.EventsPath + "/live", `{"note":"x","metadata":{"annotations":{` + annotations + `}}}`, 422, tooLong("live")},
			{"patch of nothing", "PATCH", apitest.EventsPath + "/none", `{"metadata":{"annotations":{` + annotations + `}}}`, 404, `events.events.k8s.io "none" not found`},
		} {
			media := "application/json"
			if c.method == "PATCH" {
				media = "application/merge-patch+json"
			}
			a := w.Do(c.method, c.path, c.body, "Content-Type", media)
			var st metav1.Status
			if err := json.Unmarshal(a.Body, &st); err != nil {
				t.Fatal(err)
			}
			if st.Code != c.code || !strings.HasPrefix(st.Message, c.message) {
				t.Errorf("%s, %s: %d %q, want %d %q", kind, c.name, st.Code, st.Message, c.code, c.message)
			}
		}
	}
}
