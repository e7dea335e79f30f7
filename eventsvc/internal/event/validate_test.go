package event_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tidings.example/eventsvc/internal/event"
)

// causes prints errors as clients see them.
func causes(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}

const (
	qualifiedName = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
		"alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
		"'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
	subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must " +
		"start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
		"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	mismatch = `involvedObject.namespace: Invalid value: "%": does not match event.namespace`
)

func mismatchOf(namespace string) string { return strings.Replace(mismatch, "%", namespace, 1) }

type both struct{ events, core []string }

// TestValidateCreate: the causes of each rule in both views, in their order.
func TestValidateCreate(t *testing.T) {
	t.Parallel()
	same := func(causes ...string) both { return both{causes, causes} }
	strict := func(causes ...string) both { return both{events: causes} }
	for name, tt := range map[string]struct {
		change func(ev *eventsv1.Event)
		want   both
	}{
		"valid": {func(*eventsv1.Event) {}, both{}},
		"only a name": {func(ev *eventsv1.Event) {
			*ev = eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "b1", Namespace: "default"}}
		}, strict(`eventTime: Required value`, `type: Invalid value: "": has invalid value: `)},
		"no regarding.namespace in kube-system": {func(ev *eventsv1.Event) {
			ev.Namespace, ev.Regarding.Namespace = "kube-system", ""
		}, both{}},
		"no regarding.namespace in default": {func(ev *eventsv1.Event) { ev.Namespace, ev.Regarding.Namespace = "default", "" }, both{}},
		"no regarding.namespace in kube-public": {func(ev *eventsv1.Event) {
			ev.Namespace, ev.Regarding.Namespace = "kube-public", ""
		}, same(mismatchOf(""))},
		"another regarding.namespace": {func(ev *eventsv1.Event) { ev.Regarding.Namespace = "elsewhere" }, both{}},
		"old style, another regarding.namespace": {func(ev *eventsv1.Event) {
			ev.EventTime, ev.Regarding.Namespace = metav1.MicroTime{}, "elsewhere"
		}, both{[]string{mismatchOf("elsewhere"), "eventTime: Required value"}, []string{mismatchOf("elsewhere")}}},
		"old style, no regarding.namespace": {func(ev *eventsv1.Event) {
			ev.EventTime, ev.Regarding.Namespace = metav1.MicroTime{}, ""
		}, both{[]string{mismatchOf(""), "eventTime: Required value"}, []string{mismatchOf("")}}},
		"old style, kube-system is not exempt": {func(ev *eventsv1.Event) {
			ev.EventTime, ev.Namespace, ev.Regarding.Namespace = metav1.MicroTime{}, "kube-system", ""
		}, both{[]string{mismatchOf(""), "eventTime: Required value"}, []string{mismatchOf("")}}},
		"old style, empty fields": {func(ev *eventsv1.Event) {
			*ev = eventsv1.Event{ObjectMeta: ev.ObjectMeta, Regarding: ev.Regarding, Type: "weird"}
		}, strict("eventTime: Required value", `type: Invalid value: "": has invalid value: weird`)},
		"no controller": {func(ev *eventsv1.Event) { ev.ReportingController = "" }, both{
			[]string{"reportingController: Required value", `reportingController: Invalid value: "": name part must be non-empty`,
				`reportingController: Invalid value: "": ` + qualifiedName},
			[]string{"reportingComponent: Required value", `reportingComponent: Invalid value: "": name part must be non-empty`,
				`reportingComponent: Invalid value: "": ` + qualifiedName},
		}},
		"bad controller": {func(ev *eventsv1.Event) { ev.ReportingController = "a b" }, both{
			[]string{`reportingController: Invalid value: "a b": ` + qualifiedName},
			[]string{`reportingComponent: Invalid value: "a b": ` + qualifiedName},
		}},
		"controller of 63 bytes": {func(ev *eventsv1.Event) { ev.ReportingController = strings.Repeat("c", 63) }, both{}},
		"no instance, action, reason": {func(ev *eventsv1.Event) {
			ev.ReportingInstance, ev.Action, ev.Reason = "", "", ""
		}, same("reportingInstance: Required value", "action: Required value", "reason: Required value")},
		"128 bytes": {func(ev *eventsv1.Event) {
			ev.ReportingInstance, ev.Action, ev.Reason = strings.Repeat("x", 128), strings.Repeat("é", 64), strings.Repeat("🎉", 32)
		}, both{}},
		"129 bytes": {func(ev *eventsv1.Event) {
			ev.ReportingInstance, ev.Action, ev.Reason = strings.Repeat("x", 129), strings.Repeat("é", 64)+"x", strings.Repeat("🎉", 32)+"x"
		}, same(`reportingInstance: Invalid value: "": can have at most 128 characters`,
			`action: Invalid value: "": can have at most 128 characters`, `reason: Invalid value: "": can have at most 128 characters`)},
		"note of 1024 bytes": {func(ev *eventsv1.Event) { ev.Note = strings.Repeat("世", 341) + "x" }, both{}},
		"note of 1025 bytes": {func(ev *eventsv1.Event) {
			ev.Note = strings.Repeat("世", 341) + "xy"
		}, same(`message: Invalid value: "": can have at most 1024 characters`)},
		"no note": {func(ev *eventsv1.Event) { ev.Note = "" }, both{}},
		"long old note": {func(ev *eventsv1.Event) {
			ev.EventTime, ev.Note = metav1.MicroTime{}, strings.Repeat("x", 65536)
		}, strict("eventTime: Required value")},
		"bad namespace": {func(ev *eventsv1.Event) { ev.Namespace = "Bad_NS" }, both{
			[]string{`namespace: Invalid value: "Bad_NS": ` + subdomain, `metadata.namespace: Invalid value: "Bad_NS": ` +
				"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with " +
				"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
			[]string{`namespace: Invalid value: "Bad_NS": ` + subdomain},
		}},
		"bad name": {func(ev *eventsv1.Event) { ev.Name = "Bad_Name" }, strict(`metadata.name: Invalid value: "Bad_Name": ` + subdomain)},
		"long name": {func(ev *eventsv1.Event) {
			ev.Name = strings.Repeat("n", 254)
		}, strict(`metadata.name: Invalid value: "` + strings.Repeat("n", 254) + `": must be no more than 253 characters`)},
		"name with a slash": {func(ev *eventsv1.Event) { ev.Name = "a/b" }, both{
			[]string{`metadata.name: Invalid value: "a/b": ` + subdomain}, []string{`metadata.name: Invalid value: "a/b": may not contain '/'`},
		}},
		"dots for a name": {func(ev *eventsv1.Event) { ev.Name = ".." }, both{
			[]string{`metadata.name: Invalid value: "..": ` + subdomain}, []string{`metadata.name: Invalid value: "..": may not be '..'`},
		}},
		"NUL in a name": {func(ev *eventsv1.Event) { ev.Name = "a\x00b" }, both{
			[]string{`metadata.name: Invalid value: "a\x00b": ` + subdomain}, []string{`metadata.name: Invalid value: "a\x00b": may not contain a NUL byte`},
		}},
		"name without end": {func(ev *eventsv1.Event) { ev.Name = strings.Repeat("N", 769) }, both{
			[]string{`metadata.name: Invalid value: "` + strings.Repeat("N", 769) + `": must be no more than 253 characters`,
				`metadata.name: Invalid value: "` + strings.Repeat("N", 769) + `": ` + subdomain},
			[]string{`metadata.name: Invalid value: "` + strings.Repeat("N", 769) + `": must be no more than 768 characters`},
		}},
		"no name": {func(ev *eventsv1.Event) { ev.Name = "" }, same("metadata.name: Required value: name or generateName is required")},
		"bad label": {func(ev *eventsv1.Event) { ev.Labels = map[string]string{"a": "b c"} }, same(
			`metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', ` +
				"'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', " +
				"regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")},
		"annotations of more than 256 KiB": {func(ev *eventsv1.Event) {
			ev.Annotations = map[string]string{"a": strings.Repeat("x", 262144)}
		}, same("metadata.annotations: Too long: may not be more than 262144 bytes")},
		"owned by an event": {func(ev *eventsv1.Event) {
			ev.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Event", Name: "e", UID: "1"}}
		}, same(`metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"1"}: ` +
			`/v1, Kind=Event is disallowed from being an owner`)},
		"series of two": {func(ev *eventsv1.Event) {
			ev.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.MicroTime(moment)}
		}, both{}},
		"series of one": {func(ev *eventsv1.Event) {
			ev.Series = &eventsv1.EventSeries{Count: 1}
		}, strict(`series.count: Invalid value: "": should be at least 2`, "series.lastObservedTime: Required value")},
		"deprecated fields": {func(ev *eventsv1.Event) {
			ev.DeprecatedFirstTimestamp, ev.DeprecatedLastTimestamp, ev.DeprecatedCount = moment, moment, 1
			ev.DeprecatedSource.Host = "n1"
		}, strict(`firstTimestamp: Invalid value: "": needs to be unset`, `lastTimestamp: Invalid value: "": needs to be unset`,
			`count: Invalid value: "": needs to be unset`, `source: Invalid value: "": needs to be unset`)},
		"type Warning": {func(ev *eventsv1.Event) { ev.Type = "Warning" }, both{}},
		"another type": {func(ev *eventsv1.Event) { ev.Type = "Error" }, strict(`type: Invalid value: "": has invalid value: Error`)},
	} {
		ev := valid()
		tt.change(ev)
		if diff := cmp.Diff(tt.want.events, causes(event.ValidateCreate(event.EventsV1, ev))); diff != "" {
			t.Errorf("%s, events/v1 (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.want.core, causes(event.ValidateCreate(event.CoreV1, ev))); diff != "" {
			t.Errorf("%s, core/v1 (-want +got):\n%s", name, diff)
		}
	}
}

