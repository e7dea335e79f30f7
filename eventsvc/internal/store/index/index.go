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
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// An Index finds the newest version of every event by its key.
type Index struct {
	StoreID    string      // equal in all files of a store; never changes
	Unwritable func(error) // called when the file could not be written for another reason than room; set before use, or nil

	path     string
	file     atomic.Pointer[file]
	tables   atomic.Pointer[tables]
	known    *keyFilter    // of all keys, if there were none when it was opened; else nil
	merged   atomic.Uint64 // log records up to this revision are in the file
	failed   atomic.Bool   // writing the file has failed: nothing more is written to it
	loose    atomic.Int64  // so many keys were merged since the file was written again
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

// The entries of the meta bucket.
const (
	metaMerged  = "merged"  // log records up to this revision are in the file
	metaMerging = "merging" // a merge has begun and not ended
	metaLive    = "live"    // number and bytes of the events at the merged revision
	metaTrimmed = "trimmed" // the account of dead records goes up to this revision
	metaDead    = "dead"    // dead bytes by base of their segment
	metaLoose   = "loose"   // how many keys were merged since the file was written again
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
func buckets() []string { return []string{bucketKeys} }

// Open opens the index of a directory. It makes an empty one with the id of newID if
// there is none. Open does not check the entries of keys, which the owner goes over to count events: see
// [Index.Counted].
func Open(dir string, newID func() []byte) (*Index, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := boltfile.Install(path, 0, buckets(), map[string][]byte{boltfile.StoreID: newID()}); err != nil {
			return nil, err
		}
	}
	db, err := boltfile.Open(path, boltfile.Options{Mmap: mmap, Check: checkNothing})
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
	err := boltfile.Update(x.file.Load().DB, f)
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
	keys   *bbolt.Bucket
}

// noTables are those of a view of a file alone. Nothing is put into them.
var noTables = &tables{active: newMemtable()}

// viewOf returns a view of a file alone.
func viewOf(tx *bbolt.Tx) View {
	return View{tables: noTables, keys: tx.Bucket([]byte(bucketKeys))}
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
	return findKey(v.keys, []byte(key))
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
		p, ok, err = findKey(tx.Bucket([]byte(bucketKeys)), []byte(key))
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

// Put notes a new version of an event. Revisions rise from call to call.
func (x *Index) Put(key string, p Pointer) {
	m := x.tables.Load().active
	if x.known.absent(key) {
		x.known.add(key)
	}
	bytes := entryBytes(len(key))
	m.put(key, p)
	m.bytes += bytes
	x.waiting.Add(bytes)
}

// entryBytes returns how many bytes a key takes at most in pages that are half full: as the only one of an entry, which
// has it twice, with the 16 bytes by which bbolt finds that, and about 28 of what is beside the key.
func entryBytes(key int) int64 { return 2 * int64(2*key+16+28) }

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

// merge brings a memtable into the file, in order of keys and in transactions of bounded
// size.
func (x *Index) merge(m *memtable, compactRevision uint64) error {
	node, most := m.head.next[0].Load(), x.mergeKeys()
	for node != nil {
		changes := make([]change, 0, most)
		for ; len(changes) < most && node != nil; node = node.next[0].Load() {
			changes = append(changes, change{key: node.key, pointer: Pointer(node.value.Load())})
		}
		err := x.update(func(tx *bbolt.Tx) error {
			if err := changeKeys(tx.Bucket([]byte(bucketKeys)), changes, compactRevision); err != nil {
				return err
			}
			meta := tx.Bucket([]byte(boltfile.Meta))
			if node != nil {
				return meta.Put([]byte(metaMerging), []byte{1})
			}
			return errors.Join(
				meta.Delete([]byte(metaMerging)),
				meta.Put([]byte(metaLoose), be.AppendUint64(nil, uint64(x.loose.Add(int64(m.size))))),
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

// checkNothing leaves the check of the entries to who counts events.
func checkNothing(*bbolt.Tx) error { return nil }

func checkEntry(bucket string, k, v []byte) error {
	if bucket == bucketKeys {
		return checkKeyGroup(k, v)
	}
	return nil
}

// checkCount compares how many events the file has with the number that it names. After a merge that was cut short the
// two differ, because the file has only a part of the new keys. They differ until a later merge has brought all
// of them: a smaller merge succeeds, but leaves keys with newer revisions than its own.
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
