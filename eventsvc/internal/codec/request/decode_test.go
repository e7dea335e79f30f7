package request_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/randtest"
)

const (
	jsonType     = "application/json"
	yamlType     = "application/yaml"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// statusOf is the answer that an error becomes.
func statusOf(t *testing.T, err error) metav1.Status {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("%v is no Status", err)
	}
	return status.Status()
}

// What any client encodes, in any format and view, is read as it was.
func TestDecodeEvent(t *testing.T) {
	t.Parallel()
	for _, domain := range codectest.Domains {
		c := codectest.New(t, domain)
		r := eventtest.NewRandom(13)
		for range 30 {
			for _, v := range codectest.Views {
				for _, f := range []codec.Format{{}, {Pretty: true}, {Media: request.YAML}, {Media: request.Protobuf}} {
					want := r.Event(c.Group.GroupVersion(v).String())
					body := codectest.Library(t, f, codectest.AsView(c, v, want, 5))
					got, warnings, err := c.Decoder.DecodeEvent(v, f.ContentType(false), []byte(body), "Strict")
					if err != nil || len(warnings) > 0 {
						t.Fatalf("%v %q\n%s", err, warnings, body)
					}
					want.ResourceVersion = "5"
					if diff := cmp.Diff(codectest.Library(t, codec.Format{}, want), codectest.Library(t, codec.Format{}, got)); diff != "" {
						t.Fatalf("(-sent +read):\n%s", diff)
					}
				}
			}
		}
	}
}

