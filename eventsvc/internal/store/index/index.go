package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// An Index finds the newest version of every event by its key, and versions by their
// attributes.
type Index struct {
	StoreID    string      // equal in all files of a store; never changes
	Unwritable func(error) // called when the file could not be written for another reason than room; set before use, or nil

	path     string
	file     atomic.Pointer[file]
	tables   atomic.Pointer[tables]
	known    *keyFilter    // of all keys, if there were none when it was opened; else nil
	merged   atomic.Uint64 // log records up to this revision are in the file
	failed   atomic.Bool   // writing the file has failed: nothing more is written to it
	stale    atomic.Int64  // about so many versions that are gone from the log have terms in the file
	loose    atomic.Int64  // about so many keys are not sorted
	unlinked atomic.Int64  // bytes of files that were replaced, and that readers still hold
	waiting  atomic.Int64  // bytes at most that the file grows by when the memtables are merged
	merging  sync.Mutex    // held while the file is merged into, or replaced

	rewriting atomic.Bool // the file is being written again
}

// A file is the file of the index, with a count of those who read it.
type file struct {
	*bbolt.DB
	*boltfile.Readers
}

// tables are the memtables: one that is being written, and one that is being merged
// into the file, or nil.
type tables struct{ active, frozen *memtable }

// ErrFailed reports that the file could not be written, now or before.
var ErrFailed = errors.New("the file could not be written")

// be is the byte order of everything on disk.
var be = binary.BigEndian

// The buckets of the file, and the entries of its meta bucket.
const (
	bucketKeys  = "keys"  // key → pointer to its newest version
	bucketTerms = "terms" // term and last revision → run of revisions

	metaMerged  = "merged"  // log records up to this revision are in the file
	metaMerging = "merging" // a merge has begun and not ended
	metaLive    = "live"    // number and bytes of the events at the merged revision
	metaTrimmed = "trimmed" // the account of dead records goes up to this revision
	metaDead    = "dead"    // dead bytes by base of their segment
	metaLoose   = "loose"   // about how many keys are not sorted
)

const (
	fileName = "index.db"
	mmap     = 4 << 30
	// Every transaction of a merge holds the pages that it changes in memory, and needs room for them beside the old
	// ones. So it changes fewer keys where the file is small.
	mergeChunk = 2048
	mergeLeast = 128
	mergePart  = 16
)

// mergeKeys returns how many keys one transaction of a merge changes.
func (x *Index) mergeKeys() int {
	pages := int(disk.Usage(x.path)) / os.Getpagesize()
	return max(mergeLeast, min(mergeChunk, pages/mergePart))
}

// buckets are those of a file, beside the meta bucket.
func buckets() []string { return []string{bucketKeys, bucketSorted, bucketTerms, bucketPacked} }

// Open opens the index of a directory. It makes an empty one with the id of newID if
// there is none. Open checks everything but the entries of
// keys, which the owner goes over to count events: see [Index.Counted].
func Open(dir string, newID func() []byte) (*Index, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := boltfile.Install(path, 0, buckets(), map[string][]byte{boltfile.StoreID: newID()}); err != nil {
			return nil, err
		}
	}
	db, err := boltfile.Open(path, boltfile.Options{Mmap: mmap, Check: checkTerms})
	if err != nil {
		if fe, ok := errors.AsType[*store.FileError](err); ok && fe.Fix == boltfile.FixRestore {
			fe.Fix = boltfile.FixRebuild
		}
		return nil, err
	}
	x := &Index{path: path}
	x.file.Store(&file{db, boltfile.NewReaders(db.Close)})
	x.tables.Store(&tables{active: newMemtable()})
	err = x.view(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(boltfile.Meta))
		x.StoreID = string(meta.Get([]byte(boltfile.StoreID)))
		if v := meta.Get([]byte(metaMerged)); len(v) == 8 {
			x.merged.Store(be.Uint64(v))
		}
		if v := meta.Get([]byte(metaLoose)); len(v) == 8 {
			x.loose.Store(int64(be.Uint64(v)))
		}
		if !viewOf(tx).Iterate("", "").Valid() {
			x.known = newKeyFilter()
		}
		return nil
	})
	return x, err
}

// Close ends the use of the index, and waits until the last reader has closed the file. What was not merged has to be
// put again after the next Open.
func (x *Index) Close() error {
	file := x.file.Load()
	file.Release()
	return file.Wait()
}

// UnlinkedBytes returns how many bytes of the disk files take that were replaced, and that readers still hold.
func (x *Index) UnlinkedBytes() int64 { return x.unlinked.Load() }

// Path returns the path of the file.
func (x *Index) Path() string { return x.path }

// Merged returns the revision up to which the file has everything that was put.
func (x *Index) Merged() uint64 { return x.merged.Load() }

