package seglog

import (
	"cmp"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/entry"
	"tidings.example/eventsvc/internal/store/observed"
	"tidings.example/eventsvc/internal/store/recordfile"
	"tidings.example/eventsvc/internal/store/wal"
)

// Occurrence is [Log.Occurrence].
func (r *Reader) Occurrence(e *entry.Entry) event.Occurrence { return r.log.Occurrence(e) }

// Occurrence returns when and how often the event of a record was observed. If its
// attributes do not say that, because an older program has made them, the event is decoded
// and compared with the version before. Without a function that decodes it, it is taken as
// observed once, when it was written.
func (l *Log) Occurrence(e *entry.Entry) event.Occurrence {
	if o, ok := event.Attributes(e.Attributes).Occurrence(); ok {
		return o
	}
	o, ok := l.observe.decode(e)
	if !ok || e.Kind != entry.Modified {
		return o
	}
	_ = l.View(func(r *Reader) error {
		before, err := r.Get(e.Previous)
		if err != nil { // compacted away or damaged
			return err
		}
		was, known := event.Attributes(before.Attributes).Occurrence()
		if !known {
			was, known = l.observe.decode(&before)
		}
		if known {
			o.New = max(0, o.Count-was.Count)
		}
		return nil
	})
	return o
}

// Observe decodes an event whose attributes do not say when it was observed.
type Observe func(*store.View) (event.Occurrence, error)

// Attributes returns those of a version with its occurrence, which those that an older program has made lack.
func (o Observe) Attributes(r *store.Record) event.Attributes {
	if _, ok := r.Attributes.Occurrence(); ok || o == nil {
		return r.Attributes
	}
	occurrence, err := o(r.View())
	if err != nil {
		return r.Attributes
	}
	return r.Attributes.With(occurrence)
}

// decode returns the occurrence of a first version. It reports false if that is a guess.
func (o Observe) decode(e *entry.Entry) (event.Occurrence, bool) {
	if o != nil {
		v := e.View(e.StoreKey())
		if seen, err := o(&v); err == nil {
			return seen, true
		}
	}
	return event.Occurrence{Time: e.Time.UTC().Truncate(time.Microsecond), Count: 1, New: 1}, false
}

// add adds what a record reports.
func add(to *observed.Collection, l *Log, e *entry.Entry) {
	if e.Kind != entry.Deleted {
		to.Add(e.Key[:e.NamespaceLen], e.Attributes, e.Revision, l.Occurrence(e))
	}
}

// addAll adds what records report. Damaged ones report nothing.
func addAll(to *observed.Collection, l *Log, records []wal.Record) *observed.Collection {
	for _, r := range records {
		if e, err := entry.Split(r.Revision, r.Data); err == nil {
			add(to, l, &e)
		}
	}
	return to
}

// observedIn returns up to which revision a segment is indexed by time, 0 if it is not.
func observedIn(tx *bbolt.Tx) uint64 { return noted(tx, metaObserved) }

// damagedNote stands for a revision that is noted in the meta bucket and damaged. Nothing is
// indexed again because of it, and so nothing is counted twice.
const damagedNote = math.MaxUint64

// noted returns a revision that [note] has put into the meta bucket, 0 if it is not there.
func noted(tx *bbolt.Tx, name string) uint64 {
	v := tx.Bucket([]byte(boltfile.Meta)).Get([]byte(name))
	if v == nil {
		return 0
	}
	if len(v) != 12 || be.Uint32(v[8:]) != boltfile.Checksum(be.Uint64(v), []byte(name)) {
		return damagedNote
	}
	return be.Uint64(v)
}

// note puts a revision into the meta bucket, with a checksum. It leaves out 0.
func note(tx *bbolt.Tx, name string, revision uint64) error {
	if revision == 0 {
		return nil
	}
	v := be.AppendUint32(recordfile.Key(revision), boltfile.Checksum(revision, []byte(name)))
	return tx.Bucket([]byte(boltfile.Meta)).Put([]byte(name), v)
}

// Checkpoint writes records to the head in one commit, and indexes them by time. It skips
// those that the head has. A head that an older program has written to is indexed only up
// to that: [Log.IndexHead] does the rest.
func (l *Log) Checkpoint(head *Segment, records []wal.Record) error {
	seen := addAll(observed.NewCollection(), l, records)
	return head.change(func(tx *bbolt.Tx, n *observed.Numbering) error { return putRecords(tx, n, records, seen) })
}

// change runs f in a write transaction of a head. f may give numbers to series.
func (s *Segment) change(f func(*bbolt.Tx, *observed.Numbering) error) error {
	s.observing.Lock()
	defer s.observing.Unlock()
	indexed := false
	err := s.update(func(tx *bbolt.Tx) error {
		if s.numbering == nil {
			s.numbering = observed.NumberingOf(tx)
		}
		err := f(tx, s.numbering)
		indexed = observedIn(tx) >= recordsIn(s, tx).Last(0)
		return err
	})
	if err != nil {
		s.numbering = nil // it may have numbers that the file does not
		return err
	}
	s.indexed.Store(indexed)
	return nil
}

