package columns

import (
	"encoding/binary"
	"fmt"
	"slices"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// A place is a namespace and a cluster that rows have, by their codes, and in which chunks these are. So chunks without
// a row that the caller may see are passed over.
type place struct {
	namespace, cluster uint64
	chunks             chunkSet
	texts              event.Dimensions // of the codes, once they are read
}

// A chunkSet has a bit for each chunk. Those behind its end are not in it.
type chunkSet []byte

func (s chunkSet) has(chunk int) bool { return chunk/8 < len(s) && s[chunk/8]>>(chunk%8)&1 > 0 }

func (s *chunkSet) add(chunk int) {
	for len(*s) <= chunk/8 {
		*s = append(*s, 0)
	}
	(*s)[chunk/8] |= 1 << (chunk % 8)
}

// join adds the chunks of another set.
func (s *chunkSet) join(other chunkSet) {
	for len(*s) < len(other) {
		*s = append(*s, 0)
	}
	for i, b := range other {
		(*s)[i] |= b
	}
}

// addPlace notes the place of the row that comes next.
func (b *Builder) addPlace(namespace, cluster uint64) {
	key := [2]uint64{namespace, cluster}
	at, ok := b.placed[key]
	if !ok {
		at = len(b.places)
		b.placed[key] = at
		b.places = append(b.places, place{namespace: namespace, cluster: cluster})
	}
	b.places[at].chunks.add(b.rows / ChunkRows)
}

// appendPlaces appends places: their number, and of each the codes, the length of the set, and the set.
func appendPlaces(dst []byte, places []place) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(places)))
	for i := range places {
		p := &places[i]
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, p.namespace), p.cluster)
		dst = append(binary.AppendUvarint(dst, uint64(len(p.chunks))), p.chunks...)
	}
	return dst
}

// parsePlaces reads what appendPlaces has made.
func parsePlaces(b []byte) ([]place, bool) {
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b = nil
			return 0
		}
		b = b[size:]
		return n
	}
	n := number()
	if n > uint64(len(b)) {
		return nil, false
	}
	all := make([]place, n)
	for i := range all {
		if len(b) == 0 {
			return nil, false
		}
		p := &all[i]
		p.namespace, p.cluster = number(), number()
		size := number()
		if size > uint64(len(b)) {
			return nil, false
		}
		p.chunks, b = chunkSet(b[:size]), b[size:]
	}
	return all, len(b) == 0
}

// placesOf returns the places of a table: if the first copy is damaged, those of the second one.
func (t *Table) placesOf() ([]place, error) {
	t.mu.Lock()
	all := t.places
	t.mu.Unlock()
	if all != nil {
		return all, nil
	}
	if t.growing != nil {
		all = slices.Clone(t.growing.places)
	}
	damage := fmt.Errorf("the places of the rows up to revision %d: %w", t.id, boltfile.ErrChecksum)
	for n := 0; n < 2 && all == nil; n++ {
		if b, err := unseal(salt(t.id, columnOfPlaces, n), t.piece(columnOfPlaces, n)); err == nil {
			all, _ = parsePlaces(b)
		}
	}
	if all == nil {
		return nil, damage
	}
	for i := range all {
		p := &all[i]
		key := [numDims]uint64{colNamespace: p.namespace, colCluster: p.cluster}
		for _, column := range placeColumns {
			if limit, err := t.limit(column); err != nil || key[column] >= uint64(limit) {
				return nil, damage
			}
		}
		var err error
		if p.texts, err = t.dimensions(placeColumns, &key); err != nil {
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.places, t.bytes = all, t.bytes+200*len(all)
	return all, nil
}

// place compiles a filter of places.
func (s *Scan) place(f *event.Filter) (*node, error) {
	all, err := s.table.placesOf()
	if err != nil {
		return nil, err
	}
	namespaces, err := s.table.dict(colNamespace)
	if err != nil {
		return nil, err
	}
	n := &node{kind: f.Kind, filter: f, column: colNamespace}
	codes, others := &codeSet{has: make([]bool, namespaces.len())}, &codeSet{has: make([]bool, namespaces.len())}
	allowed := 0
	for i := range all {
		if f.Allows(all[i].texts.Namespace, all[i].texts.Cluster) {
			allowed++
			n.chunks.join(all[i].chunks)
			codes.add(int(all[i].namespace))
		} else {
			others.add(int(all[i].namespace))
		}
	}
	switch allowed {
	case 0:
		return nothing, nil
	case len(all):
		return everything, nil
	}
	if codes.meets(others) { // the cluster matters, too
		n.wanted = map[[numDims]uint64]bool{}
	} else {
		n.codes = codes
	}
	return n, nil
}

// placed sets in which chunks the namespaces of a filter are.
func (s *Scan) placed(n *node) error {
	all, err := s.table.placesOf()
	for i := range all {
		if n.codes.has[all[i].namespace] {
			n.chunks.join(all[i].chunks)
		}
	}
	return err
}

// placeColumns are those of a place.
var placeColumns = []int{colNamespace, colCluster}

// may reports whether a filter can match rows of a chunk, as far as places tell.
func (n *node) may(chunk int) bool {
	if n.chunks != nil {
		return n.chunks.has(chunk)
	}
	return n.kind != event.FilterAll || !slices.ContainsFunc(n.parts, func(part *node) bool { return !part.may(chunk) })
}
