package event_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
)

// TestPrepareForCreate: metadata that only the server sets is cleared and set.
func TestPrepareForCreate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 14, 30, 1, 999, time.FixedZone("", 7200))
	grace := int64(30)
	ev := valid()
	ev.Namespace, ev.UID, ev.SelfLink = "", "mine", "/self"
	ev.CreationTimestamp, ev.DeletionTimestamp, ev.DeletionGracePeriodSeconds = moment, &moment, &grace
	if err := event.PrepareForCreate(ev, "shop", now); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(string(ev.UID)) {
		t.Errorf("uid %q is not a random UUID", ev.UID)
	}
	want := metav1.ObjectMeta{
		Name: "e", Namespace: "shop", UID: ev.UID,
		CreationTimestamp: metav1.Date(2026, 5, 4, 12, 30, 1, 0, time.UTC),
	}
	if diff := cmp.Diff(want, ev.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	other := valid()
	if err := event.PrepareForCreate(other, "shop", now); err != nil || other.UID == ev.UID {
		t.Errorf("a second event has the uid %q of the first one, %v", other.UID, err)
	}
}

func TestPrepareForCreateRefusesResourceVersion(t *testing.T) {
	t.Parallel()
	ev := valid()
	ev.ResourceVersion = "7"
	err := event.PrepareForCreate(ev, "shop", time.Now())
	if !apierrors.IsBadRequest(err) || err.Error() != "resourceVersion should not be set on objects to be created" {
		t.Errorf("error %v", err)
	}
}

func TestGenerateName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, base := range []string{"", "web-", strings.Repeat("x", 58), strings.Repeat("x", 300)} {
		for range 200 {
			name := event.GenerateName(base)
			want := base[:min(len(base), 58)]
			if !strings.HasPrefix(name, want) || !regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{5}$`).MatchString(name[len(want):]) {
				t.Fatalf("%q of %q", name, base)
			}
			seen[name] = true
		}
	}
	if len(seen) < 790 {
		t.Errorf("only %d different names of 800", len(seen))
	}
	if name, want := event.GenerateName("x"+strings.Repeat("é", 40)), "x"+strings.Repeat("é", 28); len(name) != 62 || !strings.HasPrefix(name, want) {
		t.Errorf("%q is not made of %q and five characters", name, want)
	}
}

// TestPrepareForUpdate: fields that an update may leave out, or cannot change, are
// taken from the stored event.
func TestPrepareForUpdate(t *testing.T) {
	t.Parallel()
	grace, live := int64(0), valid()
	live.UID, live.ResourceVersion, live.CreationTimestamp = "u", "5", moment
	live.DeletionTimestamp, live.DeletionGracePeriodSeconds = &moment, &grace

	next := valid()
	next.Generation, next.SelfLink, next.ResourceVersion = 4, "/self", "0"
	next.CreationTimestamp = metav1.Now()
	event.PrepareForUpdate(next, live)
	if diff := cmp.Diff(live.ObjectMeta, next.ObjectMeta); diff != "" {
		t.Errorf("metadata (-live +next):\n%s", diff)
	}
	next.UID = "other"
	event.PrepareForUpdate(next, live)
	if next.UID != "other" {
		t.Errorf("a uid that is given became %q: the precondition would not see it", next.UID)
	}
}

func TestDropDuplicateOwners(t *testing.T) {
	t.Parallel()
	yes := true
	a := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "1"}
	b := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "1", Controller: &yes}
	ev := valid()
	ev.OwnerReferences = []metav1.OwnerReference{a, b, a, b, a}
	got := event.DropDuplicateOwners(ev, false)
	want := ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, " +
		"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: 1, 1, 1"
	if diff := cmp.Diff([]string{want}, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{a, b}, ev.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if got := event.DropDuplicateOwners(ev, true); got != nil {
		t.Errorf("warning %q without duplicates", got)
	}
}
