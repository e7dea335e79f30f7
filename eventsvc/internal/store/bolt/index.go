package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltcheck"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
)

// The index file tells for every key where its newest version is. It is made
// from the log and may lag behind: what is missing is in a memtable, and after
// a start is read again from the log.
type index struct {
	db     atomic.Pointer[bbolt.DB]
	path   string
	merged atomic.Uint64 // log records up to this revision are in the file
	failed atomic.Bool   // writing it has failed: nothing more is written to this file
}

var errIndexFailed = errors.New("the file could not be written before; it is being replaced")

// The buckets of the file, and the entries of its meta bucket.
const (
	bucketKeys  = "keys"  // key → pointer to its newest version
	bucketTerms = "terms" // term and last revision → run of revisions

	metaMerged  = "merged"  // log records up to this revision are in the file
	metaMerging = "merging" // a merge has begun and not ended
	metaLive    = "live"    // number and bytes of the events at the merged revision
	metaTrimmed = "trimmed" // the account of dead records goes up to this revision
	metaDead    = "dead"    // dead bytes by base of their segment
)

const (
	indexName = "index.db"
	indexMmap = 4 << 30
	// Every transaction of a merge holds the pages that it changes in memory.
	mergeChunk = 4096
)

// openIndex opens the index, making an empty one if there is none. Its file
// lock is what keeps a second process out of the directory.
func openIndex(dir string, newID func() []byte) (*index, error) {
	path := filepath.Join(dir, indexName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := boltfile.Install(path, 0, []string{bucketKeys, bucketTerms}, map[string][]byte{boltfile.StoreID: newID()}); err != nil {
			return nil, err
		}
	}
	db, err := boltfile.Open(path, boltfile.Options{Mmap: indexMmap, Check: checkIndexFile})
	if err != nil {
		fe := new(store.FileError)
		if errors.As(err, &fe) && fe.Fix == boltfile.FixRestore {
			fe.Fix = boltfile.FixRebuild
		}
		return nil, err
	}
	x := &index{path: path}
	x.db.Store(db)
	err = x.view(func(tx *bbolt.Tx) error {
		if v := tx.Bucket([]byte(boltfile.Meta)).Get([]byte(metaMerged)); len(v) == 8 {
			x.merged.Store(be.Uint64(v))
		}
		return nil
	})
	return x, err
}

func (x *index) view(f func(*bbolt.Tx) error) error {
	for {
		db := x.db.Load()
		err := boltcheck.View(db, f)
		if errors.Is(err, berrors.ErrDatabaseNotOpen) && x.db.Load() != db {
			continue // the file was replaced
		}
		return err
	}
}

// update writes to the file. After a failure for another reason than room only
// a copy of it is written to, as with the head of the log.
func (x *index) update(f func(*bbolt.Tx) error) error {
	if x.failed.Load() {
		return errIndexFailed
	}
	err := boltcheck.Guard(func() error { return x.db.Load().Update(f) })
	if err != nil && !disk.IsFull(err) {
		x.failed.Store(true)
	}
	return err
}

func (x *index) storeID() (id []byte, err error) {
	err = x.view(func(tx *bbolt.Tx) error {
		id = append(id, tx.Bucket([]byte(boltfile.Meta)).Get([]byte(boltfile.StoreID))...)
		return nil
	})
	return id, err
}

// An entry of the keys bucket is a pointer and a CRC32C of key and pointer: no
// wrong bit may lead to another record, or hide one.
func appendPointer(dst []byte, key []byte, p pointer) []byte {
	dst = be.AppendUint64(dst, uint64(p))
	return be.AppendUint32(dst, boltfile.Checksum(uint64(p), key))
}

func parsePointer(key, stored []byte) (pointer, error) {
	if len(stored) != 12 {
		return 0, boltfile.ErrChecksum
	}
	p := pointer(be.Uint64(stored))
	if be.Uint32(stored[8:]) != boltfile.Checksum(uint64(p), key) {
		return 0, boltfile.ErrChecksum
	}
	return p, nil
}

func getPointer(keys *bbolt.Bucket, key []byte) (p pointer, ok bool, err error) {
	v := keys.Get(key)
	if v == nil {
		return 0, false, nil
	}
	p, err = parsePointer(key, v)
	if err != nil {
		return 0, false, &store.CorruptError{Reason: fmt.Sprintf("its entry in the index, %q: %v", key, err)}
	}
	return p, true, nil
}

// merge brings a frozen memtable into the file, in order of keys and in
// transactions of bounded size. Deletions that no readable state needs any
// more, those up to the horizon, take their key out of the index.
func (x *index) merge(m *memtable, horizon uint64) error {
	if err := x.mergeTerms(m); err != nil {
		return fmt.Errorf("merging into %s: %w", x.path, err)
	}
	node := m.head.next[0].Load()
	for node != nil {
		err := x.update(func(tx *bbolt.Tx) error {
			keys := tx.Bucket([]byte(bucketKeys))
			for n := 0; n < mergeChunk && node != nil; n++ {
				p := pointer(node.value.Load())
				var err error
				if p.deletion() && p.revision() <= horizon {
					err = keys.Delete(node.key)
				} else {
					err = keys.Put(node.key, appendPointer(nil, node.key, p))
				}
				if err != nil {
					return err
				}
				node = node.next[0].Load()
			}
			meta := tx.Bucket([]byte(boltfile.Meta))
			if node != nil {
				return meta.Put([]byte(metaMerging), []byte{1})
			}
			if err := meta.Delete([]byte(metaMerging)); err != nil {
				return err
			}
			if err := meta.Put([]byte(metaLive), m.live); err != nil {
				return err
			}
			return meta.Put([]byte(metaMerged), revisionKey(m.last))
		})
		if err != nil {
			return fmt.Errorf("merging into %s: %w", x.path, err)
		}
	}
	x.merged.Store(m.last)
	return nil
}

// checkIndexFile checks all entries, and that there are as many events as were counted.
func checkIndexFile(tx *bbolt.Tx) error {
	var newest uint64
	live := int64(0)
	err := boltfile.Walk(tx, func(bucket string, k, v []byte) error {
		switch bucket {
		case bucketKeys:
			p, err := parsePointer(k, v)
			if !p.deletion() {
				live++
			}
			newest = max(newest, p.revision())
			return err
		case bucketTerms:
			if len(k) != 16 {
				return boltfile.ErrChecksum
			}
			return verifyRun(term(be.Uint64(k)), v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return checkCount(tx.Bucket([]byte(boltfile.Meta)), newest, live)
}

// checkCount compares how many events the file has with how many it says. After a merge
// that was cut short they differ: the file has a part of what that was to bring.
func checkCount(meta *bbolt.Bucket, newest uint64, live int64) error {
	if meta == nil || meta.Get([]byte(metaMerging)) != nil {
		return nil
	}
	merged, counted := meta.Get([]byte(metaMerged)), meta.Get([]byte(metaLive))
	if len(merged) == 8 && len(counted) == 16 && newest <= be.Uint64(merged) && live != int64(be.Uint64(counted)) {
		return fmt.Errorf("it has %d events, but %d were counted", live, be.Uint64(counted))
	}
	return nil
}
