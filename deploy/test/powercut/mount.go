//go:build linux

package powercut

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// A mount shows a disk to processes. The kernel caches pages, so that files can
// be mapped, and writes through: each write is here before write(2) returns.
type mount struct {
	// It answers ENOSYS to all that is not below. The kernel takes that for
	// success of access(2), whose permissions it checks itself, and of flush.
	fuse.RawFileSystem
	*disk
	server   *fuse.Server
	dir      string
	listings map[uint64][]place // of open directories: inodes under their names
	handles  uint64
}

// forever is how long the kernel may remember names and attributes, in seconds:
// it sees every change.
const forever = 3600

// mount mounts the disk on a directory.
func (d *disk) mount(dir string) (*mount, error) {
	m := &mount{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: d, dir: dir, listings: map[uint64][]place{}}
	var err error
	m.server, err = fuse.NewServer(m, dir, &fuse.MountOptions{
		DirectMount: true, FsName: "powercut", Name: "powercut", MaxWrite: 1 << 20,
		DisableXAttrs: true, ExplicitDataCacheControl: true, DisableReadDirPlus: true,
		Options: []string{"default_permissions"}, Logger: log.New(io.Discard, "", 0), // it logs each unmount
	})
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	go m.server.Serve()
	if err := m.server.WaitMount(); err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	return m, nil
}

// unmount unmounts the directory, as soon as the kernel has closed the files of processes that have just ended.
func (m *mount) unmount() error {
	var err error
	for range 1000 {
		if err = m.server.Unmount(); err == nil {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errors.Join(err, syscall.Unmount(m.dir, syscall.MNT_DETACH))
}

// begin takes the lock for a change of an inode, or of a name in a directory.
// Whoever calls it unlocks.
func (m *mount) begin(change string, number uint64, name string) (*inode, fuse.Status) {
	m.mu.Lock()
	n := m.inodes[number]
	if n == nil {
		return nil, fuse.ENOENT
	}
	if name == "" {
		name = n.name
	}
	if !m.enter(change, name) {
		return nil, fuse.EIO
	}
	return n, fuse.OK
}

func (n *inode) attributes(a *fuse.Attr) {
	*a = fuse.Attr{Ino: n.number, Size: uint64(len(n.live)), Blocks: uint64(len(n.live)+511) / 512, Mode: n.mode, Nlink: uint32(n.links), Blksize: 4096}
	a.SetTimes(nil, &n.mtime, &n.mtime)
}

func (n *inode) entry(out *fuse.EntryOut) {
	out.NodeId, out.Generation, out.EntryValid, out.AttrValid = n.number, 1, forever, forever
	n.attributes(&out.Attr)
}

func (m *mount) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir := m.inodes[h.NodeId]
	if dir == nil || dir.entries[name] == nil {
		return fuse.ENOENT
	}
	dir.entries[name].entry(out)
	return fuse.OK
}

func (m *mount) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.inodes[in.NodeId]
	if n == nil {
		return fuse.ENOENT
	}
	out.AttrValid = forever
	n.attributes(&out.Attr)
	return fuse.OK
}

func (m *mount) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	n, status := m.begin("setattr", in.NodeId, "")
	defer m.mu.Unlock()
	if !status.Ok() {
		return status
	}
	if size, ok := in.GetSize(); ok {
		m.change(n, write{offset: int64(size)})
	}
	if bits, ok := in.GetMode(); ok {
		n.mode = n.mode&syscall.S_IFMT | bits&0o7777
	}
	if t, ok := in.GetMTime(); ok {
		n.mtime = t
	}
	out.AttrValid = forever
	n.attributes(&out.Attr)
	return fuse.OK
}

// create makes a file or a directory.
func (m *mount) create(change string, parent uint64, name string, mode uint32, out *fuse.EntryOut) fuse.Status {
	dir, status := m.begin(change, parent, name)
	defer m.mu.Unlock()
	if !status.Ok() {
		return status
	}
	if dir.entries[name] != nil {
		return fuse.Status(syscall.EEXIST)
	}
	n := m.newInode(mode)
	m.rename(nameChange{inode: n, to: place{dir, name}})
	n.entry(out)
	return fuse.OK
}

func (m *mount) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.create("mkdir", in.NodeId, name, syscall.S_IFDIR|in.Mode&0o7777, out)
}

func (m *mount) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return m.create("create", in.NodeId, name, syscall.S_IFREG|in.Mode&0o7777, &out.EntryOut)
}