// Unknown and duplicate fields are ignored, warned of or refused, as fieldValidation says.
func TestFieldValidation(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	const unusable = `Event in version "v1" cannot be handled as a Event: strict decoding error: `
	for _, tt := range []struct {
		name, contentType, body string
		warnings                []string
		strict                  string // behind unusable
		note                    string
	}{
		{"unknown and duplicate", jsonType, `{"noteX":"a","note":"b","note":"c"}`,
			[]string{`unknown field "noteX"`, `duplicate field "note"`}, `unknown field "noteX", duplicate field "note"`, "c"},
		{"nested", jsonType, `{"metadata":{"names":"x"},"series":{"count":1,"count":2}}`,
			[]string{`unknown field "metadata.names"`, `duplicate field "series.count"`},
			`unknown field "metadata.names", duplicate field "series.count"`, ""},
		{"another case", jsonType, `{"Note":"x"}`, []string{`unknown field "Note"`}, `unknown field "Note"`, ""},
		{"duplicate in YAML", yamlType, "note: a\nnote: b\n", []string{`line 2: key "note" already set in map`},
			"yaml: unmarshal errors:\n  line 2: key \"note\" already set in map", "b"},
		{"two in YAML and one unknown", yamlType, "note: a\nnote: b\ntype: x\ntype: z\nfoo: 1\n",
			[]string{`line 2: key "note" already set in map`, `line 4: key "type" already set in map`, `unknown field "foo"`},
			"yaml: unmarshal errors:\n  line 2: key \"note\" already set in map\n  line 4: key \"type\" already set in map, unknown field \"foo\"", "b"},
	} {
		for _, validation := range []string{"", "Warn"} {
			ev, warnings, err := c.Decoder.DecodeEvent(event.EventsV1, tt.contentType, []byte(tt.body), validation)
			if err != nil || ev.Note != tt.note {
				t.Fatalf("%s, %q: %v, %v", tt.name, validation, ev, err)
			}
			if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
		ev, warnings, err := c.Decoder.DecodeEvent(event.EventsV1, tt.contentType, []byte(tt.body), "Ignore")
		if err != nil || len(warnings) > 0 || ev.Note != tt.note {
			t.Errorf("%s, ignored: %v, %q, %v", tt.name, ev, warnings, err)
		}
		_, _, err = c.Decoder.DecodeEvent(event.EventsV1, tt.contentType, []byte(tt.body), "Strict")
		if st := statusOf(t, err); st.Code != 400 || st.Message != unusable+tt.strict {
			t.Errorf("%s, strict: %d %s", tt.name, st.Code, st.Message)
		}
	}
}

// protobuf is a body with a message.
func protobuf(message string) string {
	envelope, _ := (&runtime.Unknown{Raw: []byte(message)}).Marshal() // generated code: only a short buffer is an error
	return request.Magic + string(envelope)
}

// These are refused with the texts of kube-apiserver, if it refuses them too.
func TestDecodeEventErrors(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	const unrecognized = "the object provided is unrecognized (must be of type Event): "
	const parse = unrecognized + "couldn't get version/kind; json parse error: "
	for _, tt := range []struct {
		name, contentType, body, want string
		view                          event.View
	}{
		{"cut off", jsonType, `{"kind":`, parse + `unexpected end of JSON input ({"kind":)`, 0},
		{"cut off and long", jsonType, `{"kind":"Event","metadata":{"name":"x"`, parse + `unexpected end of JSON input ({"kind":"Event","metadata":{"n ...)`, 0},
		{"empty", jsonType, ``, parse + `unexpected end of JSON input (<empty>)`, 0},
		{"not JSON", jsonType, `hello`, parse + `invalid character 'h' looking for beginning of value (68656c6c6f)`, 0},
		{"an array", jsonType, `[1]`, parse + `json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b315d)`, 0},
		{"bad apiVersion", jsonType, `{"apiVersion":"a/b/c"}`, unrecognized + `unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c"})`, 0},
		{"the other view", jsonType, `{"kind":"Event","apiVersion":"v1"}`, `the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)`, 0},
		{"the other view's fields", jsonType, `{"kind":"Event","apiVersion":"v1","message":"x"}`, `the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)`, 0},
		{"the new view at the old", jsonType, `{"kind":"Event","apiVersion":"events.k8s.io/v1"}`, `the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)`, 1},
		{"another kind", jsonType, `{"kind":"Pod","apiVersion":"v1"}`, `Pod in version "v1" cannot be handled as a Event: converting (v1.Pod) to (core.Event): unknown conversion`, 0},
		{"another kind in a broken body", jsonType, `{"kind":"Pod","apiVersion":"v1","note":1}`, `Pod in version "v1" cannot be handled as a Event: converting (v1.Pod) to (core.Event): unknown conversion`, 0},
		{"a wrong type", jsonType, `{"note":1}`, `Event in version "v1" cannot be handled as a Event: json: cannot unmarshal number into Go struct field Event.note of type string`, 0},
		{"a wrong type below", jsonType, `{"series":{"count":"x"}}`, `Event in version "v1" cannot be handled as a Event: json: cannot unmarshal string into Go struct field EventSeries.series.count of type int32`, 0},
		{"micro time of another form", jsonType, `{"eventTime":"2026-05-04 12:00:00Z"}`, `Event in version "v1" cannot be handled as a Event: parsing time "2026-05-04 12:00:00Z" as "2006-01-02T15:04:05Z07:00": cannot parse " 12:00:00Z" as "T"`, 0},
		{"micro time with ten digits", jsonType, `{"series":{"lastObservedTime":"2026-05-04T12:00:00.1234567890Z"}}`, `Event in version "v1" cannot be handled as a Event: parsing time "2026-05-04T12:00:00.1234567890Z": the fraction has more than nine digits`, 0},
		{"micro time that is a number", jsonType, `{"eventTime":5}`, `Event in version "v1" cannot be handled as a Event: json: cannot unmarshal number into Go struct field Event.eventTime of type string`, 0},
		{"count beyond 32 bits", jsonType, `{"series":{"count":2147483648}}`, `Event in version "v1" cannot be handled as a Event: json: cannot unmarshal number 2147483648 into Go struct field EventSeries.series.count of type int32`, 0},
		{"count beyond 32 bits in YAML", yamlType, `count: -2147483649`, `Event in version "v1" cannot be handled as a Event: json: cannot unmarshal number -2147483649 into Go struct field Event.count of type int32`, 1},
		{"count beyond 32 bits in protobuf", protobufType, protobuf("\x78\x80\xe4\x97\xd0\x12"), `Event in version "v1" cannot be handled as a Event: count is 5000000000, which does not fit 32 bits`, 0},
		{"count of a series beyond 32 bits in protobuf", protobufType, protobuf("\x5a\x06\x08\xff\xff\xff\xff\x0f"), `Event in version "v1" cannot be handled as a Event: series.count is 4294967295, which does not fit 32 bits`, 1},
		{"bad YAML", yamlType, "a: b: c", unrecognized + `yaml: mapping values are not allowed in this context (613a20623a2063)`, 0},
		{"empty protobuf", protobufType, "", unrecognized + `empty data (<empty>)`, 0},
		{"JSON for protobuf", protobufType, `{}`, unrecognized + `provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})`, 0},
		{"only the magic", protobufType, "k8s\x00", unrecognized + `empty body (6b387300)`, 0},
		{"damaged envelope", protobufType, "k8s\x00\xff", unrecognized + `unexpected EOF (6b387300ff)`, 0},
		{"damaged message", protobufType, "k8s\x00\x12\x01\xff", `Event in version "v1" cannot be handled as a Event: unexpected EOF`, 0},
	} {
		for _, validation := range []string{"Ignore", "Strict"} {
			_, _, err := c.Decoder.DecodeEvent(tt.view, tt.contentType, []byte(tt.body), validation)
			if err == nil {
				t.Errorf("%s: accepted", tt.name)
				continue
			}
			st := statusOf(t, err)
			if diff := cmp.Diff(tt.want, st.Message); st.Code != 400 || diff != "" {
				t.Errorf("%s, %s: code %d (-want +got):\n%s", tt.name, validation, st.Code, diff)
			}
		}
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for _, contentType := range []string{"", "application/json; charset=utf-8", "Application/JSON"} {
		if _, _, err := c.Decoder.DecodeEvent(event.EventsV1, contentType, []byte(`{}`), ""); err != nil {
			t.Errorf("%q: %v", contentType, err)
		}
	}
	for _, contentType := range []string{"text/plain", "application/xml", "application/cbor", ";", "application/json;=", "application/merge-patch+json"} {
		_, _, err := c.Decoder.DecodeEvent(event.EventsV1, contentType, []byte(`{}`), "")
		want := metav1.Status{
			Status: "Failure", Reason: "UnsupportedMediaType", Code: 415,
			Message: "the body of the request was in an unknown format - accepted media types include: " +
				"application/json, application/yaml, application/vnd.kubernetes.protobuf",
		}
		if diff := cmp.Diff(want, statusOf(t, err)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", contentType, diff)
		}
	}
}

// Times may have other zones and spellings, and broken text is refused.
func TestDecodeEventTolerates(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for _, tt := range []struct{ contentType, body, want string }{
		{jsonType, `null`, `"eventTime":null`},
		{jsonType, `{}`, `"eventTime":null`},
		{yamlType, ``, `"eventTime":null`},
		{jsonType, `{"kind":"Event"}`, `"eventTime":null`},
		{jsonType, `{"apiVersion":"events.k8s.io/v1"}`, `"eventTime":null`},
		{jsonType, `{"eventTime":"2026-05-04T14:00:00.123456+02:00"}`, `"eventTime":"2026-05-04T12:00:00.123456Z"`},
		{jsonType, `{"eventTime":"2026-05-04T12:00:00Z"}`, `"eventTime":"2026-05-04T12:00:00.000000Z"`},
		{jsonType, `{"eventTime":"2026-05-04T14:00:00.5+02:00"}`, `"eventTime":"2026-05-04T12:00:00.500000Z"`},
		{jsonType, `{"eventTime":"2026-05-04T12:00:00.123456789Z","metadata":{"finalizers":[]}}`, `"eventTime":"2026-05-04T12:00:00.123456Z"`},
		{jsonType, `{"series":{"count":2,"lastObservedTime":"1969-05-04T12:00:00.999999999Z"}}`, `"lastObservedTime":"1969-05-04T12:00:00.999999Z"`},
		{jsonType, `{"eventTime":null,"series":{"count":-2147483648,"lastObservedTime":null}}`, `"series":{"count":-2147483648,"lastObservedTime":null}`},
		{yamlType, "eventTime: 2026-05-04T12:00:00Z", `"eventTime":"2026-05-04T12:00:00.000000Z"`},
		{protobufType, protobuf("\x78\x80\x80\x80\x80\xf8\xff\xff\xff\xff\x01"), `"deprecatedCount":-2147483648`},
		{jsonType, `{"deprecatedFirstTimestamp":"2026-05-04T14:00:00.9+02:00"}`, `"deprecatedFirstTimestamp":"2026-05-04T12:00:00Z"`},
		{jsonType, "{\"note\":\"a\xffb\"}", `"note":"a` + "\ufffd" + `b"`},
		{yamlType, "note: 'yes'\nmetadata: {name: x}\n", `"note":"yes"`},
	} {
		ev, _, err := c.Decoder.DecodeEvent(event.EventsV1, tt.contentType, []byte(tt.body), "Strict")
		if err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		if text := codectest.Library(t, codec.Format{}, ev); !strings.Contains(text, tt.want) {
			t.Errorf("%s: %s", tt.body, text)
		}
	}
}

// A time that JSON cannot show would break every list with the event in it: it is not stored and, if it was stored all
// the same, the nearest one is shown.
func TestStrangeTimes(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for _, at := range []time.Time{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(1<<55, 0)} {
		for i := range 7 {
			ev := eventtest.InSeries()
			place := [](*time.Time){
				&ev.EventTime.Time, &ev.Series.LastObservedTime.Time, &ev.DeprecatedFirstTimestamp.Time, &ev.DeprecatedLastTimestamp.Time,
				&ev.ManagedFields[0].Time.Time, &ev.CreationTimestamp.Time, nil,
			}[i]
			if place == nil {
				ev.DeletionTimestamp = &metav1.Time{}
				place = &ev.DeletionTimestamp.Time
			}
			good, err := c.Draft(ev)
			if err != nil {
				t.Fatal(err)
			}
			*place = at
			if _, err := c.Draft(ev); err == nil || !apierrors.IsInvalid(err) {
				t.Errorf("field %d, %v: %v", i, at, err)
			}
			value, err := ev.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			rec := codectest.RecordOf(ev, store.Draft{Attributes: good.Attributes, Value: append([]byte{good.Value[0]}, value...)}, 7)
			for _, f := range []codec.Format{{}, {Media: request.YAML}} {
				text, err := c.AppendObject(nil, f, event.CoreV1, rec)
				shown := new(corev1.Event)
				if err == nil {
					err = yaml.Unmarshal(text, shown)
				}
				if err != nil || shown.Name != ev.Name {
					t.Errorf("field %d, %v: shown as %s: %v", i, at, text, err)
				}
			}
		}
	}
}

func TestDecodeDeleteOptions(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	uid, grace := metav1.NewUIDPreconditions("u"), int64(3)
	options := metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: uid, DryRun: []string{"All"}}
	for _, apiVersion := range []string{"v1", "meta.k8s.io/v1", "events.k8s.io/v1", "unknown.example.com/v9", ""} {
		options.APIVersion, options.Kind = apiVersion, "DeleteOptions"
		for _, f := range []codec.Format{{}, {Media: request.YAML}, {Media: request.Protobuf}} {
			body := codectest.Library(t, f, &deleteOptions{options})
			got := metav1.DeleteOptions{}
			if err := c.Decoder.DecodeDeleteOptions(f.ContentType(false), []byte(body), &got); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if diff := cmp.Diff(options, got); diff != "" {
				t.Errorf("%s (-sent +read):\n%s", body, diff)
			}
		}
	}
	got := metav1.DeleteOptions{GracePeriodSeconds: &grace}
	if err := c.Decoder.DecodeDeleteOptions("", []byte(`{"unknown":1,"propagationPolicy":"Background"}`), &got); err != nil || *got.PropagationPolicy != "Background" || *got.GracePeriodSeconds != 3 {
		t.Errorf("kubectl's options: %v, %v", got, err)
	}
	for body, want := range map[string]string{
		`{"kind":"Pod","apiVersion":"v1"}`: `no kind "Pod" is registered for version "v1" in scheme "eventsvc"`,
		`{"dryRun":1}`:                     `the body is not DeleteOptions: json: cannot unmarshal number into Go struct field DeleteOptions.dryRun of type []string`,
		`{`:                                `the body is not DeleteOptions: unexpected end of JSON input`,
	} {
		err := c.Decoder.DecodeDeleteOptions("", []byte(body), new(metav1.DeleteOptions))
		if st := statusOf(t, err); st.Code != 400 || st.Message != want {
			t.Errorf("%s: %d %s", body, st.Code, st.Message)
		}
	}
	if err := c.Decoder.DecodeDeleteOptions("text/plain", []byte(`{}`), new(metav1.DeleteOptions)); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("text/plain: %v", err)
	}
}