// Stats returns what bbolt counts of the file.
func (x *Index) Stats() bbolt.Stats { return x.file.Load().Stats() }

// Check reads every entry of the file, and reports the first that is damaged.
func (x *Index) Check() error { return x.view(checkFile) }

// Counted reports an error if the file has another number of events than a walk over its keys has counted; newest is
// the newest revision of a key.
func (x *Index) Counted(newest uint64, events int64) error {
	return x.view(func(tx *bbolt.Tx) error { return checkCount(tx.Bucket([]byte(boltfile.Meta)), newest, events) })
}

func (x *Index) view(f func(*bbolt.Tx) error) error {
	for {
		switch file := x.file.Load(); {
		case file.Acquire():
			defer file.Release()
			return boltfile.View(file.DB, f)
		case x.file.Load() == file: // it was not replaced
			return store.ErrClosed
		}
	}
}

// update writes to the file. After a failure for another reason than room nothing is
// written to it any more: a sync that is repeated does not tell what was lost.
func (x *Index) update(f func(*bbolt.Tx) error) error {
	if x.failed.Load() {
		return ErrFailed
	}
	err := boltfile.Guard(func() error { return x.file.Load().Update(f) })
	if err == nil || disk.IsFull(err) {
		return err
	}
	x.failed.Store(true)
	if x.Unwritable != nil {
		x.Unwritable(err)
	}
	return fmt.Errorf("%w: %w", ErrFailed, err)
}

// A View is the index at one moment, and what was put since. It is good only within
// the function that it is given to.
type View struct {
	known  *keyFilter
	tables *tables
	tx     *bbolt.Tx
	keys   *bbolt.Bucket
	sorted *bbolt.Bucket
}

// noTables are those of a view of a file alone. Nothing is put into them.
var noTables = &tables{active: newMemtable()}

// viewOf returns a view of a file alone.
func viewOf(tx *bbolt.Tx) View {
	return View{tables: noTables, tx: tx, keys: tx.Bucket([]byte(bucketKeys)), sorted: tx.Bucket([]byte(bucketSorted))}
}

// View calls f once, with a view. It must be short, because bbolt reuses no pages meanwhile.
func (x *Index) View(f func(View) error) error {
	// Before the transaction begins: what leaves a table is in the file before.
	t := x.tables.Load()
	return x.view(func(tx *bbolt.Tx) error {
		v := viewOf(tx)
		v.known, v.tables = x.known, t
		return f(v)
	})
}

// Newest finds the newest version of an event.
func (v View) Newest(key string) (p Pointer, ok bool, err error) {
	if p, ok := v.tables.get(key); ok {
		return p, true, nil
	}
	if v.known.absent(key) {
		return 0, false, nil
	}
	return v.stored([]byte(key))
}

// stored finds the newest version of an event in the file.
func (v View) stored(key []byte) (p Pointer, ok bool, err error) {
	if p, ok, err = getPointer(v.keys, key); ok || err != nil {
		return p, ok, err
	}
	return findSorted(v.sorted, key)
}

// Newest finds the newest version of an event. It reads the file only if the key is in
// no memtable.
func (x *Index) Newest(key string) (p Pointer, ok bool, err error) {
	if p, ok = x.tables.Load().get(key); ok {
		return p, true, nil
	}
	if x.known.absent(key) {
		return 0, false, nil
	}
	err = x.view(func(tx *bbolt.Tx) error {
		p, ok, err = viewOf(tx).stored([]byte(key))
		return err
	})
	return p, ok, err
}

// get finds the newest version of an event among those that are not in the file.
func (t *tables) get(key string) (Pointer, bool) {
	if p, ok := t.active.get(key); ok {
		return p, true
	}
	return t.frozen.get(key)
}

// Put notes a new version of an event, with its attributes if it is not a deletion.
// Revisions rise from call to call.
func (x *Index) Put(key string, p Pointer, a event.Attributes) {
	m := x.tables.Load().active
	if x.known.absent(key) {
		x.known.add(key)
	}
	bytes := entryBytes(len(key))
	if !p.Deletion() {
		bytes += int64(m.postings.add(p.Revision(), a)) * entryBytes(termBytes)
	}
	m.put(key, p)
	m.bytes += bytes
	x.waiting.Add(bytes)
}

// termBytes is the size of the key and the value of a term with one version.
const termBytes = 28

// entryBytes returns how many bytes an entry takes in pages that are half full: its key, the 16 bytes by which bbolt
// finds it, and the 12 of a pointer.
func entryBytes(key int) int64 { return 2 * int64(key+16+12) }

// MergeBytes returns how much the file grows at most in the next merges: what they add, and the pages that one
// transaction changes, less the free pages.
func (x *Index) MergeBytes() int64 {
	return max(0, x.waiting.Load()+int64(x.mergeKeys()*os.Getpagesize())-x.free())
}

