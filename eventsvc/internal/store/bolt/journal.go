package bolt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sort"
	"syscall"
)

// The journal is a file of fixed length whose blocks are all on the disk from
// the start. What a commit writes into it lies in one piece, and changes nothing
// but data: one write that the disk confirms, where a commit of the head takes
// pages in several places, two syncs, and now and then the journal of the file
// system. Once one half of it is full its records are folded into the head, all
// in one commit, while the other half takes what comes.
//
//	journal
//	├── "tidings events journal 1\n", length 2, store, size of the file 8, salt 8, CRC32C 4
//	└── frames, each from the start of a block of 4 KiB on, so that nothing that
//	    was acknowledged is ever written over before the head has it
//
//	frame
//	┌──────┬───────┬────────┬────────┬────────┬────────┬───────────────────────┐
//	│ salt │ first │ before │ length │ CRC32C │ CRC32C │ (length 4, record)... │
//	│  8   │   8   │   8    │   4    │   4    │   4    │                       │
//	└──────┴───────┴────────┴────────┴────────┴────────┴───────────────────────┘
//	first: revision of the first record, one more with each; before: the last
//	revision before it; then the length of the records, a checksum of them, and one
//	of what is in front of it
//
// The salt is drawn whenever a store begins to use the journal. No client knows
// it, so that nothing that somebody has written into an event can pass for a frame.
type journal struct {
	file *os.File
	path string
	size int64
	salt uint64
	end  int64 // where the next frame begins
	to   int64 // where the half ends that is being written
	full bool  // the other one has frames that the head may not have
}

// A logged record is one that the journal has and the head not yet.
type logged struct {
	revision uint64
	record   []byte
}

const (
	journalName  = "journal"
	journalMagic = "tidings events journal "
	// formatJournal is the version of a head with a journal: a program that does
	// not know of it must not overlook what is in there. A store that was closed
	// has none.
	formatJournal = 2

	journalBlock = 4 << 10
	frameHeader  = 36
	frameRecord  = 4 // in front of each record

	leastJournal = 128 << 10
	mostJournal  = 4 << 20
	journalShare = 16 // of a segment
)

// journalBytes is how long the journal is.
func (o *Options) journalBytes() int64 {
	return min(max(o.SegmentBytes/journalShare, leastJournal), mostJournal) / (2 * journalBlock) * (2 * journalBlock)
}

// openJournal takes up the journal that a head of a store was used with, and
// returns what it has of the revisions behind last; or begins one, if it can: nil
// if it cannot.
func (db *DB) openJournal(head *segment, id string, last uint64) (records []logged, err error) {
	path := filepath.Join(db.o.Dir, journalName)
	format, err := head.format()
	if err != nil {
		return nil, &FileError{head.path, err.Error(), fixRestore}
	}
	if format == formatJournal {
		db.journal, records, err = takeUpJournal(path, id, last)
		return records, err
	}
	db.journal, err = beginJournal(path, id, db.o.journalBytes())
	if err == nil {
		err = head.setFormat(formatJournal)
	}
	if isFull(err) { // the store can be read, and make room
		db.o.Log.Warn("there is no room for the journal: commits go without, and take longer, until the next start", "error", err)
		err = db.closeJournal()
	}
	return nil, err
}

func (db *DB) closeJournal() (err error) {
	if db.journal != nil {
		err = db.journal.file.Close()
		db.journal = nil
	}
	return err
}

// beginJournal makes a journal with nothing in it, or begins anew one that no
// head is used with.
func beginJournal(path, id string, size int64) (j *journal, err error) {
	info, err := os.Stat(path)
	if err == nil {
		b, err := readStart(path)
		if err != nil {
			return nil, err
		}
		if _, err := parseJournal(path, id, b, fixJournal); err != nil {
			return nil, err
		}
	}
	made := path
	if err != nil || info.Size() != size {
		made = path + ".tmp"
		if err := makeZeros(made, size); err != nil {
			return nil, errors.Join(err, removeIfThere(made))
		}
	}
	j = &journal{path: path, size: size, salt: randomSalt()}
	j.begin(false)
	if err := j.open(made); err != nil {
		return nil, err
	}
	err = j.write(j.header(id), 0)
	if err == nil && made != path {
		err = errors.Join(os.Rename(made, path), syncDir(filepath.Dir(path)))
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", errors.Join(err, j.file.Close()))
	}
	return j, nil
}

