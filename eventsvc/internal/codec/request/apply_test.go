package request_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/event/eventtest"
)

const applied = `
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: e, namespace: shop, labels: {app: web}}
eventTime: "2026-05-04T12:00:00.000000Z"
action: Start
`

func managers(ev *eventsv1.Event) []string {
	var all []string
	for _, e := range ev.ManagedFields {
		all = append(all, e.Manager+" "+string(e.Operation))
	}
	return all
}

// Apply creates, owns, takes away what is left out, and shares ownership.
func TestApply(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	created, warnings, err := c.Decoder.Apply(event.EventsV1, nil, []byte(applied), "me", false, "Strict")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if created.Name != "e" || created.Action != "Start" || created.Labels["app"] != "web" {
		t.Errorf("created %+v", created)
	}
	if diff := cmp.Diff([]string{"me Apply"}, managers(created)); diff != "" {
		t.Errorf("managers (-want +got):\n%s", diff)
	}
	created.UID = "u"
	stored := codectest.Live(t, c, created)
	next, _, err := c.Decoder.Apply(event.EventsV1, stored, []byte(strings.Replace(applied, "{app: web}", "{tier: front}", 1)), "me", false, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"tier": "front"}, next.Labels); diff != "" {
		t.Errorf("labels after the second apply (-want +got):\n%s", diff)
	}
	same, _, err := c.Decoder.Apply(event.EventsV1, stored, []byte(applied), "me", false, "")
	if err != nil || !fields.Same(stored, same) {
		t.Errorf("the same once more changes something: %v, %v", same, err)
	}
	shared, _, err := c.Decoder.Apply(event.EventsV1, stored, []byte(applied), "you", false, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"you Apply", "me Apply"}, managers(shared)); diff != "" {
		t.Errorf("managers who agree (-want +got):\n%s", diff)
	}
}

// Conflicts have the texts of kube-apiserver.
func TestApplyConflicts(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	first, _, err := c.Decoder.Apply(event.EventsV1, nil, []byte(applied), "me", false, "")
	if err != nil {
		t.Fatal(err)
	}
	first.UID = "u"
	stored := codectest.Live(t, c, first)
	other := strings.NewReplacer("web", "shop", "Start", "Stop").Replace(applied)
	_, _, err = c.Decoder.Apply(event.EventsV1, stored, []byte(strings.Replace(applied, "web", "shop", 1)), "you", false, "")
	want := metav1.Status{
		Status: "Failure", Reason: "Conflict", Code: 409,
		Message: `Apply failed with 1 conflict: conflict with "me": .metadata.labels.app`,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: "FieldManagerConflict", Message: `conflict with "me"`, Field: ".metadata.labels.app"},
		}},
	}
	if diff := cmp.Diff(want, statusOf(t, err)); diff != "" {
		t.Errorf("one conflict (-want +got):\n%s", diff)
	}
	_, _, err = c.Decoder.Apply(event.EventsV1, stored, []byte(other), "you", false, "")
	if got, want := err.Error(), "Apply failed with 2 conflicts: conflicts with \"me\":\n- .action\n- .metadata.labels.app"; got != want {
		t.Errorf("two conflicts: %s", got)
	}
	forced, _, err := c.Decoder.Apply(event.EventsV1, stored, []byte(other), "you", true, "")
	if err != nil || forced.Action != "Stop" {
		t.Fatalf("forced: %v, %v", forced, err)
	}
	if got := managers(forced); got[len(got)-1] != "you Apply" {
		t.Errorf("managers after force: %q", got)
	}
	updated := stored.DeepCopy()
	updated.Action = "Other"
	if err := c.Decoder.Fields.Update(event.EventsV1, stored, updated, "kubectl-patch"); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Decoder.Apply(event.EventsV1, updated, []byte(applied), "me", false, "")
	if got, prefix := err.Error(), `Apply failed with 1 conflict: conflict with "kubectl-patch" using events.k8s.io/v1: .action`; got != prefix {
		t.Errorf("conflict with an update: %s", got)
	}
}

