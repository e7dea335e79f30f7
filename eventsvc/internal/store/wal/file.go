package wal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
)

// FileName is the name of the file in the data directory of a store.
const FileName = "wal"

// Version is the format that is written, and the only one that is read.
const Version = 2

const magic = "tidings event store wal "

// What to do about a file that cannot be used.
const (
	fixLost    = "put back the file that was here, or restore a backup into another data directory"
	fixForeign = "move this file away: the store that is here was closed, and needs no records of before"
	fixVersion = "export with the program that wrote it (eventsvc export), and import that here (eventsvc import) into an empty data directory"
)

// Begin opens the log of a store that needs no record of it, and discards what it
// holds. It makes the file if there is none, or if its size is another one. A file
// that is no log of this store is a [*store.FileError] and is not touched.
func Begin(path, id string, size int64) (*Log, error) {
	file, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Create(path, id, size)
	} else if err != nil {
		return nil, err
	}
	if _, err := parseHeader(path, id, file, fixForeign); err != nil {
		return nil, err
	}
	if int64(len(file)) != size {
		return Create(path, id, size)
	}
	return empty(path, path, id, size)
}

// Create makes an empty log, and replaces a file that is there.
func Create(path, id string, size int64) (*Log, error) {
	tmp := path + ".tmp"
	var l *Log
	err := writeZeros(tmp, size)
	if err == nil {
		l, err = empty(tmp, path, id, size)
	}
	if err == nil {
		if err = disk.Rename(tmp, path); err != nil {
			err = errors.Join(err, l.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, disk.Remove(tmp))
	}
	return l, nil
}

// Open opens a log whose records may be needed, and returns those with revisions
// greater than after. All of them are then on the disk, also those that a killed process
// has written and not synced.
func Open(path, id string, after uint64) (*Log, []Record, error) {
	file, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, &store.FileError{Path: path, Reason: "it is missing, and with it the last writes", Fix: fixLost}
	} else if err != nil {
		return nil, nil, err
	}
	l, err := parseHeader(path, id, file, fixLost)
	if err != nil {
		return nil, nil, err
	}
	if int64(len(file)) != l.size {
		return nil, nil, &store.FileError{Path: path, Reason: fmt.Sprintf("it has %d bytes, and should have %d", len(file), l.size), Fix: fixLost}
	}
	records, newest, err := l.replay(file, after)
	if err != nil {
		return nil, nil, err
	}
	if l.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	// The newest frame may be in the page cache alone. A sync would not help: after a
	// failed one the kernel takes the pages for written. The frames before it were on
	// the disk when it was begun.
	if newest != nil {
		if err := l.write(file[newest.at:newest.end], newest.at); err != nil {
			return nil, nil, errors.Join(err, l.Close())
		}
	}
	return l, records, nil
}

// empty opens a file, which will have the given path, as an empty log.
func empty(file, path, id string, size int64) (*Log, error) {
	var salt [8]byte
	_, _ = rand.Read(salt[:]) // never fails
	l := &Log{path: path, size: size, salt: be.Uint64(salt[:])}
	l.begin(false)
	var err error
	if l.file, err = os.OpenFile(file, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if err := l.write(l.header(id), 0); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// writeZeros makes a durable file of zeros. It writes them, because a file that was
// only allocated would need metadata for each block that is first written.
func writeZeros(path string, size int64) error {
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

// header returns the first block.
func (l *Log) header(id string) []byte {
	b := make([]byte, 0, blockSize)
	b = fmt.Appendf(b, "%s%d\n", magic, Version)
	b = append(be.AppendUint16(b, uint16(len(id))), id...)
	b = be.AppendUint64(be.AppendUint64(b, uint64(l.size)), l.salt)
	b = be.AppendUint32(b, crc32.Checksum(b, castagnoliTable))
	return b[:cap(b)]
}

// parseHeader reads the header, and refuses a file that is no log of this store. The
// error says with fix what to do about a file that is not.
func parseHeader(path, id string, b []byte, fix string) (*Log, error) {
	refuse := func(reason, fix string) (*Log, error) {
		return nil, &store.FileError{Path: path, Reason: reason, Fix: fix}
	}
	var version int
	if _, err := fmt.Sscanf(string(b[:min(len(b), 64)]), magic+"%d\n", &version); err != nil {
		return refuse("this is not a write-ahead log of the event store", fix)
	}
	if version != Version {
		return refuse(fmt.Sprintf("it has format %d, this program reads format %d", version, Version), fixVersion)
	}
	at := len(magic) + len("2\n") + 2
	if at > len(b) {
		return refuse("its first block is damaged", fix)
	}
	name := at + int(be.Uint16(b[at-2:]))
	end := name + 16
	if end+4 > len(b) || be.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoliTable) {
		return refuse("its first block is damaged", fix)
	}
	if string(b[at:name]) != id {
		return refuse("it belongs to another store", fix)
	}
	return &Log{path: path, size: int64(be.Uint64(b[name:])), salt: be.Uint64(b[name+8:])}, nil
}
