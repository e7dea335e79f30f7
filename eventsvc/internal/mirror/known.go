package mirror

import (
	"k8s.io/utils/lru"

	"tidings.example/eventsvc/internal/client"
)

// knownMax is the number of events whose versions are known, which take some megabytes.
const knownMax = 40_000

// known caches which versions the target has, for the last tens of thousands of events, so that another list does not
// send events again that did not change. It is safe for concurrent use.
type known struct{ versions *lru.Cache } // by uid

func newKnown() *known { return &known{lru.New(knownMax)} }

// has reports whether the target is known to have the version of an item, or a later one.
func (k *known) has(it *item) bool {
	stored, _ := k.versions.Get(it.uid)
	version, _ := stored.(string)
	return version != "" && !client.Newer(it.version, version)
}

// add notes that the target has the version of an item.
func (k *known) add(it *item) { k.versions.Add(it.uid, it.version) }