func TestApplyErrors(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	for _, tt := range []struct {
		name, patch, want string
	}{
		{"no apiVersion", "kind: Event\nmetadata: {name: e}\n", "invalid object type: /, Kind=Event"},
		{"the other view", "apiVersion: v1\nkind: Event\n", "invalid object type: /v1, Kind=Event"},
		{"another kind", "apiVersion: events.k8s.io/v1\nkind: Pod\n", "invalid object type: events.k8s.io/v1, Kind=Pod"},
		{"null", "null", "invalid object type: /, Kind="},
		{"managed fields", applied + "---\n", "…"},
		{"managed fields", strings.Replace(applied, "name: e,", "name: e, managedFields: [],", 1), "metadata.managedFields must be nil"},
		{"unknown field", applied + "bogus: 1\n", "failed to create typed patch object (shop/e; events.k8s.io/v1, Kind=Event): .bogus: field not declared in schema"},
		{"wrong type", applied + "series: {count: x}\n", "error decoding patch: json: cannot unmarshal string into Go struct field EventSeries.series.count of type int32"},
		{"beyond 32 bits", applied + "deprecatedCount: 5000000000\n", "error decoding patch: json: cannot unmarshal number 5000000000 into Go struct field Event.deprecatedCount of type int32"},
		{"beyond 64 bits", strings.Replace(applied, "name: e,", "name: e, generation: 9223372036854775808,", 1), "error decoding patch: json: cannot unmarshal number 9223372036854776000 into Go struct field ObjectMeta.metadata.generation of type int64"},
		{"bad time", strings.Replace(applied, ".000000Z", ".0000000000Z", 1), `error decoding patch: parsing time "2026-05-04T12:00:00.0000000000Z": the fraction has more than nine digits`},
		{"not YAML", "a: b: c", "error encoding patch: yaml: mapping values are not allowed in this context"},
		{"a list", "[1]", "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"},
		{"duplicate", applied + "action: Stop\n", "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key \"action\" already set in map"},
	} {
		ev, _, err := c.Decoder.Apply(event.EventsV1, nil, []byte(tt.patch), "me", false, "Strict")
		if err == nil {
			if tt.want != "…" {
				t.Errorf("%s: became %v", tt.name, ev)
			}
			continue
		}
		st := statusOf(t, err)
		if st.Code != 400 || tt.want != "…" && st.Message != tt.want {
			t.Errorf("%s: %d %s", tt.name, st.Code, st.Message)
		}
	}
	_, warnings, err := c.Decoder.Apply(event.EventsV1, nil, []byte(applied+"action: Stop\n"), "me", false, "Warn")
	if diff := cmp.Diff([]string{`line 7: key "action" already set in map`}, warnings); err != nil || diff != "" {
		t.Errorf("warnings (-want +got):\n%s%v", diff, err)
	}
}

// An event that nobody tracked gets its fields under a name of their own at the
// first apply.
func TestFirstApply(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	ev := eventtest.Typical()
	ev.ManagedFields, ev.Action = nil, "Start"
	next, _, err := c.Decoder.Apply(event.EventsV1, codectest.Live(t, c, ev), []byte(strings.NewReplacer("eventTime", "# eventTime").Replace(applied)), "me", false, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"me Apply", "before-first-apply Update"}, managers(next)); diff != "" {
		t.Errorf("managers (-want +got):\n%s", diff)
	}
}

// At most ten managers of updates are kept, and managed fields can be reset.
func TestManagersAreBounded(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	ev := eventtest.Typical()
	ev.ManagedFields = nil
	if err := c.Decoder.Fields.Update(event.EventsV1, nil, ev, "first"); err != nil {
		t.Fatal(err)
	}
	for i := range 15 {
		next := ev.DeepCopy()
		next.Labels[string(rune('a'+i))] = "x"
		if err := c.Decoder.Fields.Update(event.EventsV1, ev, next, "manager-"+string(rune('a'+i))); err != nil {
			t.Fatal(err)
		}
		ev = next
	}
	if got := managers(ev); len(got) != 10 || !strings.Contains(strings.Join(got, ","), "ancient-changes") {
		t.Errorf("managers: %q", got)
	}
	for name, tt := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   int
	}{"left out": {nil, 10}, "empty": {[]metav1.ManagedFieldsEntry{}, 0}, "one empty": {[]metav1.ManagedFieldsEntry{{}}, 0}} {
		next := ev.DeepCopy()
		next.ManagedFields = tt.fields
		if err := c.Decoder.Fields.Update(event.EventsV1, ev, next, "me"); err != nil || len(next.ManagedFields) != tt.want {
			t.Errorf("%s: %d managers, %v", name, len(next.ManagedFields), err)
		}
	}
}

// kubectl apply --server-side takes over what kubectl apply
// made. In between it rewrites the managed fields by a JSON patch that pins the
// version.
func TestKubectlTakesOver(t *testing.T) {
	t.Parallel()
	c := codectest.New(t, "k8s.io")
	ev := eventtest.Typical()
	ev.ManagedFields, ev.Labels = nil, map[string]string{"app": "web"}
	ev.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"labels":{"app":"web"}}}`}
	if err := c.Decoder.Fields.Update(event.EventsV1, nil, ev, "kubectl-client-side-apply"); err != nil {
		t.Fatal(err)
	}
	stored := codectest.Live(t, c, ev)
	config := "apiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: " + ev.Name + ", labels: {app: shop}}\n"
	first, _, err := c.Decoder.Apply(event.EventsV1, stored, []byte(config), "kubectl", false, "Strict")
	if err != nil {
		t.Fatalf("kubectl conflicts with its own older self: %v", err)
	}
	stored = codectest.Live(t, c, first)
	rewritten := `[{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"kubectl","operation":"Apply",` +
		`"apiVersion":"events.k8s.io/v1","time":"2026-05-04T12:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}}}}]},` +
		`{"op":"replace","path":"/metadata/resourceVersion","value":"41"}]`
	next, _, err := c.Decoder.Patch(event.EventsV1, types.JSONPatchType, []byte(rewritten), stored, "Strict")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Decoder.Fields.Update(event.EventsV1, stored, next, "kubectl"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"kubectl Apply"}, managers(next)); diff != "" || fields.Same(stored, next) {
		t.Errorf("managers after the rewrite (-want +got):\n%s", diff)
	}
	last, _, err := c.Decoder.Apply(event.EventsV1, codectest.Live(t, c, next), []byte(strings.Replace(config, "app: shop", "tier: front", 1)), "kubectl", false, "Strict")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"tier": "front"}, last.Labels); diff != "" {
		t.Errorf("labels after the last apply (-want +got):\n%s", diff)
	}
}