// deleteOptions lets the library encode options, which are no object to it.
type deleteOptions struct{ metav1.DeleteOptions }

func (o *deleteOptions) DeepCopyObject() runtime.Object { return o }

// decodeOrStatus is what every fuzz target of bodies asks: an event that can be
// stored and shown, or a Status that says what is wrong.
func decodeOrStatus(t *testing.T, c *codec.Codec, v event.View, ev *eventsv1.Event, err error) {
	t.Helper()
	if err != nil {
		if st := statusOf(t, err); st.Code < 400 || st.Code > 422 || st.Message == "" {
			t.Errorf("status %+v", st)
		}
		return
	}
	d, err := c.Draft(ev)
	if err != nil {
		// Only managed fields that are no JSON, and times that it cannot write, cannot be stored.
		return
	}
	rec := codectest.RecordOf(ev, d, 1)
	text, err := c.AppendObject(nil, codec.Format{}, v, rec)
	if err != nil || !json.Valid(text) {
		t.Errorf("shown as %s, %v", text, err)
	}
}

// plainEqualsLibrary decodes a body both ways and tells whether it was plain.
func plainEqualsLibrary(t *testing.T, c *codec.Codec, v event.View, body []byte) bool {
	t.Helper()
	plain, ok := request.DecodePlain(c.Decoder, v, body)
	if !ok {
		return false
	}
	full, warnings, err := request.DecodeFully(c.Decoder, v, request.JSON, body, "Strict")
	if err != nil || len(warnings) > 0 {
		t.Fatalf("taken for plain, but %v, %q: %s", err, warnings, body)
	}
	if diff := cmp.Diff(full, plain); diff != "" {
		t.Fatalf("%s (-library +plain):\n%s", body, diff)
	}
	return true
}

