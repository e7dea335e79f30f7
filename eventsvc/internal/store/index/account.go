package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// Live is how many events exist, and the bytes of their records.
type Live struct{ Events, Bytes int64 }

// encode returns the count as it is kept in the file.
func (l Live) encode() []byte {
	return be.AppendUint64(be.AppendUint64(nil, uint64(l.Events)), uint64(l.Bytes))
}

// An Account says how much of the log is dead. The index keeps it and uses nothing of it.
type Account struct {
	Trimmed uint64           // it goes up to this revision
	Dead    map[uint64]int64 // bytes by base of their segment
}

// A KeyPointer is a key with its pointer.
type KeyPointer struct {
	Key     string
	Pointer Pointer
}

// Accounts returns the count of the last merge, and the account that was saved last.
func (x *Index) Accounts() (live Live, a Account, err error) {
	a.Dead = map[uint64]int64{}
	err = x.view(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(boltfile.Meta))
		if v := meta.Get([]byte(metaLive)); len(v) == 16 {
			live = Live{Events: int64(be.Uint64(v)), Bytes: int64(be.Uint64(v[8:]))}
		}
		if v := meta.Get([]byte(metaTrimmed)); len(v) == 8 {
			a.Trimmed = be.Uint64(v)
		}
		if v := meta.Get([]byte(metaDead)); v != nil {
			return json.Unmarshal(v, &a.Dead)
		}
		return nil
	})
	return live, a, err
}

// SaveAccount saves an account. In the same transaction it takes keys out of the file,
// unless they have other pointers by now.
func (x *Index) SaveAccount(a Account, gone []KeyPointer) error {
	changes := make([]change, len(gone))
	for i, e := range gone {
		changes[i] = change{[]byte(e.Key), e.Pointer, true}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return bytes.Compare(a.key, b.key) })
	return x.update(func(tx *bbolt.Tx) error {
		if err := changeKeys(tx.Bucket([]byte(bucketKeys)), changes, 0); err != nil {
			return err
		}
		return a.save(tx)
	})
}

func (a *Account) save(tx *bbolt.Tx) error {
	text, err := json.Marshal(a.Dead)
	if err != nil {
		return err
	}
	meta := tx.Bucket([]byte(boltfile.Meta))
	return errors.Join(meta.Put([]byte(metaDead), text), meta.Put([]byte(metaTrimmed), be.AppendUint64(nil, a.Trimmed)))
}
