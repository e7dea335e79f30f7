package mirror

import (
	"k8s.io/utils/lru"

	"tidings.example/eventsvc/internal/client"
)

// knownMax is the number of events whose versions are known, which take some megabytes.
const knownMax = 40_000

// known caches which versions the target has, for the last tens of thousands of events, so that another list does not
// ask the target about events that did not change. The target is asked about events that are not in it. It is safe for
// concurrent use.
type known struct{ versions *lru.Cache } // by uid, of a knownVersion

type knownVersion struct {
	version string
	labels  uint64 // hash of the labels with which the copy was written; 0: none, or not known
}

func newKnown() *known { return &known{lru.New(knownMax)} }

func (k *known) get(uid string) knownVersion {
	stored, _ := k.versions.Get(uid)
	v, _ := stored.(knownVersion)
	return v
}

func (k *known) has(uid, version string) bool {
	stored := k.get(uid).version
	return stored != "" && !client.Newer(version, stored)
}

// sameLabels reports whether the copy at the target has the labels of the event already, or the event has none.
func (k *known) sameLabels(it *item) bool { return it.labels == 0 || it.labels == k.get(it.uid).labels }

// add notes that the target has the version of an item or a later one. Only if the item was written are the labels
// known.
func (k *known) add(it *item, written bool) {
	v := knownVersion{version: it.version}
	if written {
		v.labels = it.labels
	}
	k.versions.Add(it.uid, v)
}
