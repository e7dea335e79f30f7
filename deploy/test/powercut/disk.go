//go:build linux

package powercut

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A disk is a file system in memory. Besides what processes see, it knows what
// would be left if the power was cut now.
//
// Changes of a file wait in order until that file is synced. Changes of names
// wait in one list for the whole disk until a sync that covers them; which one
// does depends on the mode.
type disk struct {
	mode mode

	mu     sync.Mutex
	root   *inode
	inodes map[uint64]*inode // by number
	last   uint64            // number that was given
	names  []nameChange      // not durable yet, oldest first

	stopped  chan struct{} // closed when the disk takes no more changes
	stopAt   func(change, name string) bool
	failSync func(n *inode) bool
	synced   *sync.Cond // a file was synced
}

// A mode says which syncs make names durable, and which of the names that are
// not durable a cut may keep.
type mode string

const (
	// strict is POSIX: a name is durable after a sync of its directory. A cut
	// keeps any of the others.
	strict mode = "strict"
	// ext4 has a sync of a file bring the file's own name, and those of the
	// directories that lead there. A cut keeps any of the others.
	ext4 mode = "ext4"
	// journal is a file system with one journal for all metadata, as ext4 and
	// XFS are in practice: a sync brings all names up to now, and a cut keeps
	// the oldest of the others.
	journal mode = "journal"
)

// An inode is a file or a directory.
type inode struct {
	number uint64
	mode   uint32 // with the type
	mtime  time.Time
	name   string // the first one, or the last that it was renamed to
	links  int

	live, durable []byte // of a file
	writes        []write
	resized       bool // since the last sync
	written       bool // since the last fsync
	syncs         int

	entries, durableEntries map[string]*inode // of a directory
}

func (n *inode) isDir() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// A write is a change of a file that is not durable yet: data at an offset, or
// without data a new size.
type write struct {
	data   []byte
	offset int64
}

func (w write) apply(b []byte) []byte {
	if w.data == nil {
		return resize(b, w.offset)
	}
	b = resize(b, max(int64(len(b)), w.offset+int64(len(w.data))))
	copy(b[w.offset:], w.data)
	return b
}

func resize(b []byte, size int64) []byte {
	if n := int64(len(b)); size > n {
		b = slices.Grow(b, int(size-n))[:size]
		clear(b[n:])
	}
	return b[:size]
}

// A nameChange is a creation, a link, a removal or a rename.
type nameChange struct {
	inode    *inode
	from, to place // a creation and a link have no from, a removal has no to
}

type place struct {
	dir  *inode
	name string
}

func (c *nameChange) in(dir *inode) bool { return c.from.dir == dir || c.to.dir == dir }

// touches reports whether two changes have a name in common.
func (c *nameChange) touches(other *nameChange) bool {
	for _, p := range []place{c.from, c.to} {
		if p.dir != nil && (p == other.from || p == other.to) {
			return true
		}
	}
	return false
}

// possible reports whether the change can be made durable on its own.
func (c *nameChange) possible() bool {
	if c.from.dir == nil {
		return c.to.dir.durableEntries[c.to.name] == nil
	}
	return c.from.dir.durableEntries[c.from.name] == c.inode && (c.to.dir != nil || len(c.inode.durableEntries) == 0)
}

func (c *nameChange) apply(entries func(dir *inode) map[string]*inode) {
	if c.from.dir != nil {
		delete(entries(c.from.dir), c.from.name)
	}
	if c.to.dir != nil {
		entries(c.to.dir)[c.to.name] = c.inode
	}
}

func liveEntries(dir *inode) map[string]*inode    { return dir.entries }
func durableEntries(dir *inode) map[string]*inode { return dir.durableEntries }

func emptyDisk(m mode) *disk {
	d := &disk{mode: m, inodes: map[uint64]*inode{}, stopped: make(chan struct{})}
	d.synced = sync.NewCond(&d.mu)
	return d
}

func newDisk(m mode) *disk {
	d := emptyDisk(m)
	d.root = d.newInode(syscall.S_IFDIR | 0o755)
	d.root.links = 1
	return d
}

func (d *disk) newInode(mode uint32) *inode {
	d.last++
	n := &inode{number: d.last, mode: mode, mtime: time.Now()}
	if n.isDir() {
		n.entries, n.durableEntries = map[string]*inode{}, map[string]*inode{}
	}
	d.inodes[n.number] = n
	return n
}

