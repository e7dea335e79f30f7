package index

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/selection"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// A Term stands for one thing that a selector can ask for: a field with a value, or a label with one. The marks of a
// gap have two more. It is a hash. What is found by it must be compared with the selector again, so that two things
// with one hash cost time and nothing else.
type Term uint64

func fieldTerm(f event.Field, value []byte) Term {
	return hashText(hashText(fnvBasis, []byte{byte(f)}), value)
}

func labelTerm(key, value []byte) Term {
	return hashText(hashText(hashText(hashText(fnvBasis, []byte{0xff}), key), []byte{0}), value)
}

// FNV-1a with 64 bits. It is part of the file format.
const (
	fnvBasis Term = 0xcbf29ce484222325
	fnvPrime Term = 0x100000001b3
)

func hashText(h Term, text []byte) Term {
	for _, b := range text {
		h = (h ^ Term(b)) * fnvPrime
	}
	return h
}

// Gaps is the term of the versions that are marked with a gap.
var Gaps = hashText(fnvBasis, []byte{0xfe})

// drops is the term of the versions that are marked with what a rule dropped.
var drops = hashText(fnvBasis, []byte{0xfd})

// hasTerm reports whether a field has terms. The resourceVersion of the object has none: nearly each event has one of
// its own, which would be a third of all terms, and who asks for it names the object, too. Its apiVersion has none,
// because its kind says nearly the same, and the node has none, as no selector names it.
func hasTerm(f event.Field) bool {
	switch f {
	case event.RegardingResourceVersion, event.RegardingAPIVersion, event.Node:
		return false
	}
	return f < event.NumFields
}

// eachTerm calls f with the terms of a version. Empty fields have none, and a source that is the controller too has
// that one's.
func eachTerm(a event.Attributes, f func(Term)) {
	var controller []byte
	for field, value := range a.Fields() {
		if field == event.ReportingController {
			controller = value
		}
		if len(value) > 0 && hasTerm(field) && (field != event.Source || !bytes.Equal(value, controller)) {
			f(fieldTerm(field, value))
		}
	}
	for key, value := range a.Labels() {
		f(labelTerm(key, value))
	}
	switch g, marked := a.Gap(); {
	case g.Rule != "":
		f(drops)
	case marked:
		f(Gaps)
	}
}

// alternatives returns the terms of which a version has one if it meets a
// requirement of the selector: for each requirement that Terms can answer.
func alternatives(s *event.Selector) (all [][]Term) {
	for _, r := range s.Fields {
		if !r.Not && r.Value != "" && hasTerm(r.Field) {
			terms := []Term{fieldTerm(r.Field, []byte(r.Value))}
			if r.Field == event.Source {
				terms = append(terms, fieldTerm(event.ReportingController, []byte(r.Value)))
			}
			all = append(all, terms)
		}
	}
	for i := range s.Labels {
		r := &s.Labels[i]
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			var ts []Term
			for _, v := range r.ValuesUnsorted() {
				ts = append(ts, labelTerm([]byte(r.Key()), []byte(v)))
			}
			all = append(all, ts)
		}
	}
	if ts, ok := clusterTerms(s.Clusters); ok {
		all = append(all, ts)
	}
	if s.Dropped {
		all = append(all, []Term{drops})
	}
	return all
}

// clusterTerms returns the terms of clusters, unless some are named by a pattern or by no label.
func clusterTerms(clusters []string) (ts []Term, ok bool) {
	for _, name := range clusters {
		if name == "" || strings.HasSuffix(name, "*") {
			return nil, false
		}
		ts = append(ts, labelTerm([]byte(event.ClusterLabel), []byte(name)))
	}
	return ts, len(ts) > 0
}

// postings are the revisions that have each Term, for a memtable. The committer
// adds to them while readers look.
type postings struct {
	mu sync.RWMutex
	of map[Term][]uint64
}

// add adds a version, and returns how many of its terms are new. Where two things that it has are one term, it is there
// once: the revisions of a run rise.
func (p *postings) add(revision uint64, a event.Attributes) (added int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	eachTerm(a, func(t Term) {
		known := p.of[t]
		if known == nil {
			added++
		} else if known[len(known)-1] == revision {
			return
		}
		p.of[t] = append(known, revision)
	})
	return added
}

func (p *postings) count(t Term) int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.of[t])
}

func (p *postings) appendTo(dst []uint64, t Term) []uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return append(dst, p.of[t]...)
}

// appendRun appends the value of a run in bucketTerms. Every merge leaves one for each of its
// terms, until Rewrite packs those that are short (see bucketPacked). It has the number of revisions and the first one
// (uvarints), the gaps between them, and a CRC32C.
func appendRun(dst []byte, t Term, revisions []uint64) []byte {
	start := len(dst)
	dst = binary.AppendUvarint(dst, uint64(len(revisions)))
	dst = binary.AppendUvarint(dst, revisions[0])
	if len(revisions) > 1 {
		dst = appendGaps(dst, revisions)
	}
	return be.AppendUint32(dst, boltfile.Checksum(uint64(t), dst[start:]))
}

