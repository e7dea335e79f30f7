package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/event"
)

// clusterSigns tells whether events come from different clusters. Events do not say their cluster, but the objects that
// they are about have uids: an object that lives as long as its cluster, or nearly so, and has one uid here and another
// one there, is most probably two objects of that name. If it has both of them in one place, it was made anew there.
type clusterSigns struct {
	places []string                     // where events come from; the first one is the store
	uids   map[string]map[string]uint64 // by object and uid, the set of places that have it
}

// The bounds of what is remembered, and of what is read of a store.
const (
	maxSigns  = 10_000
	maxPlaces = 64
	maxKnown  = 10_000 // events
)

func newClusterSigns(files []string) *clusterSigns {
	return &clusterSigns{places: append([]string{"the store"}, files...), uids: map[string]map[string]uint64{}}
}

// longLived are the kinds of objects whose uid seldom changes.
var longLived = []string{"Namespace", "Node", "Deployment", "DaemonSet", "StatefulSet"}

// place returns the number of the place that a file belongs to, which may be within an archive or folder; no file is
// the store.
func (c *clusterSigns) place(file string) int {
	if file == "" {
		return 0
	}
	for i, name := range c.places[1:] {
		if file == name || name == "-" && file == "standard input" || strings.HasPrefix(file, name+": ") || strings.HasPrefix(file, filepath.Clean(name)+"/") {
			return min(i+1, maxPlaces-1)
		}
	}
	return min(len(c.places)-1, maxPlaces-1)
}

// add takes what an event shows. One whose label names its cluster cannot be taken for another cluster's.
func (c *clusterSigns) add(file string, labels map[string]string, about *corev1.ObjectReference) {
	uid := string(about.UID)
	if labels[event.ClusterLabel] != "" || uid == "" || uid == about.Name || !slices.Contains(longLived, about.Kind) { // a kubelet has a Node's name for its uid
		return
	}
	object := about.Kind + " " + about.Name
	if about.Namespace != "" {
		object = about.Kind + " " + about.Namespace + "/" + about.Name
	}
	if c.uids[object] == nil {
		if len(c.uids) >= maxSigns {
			return
		}
		c.uids[object] = map[string]uint64{}
	}
	if _, known := c.uids[object][uid]; known || len(c.uids[object]) < maxPlaces {
		c.uids[object][uid] |= 1 << c.place(file)
	}
}

// warning names an object of two clusters, "" if there is none.
func (c *clusterSigns) warning() string {
	found, text := 0, ""
	for _, object := range slices.Sorted(maps.Keys(c.uids)) {
		a, b, ok := disagree(c.uids[object])
		if !ok {
			continue
		}
		if found++; found == 1 {
			text = fmt.Sprintf("%s has one uid in %s and another in %s", object, c.places[a], c.places[b])
		}
	}
	if found > 1 {
		text += fmt.Sprintf(", and so have %d more", found-1)
	}
	if found > 0 {
		text += ": unless it was made anew, these are two clusters, whose events nothing tells apart: import each with a --cluster NAME of its own"
	}
	return text
}

// disagree returns two places that have no uid of an object in common.
func disagree(uids map[string]uint64) (a, b int, ok bool) {
	sets := slices.Sorted(maps.Values(uids))
	for i, one := range sets {
		for _, other := range sets[i+1:] {
			if one&other == 0 {
				a, b = bits.TrailingZeros64(one), bits.TrailingZeros64(other)
				return min(a, b), max(a, b), true
			}
		}
	}
	return 0, 0, false
}

// errEnough ends the reading of a store.
var errEnough = errors.New("enough was read")

// known takes what the first events of a store show. It is no failure if they cannot be read: the import says why.
func (c *clusterSigns) known(ctx context.Context, s admin.Store) {
	_ = s.Export(ctx, 0, func(uint64, int64) io.Writer { return &knownEvents{to: c} })
}

// knownEvents reads the lines of an export.
type knownEvents struct {
	to   *clusterSigns
	part []byte // of a line
	n    int
}

func (k *knownEvents) Write(b []byte) (int, error) {
	k.part = append(k.part, b...)
	for {
		line, rest, whole := bytes.Cut(k.part, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		var frame struct {
			Object struct {
				Metadata  metav1.ObjectMeta
				Regarding corev1.ObjectReference
			}
		}
		if json.Unmarshal(line, &frame) == nil {
			k.to.add("", frame.Object.Metadata.Labels, &frame.Object.Regarding)
		}
		k.part = rest
		if k.n++; k.n >= maxKnown {
			return 0, errEnough
		}
	}
}
