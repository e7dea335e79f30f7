package bolt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// journalBytes is how long the journal is.
func (o *Options) journalBytes() int64 {
	return min(max(o.SegmentBytes/journalShare, leastJournal), mostJournal) / (2 * journalBlock) * (2 * journalBlock)
}

// openJournal takes up the journal that the head of a store was used with, and
// returns what it has of the revisions behind last.
func (db *DB) openJournal(head *segment, id string, last uint64) (records []logged, err error) {
	format, err := head.format()
	if err != nil {
		return nil, &FileError{head.path, err.Error(), fixRestore}
	}
	if format != formatJournal {
		return nil, nil
	}
	if db.journal, records, err = takeUpJournal(db.journalPath(), id, last); err != nil {
		return nil, err
	}
	return records, nil
}

func (db *DB) journalPath() string { return filepath.Join(db.o.Dir, journalName) }

// startJournal begins the journal of a store that was closed, if there is room
// for one.
func (db *DB) startJournal() (err error) {
	if db.journal != nil {
		return nil
	}
	head := db.segments.Load().head()
	id, err := head.storeID()
	if err == nil {
		db.journal, err = beginJournal(db.journalPath(), id, db.o.journalBytes())
	}
	if err == nil {
		err = head.setFormat(formatJournal)
	}
	if isFull(err) { // the store can be read, and make room
		db.o.Log.Warn("there is no room for the journal: commits go without, and take longer, until the next start", "error", err)
		err = db.closeJournal()
	}
	return err
}

func (db *DB) closeJournal() (err error) {
	if db.journal != nil {
		err = db.journal.file.Close()
		db.journal = nil
	}
	return err
}

// beginJournal begins anew the journal of a store that was closed, or makes one.
func beginJournal(path, id string, size int64) (*journal, error) {
	info, err := os.Stat(path)
	if err != nil {
		return makeJournal(path, id, size)
	}
	b, err := readStart(path)
	if err != nil {
		return nil, err
	}
	if _, err := parseJournal(path, id, b, fixJournal); err != nil {
		return nil, err
	}
	if info.Size() != size {
		return makeJournal(path, id, size)
	}
	return newJournal(path, path, id, size)
}

// makeJournal makes a journal, in the place of one that may be there.
func makeJournal(path, id string, size int64) (j *journal, err error) {
	tmp := path + ".tmp"
	if err = makeZeros(tmp, size); err == nil {
		j, err = newJournal(tmp, path, id, size)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", errors.Join(err, removeIfThere(tmp)))
	}
	if err := errors.Join(os.Rename(tmp, path), syncDir(filepath.Dir(path))); err != nil {
		return nil, fmt.Errorf("journal: %w", errors.Join(err, j.file.Close(), removeIfThere(tmp)))
	}
	return j, nil
}

// newJournal opens a file as a journal with nothing in it, for a path.
func newJournal(file, path, id string, size int64) (*journal, error) {
	j := &journal{path: path, size: size, salt: randomSalt()}
	j.begin(false)
	if err := j.open(file); err != nil {
		return nil, err
	}
	if err := j.write(j.header(id), 0); err != nil {
		return nil, fmt.Errorf("journal: %w", errors.Join(err, j.file.Close()))
	}
	return j, nil
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

func (j *journal) open(path string) (err error) {
	if j.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}