// appendDifferences appends how many revisions there are, and the differences between them.
func appendDifferences(dst []byte, revisions []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(revisions)))
	last := uint64(0)
	for _, r := range revisions {
		dst = binary.AppendUvarint(dst, r-last)
		last = r
	}
	return dst
}

func runKey(t Term, last uint64) []byte {
	return be.AppendUint64(be.AppendUint64(nil, uint64(t)), last)
}

func runCount(run []byte) int {
	n, _ := binary.Uvarint(run)
	return int(n)
}

// verifyRun verifies a run, and that it belongs to its term: under another it
// would hide versions.
func verifyRun(t Term, run []byte) error {
	if len(run) < 5 || be.Uint32(run[len(run)-4:]) != boltfile.Checksum(uint64(t), run[:len(run)-4]) {
		return fmt.Errorf("index: a run of term %x: %w", uint64(t), boltfile.ErrChecksum)
	}
	return nil
}

func parseRun(dst []uint64, t Term, run []byte) ([]uint64, error) {
	if err := verifyRun(t, run); err != nil {
		return nil, err
	}
	run = run[:len(run)-4]
	n, size := binary.Uvarint(run)
	first, size2 := binary.Uvarint(run[max(size, 0):])
	if size <= 0 || size2 <= 0 || n == 0 {
		return nil, fmt.Errorf("index: a run of term %x: %w", uint64(t), boltfile.ErrChecksum)
	}
	return readGaps(append(dst, first), first, n-1, run[size+size2:]), nil
}

// eachRun calls f with the runs of a term.
func eachRun(terms *bbolt.Bucket, t Term, f func(run []byte) error) error {
	prefix := be.AppendUint64(nil, uint64(t))
	c := terms.Cursor()
	for k, v := c.Seek(prefix); len(k) == 16 && string(k[:8]) == string(prefix); k, v = c.Next() {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// Rarest returns terms of which every version that matches a selector has one: those
// that fewest versions have, and about how many these are. It reports false if the selector
// asks for nothing that has a term.
func (v View) Rarest(s *event.Selector) (rarest []Term, versions int, ok bool) {
	for _, terms := range alternatives(s) {
		if n := v.count(terms); !ok || n < versions {
			rarest, versions, ok = terms, n, true
		}
	}
	return rarest, versions, ok
}

// count returns how many versions have one of the terms.
func (v View) count(terms []Term) (n int) {
	single, packed := v.tx.Bucket([]byte(bucketTerms)), v.tx.Bucket([]byte(bucketPacked))
	for _, one := range terms {
		for _, m := range []*memtable{v.tables.active, v.tables.frozen} {
			if m != nil {
				n += m.postings.count(one)
			}
		}
		_ = eachPacked(packed, one, func(revisions []uint64) { n += len(revisions) })
		_ = eachRun(single, one, func(run []byte) error { n += runCount(run); return nil })
	}
	return n
}

// Postings returns the revisions of the versions that have one of the terms, in order.
// Some of them may be gone from the log.
func (v View) Postings(terms []Term) (revisions []uint64, err error) {
	err = v.eachPostings(terms, func(some []uint64) { revisions = append(revisions, some...) })
	slices.Sort(revisions)
	return slices.Compact(revisions), err
}

// PostingSet returns what Postings returns as a set, which takes less memory where they
// are many.
func (v View) PostingSet(terms []Term) (Revisions, error) {
	set := Revisions{}
	err := v.eachPostings(terms, func(some []uint64) {
		for _, r := range some {
			set.Add(r)
		}
	})
	return set, err
}

// eachPostings calls f with the revisions of the versions that have one of the terms, some
// at a time. f must not keep them.
func (v View) eachPostings(terms []Term, f func(some []uint64)) error {
	var some []uint64
	single, packed := v.tx.Bucket([]byte(bucketTerms)), v.tx.Bucket([]byte(bucketPacked))
	for _, one := range terms {
		if err := eachPacked(packed, one, f); err != nil {
			return err
		}
		err := eachRun(single, one, func(run []byte) (err error) {
			some, err = parseRun(some[:0], one, run)
			f(some)
			return err
		})
		if err != nil {
			return err
		}
		for _, m := range []*memtable{v.tables.frozen, v.tables.active} {
			if m != nil {
				some = m.postings.appendTo(some[:0], one)
				f(some)
			}
		}
	}
	return nil
}

// mergeTerms leaves a run for each Term of a frozen memtable, in transactions
// of bounded size.
func (x *Index) mergeTerms(m *memtable) error {
	all := make([]Term, 0, len(m.postings.of))
	for t := range m.postings.of {
		all = append(all, t)
	}
	slices.Sort(all)
	for chunk := range slices.Chunk(all, x.mergeKeys()) {
		err := x.update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucketTerms))
			for _, t := range chunk {
				revisions := m.postings.of[t]
				if err := b.Put(runKey(t, revisions[len(revisions)-1]), appendRun(nil, t, revisions)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