// putRecords puts the records that a segment does not have into its file, with what they
// report.
func putRecords(tx *bbolt.Tx, n *observed.Numbering, records []wal.Record, seen *observed.Collection) error {
	log := tx.Bucket([]byte(recordfile.BucketLog))
	last := recordfile.Last(log, 0)
	if records = wal.After(records, last); len(records) == 0 {
		return nil
	}
	log.FillPercent = boltfile.FillPercent
	for _, r := range records {
		if err := log.Put(recordfile.Key(r.Revision), r.Data); err != nil {
			return err
		}
	}
	if observedIn(tx) < last {
		return nil
	}
	seen.Entries = slices.DeleteFunc(seen.Entries, func(e observed.Observation) bool { return e.Revision <= last })
	if err := seen.Save(tx, n); err != nil {
		return err
	}
	return note(tx, metaObserved, records[len(records)-1].Revision)
}

// Indexed returns how many segments are indexed by time, and how many there are. Only those
// that an older program has written to are not.
func (ss Segments) Indexed() (done, all int) {
	for _, s := range ss {
		if s.Indexed() {
			done++
		}
	}
	return done, len(ss)
}

// Indexed reports whether all records of the file are indexed by time.
func (s *Segment) Indexed() bool { return s.indexed.Load() }

// manyRuns is how many runs are worth to be merged.
const manyRuns = 4096

// Scattered reports that a sealed segment has several runs of most minutes, because it was
// written in another order than that of observation, as by an import. A rewrite merges them.
func (s *Segment) Scattered() bool { return s.scattered.Load() }

// IndexHead indexes some of the records of the head that an older program has written, and
// reports whether there are more.
func (l *Log) IndexHead(most int) (more bool, err error) {
	head := l.Head()
	if head.Indexed() {
		return false, nil
	}
	found, at, err := unindexed(l, head, most)
	if err != nil {
		return false, entry.Corrupt(at, err)
	}
	err = head.change(func(tx *bbolt.Tx, n *observed.Numbering) error {
		if err := found.Save(tx, n); err != nil {
			return err
		}
		return note(tx, metaObserved, at)
	})
	return !head.Indexed(), err
}

// unindexed returns what records of a segment report that are not indexed, of so many of
// them, and the revision of the last of these.
func unindexed(l *Log, s *Segment, most int) (found *observed.Collection, at uint64, err error) {
	found = observed.NewCollection()
	err = s.view(func(tx *bbolt.Tx) error {
		at = observedIn(tx)
		_, err := recordsIn(s, tx).Each(at+1, func(revision uint64, record []byte) (bool, error) {
			if e, err := entry.Parse(revision, record); err == nil { // a damaged record reports nothing
				add(found, l, &e)
			}
			at = revision
			most--
			return most > 0, nil
		}, recordfile.PassLost)
		return err
	})
	return found, at, err
}

// Carry copies what was observed since a time according to a sealed segment, which is to be
// unlinked, to the head, and notes there that it has. From then on readers leave out that
// segment and those before it. It reports whether some of it is damaged and lost.
func (l *Log) Carry(s *Segment, since time.Time) (damaged bool, err error) {
	if carried, err := l.Segments().carried(); err != nil || carried >= s.Base {
		return false, err // by a process that ended before it has unlinked the segment
	}
	found, _, err := unindexed(l, s, math.MaxInt)
	if err != nil {
		damaged, found = true, observed.NewCollection()
	}
	err = s.view(func(from *bbolt.Tx) error {
		m := observed.Minutes{Tx: from, Found: found, Since: observed.MinuteSince(since), Needed: func(uint64) bool { return false }}
		if !m.Any() {
			return nil // and nothing can be counted twice
		}
		return l.Head().change(func(tx *bbolt.Tx, n *observed.Numbering) error {
			series, runs, err := observed.Buckets(tx)
			if err != nil {
				return err
			}
			var unwritten error
			m.Number = func(texts string) (number uint32, err error) {
				number, err = n.Number(series, texts)
				unwritten = cmp.Or(unwritten, err)
				return number, err
			}
			m.Damaged = func(_, _ []byte) error {
				damaged = true
				return nil
			}
			unread := m.Each(func(minute int64, entries []observed.Entry) error {
				unwritten = observed.PutRun(runs, minute, s.Base, entries)
				return unwritten
			})
			damaged = damaged || unread != nil
			return cmp.Or(unwritten, note(tx, metaCarried, s.Base))
		})
	})
	return damaged, err
}

// carried returns the base of the newest segment of which what was observed is in a later
// one, 0 if there is none.
func (ss Segments) carried() (base uint64, err error) {
	for _, s := range ss {
		err := s.view(func(tx *bbolt.Tx) error {
			base = max(base, noted(tx, metaCarried))
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return base, nil
}