func (j *journal) open(path string) (err error) {
	if j.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// write brings bytes to the disk, with no more of the file's description than it
// takes to find them: neither its length nor its blocks change.
func (j *journal) write(b []byte, at int64) error {
	if _, err := j.file.WriteAt(b, at); err != nil {
		return err
	}
	for {
		if err := syscall.Fdatasync(int(j.file.Fd())); !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func randomSalt() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return be.Uint64(b[:])
}

// makeZeros makes a file of zeros that are on the disk.
func makeZeros(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	zeros := make([]byte, min(size, 256<<10))
	for at := int64(0); at < size && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// header is the first block.
func (j *journal) header(id string) []byte {
	b := make([]byte, 0, journalBlock)
	b = fmt.Appendf(b, "%s%d\n", journalMagic, 1)
	b = append(be.AppendUint16(b, uint16(len(id))), id...)
	b = be.AppendUint64(be.AppendUint64(b, uint64(j.size)), j.salt)
	b = be.AppendUint32(b, crc32.Checksum(b, castagnoliTable))
	return b[:cap(b)]
}

// readStart reads the first block of a file, as far as it goes.
func readStart(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, journalBlock)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return b[:n], nil
}

// parseJournal reads the first block, and refuses a file that is not the journal
// of this store.
func parseJournal(path, id string, b []byte, fix string) (j *journal, err error) {
	var version int
	if _, err := fmt.Sscanf(string(b[:min(len(b), 64)]), journalMagic+"%d\n", &version); err != nil {
		return nil, &FileError{path, "this is not a journal of the event store", fix}
	}
	if version != 1 {
		return nil, &FileError{path, fmt.Sprintf("format version %d, this program reads version 1", version), fixVersion}
	}
	at := len(journalMagic) + len("1\n") + 2
	if at > len(b) {
		return nil, &FileError{path, "its first block is damaged", fix}
	}
	name := at + int(be.Uint16(b[at-2:]))
	end := name + 16
	if end+4 > len(b) || be.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoliTable) {
		return nil, &FileError{path, "its first block is damaged", fix}
	}
	if string(b[at:name]) != id {
		return nil, &FileError{path, "it belongs to another store", fix}
	}
	return &journal{path: path, size: int64(be.Uint64(b[name:])), salt: be.Uint64(b[name+8:])}, nil
}

// begin goes to the start of a half. The first block is that of the header.
func (j *journal) begin(second bool) {
	if j.end, j.to = journalBlock, j.size/2; second {
		j.end, j.to = j.size/2, j.size
	}
}

func (j *journal) second() bool { return j.to == j.size }

// fits reports whether a frame has room in the half that is being written, and
// whether it has in an empty one.
func (j *journal) fits(frame []byte) (now, alone bool) {
	n := padded(len(frame))
	return j.end+n <= j.to, journalBlock+n <= j.size/2
}

// padded is the length of the blocks that a frame takes.
func padded(n int) int64 { return (int64(n) + journalBlock - 1) / journalBlock * journalBlock }

// append brings a frame to the disk, whose records are there from frameHeader on
// and begin with a revision that follows on another. It takes the frame's
// capacity, which newFrame has made that of whole blocks: of others the kernel
// would read what it must keep of them.
func (j *journal) append(frame []byte, first, before uint64) error {
	h := be.AppendUint64(be.AppendUint64(be.AppendUint64(frame[:0], j.salt), first), before)
	h = be.AppendUint32(h, uint32(len(frame)-frameHeader))
	h = be.AppendUint32(h, crc32.Checksum(frame[frameHeader:], castagnoliTable))
	be.AppendUint32(h, crc32.Checksum(h, castagnoliTable))
	blocks := frame[:padded(len(frame))]
	if err := j.write(blocks, j.end); err != nil {
		return fmt.Errorf("%w: %w", errJournal, err)
	}
	j.end += int64(len(blocks))
	return nil
}

// errJournal: what of a frame is on the disk nobody knows, for want of room too.
var errJournal = errors.New("the journal cannot be written")

// newFrame is an empty frame for so many records, of so many bytes at most.
func newFrame(records int, bytes int64) []byte {
	return make([]byte, frameHeader, padded(frameHeader+frameRecord*records+int(bytes)))
}

// turn goes on in the other half.
func (j *journal) turn() {
	j.begin(!j.second())
	j.full = true
}

// restart begins the half that is being written anew: the head has all.
func (j *journal) restart() {
	j.begin(j.second())
	j.full = false
}

// A frame that was found in a journal.
type frame struct {
	at            int64
	first, before uint64
	records       []logged // none if their lengths make no sense
	intact        bool     // they are what was written
	end           int64
}

func (f *frame) last() uint64 { return f.first + uint64(max(1, len(f.records))) - 1 }

// frameAt reads the frame at a place, if there is one.
func (j *journal) frameAt(file []byte, at int64) (f *frame, ok bool) {
	h := file[at : at+frameHeader]
	length := int64(be.Uint32(h[24:]))
	if be.Uint64(h) != j.salt || be.Uint32(h[32:]) != crc32.Checksum(h[:32], castagnoliTable) || at+frameHeader+length > int64(len(file)) {
		return nil, false
	}
	body := file[at+frameHeader : at+frameHeader+length]
	f = &frame{at: at, first: be.Uint64(h[8:]), before: be.Uint64(h[16:]), end: at + padded(frameHeader+int(length))}
	f.intact = be.Uint32(h[28:]) == crc32.Checksum(body, castagnoliTable)
	f.take(body)
	return f, true
}

// take takes the records of a frame apart.
func (f *frame) take(body []byte) {
	for revision := f.first; len(body) > 0; revision++ {
		if len(body) < frameRecord || int64(be.Uint32(body))+frameRecord > int64(len(body)) {
			f.records = nil
			return
		}
		n := frameRecord + int(be.Uint32(body))
		f.records = append(f.records, logged{revision, body[frameRecord:n:n]})
		body = body[n:]
	}
}

// takeUpJournal opens the journal of a head that ends with a revision, and
// returns the records behind it.
func takeUpJournal(path, id string, last uint64) (*journal, []logged, error) {
	file, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, &FileError{path, "it is missing, and with it the last writes", fixWrites}
	} else if err != nil {
		return nil, nil, fmt.Errorf("journal: %w", err)
	}
	j, err := parseJournal(path, id, file, fixWrites)
	if err != nil {
		return nil, nil, err
	}
	if int64(len(file)) != j.size {
		return nil, nil, &FileError{path, fmt.Sprintf("it has %d bytes, and should have %d", len(file), j.size), fixWrites}
	}
	records, err := j.read(file, last)
	if err != nil {
		return nil, nil, err
	}
	if err := j.open(path); err != nil {
		return nil, nil, err
	}
	return j, records, nil
}

