package dump

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/google/uuid"

	"tidings.example/eventsvc/internal/event"
)

// errNoTime is the problem of an event that says neither when it was observed nor when it was made.
var errNoTime = errors.New("it has no time at all: give one with --time")

// item decodes an event, and completes what a server would have set. Notes say what it had that is not kept.
func (f *found) item(o *Options) (it Item, notes []string, err error) {
	ev, notes, err := f.decode(o)
	if err != nil {
		return it, notes, fmt.Errorf("it cannot be read as an event: %w; mend it in the file", err)
	}
	it = Item{Position: f.Position, Event: ev, Deleted: f.deleted, Believed: f.believed, Version: f.version}
	if it.Version == 0 {
		it.Version = version(ev.ResourceVersion)
	}
	ev.TypeMeta = metav1.TypeMeta{}
	if event.LastSeen(ev).IsZero() && o.Time.IsZero() {
		return it, notes, errNoTime
	}
	if is, to := ev.Labels[event.ClusterLabel], o.Labels[event.ClusterLabel]; is != "" && to != "" && is != to && !o.Relabel {
		return it, notes, fmt.Errorf("it is of cluster %s: leave out --cluster, or say --relabel to make it one of %s", is, to)
	}
	complete(ev, o)
	if errs := event.ValidateStored(ev); len(errs) > 0 {
		return it, notes, fmt.Errorf("%w; mend it in the file", errs.ToAggregate())
	}
	if size := ev.Size(); size > maxEvent {
		return it, notes, fmt.Errorf("it has %d bytes, more than the %d MiB that the service accepts", size, maxEvent>>20)
	}
	return it, notes, nil
}

// maxEvent is the largest event, as in a request.
const maxEvent = 3 << 20

// maxVersion is larger than any version of a store in this century, and a float64 holds it exactly.
const maxVersion = 1 << 52

// version is the number of a resourceVersion, 0 if it is none.
func version(text string) uint64 {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n <= maxVersion {
		return n
	}
	return 0
}

// complete sets what only a server sets, if it is missing: the same each time.
func complete(ev *eventsv1.Event, o *Options) {
	if ev.CreationTimestamp.IsZero() {
		first := ev.DeprecatedFirstTimestamp.Time
		if first.IsZero() {
			first = event.LastSeen(ev)
		}
		if first.IsZero() {
			first = o.Time
		}
		ev.CreationTimestamp = metav1.Unix(first.Unix(), 0)
	}
	ev.Namespace = cmp.Or(ev.Namespace, ev.Regarding.Namespace, metav1.NamespaceDefault)
	if ev.Name == "" {
		ev.Name = madeName(ev)
	}
	if ev.UID == "" {
		ev.UID = types.UID(uuid.NewSHA1(uuid.Nil, []byte(ev.Namespace+"/"+ev.Name+"/"+string(ev.Regarding.UID))).String())
	}
	if len(o.Labels) > 0 {
		all := maps.Clone(ev.Labels)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, o.Labels)
		ev.Labels = all
	}
}

// madeName makes a name from what an event says, the same one for the same event.
func madeName(ev *eventsv1.Event) string {
	bare := *ev
	bare.ResourceVersion, bare.ManagedFields = "", nil
	content, _ := json.Marshal(&bare) // cannot fail: every member can be encoded
	base := strings.ToLower(cmp.Or(ev.Regarding.Name, "event"))
	if len(base) > 200 || len(validation.IsDNS1123Subdomain(base)) > 0 {
		base = "event"
	}
	return fmt.Sprintf("%s.%x", base, sha256.Sum256(content))[:len(base)+17]
}

// decode reads the event in the names of its version.
func (f *found) decode(o *Options) (ev *eventsv1.Event, notes []string, err error) {
	if o.Decode != nil {
		if ev, err := o.Decode(f.view, f.raw); err == nil {
			return ev, nil, nil
		}
	}
	obj := event.NewObject(f.view)
	unknown, err := event.Decode(f.raw, obj, true)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range unknown {
		notes = append(notes, unkept(u.Error()))
	}
	return event.Hub(obj), notes, nil
}

// unkept is the note of a field that an event cannot have.
func unkept(problem string) string {
	if field, ok := strings.CutPrefix(problem, "unknown field "); ok {
		return "the field " + strings.Trim(field, `"`) + " is not kept: events have it no more, or never had it"
	}
	if field, ok := strings.CutPrefix(problem, "duplicate field "); ok {
		return "the field " + strings.Trim(field, `"`) + " is there twice, and the last one is kept"
	}
	return problem
}
