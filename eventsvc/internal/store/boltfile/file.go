package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
)

// Every file says in its meta bucket what it is.
const (
	magic   = "tidings event store "
	Version = 2 // of the format
)

// Meta is the bucket that every file has, with the entries Format and StoreID.
const (
	Meta    = "meta"
	Format  = "format" // magic, version in decimal
	StoreID = "store"  // random, equal in all files of one store
)

// What a user can do about a file that cannot be used: [store.FileError.Fix].
const (
	FixRestore    = "put the file back from a backup, or move the whole data directory away to start empty"
	fixPermission = "give this user the right to read and write the data directory"
	FixLocked     = "stop the other process or choose another data directory"
	FixRebuild    = "remove this file alone: it will be made again from the log files beside it"
	FixVersion    = "export with the program that wrote it (eventsvc export), and import that here (eventsvc import) into an empty data directory"
)

// growBytes is how much a file that is full grows by.
const growBytes = 4 << 20

// smallFile is the size up to which all pages of a file are checked when it is opened
// for reading. For a larger file, or many of them, that would take long on a cold disk.
const smallFile = 4 << 20

// lockWait is how long a second process waits for the first to release the lock.
const lockWait = 200 * time.Millisecond

// Options say how [Open] opens a file.
type Options struct {
	ReadOnly bool
	Mmap     int                   // address space to reserve, so that growing need not wait for readers
	Check    func(*bbolt.Tx) error // checks all entries of a file that is opened for writing; nil: [Walk]
}

// Open opens a file that exists, and checks that it is one of a store.
//
// Open first opens it for reading and checks its branch pages. It checks all pages of
// a small file, and all pages and entries of a file that is to be written, because
// bbolt looks for free pages in a goroutine of its own, where a damaged page would end
// the process.
func Open(path string, o Options) (*bbolt.DB, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("store file: %w", err)
	}
	if info.Size() == 0 {
		return nil, &store.FileError{Path: path, Reason: "the file is empty", Fix: FixRestore}
	}
	db, err := openBolt(path, bbolt.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	err = View(db, func(tx *bbolt.Tx) error {
		whole := !o.ReadOnly || tx.Size() <= smallFile
		if err := Pages(tx, path, whole); err != nil {
			return err
		}
		if err := checkFormat(path, tx); err != nil || o.ReadOnly {
			return err
		}
		if o.Check != nil {
			return o.Check(tx)
		}
		return Walk(tx, nil)
	})
	if err != nil {
		_ = db.Close()
		if _, ok := errors.AsType[*store.FileError](err); !ok {
			err = &store.FileError{Path: path, Reason: err.Error(), Fix: FixRestore}
		}
		return nil, err
	}
	if o.ReadOnly {
		return db, nil
	}
	if err := db.Close(); err != nil {
		return nil, fmt.Errorf("store file %s: %w", path, err)
	}
	if db, err = openBolt(path, bbolt.Options{InitialMmapSize: o.Mmap}); err != nil {
		return nil, err
	}
	if err := rewriteMeta(db); err != nil {
		return nil, fmt.Errorf("store file %s: %w", path, errors.Join(err, db.Close()))
	}
	return db, nil
}

// OpenUnchecked opens a file for writing that this process has just made.
func OpenUnchecked(path string, mmap int) (*bbolt.DB, error) {
	return openBolt(path, bbolt.Options{InitialMmapSize: mmap})
}

// Walk reads all entries of a file, and checks that their keys rise. Unless it is nil,
// check is called with each entry. Some buckets may be left out.
func Walk(tx *bbolt.Tx, check func(bucket string, k, v []byte) error, leftOut ...string) error {
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		if b == nil {
			return fmt.Errorf("bucket %q is none", name)
		}
		var last []byte
		bucket := string(name)
		if slices.Contains(leftOut, bucket) {
			return nil
		}
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if last != nil && bytes.Compare(last, k) >= 0 {
				return fmt.Errorf("the keys of bucket %q are not in order", name)
			}
			last = k
			if v == nil { // bbolt's sign of a bucket within a bucket, of which there are none
				return fmt.Errorf("entry %q of bucket %q is no value", k, name)
			}
			if check == nil {
				continue
			}
			if err := check(bucket, k, v); err != nil {
				return fmt.Errorf("entry %q: %w", k, err)
			}
		}
		return nil
	})
}