// read finds the records behind a revision. Their frames follow on each other,
// whichever lies where: what is older has been folded. A frame was begun when the
// one before it was on the disk; so one that is not whole was cut short by a
// crash, and nobody was told of it, if none follows on it. Otherwise it is
// damaged: its records are returned as they are, and found out by who reads them.
func (j *journal) read(file []byte, last uint64) (records []logged, err error) {
	var frames []*frame
	for at := int64(journalBlock); at < j.size; at += journalBlock {
		if f, ok := j.frameAt(file, at); ok && f.last() > last {
			frames = append(frames, f)
		}
	}
	halves := map[bool]bool{} // those that have some of it, the first and the second
	j.begin(false)
	for {
		f := following(frames, last)
		if f == nil || len(f.records) == 0 || !f.intact && following(frames, f.last()) == nil {
			break
		}
		records = append(records, f.records...)
		last = f.last()
		j.begin(f.at >= j.size/2)
		halves[j.second()] = true
		j.end = f.end
	}
	for _, f := range frames {
		if f.before > last {
			return nil, &FileError{j.path, fmt.Sprintf("it goes on behind revision %d, but what comes before that ends with %d: this file is damaged, or one of the log is missing", f.before, last), fixWrites}
		}
	}
	j.full = len(halves) == 2
	return records, nil
}

// following returns the frame that goes on from a revision: the whole one where
// another was begun, and cut short, before; nil if there is none.
func following(frames []*frame, revision uint64) (found *frame) {
	for _, f := range frames {
		if f.before <= revision && f.first > revision && (found == nil || f.intact) {
			found = f
		}
	}
	return found
}

// find returns the record of a revision, nil if it is not there.
func find(records []logged, revision uint64) []byte {
	if len(records) == 0 || revision < records[0].revision {
		return nil
	}
	i := revision - records[0].revision
	if i >= uint64(len(records)) || records[i].revision != revision { // a commit that failed has left some out
		i = uint64(sort.Search(len(records), func(i int) bool { return records[i].revision >= revision }))
	}
	if i < uint64(len(records)) && records[i].revision == revision {
		return records[i].record
	}
	return nil
}
