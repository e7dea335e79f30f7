package request_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
)

// Every kind of patch, through both views, and what it changes.
func TestPatch(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "example.com")
	for _, tt := range []struct {
		name   string
		kind   types.PatchType
		view   event.View
		patch  string
		change func(ev *eventsv1.Event)
	}{
		{"series by the new recorder", types.StrategicMergePatchType, event.EventsV1,
			`{"series":{"count":2,"lastObservedTime":"2026-05-04T12:55:00.000000Z"}}`,
			func(ev *eventsv1.Event) { ev.Series.Count = 2 }},
		{"count by the old recorder", types.StrategicMergePatchType, event.CoreV1,
			`{"count":2,"lastTimestamp":"2026-05-04T12:00:00Z","message":"msg"}`, func(ev *eventsv1.Event) {
				ev.DeprecatedCount, ev.Note, ev.DeprecatedLastTimestamp = 2, "msg", eventtest.Typical().CreationTimestamp
			}},
		{"label by kubectl", types.MergePatchType, event.EventsV1, `{"metadata":{"labels":{"tier":null,"x":"y"}}}`,
			func(ev *eventsv1.Event) { ev.Labels = map[string]string{"app": "web", "x": "y"} }},
		{"series removed", types.MergePatchType, event.EventsV1, `{"series":null}`, func(ev *eventsv1.Event) { ev.Series = nil }},
		{"message in the old view", types.MergePatchType, event.CoreV1, `{"message":"m"}`, func(ev *eventsv1.Event) { ev.Note = "m" }},
		{"operations", types.JSONPatchType, event.EventsV1,
			`[{"op":"test","path":"/metadata/resourceVersion","value":"41"},{"op":"replace","path":"/note","value":"n"},` +
				`{"op":"remove","path":"/metadata/labels/app"},{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`,
			func(ev *eventsv1.Event) {
				ev.Note, ev.Labels, ev.Annotations = "n", map[string]string{"tier": "front"}, map[string]string{"a": "b"}
			}},
		{"managed fields rewritten by kubectl", types.JSONPatchType, event.EventsV1,
			`[{"op":"replace","path":"/metadata/managedFields","value":[{}]},{"op":"replace","path":"/metadata/resourceVersion","value":"7"}]`,
			func(ev *eventsv1.Event) {
				ev.ManagedFields, ev.ResourceVersion = []metav1.ManagedFieldsEntry{{}}, "7"
			}},
		{"finalizers are a set", types.StrategicMergePatchType, event.EventsV1, `{"metadata":{"finalizers":["b/b"]}}`,
			func(ev *eventsv1.Event) { ev.Finalizers = []string{"b/b", "a/a"} }},
		{"finalizers in a merge patch are a value", types.MergePatchType, event.EventsV1, `{"metadata":{"finalizers":["b/b"]}}`,
			func(ev *eventsv1.Event) { ev.Finalizers = []string{"b/b"} }},
		{"a directive", types.StrategicMergePatchType, event.EventsV1, `{"metadata":{"labels":{"$patch":"replace","x":"y"}}}`,
			func(ev *eventsv1.Event) { ev.Labels = map[string]string{"x": "y"} }},
		{"a list directive", types.StrategicMergePatchType, event.CoreV1, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a/a"]}}`,
			func(ev *eventsv1.Event) { ev.Finalizers = nil }},
		{"nothing", types.MergePatchType, event.CoreV1, `{}`, func(*eventsv1.Event) {}},
	} {
		before := eventtest.InSeries()
		before.Finalizers = []string{"a/a"}
		stored := codectest.Live(t, c, before)
		got, warnings, err := c.Decoder.Patch(tt.view, tt.kind, []byte(tt.patch), stored, "Strict")
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %q, %v", tt.name, warnings, err)
			continue
		}
		if diff := cmp.Diff(codectest.Library(t, codec.Format{}, codectest.Live(t, c, before)), codectest.Library(t, codec.Format{}, stored)); diff != "" {
			t.Errorf("%s changed the stored event:\n%s", tt.name, diff)
		}
		tt.change(stored)
		if diff := cmp.Diff(codectest.Library(t, codec.Format{}, stored), codectest.Library(t, codec.Format{}, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Bad patches get the codes and texts of kube-apiserver.
func TestPatchErrors(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	const rejected = "the server rejected our request due to an error in our request"
	const invalid = ` "" is invalid: patch: Invalid value: `
	for _, tt := range []struct {
		name  string
		kind  types.PatchType
		patch string
		code  int32
		want  string // the beginning or, behind "…", the end
	}{
		{"not JSON", types.MergePatchType, `{"a"`, 400, "invalid JSON patch"},
		{"not JSON", types.StrategicMergePatchType, ``, 400, "invalid JSON patch"},
		{"no list", types.JSONPatchType, `{}`, 400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"},
		{"failing test", types.JSONPatchType, `[{"op":"test","path":"/note","value":"x"}]`, 422, rejected},
		{"missing path", types.JSONPatchType, `[{"op":"remove","path":"/nope/nope"}]`, 422, rejected},
		{"bad index", types.JSONPatchType, `[{"op":"add","path":"/metadata/managedFields/99","value":{}}]`, 422, rejected},
		{"unknown operation", types.JSONPatchType, `[{"op":"jump","path":"/note"}]`, 422, rejected},
		{"too many operations", types.JSONPatchType, "[" + strings.Repeat(`{"op":"test","path":"/note","value":"x"},`, 10000) + `{"op":"test","path":"/note"}]`,
			413, "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"},
		{"wrong type", types.MergePatchType, `{"series":{"count":"x"}}`, 422, "…json: cannot unmarshal string into Go struct field EventSeries.series.count of type int32"},
		{"wrong type", types.StrategicMergePatchType, `{"series":{"count":"x"}}`, 422, invalid + `"map[series:map[count:x]]": json: cannot unmarshal string into Go struct field EventSeries.series.count of type int32`},
		{"beyond 32 bits", types.StrategicMergePatchType, `{"deprecatedCount":5000000000}`, 422, invalid + `"map[deprecatedCount:5000000000]": json: cannot unmarshal number 5000000000 into Go struct field Event.deprecatedCount of type int32`},
		{"beyond 64 bits", types.StrategicMergePatchType, `{"metadata":{"generation":-9223372036854775809}}`, 422, "…json: cannot unmarshal number -9223372036854776000 into Go struct field ObjectMeta.metadata.generation of type int64"},
		{"a fraction", types.StrategicMergePatchType, `{"series":{"count":1.5}}`, 422, "…json: cannot unmarshal number 1.5 into Go struct field EventSeries.series.count of type int32"},
		{"ten digits", types.StrategicMergePatchType, `{"eventTime":"2026-05-04T12:00:00.1234567890Z"}`, 422, "…: the fraction has more than nine digits"},
		{"no object", types.MergePatchType, `[]`, 400, "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"},
		{"no object", types.StrategicMergePatchType, `[]`, 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"},
		{"unknown field", types.MergePatchType, `{"noteX":1}`, 422, `…strict decoding error: unknown field "noteX"`},
		{"unknown field", types.StrategicMergePatchType, `{"noteX":1}`, 422, invalid + `"map[noteX:1]": strict decoding error: unknown field "noteX"`},
		{"unknown field", types.JSONPatchType, `[{"op":"add","path":"/noteX","value":1,"foo":2}]`, 422, `…strict decoding error: json patch unknown field "[0].foo", unknown field "noteX"`},
		{"duplicate field", types.MergePatchType, `{"note":"a","note":"b"}`, 422, `…strict decoding error: duplicate field "note"`},
		{"unknown directive", types.StrategicMergePatchType, `{"metadata":{"labels":{"$patch":"jump"}}}`, 400, "unknown patch type: jump in map: map[$patch:jump]"},
		{"another kind", types.MergePatchType, `{"kind":"Pod"}`, 422, "…unable to decode events.k8s.io/v1, Kind=Pod into *core.Event"},
		{"another type of patch", "application/json", `{}`, 415, "…"},
	} {
		var got *eventsv1.Event
		err := c.Decoder.CheckPatch([]byte(tt.patch))
		if err == nil {
			got, _, err = c.Decoder.Patch(event.EventsV1, tt.kind, []byte(tt.patch), codectest.Live(t, c, eventtest.InSeries()), "Strict")
		}
		if err == nil {
			t.Errorf("%s in %s: became %v", tt.name, tt.kind, got)
			continue
		}
		st := statusOf(t, err)
		end, isEnd := strings.CutPrefix(tt.want, "…")
		if st.Code != tt.code || isEnd && !strings.HasSuffix(st.Message, end) || !isEnd && st.Message != tt.want {
			t.Errorf("%s in %s: %d %s", tt.name, tt.kind, st.Code, st.Message)
		}
		if tt.code == 422 && isEnd && !strings.HasPrefix(st.Message, invalid) {
			t.Errorf("%s in %s begins: %s", tt.name, tt.kind, st.Message)
		}
	}
}

func TestPatchWarnings(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for _, tt := range []struct {
		kind  types.PatchType
		patch string
		want  []string
	}{
		{types.MergePatchType, `{"noteX":1,"note":"a","note":"b"}`, []string{`duplicate field "note"`, `unknown field "noteX"`}},
		{types.StrategicMergePatchType, `{"noteX":1,"note":"a","note":"b"}`, []string{`duplicate field "note"`, `unknown field "noteX"`}},
		{types.JSONPatchType, `[{"op":"add","path":"/noteX","value":1,"op":"add"}]`, []string{`json patch duplicate field "[0].op"`, `unknown field "noteX"`}},
	} {
		got, warnings, err := c.Decoder.Patch(event.EventsV1, tt.kind, []byte(tt.patch), codectest.Live(t, c, eventtest.InSeries()), "")
		if err != nil || tt.kind != types.JSONPatchType && got.Note != "b" {
			t.Fatalf("%s: %v, %v", tt.patch, got, err)
		}
		if diff := cmp.Diff(tt.want, warnings); diff != "" {
			t.Errorf("%s in %s (-want +got):\n%s", tt.patch, tt.kind, diff)
		}
		if _, warnings, err = c.Decoder.Patch(event.EventsV1, tt.kind, []byte(tt.patch), codectest.Live(t, c, eventtest.InSeries()), "Ignore"); err != nil || len(warnings) > 0 {
			t.Errorf("%s ignored: %q, %v", tt.patch, warnings, err)
		}
	}
}

// Copies are bounded together, not one by one.
func TestPatchCopiesAreBounded(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	ev := eventtest.Typical()
	ev.Note = strings.Repeat("x", 1<<20)
	var ops []string
	for i := range 10 {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"/note","path":"/metadata/labels/l%d"}`, i))
	}
	patch := []byte("[" + strings.Join(ops, ",") + "]")
	if _, _, err := c.Decoder.Patch(event.EventsV1, types.JSONPatchType, patch, ev, ""); err == nil {
		t.Error("copies of 10 MiB are accepted")
	}
}

func FuzzPatch(f *testing.F) {
	c := codectest.New(f, "k8s.io")
	stored := codectest.Live(f, c, eventtest.InSeries())
	kinds := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyPatchType}
	for _, patch := range []string{
		`[{"op":"add","path":"/metadata/labels/x","value":"y"},{"op":"test","path":"/note"},{"op":"copy","from":"/a","path":"/b/-"}]`,
		`{"metadata":{"labels":{"a":null}},"series":{"count":1}}`,
		`{"metadata":{"labels":{"a":"b"},"annotations":{"\u0024patch":"replace"}},"series":{"count":1},"note":"n"}`,
		`{"metadata":{"$retainKeys":["labels"],"$setElementOrder/finalizers":["a"],"finalizers":["a"]}}`,
		`{"kind":"Event","apiVersion":"v1","metadata":{"name":"x","ownerReferences":[{"uid":"1"}]},"message":"m"}`,
		"apiVersion: v1\nkind: Event\nseries: {count: 1}\n",
	} {
		for kind := range kinds {
			f.Add(uint8(kind), []byte(patch), kind%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, patch []byte, core bool) {
		v := event.EventsV1
		if core {
			v = event.CoreV1
		}
		patchType := kinds[int(kind)%len(kinds)]
		for _, validation := range []string{"", "Ignore"} {
			var ev *eventsv1.Event
			var err error
			if patchType == types.ApplyPatchType {
				ev, _, err = c.Decoder.Apply(v, stored, patch, "fuzz", true, validation)
			} else if err = c.Decoder.CheckPatch(patch); err == nil {
				ev, _, err = c.Decoder.Patch(v, patchType, patch, stored, validation)
			}
			if plain, ok := request.PatchPlain(c.Decoder, v, patchType, patch, stored); ok {
				full, warnings, err := request.PatchFully(c.Decoder, v, patchType, patch, stored, "Strict")
				if err != nil || len(warnings) > 0 || !fields.Same(plain, full) {
					t.Fatalf("plain %v, full %v, %q, %v", plain, full, warnings, err)
				}
			}
			if err == nil {
				err = c.Decoder.Fields.Update(v, stored, ev, "fuzz")
				if err != nil {
					t.Fatal(err)
				}
			}
			decodeOrStatus(t, c, v, ev, err)
		}
	})
}
