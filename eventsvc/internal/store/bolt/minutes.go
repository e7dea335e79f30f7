package bolt

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
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

// tally counts the changes of one batch by the keys of the minutes bucket.
type tally map[string]*[2]uint64

func (t tally) add(c *change) {
	if c.current == nil {
		return
	}
	a := c.current.Attributes
	k := be.AppendUint64(make([]byte, 0, 96), uint64(c.current.Time.Unix()/60))
	k = append(append(k, c.key.Namespace...), 0)
	k = append(append(k, a.Field(store.Type)...), 0)
	k = append(append(k, a.Field(store.Reason)...), 0)
	k = append(k, a.Field(store.RegardingKind)...)
	n := t[string(k)]
	if n == nil {
		n = new([2]uint64)
		t[string(k)] = n
	}
	if c.kind == created {
		n[0]++
	} else {
		n[1]++
	}
}

// save adds the counts of a batch to those of the segment, and forgets them.
func (t tally) save(b *bbolt.Bucket) error {
	for k, n := range t {
		key := []byte(k)
		// A damaged count begins anew: it must not keep events from being stored.
		was, _ := parseMinute(key, b.Get(key))
		v := be.AppendUint64(be.AppendUint64(nil, was[0]+n[0]), was[1]+n[1])
		if err := b.Put(key, be.AppendUint32(v, castagnoli(0, append(key[:len(key):len(key)], v...)))); err != nil {
			return err
		}
	}
	clear(t)
	return nil
}

func parseMinute(key, v []byte) (n [2]uint64, err error) {
	if v == nil {
		return n, nil
	}
	if len(v) != minuteValue || be.Uint32(v[16:]) != castagnoli(0, append(key[:len(key):len(key)], v[:16]...)) {
		return n, fmt.Errorf("count of a minute: %w", errDamaged)
	}
	return [2]uint64{be.Uint64(v), be.Uint64(v[8:])}, nil
}

// Counts calls visit with the counts of the minutes from one time to before
// another, of one namespace or of all. A minute during which a new log file was
// begun comes in two parts. Counts are kept as long as the log file that they
// are in; what expires or is deleted stays counted.
func (db *DB) Counts(ctx context.Context, from, to time.Time, namespace string, visit func(MinuteCount)) error {
	var counts []MinuteCount
	err := db.readLog(func(r *logReader) error {
		counts = counts[:0]
		for i := range r.segments {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := r.cursor(i); err != nil {
				return err
			}
			if err := appendMinutes(r.txs[i].Bucket([]byte(bucketMinutes)), from, to, namespace, &counts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return db.readError(err)
	}
	for i := range counts {
		visit(counts[i])
	}
	return nil
}

func appendMinutes(b *bbolt.Bucket, from, to time.Time, namespace string, counts *[]MinuteCount) error {
	c := b.Cursor()
	end := uint64(to.Add(time.Minute-1).Unix() / 60)
	for k, v := c.Seek(be.AppendUint64(nil, uint64(from.Unix()/60))); len(k) > 8 && be.Uint64(k) < end; k, v = c.Next() {
		text := bytes.Split(k[8:], []byte{0})
		if len(text) != 4 {
			return fmt.Errorf("count of a minute: %w", errDamaged)
		}
		if namespace != "" && namespace != string(text[0]) {
			continue
		}
		n, err := parseMinute(k, v)
		if err != nil {
			return err
		}
		*counts = append(*counts, MinuteCount{
			Minute:    time.Unix(int64(be.Uint64(k))*60, 0),
			Namespace: string(text[0]), Type: string(text[1]), Reason: string(text[2]), RegardingKind: string(text[3]),
			Created: int64(n[0]), Modified: int64(n[1]),
		})
	}
	return nil
}