func (m *mount) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	dir, status := m.begin("link", in.NodeId, name)
	defer m.mu.Unlock()
	if !status.Ok() {
		return status
	}
	n := m.inodes[in.Oldnodeid]
	switch {
	case n == nil:
		return fuse.ENOENT
	case dir.entries[name] != nil:
		return fuse.Status(syscall.EEXIST)
	}
	m.disk.rename(nameChange{inode: n, to: place{dir, name}})
	n.entry(out)
	return fuse.OK
}

func (m *mount) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return m.unlink("unlink", h.NodeId, name)
}

func (m *mount) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return m.unlink("rmdir", h.NodeId, name)
}

func (m *mount) unlink(change string, parent uint64, name string) fuse.Status {
	dir, status := m.begin(change, parent, name)
	defer m.mu.Unlock()
	if !status.Ok() {
		return status
	}
	n := dir.entries[name]
	switch {
	case n == nil:
		return fuse.ENOENT
	case len(n.entries) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	m.disk.rename(nameChange{inode: n, from: place{dir, name}})
	return fuse.OK
}

func (m *mount) Rename(_ <-chan struct{}, in *fuse.RenameIn, name, to string) fuse.Status {
	dir, status := m.begin("rename", in.NodeId, name)
	defer m.mu.Unlock()
	if !status.Ok() {
		return status
	}
	toDir := m.inodes[in.Newdir]
	if toDir == nil || dir.entries[name] == nil {
		return fuse.ENOENT
	}
	over := toDir.entries[to]
	switch {
	case in.Flags != 0:
		return fuse.EINVAL
	case over != nil && len(over.entries) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	m.disk.rename(nameChange{inode: dir.entries[name], from: place{dir, name}, to: place{toDir, to}})
	return fuse.OK
}

func (m *mount) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	if in.Flags&syscall.O_TRUNC == 0 {
		return fuse.OK
	}
	n, status := m.begin("truncate", in.NodeId, "")
	defer m.mu.Unlock()
	if status.Ok() {
		m.change(n, write{})
	}
	return status
}

func (m *mount) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.inodes[in.NodeId]
	if n == nil {
		return nil, fuse.ENOENT
	}
	return fuse.ReadResultData(buf[:copy(buf, n.live[min(in.Offset, uint64(len(n.live))):])]), fuse.OK
}

func (m *mount) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	n, status := m.begin("write", in.NodeId, "")
	defer m.mu.Unlock()
	if !status.Ok() {
		return 0, status
	}
	m.change(n, write{slices.Clone(data), int64(in.Offset)}) // the server reuses its buffer
	return uint32(len(data)), fuse.OK
}

func (m *mount) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	const dataOnly = 1
	n, status := m.begin("fsync", in.NodeId, "")
	defer m.mu.Unlock()
	switch {
	case !status.Ok():
	case m.failSync != nil && m.failSync(n):
		m.loseWrites(n)
		m.stopLocked()
		return fuse.EIO
	default:
		m.syncFile(n, in.FsyncFlags&dataOnly != 0)
	}
	return status
}

// Fallocate makes room at the end of a file.
func (m *mount) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	n, status := m.begin("fallocate", in.NodeId, "")
	defer m.mu.Unlock()
	switch {
	case !status.Ok():
		return status
	case in.Mode != 0:
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	m.change(n, write{offset: max(int64(len(n.live)), int64(in.Offset+in.Length))})
	return fuse.OK
}

func (m *mount) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.inodes[in.NodeId]
	if n == nil {
		return fuse.ENOENT
	}
	m.handles++
	out.Fh = m.handles
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		m.listings[out.Fh] = append(m.listings[out.Fh], place{n.entries[name], name})
	}
	return fuse.OK
}

func (m *mount) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.listings[in.Fh]
	for i := int(in.Offset); i < len(list); i++ {
		if !out.AddDirEntry(fuse.DirEntry{Name: list[i].name, Mode: list[i].dir.mode, Ino: list[i].dir.number, Off: uint64(i + 1)}) {
			break
		}
	}
	return fuse.OK
}

func (m *mount) ReleaseDir(in *fuse.ReleaseIn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.listings, in.Fh)
}

func (m *mount) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	n, status := m.begin("fsyncdir", in.NodeId, "")
	defer m.mu.Unlock()
	if status.Ok() {
		m.syncDir(n)
	}
	return status
}

func (m *mount) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	const blocks = 64 << 30 / 4096
	out.Bsize, out.Frsize, out.Blocks, out.Bfree, out.Bavail = 4096, 4096, blocks, blocks, blocks
	out.Files, out.Ffree, out.NameLen = 1<<20, 1<<20, 255
	return fuse.OK
}
