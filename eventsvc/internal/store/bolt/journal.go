package bolt

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
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

// write brings bytes to the disk, with no more of the file's description than it
// takes to find them: neither its length nor its blocks change.
func (j *journal) write(b []byte, at int64) error {
	if _, err := j.file.WriteAt(b, at); err != nil {
		return err
	}
	return datasync(j.file)
}