// change changes a file.
func (d *disk) change(n *inode, w write) {
	size := len(n.live)
	n.live = w.apply(n.live)
	n.writes = append(n.writes, w)
	n.written, n.resized = true, n.resized || len(n.live) != size
	n.mtime = time.Now()
}

// rename changes names.
func (d *disk) rename(c nameChange) {
	if c.to.dir != nil {
		if over := c.to.dir.entries[c.to.name]; over != nil {
			over.links--
		}
		c.inode.links++
	}
	if c.from.dir != nil {
		c.inode.links--
	}
	if c.inode.name == "" || c.inode.name == c.from.name && c.to.dir != nil {
		c.inode.name = c.to.name
	}
	c.apply(liveEntries)
	d.names = append(d.names, c)
}

// syncFile makes the content of a file durable, as fsync and fdatasync do.
func (d *disk) syncFile(n *inode, dataOnly bool) {
	for _, w := range n.writes {
		n.durable = w.apply(n.durable)
	}
	n.writes = nil
	own := func(c *nameChange) bool { return c.inode == n && (c.from.dir == nil || !dataOnly) }
	switch {
	case d.mode == ext4:
		d.commit(own)
	case d.mode == journal && (n.resized || n.written && !dataOnly || d.waits(own)):
		d.commit(func(*nameChange) bool { return true })
	}
	n.resized, n.written = false, n.written && dataOnly
	n.syncs++
	d.synced.Broadcast()
}

// loseWrites simulates a failed sync as the Linux kernel handles it: the pages
// count as clean from then on, processes still see what was written, the disk
// never gets it, and the next sync reports no error.
func (d *disk) loseWrites(n *inode) { n.writes = nil }

// syncDir makes the names in a directory durable.
func (d *disk) syncDir(dir *inode) {
	within := func(c *nameChange) bool { return c.in(dir) }
	concerns := func(c *nameChange) bool { return c.in(dir) || c.inode == dir }
	switch {
	case d.mode == strict:
		d.commit(within)
	case d.mode == ext4:
		d.commit(concerns)
	case d.waits(concerns):
		d.commit(func(*nameChange) bool { return true })
	}
}

// waits reports whether some changes of names are not durable yet.
func (d *disk) waits(which func(*nameChange) bool) bool {
	return slices.ContainsFunc(d.names, func(c nameChange) bool { return which(&c) })
}

// commit makes changes of names durable, with those before them that have a
// name in common and, except in strict mode, those that lead to the directory.
func (d *disk) commit(which func(*nameChange) bool) {
	taken := make([]bool, len(d.names))
	for i := len(d.names) - 1; i >= 0; i-- {
		c := &d.names[i]
		taken[i] = which(c)
		for j := i + 1; j < len(d.names) && !taken[i]; j++ {
			later := &d.names[j]
			leads := d.mode != strict && c.to.dir != nil && later.in(c.inode)
			taken[i] = taken[j] && (leads || c.touches(later))
		}
	}
	var left []nameChange
	for i := range d.names {
		if taken[i] {
			d.names[i].apply(durableEntries)
		} else {
			left = append(left, d.names[i])
		}
	}
	d.names = left
}

// An outcome says what a cut leaves of all that was not synced.
type outcome string

const (
	nothing    outcome = "nothing"
	everything outcome = "everything"
	something  outcome = "something"
)

// sector is the unit in which a disk writes: a whole one is old or new.
const sector = 512

// cut returns the disk as it is after the power was cut now. The disk itself
// does not change, so that one moment can have several outcomes.
func (d *disk) cut(o outcome, rng *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := d.clone()
	keep := func(int, bool) func(int) bool { return func(int) bool { return o == everything } }
	if o == something {
		keep = func(n int, inOrder bool) func(int) bool { return choose(rng, n, inOrder) }
	}
	keepName := keep(len(after.names), d.mode == journal)
	for i, c := range after.names {
		if keepName(i) && c.possible() {
			c.apply(durableEntries)
		}
	}
	after.names = nil
	for _, number := range slices.Sorted(maps.Keys(after.inodes)) { // in order: a seed always draws the same
		n := after.inodes[number]
		keepWrite, torn := keep(len(n.writes), false), o == something && rng.IntN(2) == 0
		for i, w := range n.writes {
			switch {
			case !keepWrite(i):
			case torn && w.data != nil:
				n.durable = w.tear(n.durable, rng)
			default:
				n.durable = w.apply(n.durable)
			}
		}
		n.live, n.writes, n.resized, n.written = slices.Clone(n.durable), nil, false, false
		n.entries, n.links = maps.Clone(n.durableEntries), 0
	}
	after.root.links = 1
	for _, n := range after.inodes {
		for _, e := range n.entries {
			e.links++
		}
	}
	maps.DeleteFunc(after.inodes, func(_ uint64, n *inode) bool { return n.links == 0 })
	return after
}