// Size returns how many keys were put since the last [Index.Freeze].
func (x *Index) Size() int { return x.tables.Load().active.size }

// Freeze sets aside what was put, to be merged. The file notes live when it is. Freeze
// reports false, and does nothing, while what was set aside before is not merged.
func (x *Index) Freeze(live Live) bool {
	t := x.tables.Load()
	if t.frozen != nil {
		return false
	}
	if t.active.size > 0 {
		t.active.live = live
		x.tables.Store(&tables{active: newMemtable(), frozen: t.active})
	}
	return true
}

// Merge brings what was set aside into the file, if there is any. If it fails, it can
// be called again. Deletions up to the compact revision, which no readable state needs,
// take their key out of the file.
func (x *Index) Merge(compactRevision uint64) error {
	x.merging.Lock()
	defer x.merging.Unlock()
	t := x.tables.Load()
	if t.frozen == nil {
		return nil
	}
	if err := x.merge(t.frozen, compactRevision); err != nil {
		return fmt.Errorf("merging into %s: %w", x.path, err)
	}
	// Freeze leaves the tables alone as long as one is frozen.
	x.tables.Store(&tables{active: t.active})
	x.waiting.Add(-t.frozen.bytes)
	return nil
}

// An entry of the keys bucket is a pointer and a CRC32C of key and pointer: no
// wrong bit may lead to another record, or hide one.
func appendPointer(dst []byte, key []byte, p Pointer) []byte {
	dst = be.AppendUint64(dst, uint64(p))
	return be.AppendUint32(dst, boltfile.Checksum(uint64(p), key))
}

func parsePointer(key, stored []byte) (Pointer, error) {
	if len(stored) != 12 {
		return 0, boltfile.ErrChecksum
	}
	p := Pointer(be.Uint64(stored))
	if be.Uint32(stored[8:]) != boltfile.Checksum(uint64(p), key) {
		return 0, boltfile.ErrChecksum
	}
	return p, nil
}

func getPointer(keys *bbolt.Bucket, key []byte) (p Pointer, ok bool, err error) {
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

// merge brings a memtable into the file, in order of keys and in transactions of bounded
// size.
func (x *Index) merge(m *memtable, compactRevision uint64) error {
	if err := x.mergeTerms(m); err != nil {
		return err
	}
	node, most := m.head.next[0].Load(), x.mergeKeys()
	for node != nil {
		err := x.update(func(tx *bbolt.Tx) error {
			v := viewOf(tx)
			keys := v.keys
			for n := 0; n < most && node != nil; n++ {
				p := Pointer(node.value.Load())
				var err error
				if p.Deletion() && p.Revision() <= compactRevision && !v.hides(node.key) {
					err = keys.Delete(node.key)
				} else {
					x.loose.Add(1)
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
			return errors.Join(
				meta.Delete([]byte(metaMerging)),
				meta.Put([]byte(metaLoose), be.AppendUint64(nil, uint64(x.loose.Load()))),
				meta.Put([]byte(metaLive), m.live.encode()),
				meta.Put([]byte(metaMerged), be.AppendUint64(nil, m.last)))
		})
		if err != nil {
			return err
		}
	}
	x.merged.Store(m.last)
	return nil
}

// checkFile checks all entries, and that there are as many events as were counted.
func checkFile(tx *bbolt.Tx) error {
	if err := boltfile.Walk(tx, checkEntry); err != nil {
		return err
	}
	var newest uint64
	live := int64(0)
	for it := viewOf(tx).Iterate("", ""); it.Valid(); it.Next() {
		if newest = max(newest, it.Pointer().Revision()); !it.Pointer().Deletion() {
			live++
		}
	}
	return checkCount(tx.Bucket([]byte(boltfile.Meta)), newest, live)
}

// checkTerms checks all entries but those of keys.
func checkTerms(tx *bbolt.Tx) error { return boltfile.Walk(tx, checkEntry, bucketKeys, bucketSorted) }

func checkEntry(bucket string, k, v []byte) error {
	switch bucket {
	case bucketKeys:
		_, err := parsePointer(k, v)
		return err
	case bucketSorted:
		return checkKeyGroup(k, v)
	case bucketTerms:
		if len(k) != 16 {
			return boltfile.ErrChecksum
		}
		return verifyRun(Term(be.Uint64(k)), v)
	case bucketPacked:
		_, err := parseGroup(k, v)
		return err
	}
	return nil
}

// checkCount compares how many events the file has with how many it says. After a merge that was cut short they differ:
// the file has a part of what that was to bring. They differ until a merge has brought all of it: one that brings less
// ends well, and leaves keys with newer revisions than it has.
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
