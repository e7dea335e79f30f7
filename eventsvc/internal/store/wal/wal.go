package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"tidings.example/eventsvc/internal/disk"
)

// A Log is an open write-ahead log.
type Log struct {
	file *os.File
	path string
	size int64
	salt uint64
	end  int64 // where the next frame begins
	to   int64 // where the half ends that is being written
	both bool  // both halves have frames that are not checkpointed
}

const (
	blockSize   = 4 << 10
	frameHeader = 32
	tableEntry  = 12 // revision and length of a record
)

var (
	be              = binary.BigEndian
	castagnoliTable = crc32.MakeTable(crc32.Castagnoli)
)

// ErrAppend reports a failed append, also one for lack of space. The frame may be on the
// disk in part or whole, so the log must not be appended to again.
var ErrAppend = errors.New("the write-ahead log cannot be written")

// MinSize is the least size of a log, MaxSize the most that is of use: more would
// only make checkpoints rarer and longer.
const (
	MinSize = 128 << 10
	MaxSize = 4 << 20
)

// SizeFor returns the size of a log of about so many bytes: within the limits, and
// with two halves of whole blocks.
func SizeFor(about int64) int64 {
	return min(max(about, MinSize), MaxSize) / (2 * blockSize) * (2 * blockSize)
}

// begin continues at the start of a half. The header takes the first block.
func (l *Log) begin(second bool) {
	if l.end, l.to = blockSize, l.size/2; second {
		l.end, l.to = l.size/2, l.size
	}
}

func (l *Log) second() bool { return l.to == l.size }

// Fits reports whether a frame fits into the rest of the current half.
func (l *Log) Fits(f *Frame) bool { return l.end+f.size() <= l.to }

// FitsHalf reports whether a frame fits into an empty half.
func (l *Log) FitsHalf(f *Frame) bool { return blockSize+f.size() <= l.size/2 }

// padded returns the length of the blocks that n bytes take.
func padded(n int) int64 { return (int64(n) + blockSize - 1) / blockSize * blockSize }

// Append writes a frame and waits until it is on the disk. The argument before is the
// newest revision that is older than its records: that of the last frame, or of what was
// committed elsewhere since. The frame must have a record and must fit.
func (l *Log) Append(f *Frame, before uint64) error {
	all := f.bytes
	for _, r := range f.Records {
		all = be.AppendUint32(be.AppendUint64(all, r.Revision), uint32(len(r.Data)))
	}
	h := be.AppendUint64(be.AppendUint64(all[:0], l.salt), before)
	h = be.AppendUint32(be.AppendUint32(h, uint32(len(f.Records))), uint32(len(f.bytes)-frameHeader))
	h = be.AppendUint32(h, crc32.Checksum(f.bytes[frameHeader:], castagnoliTable))
	be.AppendUint32(h, crc32.Update(crc32.Checksum(h, castagnoliTable), castagnoliTable, all[len(f.bytes):]))
	// Whole blocks: of a partial one the kernel would first have to read the rest.
	blocks := all[:f.size()]
	if err := l.write(blocks, l.end); err != nil {
		return fmt.Errorf("%w: %w", ErrAppend, err)
	}
	l.end += int64(len(blocks))
	return nil
}

// Rotate continues in the other half, whose frames must be checkpointed. Those of
// the current half then wait for their checkpoint.
func (l *Log) Rotate() {
	l.begin(!l.second())
	l.both = true
}

// ReleaseOtherHalf says that the frames of the other half are no longer needed.
func (l *Log) ReleaseOtherHalf() { l.both = false }

// BothInUse reports whether both halves have frames that are not checkpointed.
func (l *Log) BothInUse() bool { return l.both }

// Reset says that no frame is needed any more.
func (l *Log) Reset() {
	l.begin(l.second())
	l.both = false
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// write brings bytes to the disk. Neither the length nor the blocks of the file
// change, so its metadata need not be synced.
func (l *Log) write(b []byte, at int64) error {
	if _, err := l.file.WriteAt(b, at); err != nil {
		return err
	}
	return disk.SyncData(l.file)
}
