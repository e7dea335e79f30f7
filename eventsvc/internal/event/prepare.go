package event

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/uuid"
)

// PrepareForCreate clears the metadata that only the server sets, and sets uid,
// creationTimestamp and, if it is empty, the namespace. It refuses an event with a
// resourceVersion, because such an object exists already. If the event has only a
// generateName, the caller sets the name by [GenerateName].
func PrepareForCreate(ev *eventsv1.Event, namespace string, now time.Time) error {
	if ev.ResourceVersion != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	ev.SelfLink = ""
	ev.DeletionTimestamp = nil
	ev.DeletionGracePeriodSeconds = nil
	ev.CreationTimestamp = metav1.NewTime(now.UTC().Truncate(time.Second))
	ev.UID = types.UID(uuid.NewString())
	if ev.Namespace == "" {
		ev.Namespace = namespace
	}
	return nil
}

// A generated name is a base of at most 58 bytes and five random characters, without
// vowels and characters that look alike. It is at most as long as a DNS label.
const (
	nameAlphabet   = "bcdfghjklmnpqrstvwxz2456789"
	nameSuffixSize = 5
	nameBaseMax    = 63 - nameSuffixSize
)

// GenerateName makes a name from metadata.generateName.
func GenerateName(base string) string {
	if len(base) > nameBaseMax {
		end := nameBaseMax
		for !utf8.RuneStart(base[end]) { // do not split a character
			end--
		}
		base = base[:end]
	}
	name := make([]byte, len(base), len(base)+nameSuffixSize)
	copy(name, base)
	for range nameSuffixSize {
		name = append(name, nameAlphabet[rand.IntN(len(nameAlphabet))])
	}
	return string(name)
}

// PrepareForUpdate copies fields from the stored event that an update may leave out
// or cannot change. The caller has checked the update's resourceVersion and uid
// against those of the stored event.
func PrepareForUpdate(next, live *eventsv1.Event) {
	next.ResourceVersion = live.ResourceVersion
	next.Generation = live.Generation
	next.SelfLink = ""
	if next.UID == "" {
		next.UID = live.UID
	}
	if !live.CreationTimestamp.IsZero() {
		next.CreationTimestamp = live.CreationTimestamp
	}
	if live.DeletionTimestamp != nil {
		next.DeletionTimestamp = live.DeletionTimestamp
	}
	if next.DeletionGracePeriodSeconds == nil {
		next.DeletionGracePeriodSeconds = live.DeletionGracePeriodSeconds
	}
}

// DropDuplicateOwners removes owner references that repeat an earlier one, and then
// returns a warning for the client. The text is kube-apiserver's: one for a create or
// replace, another one for a patch (patched).
func DropDuplicateOwners(ev *eventsv1.Event, patched bool) []string {
	if len(ev.OwnerReferences) < 2 {
		return nil
	}
	var kept []metav1.OwnerReference
	var dropped []string
	for _, ref := range ev.OwnerReferences {
		same := func(r metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(r, ref) }
		if slices.ContainsFunc(kept, same) {
			dropped = append(dropped, string(ref.UID))
			continue
		}
		kept = append(kept, ref)
	}
	if len(dropped) == 0 {
		return nil
	}
	ev.OwnerReferences = kept
	when := ""
	if patched {
		when = " after mutating admission happens"
	}
	return []string{".metadata.ownerReferences contains duplicate entries" + when +
		"; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24;" +
		" please fix your requests; duplicate UID(s) observed: " + strings.Join(dropped, ", ")}
}
