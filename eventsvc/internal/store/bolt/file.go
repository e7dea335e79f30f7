package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltcheck"
	"tidings.example/eventsvc/internal/store/disk"
)

// Every file of the store says in its meta bucket what it is.
const (
	formatMagic   = "tidings events"
	formatVersion = 1
)

// The buckets of a file, and the entries of its meta bucket.
const (
	bucketMeta    = "meta"    // all files
	bucketKeys    = "keys"    // index: key → pointer to its newest version
	bucketMinutes = "minutes" // segment: minute and kind of event → how many were written
	bucketTerms   = "terms"   // index: term and last revision → run of revisions
	bucketLog     = "log"     // segment: revision → record

	metaFormat  = "format"  // magic, a blank, version in decimal
	metaStore   = "store"   // random id, equal in all files of one store
	metaMerged  = "merged"  // index: log records up to this revision are in the index
	metaBase    = "base"    // segment: its records have this revision or a greater one
	metaEnd     = "end"     // segment, once sealed: the last revision before the next segment
	metaHorizon = "horizon" // segment: states from this revision on can be read
	metaBytes   = "bytes"   // segment, once sealed: length of its records
	metaMerging = "merging" // index: a merge has begun and not ended
	metaLive    = "live"    // index: number and bytes of the events at the merged revision
	metaTrimmed = "trimmed" // index: the account of dead records goes up to this revision
	metaDead    = "dead"    // index: dead bytes by base of their segment
)

const (
	fixRestore    = "put the file back from a backup, or move the whole data directory away to start empty"
	fixPermission = "give this user the right to read and write the data directory"
	fixLocked     = "stop the other process or choose another data directory"
	fixRebuild    = "remove this file alone: it will be made again from the log files beside it"
	fixVersion    = "use the release that wrote it, or export there and import here"
)

// growBytes is how much a file that is full grows by.
const growBytes = 4 << 20

// smallFile is how large a file may be whose pages are all looked at when it is
// opened for reading: of larger ones that would take long from a cold disk.
const smallFile = 16 << 20

// lockWait is how long a second process waits for the first to be gone.
const lockWait = 200 * time.Millisecond

// openFile opens a bbolt file that exists already and checks what it says it is.
//
// It is opened for reading first, and its branches are gone over; in a small
// file, or one that is to be written, all pages, and in the latter all entries:
// bbolt looks for its free pages in a goroutine of its own, where a damaged page
// would end the process.
func openFile(path string, o bbolt.Options) (*bbolt.DB, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("store file: %w", err)
	}
	if info.Size() == 0 {
		return nil, &store.FileError{Path: path, Reason: "the file is empty", Fix: fixRestore}
	}
	db, err := openBolt(path, bbolt.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	err = boltcheck.View(db, func(tx *bbolt.Tx) error {
		whole := !o.ReadOnly || tx.Size() <= smallFile
		if err := boltcheck.Pages(tx, path, whole); err != nil {
			return err
		}
		if err := checkFormat(path, tx); err != nil || o.ReadOnly {
			return err
		}
		return walk(tx)
	})
	if err != nil {
		_ = db.Close()
		if fe := new(store.FileError); !errors.As(err, &fe) {
			err = &store.FileError{Path: path, Reason: err.Error(), Fix: fixRestore}
		}
		return nil, err
	}
	if o.ReadOnly {
		return db, nil
	}
	if err := db.Close(); err != nil {
		return nil, fmt.Errorf("store file %s: %w", path, err)
	}
	if db, err = openBolt(path, o); err != nil {
		return nil, err
	}
	if err := rewriteMeta(db); err != nil {
		return nil, fmt.Errorf("store file %s: %w", path, errors.Join(err, db.Close()))
	}
	return db, nil
}

// walk goes over all entries of a file, and checks that keys rise and that what
// the index has is whole, and as much as was counted.
func walk(tx *bbolt.Tx) error {
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		if b == nil {
			return fmt.Errorf("bucket %q is none", name)
		}
		var last []byte
		var newest uint64
		live := int64(0)
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if last != nil && bytes.Compare(last, k) >= 0 {
				return fmt.Errorf("the keys of bucket %q are not in order", name)
			}
			last = k
			if v == nil { // bbolt's sign of a bucket within a bucket, of which there are none
				return fmt.Errorf("entry %q of bucket %q is no value", k, name)
			}
			var err error
			switch string(name) {
			case bucketKeys:
				var p pointer
				if p, err = parsePointer(k, v); !p.deletion() {
					live++
				}
				newest = max(newest, p.revision())
			case bucketTerms:
				if err = errDamaged; len(k) == 16 {
					err = verifyRun(term(be.Uint64(k)), v)
				}
			}
			if err != nil {
				return fmt.Errorf("entry %q: %w", k, err)
			}
		}
		if string(name) == bucketKeys {
			return checkCount(tx.Bucket([]byte(bucketMeta)), newest, live)
		}
		return nil
	})
}

