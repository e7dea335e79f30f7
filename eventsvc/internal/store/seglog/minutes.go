package seglog

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/wal"
)

// MinuteCount says how many events of one kind were written within a minute.
type MinuteCount struct {
	Minute                                 time.Time
	Namespace, Type, Reason, RegardingKind string
	Created, Modified                      int64
}

// In the minutes bucket of a segment there is an entry for each minute and kind
// of event that was written while the segment was the head:
//
//	key: minutes since 1970 8 | namespace NUL type NUL reason NUL regarding kind
//	value: created 8 | modified 8 | CRC32C 4
const minuteValue = 20

// tally counts records by the keys of the minutes bucket.
type tally map[string]*[2]uint64

func (t tally) add(e *Entry) {
	if e.Kind == Deleted {
		return
	}
	a := event.Attributes(e.Attributes)
	k := be.AppendUint64(make([]byte, 0, 96), uint64(e.Time.Unix()/60))
	k = append(append(k, e.Key[:e.NamespaceLen]...), 0)
	k = append(append(k, a.Field(event.Type)...), 0)
	k = append(append(k, a.Field(event.Reason)...), 0)
	k = append(k, a.Field(event.RegardingKind)...)
	n := t[string(k)]
	if n == nil {
		n = new([2]uint64)
		t[string(k)] = n
	}
	if e.Kind == Created {
		n[0]++
	} else {
		n[1]++
	}
}

// addAfter adds the records behind a revision.
func (t tally) addAfter(records []wal.Record, revision uint64) {
	for _, l := range wal.After(records, revision) {
		if e, err := SplitRecord(l.Revision, l.Data); err == nil { // damaged records are not counted
			t.add(&e)
		}
	}
}

// save adds the counts to those of a segment.
func (t tally) save(b *bbolt.Bucket) error {
	for k, n := range t {
		key := []byte(k)
		// A damaged count starts from 0, because it must not prevent that events are stored.
		was, _ := parseMinute(key, b.Get(key))
		v := be.AppendUint64(be.AppendUint64(nil, was[0]+n[0]), was[1]+n[1])
		if err := b.Put(key, be.AppendUint32(v, minuteSum(key, v))); err != nil {
			return err
		}
	}
	return nil
}

// minuteSum returns the checksum of a key and its counts.
func minuteSum(key, counts []byte) uint32 {
	return crc32.Update(boltfile.Checksum(0, key), boltfile.Castagnoli, counts)
}

func parseMinute(key, v []byte) (n [2]uint64, err error) {
	if v == nil {
		return n, nil
	}
	if len(v) != minuteValue || be.Uint32(v[16:]) != minuteSum(key, v[:16]) {
		return n, fmt.Errorf("count of a minute: %w", boltfile.ErrChecksum)
	}
	return [2]uint64{be.Uint64(v), be.Uint64(v[8:])}, nil
}

// Counts calls visit with the counts of the minutes from one time to before another, of
// one namespace or of all.
func (l *Log) Counts(ctx context.Context, from, to time.Time, namespace string, visit func(MinuteCount)) error {
	c := minuteReader{
		first: be.AppendUint64(nil, uint64(from.Unix()/60)), end: uint64(to.Add(time.Minute-1).Unix() / 60),
		namespace: namespace, kinds: map[string]MinuteCount{},
	}
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := l.View(func(r *Reader) (err error) {
			more, err = c.read(r)
			return err
		})
		if err != nil {
			return err
		}
		for i := range c.part {
			visit(c.part[i])
		}
	}
	return nil
}

// CountAs adds counts of entries to those of the segment.
func (s *Segment) CountAs(entries []Entry) error {
	t := tally{}
	for i := range entries {
		t.add(&entries[i])
	}
	return s.update(func(tx *bbolt.Tx) error { return t.save(tx.Bucket([]byte(bucketMinutes))) })
}

// minuteChunk is how many counts are read in one go.
const minuteChunk = 8192

// A minuteReader reads counts part by part.
type minuteReader struct {
	first     []byte
	end       uint64
	namespace string

	base  uint64                 // of the segment that it is in
	next  []byte                 // the key there to go on with; nil: the first
	kinds map[string]MinuteCount // by the part of the key behind the minute, of which few are different
	part  []MinuteCount
}

// read reads the next part, and reports whether there is more. It skips a segment that was
// removed meanwhile.
func (m *minuteReader) read(r *Reader) (more bool, err error) {
	m.part = m.part[:0]
	base, next := m.base, m.next // read again if View calls this again
	for i, s := range r.segments {
		if s.Base < base {
			continue
		}
		opened, err := r.segment(i)
		if err != nil {
			return false, err
		}
		from := m.first
		if s.Base == base && next != nil {
			from = next
		}
		pending := tally{}
		if i == len(r.segments)-1 {
			pending.addAfter(r.pending, lastIn(opened.tx, s.Base-1))
		}
		c := opened.tx.Bucket([]byte(bucketMinutes)).Cursor()
		for k, v := c.Seek(from); len(k) > 8 && be.Uint64(k) < m.end; k, v = c.Next() {
			if len(m.part) >= minuteChunk {
				m.base, m.next = s.Base, bytes.Clone(k)
				return true, m.addPending(pending, from, m.next)
			}
			n, err := parseMinute(k, v)
			if err == nil {
				err = m.add(k, n)
			}
			if err != nil {
				return false, err
			}
		}
		if err := m.addPending(pending, from, be.AppendUint64(nil, m.end)); err != nil {
			return false, err
		}
	}
	return false, nil
}

// addPending adds the counts of pending records whose keys are in a range.
func (m *minuteReader) addPending(pending tally, from, until []byte) error {
	for k, n := range pending {
		if k < string(from) || k >= string(until) {
			continue
		}
		if err := m.add([]byte(k), *n); err != nil {
			return err
		}
	}
	return nil
}

func (m *minuteReader) add(k []byte, n [2]uint64) error {
	count, ok := m.kinds[string(k[8:])]
	if !ok {
		text := strings.Split(string(k[8:]), "\x00")
		if len(text) != 4 {
			return fmt.Errorf("count of a minute: %w", boltfile.ErrChecksum)
		}
		count = MinuteCount{Namespace: text[0], Type: text[1], Reason: text[2], RegardingKind: text[3]}
		m.kinds[string(k[8:])] = count
	}
	if m.namespace != "" && m.namespace != count.Namespace {
		return nil
	}
	count.Minute = time.Unix(int64(be.Uint64(k))*60, 0)
	count.Created, count.Modified = int64(n[0]), int64(n[1])
	m.part = append(m.part, count)
	return nil
}