// TestDecodePlain: what is decoded quickly is what the library makes of it, for
// bodies in which anything may have changed.
func TestDecodePlain(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	pieces := []string{
		`"a":"b"`, `{}`, `null`, ` `, `\u0041`, `"kind":"Event",`, `"note":"x",`, `"count":1,`, `-`, `0`, `1.5`, `"`, `,`, `}`, `ä`,
		`"metadata":{"labels":{"a":"b","a":"c"}},`, `"Reason":"x",`, `"series":{"count":2147483648},`, `"eventTime":"2026-01-02T03:04:05Z",`,
		`\n`, `\"`, `\/`, `\\`, `\'`, `\u00e4\u4E16`, `\ud83c\udf89`, `\udf89`, `\u12`, `\`, "\xc3", "\xe4\xb8\x96", "\x7f", "\n", "\x00",
	}
	plain, total := 0, 0
	first := randtest.Seed(t)
	for round := range uint64(400) {
		seed := first + round
		random := rand.New(rand.NewPCG(seed, 3))
		ev := eventtest.Typical()
		ev.ResourceVersion = ""
		if seed%2 == 0 {
			ev = eventtest.InSeries()
			ev.Related, ev.DeprecatedCount = &ev.Regarding, int32(round)
			ev.ManagedFields, ev.OwnerReferences, ev.Finalizers = nil, nil, nil
		}
		for _, v := range codectest.Views {
			body := []byte(codectest.Library(t, codec.Format{Pretty: seed%3 == 0}, codectest.AsView(c, v, ev, 0)))
			for range random.IntN(3) {
				at := random.IntN(len(body))
				piece := pieces[random.IntN(len(pieces))]
				body = slices.Concat(body[:at], []byte(piece), body[min(len(body), at+random.IntN(3)):])
			}
			total++
			if plainEqualsLibrary(t, c, v, body) {
				plain++
			}
		}
	}
	if plain < total/4 || plain == total {
		t.Errorf("%d of %d bodies were plain", plain, total)
	}
}

// TestPlainManagedFields: managed fields, which exports have, are decoded quickly if they are as servers write them.
func TestPlainManagedFields(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	long := `{"f:a":"` + strings.Repeat("x", 100_000) + `"}`
	for managers, want := range map[string]bool{
		`[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-05-04T12:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}},"subresource":"s"}]`: true,
		"[ {\"manager\" : \"\\u0041\"} , { \"fieldsV1\" : {\n\"k:{\\\"a\\\":1}\" : [ 1, null, {\"b\":\"}\"} ] } } ]":                                             true,
		`[{}]`: true, `[{"fieldsV1":{}}]`: true, `[{"time":"2026-05-04T14:00:00+02:00"}]`: true, `[{"fieldsV1":{"a":1,"a":2}}]`: true,
		`[]`: false, `null`: false, `{}`: false, `[`: false, `[{}`: false, `[{},]`: false, `[{}}`: false, `[1]`: false, `[{"other":1}]`: false,
		`[{"time":null}]`: false, `[{"time":"0001-01-01T00:00:00Z"}]`: false, `[{"time":"today"}]`: false, `[{"manager":"a","manager":"b"}]`: false,
		`[{"fieldsV1":null}]`: false, `[{"fieldsV1":[]}]`: false, `[{"fieldsV1":{"a":[}]}]`: false, `[{"fieldsV1":{"a"}}]`: false, `[{"fieldsV1":{`: false,
		`[{"fieldsV1":{"`: false, `[{"fieldsV1":` + long + `}]`: false,
	} {
		if plain := plainEqualsLibrary(t, c, event.EventsV1, []byte(`{"metadata":{"managedFields":`+managers+`}}`)); plain != want {
			t.Errorf("%.100s: plain %t, want %t", managers, plain, want)
		}
	}
}

// TestLargeBodiesArePlain: what is sent to cost much is decoded quickly.
func TestLargeBodiesArePlain(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for name, body := range largeBodies(300_000) {
		if !plainEqualsLibrary(t, c, event.EventsV1, body) {
			t.Errorf("%s: left to the library", name)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	c := codectest.New(f, "k8s.io")
	r := eventtest.NewRandom(1)
	for i, contentType := range []string{jsonType, yamlType, protobufType} {
		for _, v := range codectest.Views {
			body := codectest.Library(f, codec.Format{Media: request.Media(i)}, codectest.AsView(c, v, r.Event("v1"), 1))
			f.Add(contentType, []byte(body), v == event.CoreV1)
		}
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte, core bool) {
		v := event.EventsV1
		if core {
			v = event.CoreV1
		}
		for _, validation := range []string{"Strict", "Ignore"} {
			ev, _, err := c.Decoder.DecodeEvent(v, contentType, body, validation)
			decodeOrStatus(t, c, v, ev, err)
		}
		plainEqualsLibrary(t, c, v, body)
	})
}

func FuzzDecodeDeleteOptions(f *testing.F) {
	c := codectest.New(f, "k8s.io")
	f.Add(jsonType, []byte(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"x"}}`))
	f.Add(yamlType, []byte("propagationPolicy: Orphan\n"))
	f.Add(protobufType, []byte(codectest.Library(f, codec.Format{Media: request.Protobuf}, &deleteOptions{})))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		if err := c.Decoder.DecodeDeleteOptions(contentType, body, new(metav1.DeleteOptions)); err != nil {
			statusOf(t, err)
		}
	})
}