// checkCount compares how many events an index has with how many it says, but
// for one whose last merge was cut short: it has some of what that was to bring.
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

func formatText(version int) []byte { return fmt.Appendf(nil, "%s %d", formatMagic, version) }

func checkFormat(path string, tx *bbolt.Tx) error {
	meta := tx.Bucket([]byte(bucketMeta))
	if meta == nil {
		return &store.FileError{Path: path, Reason: "this is not a file of the event store", Fix: fixRestore}
	}
	var magic1, magic2 string
	var version int
	if _, err := fmt.Sscanf(string(meta.Get([]byte(metaFormat))), "%s %s %d", &magic1, &magic2, &version); err != nil || magic1+" "+magic2 != formatMagic {
		return &store.FileError{Path: path, Reason: "this is not a file of the event store", Fix: fixRestore}
	}
	if version != formatVersion && (version != formatWAL || tx.Bucket([]byte(bucketLog)) == nil) {
		return &store.FileError{Path: path, Reason: fmt.Sprintf("format version %d, this program reads version %d", version, formatVersion), Fix: fixVersion}
	}
	return nil
}

func openBolt(path string, o bbolt.Options) (db *bbolt.DB, err error) {
	o.Timeout = lockWait
	o.NoFreelistSync = true
	o.FreelistType = bbolt.FreelistMapType
	var file *os.File
	o.OpenFile = func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	err = boltcheck.Guard(func() error {
		db, err = bbolt.Open(path, 0o600, &o)
		return err
	})
	if err != nil && file != nil {
		_ = file.Close() // bbolt has not, and kept its lock, if it has panicked
	}
	switch {
	case err == nil:
		db.AllocSize = growBytes
		return db, nil
	case errors.Is(err, berrors.ErrTimeout):
		return nil, &store.FileError{Path: path, Reason: "another process is using it", Fix: fixLocked, Err: store.ErrInUse}
	case errors.Is(err, os.ErrPermission):
		return nil, &store.FileError{Path: path, Reason: err.Error(), Fix: fixPermission, Err: os.ErrPermission}
	case disk.IsFull(err): // nothing is wrong with the file
		return nil, fmt.Errorf("store file %s: %w", path, err)
	}
	return nil, &store.FileError{Path: path, Reason: err.Error(), Fix: fixRestore}
}

// createFile makes a file with its meta entries and the given buckets. It
// appears under its name only when it is whole.
func createFile(path string, pageSize int, buckets []string, meta map[string][]byte) error {
	tmp := path + ".tmp"
	db, err := createBolt(tmp, pageSize, buckets, meta)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("store file %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("store file: %w", err)
	}
	return disk.SyncDir(filepath.Dir(path))
}

// createBolt makes a file, in place of one that may be left from a try before.
func createBolt(path string, pageSize int, buckets []string, meta map[string][]byte) (*bbolt.DB, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("store file: %w", err)
	}
	db, err := openBolt(path, bbolt.Options{PageSize: pageSize})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		b, err := tx.CreateBucket([]byte(bucketMeta))
		if err != nil {
			return err
		}
		if err := b.Put([]byte(metaFormat), formatText(formatVersion)); err != nil {
			return err
		}
		for k, v := range meta {
			if err := b.Put([]byte(k), v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("store file %s: %w", path, errors.Join(err, db.Close()))
	}
	return db, nil
}

// rewriteMeta writes the newest meta page of a file that was opened for writing
// again, as it is, and syncs it.
//
// A process that could not sync it, and was killed, has left it in the page cache.
// There it can be read, but it is not on the disk, and will not be: the kernel has
// reported the error, has marked the page as written, and a sync alone finds
// nothing to do. What that page leads to is on the disk, because bbolt writes it
// only when it has synced that. But without the page the file has the commit
// before, whose pages the next commit takes as free, and whose records the journal
// would no longer keep.
func rewriteMeta(db *bbolt.DB) error {
	page := make([]byte, db.Info().PageSize)
	var at int64
	if err := boltcheck.View(db, func(tx *bbolt.Tx) error {
		at = int64(tx.ID()%2) * int64(len(page))
		return nil
	}); err != nil {
		return err
	}
	f, err := os.OpenFile(db.Path(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if _, err = f.ReadAt(page, at); err == nil {
		_, err = f.WriteAt(page, at)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("its newest commit cannot be written again: %w", err)
	}
	return nil
}