// clone copies what is durable and what waits to be.
func (d *disk) clone() *disk {
	c := emptyDisk(d.mode)
	c.last = d.last
	for number, n := range d.inodes {
		c.inodes[number] = &inode{
			number: number, mode: n.mode, mtime: n.mtime, name: n.name, links: n.links,
			durable: slices.Clone(n.durable), writes: n.writes,
		}
	}
	same := func(n *inode) *inode {
		if n == nil {
			return nil
		}
		return c.inodes[n.number]
	}
	for number, n := range d.inodes {
		if n.isDir() {
			c.inodes[number].durableEntries = map[string]*inode{}
			for name, e := range n.durableEntries {
				c.inodes[number].durableEntries[name] = same(e)
			}
		}
	}
	for _, change := range d.names {
		c.names = append(c.names, nameChange{
			same(change.inode), place{same(change.from.dir), change.from.name}, place{same(change.to.dir), change.to.name},
		})
	}
	c.root = same(d.root)
	return c
}

// choose draws which of n changes are kept: none, all, the first, the last or any.
func choose(rng *rand.Rand, n int, inOrder bool) func(i int) bool {
	at, part, kind := rng.IntN(n+1), rng.Float64(), rng.IntN(6)
	if inOrder {
		kind = min(kind, 2)
	}
	switch kind {
	case 0:
		return func(int) bool { return false }
	case 1:
		return func(int) bool { return true }
	case 2:
		return func(i int) bool { return i < at }
	case 3:
		return func(i int) bool { return i >= at }
	}
	return func(int) bool { return rng.Float64() < part }
}

// tear applies some sectors of a write.
func (w write) tear(b []byte, rng *rand.Rand) []byte {
	end := w.offset + int64(len(w.data))
	first, last := w.offset/sector, (end-1)/sector
	keep := choose(rng, int(last-first+1), false)
	for s := first; s <= last; s++ {
		if from, to := max(w.offset, s*sector), min(end, (s+1)*sector); keep(int(s - first)) {
			b = write{w.data[from-w.offset : to-w.offset], from}.apply(b)
		}
	}
	return b
}

// enter is called before each change, with the lock held. It returns false if the disk has stopped.
func (d *disk) enter(change, name string) bool {
	if d.stopAt != nil && d.stopAt(change, name) {
		d.stopLocked()
	}
	return !d.hasStopped()
}

func (d *disk) hasStopped() bool {
	select {
	case <-d.stopped:
		return true
	default:
		return false
	}
}

func (d *disk) stopLocked() {
	if d.stopAt = nil; !d.hasStopped() {
		close(d.stopped)
		d.synced.Broadcast()
	}
}

// stop makes every change from now on fail.
func (d *disk) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopLocked()
}

// stopWhen stops the disk before the first change for which when is true.
func (d *disk) stopWhen(when func(change, name string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopAt = when
}

// failSyncWhen lets the first sync fail for which when is true, and stops the disk:
// nothing that the process does about the error reaches it.
func (d *disk) failSyncWhen(when func(n *inode) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failSync = when
}

// restart lets changes through again, for the next process.
func (d *disk) restart() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopAt, d.failSync, d.stopped = nil, nil, make(chan struct{})
}

// find returns the file or directory at a path, or nil.
func (d *disk) find(name string) *inode {
	n := d.root
	for part := range strings.SplitSeq(strings.Trim(path.Clean("/"+name), "/"), "/") {
		if n == nil || part == "" {
			return n
		}
		n = n.entries[part]
	}
	return n
}

// makeDir makes a durable directory.
func (d *disk) makeDir(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	parent, n := d.find(path.Dir(name)), d.newInode(syscall.S_IFDIR|0o755)
	n.name, n.links = path.Base(name), 1
	parent.entries[n.name], parent.durableEntries[n.name] = n, n
}

// remove removes a file, durably, and reports whether it was there.
func (d *disk) remove(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	parent := d.find(path.Dir(name))
	if parent == nil || parent.entries[path.Base(name)] == nil {
		return false
	}
	delete(parent.entries, path.Base(name))
	delete(parent.durableEntries, path.Base(name))
	return true
}
