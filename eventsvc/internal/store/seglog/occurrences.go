package seglog

import (
	"math"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// Occurrence returns when and how often the event of a record was observed: what its
// attributes say, else once, when it was written.
func Occurrence(e *Entry) event.Occurrence {
	if o, ok := event.Attributes(e.Attributes).Occurrence(); ok {
		return o
	}
	return event.Occurrence{Time: e.Time.UTC().Truncate(time.Microsecond), Count: 1, New: 1}
}

// damagedNote stands for a revision that is noted in the meta bucket and damaged.
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
	return tx.Bucket([]byte(boltfile.Meta)).Put([]byte(name), noteOf(name, revision))
}

func noteOf(name string, revision uint64) []byte {
	return be.AppendUint32(recordKey(revision), boltfile.Checksum(revision, []byte(name)))
}
