package event

import (
	"math/rand/v2"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/uuid"
)

// PrepareForCreate wipes the metadata that only the server sets and sets it:
// uid, creationTimestamp and the namespace if there is none. A resourceVersion
// is refused: an object that has one exists already. The name of an event with
// only a generateName is the caller's: see [GenerateName].
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

// Generated names have five random characters of an alphabet without vowels
// and look-alikes, behind a base of at most 58 bytes, so that a name made from
// a label is a label.
const (
	nameAlphabet   = "bcdfghjklmnpqrstvwxz2456789"
	nameSuffixSize = 5
	nameBaseMax    = 63 - nameSuffixSize
)

// GenerateName makes a name from metadata.generateName.
func GenerateName(base string) string {
	if len(base) > nameBaseMax {
		base = base[:nameBaseMax]
	}
	name := make([]byte, len(base), len(base)+nameSuffixSize)
	copy(name, base)
	for range nameSuffixSize {
		name = append(name, nameAlphabet[rand.IntN(len(nameAlphabet))])
	}
	return string(name)
}

// PrepareForUpdate restores from the stored event what an update may leave out
// or has no say in: the uid if it is empty, creation and deletion times, and
// fields that Events do not use.
func PrepareForUpdate(next, live *eventsv1.Event) {
	if next.UID == "" {
		next.UID = live.UID
	}
	next.CreationTimestamp = live.CreationTimestamp
	next.Generation = live.Generation
	next.SelfLink = ""
	if next.DeletionTimestamp == nil {
		next.DeletionTimestamp = live.DeletionTimestamp
	}
	if next.DeletionGracePeriodSeconds == nil {
		next.DeletionGracePeriodSeconds = live.DeletionGracePeriodSeconds
	}
}
