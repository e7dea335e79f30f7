package request_test

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
)

// envelope is an event in protobuf.
func envelope(t *testing.T, message []byte) []byte {
	t.Helper()
	u := kruntime.Unknown{TypeMeta: kruntime.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"}, Raw: message}
	raw, err := u.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), raw...)
}

// TestManyValuesAreRefused: small bodies whose values would take a hundred
// times as much memory are refused before they are decoded, in every format.
// The test measures allocations, so it runs alone.
func TestManyValuesAreRefused(t *testing.T) {
	const size = 3<<20 - 1000
	c := codectest.New(t, "k8s.io")
	stored := codectest.Live(t, c, eventtest.Typical())
	many := func(head, value, tail string) []byte {
		return []byte(head + strings.Repeat(value, (size-len(head)-len(tail))/len(value)) + tail)
	}
	decode := func(contentType string, body []byte) func() error {
		return func() error {
			_, _, err := c.Decoder.DecodeEvent(event.EventsV1, contentType, body, "")
			return err
		}
	}
	options := func(contentType string, body []byte) func() error {
		return func() error {
			return c.Decoder.DecodeDeleteOptions(contentType, body, new(metav1.DeleteOptions))
		}
	}
	metadata := func(field string) []byte {
		inner := strings.Repeat(field, size/len(field))
		return envelope(t, append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(inner))), inner...))
	}
	for name, try := range map[string]func() error{
		"JSON list":         decode(jsonType, many(`{"a":[`, "1,", "1]}")),
		"managed fields":    decode(jsonType, many(`{"metadata":{"managedFields":[`, "{},", "{}]}}")),
		"nulls":             decode(jsonType, many(`{"metadata":{"finalizers":[`, "null,", "null]}}")),
		"YAML map":          decode(yamlType, many("", "a: b\n", "")),
		"YAML list":         decode(yamlType, many("", "- a\r", "")),
		"YAML flow":         decode(yamlType, many("a: [", "b,", "b]")),
		"protobuf fields":   decode(protobufType, envelope(t, many("", "\x1a\x00", ""))),
		"protobuf metadata": decode(protobufType, metadata("\x8a\x01\x00")),
		"delete options":    options(jsonType, many(`{"dryRun":[`, `"",`, `""]}`)),
		"options in YAML":   options(yamlType, many(`dryRun: [`, `"",`, `""]`)),
		"merge patch":       func() error { return c.Decoder.CheckPatch(many(`{"a":[`, "1,", "1]}")) },
		"JSON patch":        func() error { return c.Decoder.CheckPatch(many(`[`, `{"op":""},`, `{}]`)) },
		"apply": func() error {
			_, _, err := c.Decoder.Apply(event.EventsV1, stored, many("a: [", "b,", "b]"), "m", false, "")
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := try()
		runtime.ReadMemStats(&after)
		var limit *event.LimitError
		if !errors.As(err, &limit) || limit.Limit != "values" || limit.ErrStatus.Code != 413 {
			t.Errorf("%s: %v", name, err)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 4*size {
			t.Errorf("%s: %d MiB were taken", name, taken>>20)
		}
	}
}

// TestTextIsNoValues: the text of strings is not counted, and the largest
// allowed event is not refused.
func TestTextIsNoValues(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	note := strings.Repeat(`,[{`, 50_000)
	for name, body := range map[string]string{
		"JSON": `{"note":"` + note + `"}`, "escapes": `{"note":"\"` + note + `\\"}`,
	} {
		if ev, _, err := c.Decoder.DecodeEvent(event.EventsV1, jsonType, []byte(body), ""); err != nil || !strings.Contains(ev.Note, note) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := c.Decoder.DecodeEvent(event.EventsV1, protobufType, envelope(t, []byte("\x3a\xf0\x93\x09"+note)), ""); err != nil {
		t.Error(err)
	}
	// The object is a value too, and its last member has no comma.
	labels := strings.Repeat(`"a":"",`, 50_000-4)
	for rest, ok := range map[string]bool{
		`"note":"a","reason":",[{"}`: true, `"note":"a","reason":"b"}`: true, `"note":"\",\",","reason":"b","type":""}`: false,
	} {
		body := `{"labels":{` + labels + `"a":""},` + rest
		if _, _, err := c.Decoder.DecodeEvent(event.EventsV1, jsonType, []byte(body), ""); (err == nil) != ok {
			t.Errorf("%s: %v", rest, err)
		}
	}
}

// TestManyOperations: an answer to too many operations does not depend on
// whether they had to be made to count them, and what else is wrong comes first
// as it would.
func TestManyOperations(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	stored := codectest.Live(t, c, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", UID: "u"}})
	most := strings.Repeat(`{"op":"test","path":"/metadata/name","value":"a"},`, 9_998) + `{"op":"test","path":"/kind","value":"Event"},{"op":"add","path":"/note","value":"x"}`
	for patch, want := range map[string]string{
		"[" + most + "]":                   "",
		" [ " + most + "\n]\n":             "",
		"[" + most + `,{"op":"test"}]`:     "got 10001",
		"[" + most + `, {"op":"test"} ] `:  "got 10001",
		"[" + most + `,{}]`:                "got 10001",
		"[" + most + `,{"Op":"","op":""}]`: "got 10001",
		"[" + most + `,{"value":[1]}]`:     "got 10001", // is left to the library
		"[" + most + `,null]`:              "got 10001",
		"[" + most + `,{"op":1}]`:          "cannot unmarshal number",
		"[" + most + `,7]`:                 "cannot unmarshal number",
		"[" + most + `,{"op":"\ud800"}]`:   "got 10001",
	} {
		if err := c.Decoder.CheckPatch([]byte(patch)); err != nil {
			t.Errorf("%.200s: %v", strings.TrimPrefix(patch, "["+most), err)
		}
		_, _, err := c.Decoder.Patch(event.EventsV1, types.JSONPatchType, []byte(patch), stored, "")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v, want %q", strings.TrimPrefix(patch, "["+most), err, want)
		}
	}
	for _, patch := range []string{"[" + most + ",]", "[" + most, "[" + most + "]]", "[" + most + "] x", "[,]", `[{"op":"a"} {}]`, `[{"op":"a",}]`, `[{"op"}]`} {
		if err := c.Decoder.CheckPatch([]byte(patch)); err == nil || err.Error() != "invalid JSON patch" {
			t.Errorf("%.200s: %v", strings.TrimPrefix(patch, "["+most), err)
		}
	}
}