// TestValidateUpdate: core/v1 may change anything; events/v1 may change series and
// metadata.
func TestValidateUpdate(t *testing.T) {
	t.Parallel()
	const fixed = ": field is immutable"
	strict := func(causes ...string) both { return both{events: causes} }
	for name, tt := range map[string]struct {
		change func(ev *eventsv1.Event)
		want   both
	}{
		"nothing":   {func(*eventsv1.Event) {}, both{}},
		"labels":    {func(ev *eventsv1.Event) { ev.Labels, ev.Annotations = map[string]string{"a": "b"}, nil }, both{}},
		"finalizer": {func(ev *eventsv1.Event) { ev.Finalizers = []string{"example.com/keep"} }, both{}},
		"finalizer without a domain": {func(ev *eventsv1.Event) { ev.Finalizers = []string{"orphan", "plain"} },
			strict(`metadata.finalizers[1]: Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified`)},
		"series": {func(ev *eventsv1.Event) {
			ev.Series = &eventsv1.EventSeries{Count: 9, LastObservedTime: metav1.NowMicro()}
		}, both{}},
		"series removed": {func(ev *eventsv1.Event) { ev.Series = nil }, both{}},
		"series of one": {func(ev *eventsv1.Event) { ev.Series.Count = 1 },
			strict(`series.count: Invalid value: "": should be at least 2`)},
		"regarding": {func(ev *eventsv1.Event) { ev.Regarding.Name = "x" }, strict(
			`involvedObject: Invalid value: {"Kind":"Pod","Namespace":"shop","Name":"x","UID":"","APIVersion":"v1","ResourceVersion":"","FieldPath":""}` + fixed)},
		"reason": {func(ev *eventsv1.Event) { ev.Reason = "x" }, strict(`reason: Invalid value: "x"` + fixed)},
		"note":   {func(ev *eventsv1.Event) { ev.Note = "changed" }, strict(`message: Invalid value: "changed"` + fixed)},
		"source": {func(ev *eventsv1.Event) { ev.DeprecatedSource.Host = "" },
			strict(`source: Invalid value: {"Component":"kubelet","Host":""}` + fixed)},
		"firstTimestamp": {func(ev *eventsv1.Event) { ev.DeprecatedFirstTimestamp = metav1.Time{} },
			strict("firstTimestamp: Invalid value: null" + fixed)},
		"lastTimestamp": {func(ev *eventsv1.Event) { ev.DeprecatedLastTimestamp.Time = moment.Add(time.Hour) },
			strict(`lastTimestamp: Invalid value: "2026-05-04T13:00:00Z"` + fixed)},
		"count":      {func(ev *eventsv1.Event) { ev.DeprecatedCount = 8 }, strict("count: Invalid value: 8" + fixed)},
		"type":       {func(ev *eventsv1.Event) { ev.Type = "Warning" }, strict(`type: Invalid value: "Warning"` + fixed)},
		"action":     {func(ev *eventsv1.Event) { ev.Action = "x" }, strict(`action: Invalid value: "x"` + fixed)},
		"related":    {func(ev *eventsv1.Event) { ev.Related = nil }, strict("related: Invalid value: null" + fixed)},
		"controller": {func(ev *eventsv1.Event) { ev.ReportingController = "x" }, strict(`reportingController: Invalid value: "x"` + fixed)},
		"instance":   {func(ev *eventsv1.Event) { ev.ReportingInstance = "x" }, strict(`reportingInstance: Invalid value: "x"` + fixed)},
		"eventTime by a microsecond": {func(ev *eventsv1.Event) { ev.EventTime.Time = moment.Add(-time.Microsecond) },
			strict(`eventTime: Invalid value: "2026-05-04T12:00:00.123455Z"` + fixed)},
		"eventTime by a nanosecond": {func(ev *eventsv1.Event) { ev.EventTime.Time = moment.Add(999) }, both{}},
		"eventTime in another zone": {func(ev *eventsv1.Event) { ev.EventTime.Time = moment.In(time.FixedZone("", 3600)) }, both{}},
		"eventTime removed": {func(ev *eventsv1.Event) { ev.EventTime = metav1.MicroTime{} },
			strict("eventTime: Invalid value: null" + fixed)},
		"rules of both views": {func(ev *eventsv1.Event) { ev.Action = "" },
			both{[]string{"action: Required value", `action: Invalid value: ""` + fixed}, []string{"action: Required value"}}},
		"uid": {func(ev *eventsv1.Event) { ev.UID = "other" }, both{
			[]string{`metadata.uid: Invalid value: "other"` + fixed},
			[]string{`metadata.uid: Invalid value: "other"` + fixed}}},
		"deletionTimestamp": {func(ev *eventsv1.Event) { ev.DeletionTimestamp = &moment }, both{
			[]string{`metadata.deletionTimestamp: Invalid value: "2026-05-04T12:00:00Z"` + fixed},
			[]string{`metadata.deletionTimestamp: Invalid value: "2026-05-04T12:00:00Z"` + fixed}}},
	} {
		live := full()
		live.UID, live.ResourceVersion = "u", "5"
		next := live.DeepCopy()
		tt.change(next)
		event.PrepareForUpdate(next, live)
		if diff := cmp.Diff(tt.want.events, causes(event.ValidateUpdate(event.EventsV1, next, live))); diff != "" {
			t.Errorf("%s, events/v1 (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.want.core, causes(event.ValidateUpdate(event.CoreV1, next, live))); diff != "" {
			t.Errorf("%s, core/v1 (-want +got):\n%s", name, diff)
		}
	}
}

func TestFinalizersOfDeletedEvent(t *testing.T) {
	t.Parallel()
	live := valid()
	live.UID, live.ResourceVersion, live.DeletionTimestamp, live.Finalizers = "u", "5", &moment, []string{"example.com/a"}
	next := live.DeepCopy()
	next.Finalizers = []string{"example.com/a", "example.com/b"}
	event.PrepareForUpdate(next, live)
	want := []string{"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/b\"}"}
	if diff := cmp.Diff(want, causes(event.ValidateUpdate(event.CoreV1, next, live))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	next.Finalizers = nil
	if errs := event.ValidateUpdate(event.EventsV1, next, live); len(errs) > 0 {
		t.Errorf("taking finalizers away: %v", errs)
	}
}

// Old-style events can be labelled and given a series through events/v1;
// setting eventTime on them is refused.
func TestUpdateOfOldStyleEvent(t *testing.T) {
	t.Parallel()
	live := valid()
	live.EventTime, live.ReportingController, live.Action, live.ResourceVersion = metav1.MicroTime{}, "", "", "5"
	next := live.DeepCopy()
	next.Labels = map[string]string{"a": "b"}
	next.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.MicroTime(moment)}
	if errs := event.ValidateUpdate(event.EventsV1, next, live); len(errs) > 0 {
		t.Errorf("label and series: %v", errs)
	}
	next.EventTime = metav1.MicroTime(moment)
	if errs := event.ValidateUpdate(event.EventsV1, next, live); len(errs) == 0 {
		t.Error("setting eventTime is accepted")
	}
}

// TestInvalid: the body of a 422 is the same as kube-apiserver's.
func TestInvalid(t *testing.T) {
	t.Parallel()
	ev := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "b1", Namespace: "default"}}
	got := event.Invalid("b1", event.ValidateCreate(event.EventsV1, ev)).ErrStatus
	want := metav1.Status{
		Status: "Failure", Reason: "Invalid", Code: 422,
		Message: `Event "b1" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid value: ]`,
		Details: &metav1.StatusDetails{Name: "b1", Kind: "Event", Causes: []metav1.StatusCause{
			{Type: "FieldValueRequired", Message: "Required value", Field: "eventTime"},
			{Type: "FieldValueInvalid", Message: `Invalid value: "": has invalid value: `, Field: "type"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
