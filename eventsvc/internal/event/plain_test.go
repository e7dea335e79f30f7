package event

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// updates are what a write may do to an event, right or wrong.
var updates = []func(*eventsv1.Event){
	func(ev *eventsv1.Event) { ev.Name += "x" },
	func(ev *eventsv1.Event) { ev.Name += "_" },
	func(ev *eventsv1.Event) { ev.GenerateName = "x_" },
	func(ev *eventsv1.Event) { ev.Annotations = map[string]string{"A/b": strings.Repeat("x", 256<<10)} },
	func(ev *eventsv1.Event) { ev.Namespace += "." },
	func(ev *eventsv1.Event) { ev.ManagedFields[0].Operation = "" },
	func(ev *eventsv1.Event) { ev.ManagedFields[0].FieldsType = "x" },
	func(ev *eventsv1.Event) { ev.Namespace += "x" },
	func(ev *eventsv1.Event) { ev.UID += "x" },
	func(ev *eventsv1.Event) { ev.ResourceVersion = "" },
	func(ev *eventsv1.Event) { ev.Generation-- },
	func(ev *eventsv1.Event) { ev.Generation++ },
	func(ev *eventsv1.Event) { ev.CreationTimestamp.Time = ev.CreationTimestamp.Add(time.Second) },
	func(ev *eventsv1.Event) { ev.CreationTimestamp.Time = ev.CreationTimestamp.UTC() },
	func(ev *eventsv1.Event) { ev.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)} },
	func(ev *eventsv1.Event) { ev.DeletionGracePeriodSeconds = new(int64) },
	func(ev *eventsv1.Event) { ev.Finalizers = append(ev.Finalizers, "a/b") },
	func(ev *eventsv1.Event) { ev.Labels = map[string]string{"a b": "c"} },
	func(ev *eventsv1.Event) { ev.Labels = map[string]string{"a": "c d"} },
	func(ev *eventsv1.Event) { ev.Annotations = map[string]string{"a b": "c"} },
	func(ev *eventsv1.Event) { ev.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod"}} },
	func(ev *eventsv1.Event) { ev.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "\t"}} },
	func(ev *eventsv1.Event) { ev.Regarding.Name += "x" },
	func(ev *eventsv1.Event) { ev.Related = &corev1.ObjectReference{Name: "r"} },
	func(ev *eventsv1.Event) { ev.Related = nil },
	func(ev *eventsv1.Event) { ev.Reason += "x" },
	func(ev *eventsv1.Event) { ev.Note += "x" },
	func(ev *eventsv1.Event) { ev.Type += "x" },
	func(ev *eventsv1.Event) { ev.Action += "x" },
	func(ev *eventsv1.Event) { ev.ReportingController += "x" },
	func(ev *eventsv1.Event) { ev.ReportingInstance += "x" },
	func(ev *eventsv1.Event) { ev.DeprecatedSource.Host += "x" },
	func(ev *eventsv1.Event) { ev.DeprecatedCount++ },
	func(ev *eventsv1.Event) { ev.DeprecatedFirstTimestamp.Time = time.Unix(7, 0) },
	func(ev *eventsv1.Event) { ev.DeprecatedLastTimestamp.Time = ev.DeprecatedLastTimestamp.UTC() },
	func(ev *eventsv1.Event) { ev.EventTime.Time = ev.EventTime.Add(time.Nanosecond) },
	func(ev *eventsv1.Event) { ev.EventTime.Time = ev.EventTime.Add(time.Microsecond) },
	func(ev *eventsv1.Event) { ev.Series = &eventsv1.EventSeries{Count: 1} },
}

// TestPlainUpdates: what is passed over because nothing may be wrong is what
// the library finds nothing wrong with, for random changes of both events.
func TestPlainUpdates(t *testing.T) {
	t.Parallel()
	at := field.NewPath("metadata")
	plain := 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		live := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Name: "a", Namespace: "b", ManagedFields: []metav1.ManagedFieldsEntry{{Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1"}}, UID: "c", ResourceVersion: "1", Generation: 1, CreationTimestamp: metav1.Unix(1, 0),
			},
			Related: &corev1.ObjectReference{Name: "r"},
		}
		for range random.IntN(2) {
			updates[random.IntN(len(updates))](live)
		}
		next := live.DeepCopy()
		for range random.IntN(3) {
			updates[random.IntN(len(updates))](next)
		}
		want := metavalidation.ValidateObjectMetaUpdate(&next.ObjectMeta, &live.ObjectMeta, at)
		got := validateMetaUpdate(&next.ObjectMeta, &live.ObjectMeta)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: metadata (-want +got):\n%s", seed, diff)
		}
		if plainUpdate(&next.ObjectMeta, &live.ObjectMeta) {
			plain++
		}
	}
	if plain == 0 {
		t.Error("nothing was passed over")
	}
}

// TestPlainTexts: what is taken for right is right for the library too, with
// texts of few characters, good and bad, in all orders.
func TestPlainTexts(t *testing.T) {
	t.Parallel()
	library := func(valid func(string) []string) func(string) bool {
		return func(s string) bool { return len(valid(s)) == 0 }
	}
	for _, rule := range []struct {
		name           string
		plain, library func(string) bool
	}{
		{"subdomain", plainSubdomain, library(validation.IsDNS1123Subdomain)},
		{"label", plainLabel, library(validation.IsDNS1123Label)},
		{"key", plainKey, library(validation.IsQualifiedName)},
		{"value", plainPart, library(validation.IsValidLabelValue)},
		{"path", plainSubdomain, func(s string) bool { return len(validatePathName(s, false)) == 0 }},
		{"manager", plainManager, func(s string) bool { return len(metav1validation.ValidateFieldManager(s, nil)) == 0 }},
	} {
		right := 0
		for _, text := range texts() {
			if !rule.plain(text) {
				continue
			}
			right++
			if !rule.library(text) {
				t.Errorf("%s: %q is taken for right", rule.name, text)
			}
		}
		if right < 10 {
			t.Errorf("%s: only %d texts are taken for right", rule.name, right)
		}
	}
}

// texts are all of up to five of some characters, and long ones.
func texts() []string {
	all := []string{""}
	for from := 0; len(all[from]) < 5; from++ {
		for _, c := range []string{"a", "Z", "0", "-", ".", "_", "/", "\x00"} {
			all = append(all, all[from]+c)
		}
	}
	for _, n := range []int{62, 63, 64, 127, 128, 129, 252, 253, 254} {
		all = append(all, strings.Repeat("a", n), "a.b/"+strings.Repeat("a", n), strings.Repeat("a", n)+"/a", strings.Repeat("a.", n/2)+"a")
	}
	return all
}

// TestPlainNewMetadata: no error of the library is lost.
func TestPlainNewMetadata(t *testing.T) {
	t.Parallel()
	at := field.NewPath("metadata")
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 2))
		ev := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1"},
		}}}
		for range random.IntN(3) {
			updates[random.IntN(len(updates))](ev)
		}
		want := metavalidation.ValidateObjectMeta(&ev.ObjectMeta, true, metavalidation.NameIsDNSSubdomain, at)
		got := validateMeta(&ev.ObjectMeta, metavalidation.NameIsDNSSubdomain)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}