// magicBefore begins the format of files that were written before format 1.
const magicBefore = "tidings events "

// FormatText returns the Format entry of the files that this program reads and writes.
func FormatText() string { return magic + strconv.Itoa(Version) }

func checkFormat(path string, tx *bbolt.Tx) error {
	var text string
	if meta := tx.Bucket([]byte(Meta)); meta != nil {
		text = string(meta.Get([]byte(Format)))
	}
	version, ours := strings.CutPrefix(text, magic)
	switch {
	case text == FormatText():
		return nil
	case ours:
		return &store.FileError{Path: path, Reason: fmt.Sprintf("it has format %s, this program reads format %d", version, Version), Fix: FixVersion}
	case strings.HasPrefix(text, magicBefore):
		return &store.FileError{Path: path, Reason: "it was written by a build from before format 1", Fix: FixVersion}
	}
	return &store.FileError{Path: path, Reason: "this is not a file of the event store", Fix: FixRestore}
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
	err = Guard(func() error {
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
		return nil, &store.FileError{Path: path, Reason: "another process is using it", Fix: FixLocked, Err: store.ErrInUse}
	case errors.Is(err, os.ErrPermission):
		return nil, &store.FileError{Path: path, Reason: err.Error(), Fix: fixPermission, Err: os.ErrPermission}
	case disk.IsFull(err), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM): // nothing is wrong with the file
		return nil, fmt.Errorf("store file %s: %w", path, err)
	}
	return nil, &store.FileError{Path: path, Reason: err.Error(), Fix: FixRestore}
}

// Install makes a file with the given buckets and entries of the meta bucket. The file
// appears under its name only when it is whole and synced.
func Install(path string, pageSize int, buckets []string, meta map[string][]byte) error {
	tmp := path + ".tmp"
	if err := Write(tmp, pageSize, buckets, meta, func(*bbolt.DB) error { return nil }); err != nil {
		return err
	}
	return disk.Rename(tmp, path)
}

// Write makes a file, and returns when all that fill has written to it is on the disk, without empty room at its end.
// It replaces a file that an attempt before has left.
func Write(path string, pageSize int, buckets []string, meta map[string][]byte, fill func(to *bbolt.DB) error) error {
	to, err := create(path, pageSize, buckets, meta)
	if err != nil {
		return err
	}
	to.NoSync = true // it is synced once
	if err = fill(to); err == nil {
		err = to.View(func(tx *bbolt.Tx) error { return os.Truncate(path, tx.Size()) })
	}
	if err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}

// create makes a file and leaves it open.
func create(path string, pageSize int, buckets []string, meta map[string][]byte) (*bbolt.DB, error) {
	if err := disk.Remove(path); err != nil {
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
		b, err := tx.CreateBucket([]byte(Meta))
		if err != nil {
			return err
		}
		if err := b.Put([]byte(Format), []byte(FormatText())); err != nil {
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

// rewriteMeta writes the newest meta page of a file that was opened for writing again,
// unchanged, and syncs it.
//
// A process that was killed after a failed sync has left that page in the page cache.
// It can be read there, but it is not on the disk and never will be: the kernel has
// reported the error and marked the page as written, so a sync alone finds nothing to
// do. The pages that it leads to are on the disk, because bbolt syncs them first. But
// without it the file is at the commit before. The next commit would reuse pages of
// that state, and the write-ahead log would no longer keep the records.
func rewriteMeta(db *bbolt.DB) error {
	page := make([]byte, db.Info().PageSize)
	var at int64
	if err := View(db, func(tx *bbolt.Tx) error {
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
