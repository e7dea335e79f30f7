package seglog

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// A group of blocks, which share a list of words, ends at so many records or bytes of notes.
const (
	wordRecords   = 512
	wordNoteBytes = 256 << 10
)

// A recordWriter writes records to the blocks of a new file, and the words of their notes.
type recordWriter struct {
	blocks  *blockWriter
	words   wordWriter
	records int // of the finished blocks whose words are in the making
	bytes   int // of their notes
}

// newRecordWriter returns a recordWriter to a file with a base. Close must be called.
func newRecordWriter(base uint64) (*recordWriter, error) {
	b, err := newBlockWriter(base - 1)
	if err != nil {
		return nil, err
	}
	return &recordWriter{blocks: b, words: wordWriter{from: base - 1, in: map[string]wordPlaces{}}}, nil
}

// Close gives up the memory of the encoder.
func (w *recordWriter) Close() error { return w.blocks.Close() }

// Put adds a record to the block in the making, which is written to a bucket when it is full.
func (w *recordWriter) Put(b *bbolt.Bucket, revision uint64, record []byte) error {
	if !w.blocks.Fits(record) {
		if err := w.finishBlock(b, w.blocks.Last()); err != nil {
			return err
		}
	}
	return w.blocks.Add(revision, record)
}

// finishBlock writes the block in the making, which covers the revisions up to the given one.
func (w *recordWriter) finishBlock(b *bbolt.Bucket, last uint64) error {
	key, value, err := w.blocks.Finish(last)
	if err != nil {
		return err
	}
	notes := &w.blocks.again.notes
	for i := range notes.revisions {
		w.words.add(notes.note(i))
	}
	w.records += len(notes.revisions)
	w.bytes += len(notes.texts)
	if err := b.Put(key, value); err != nil || w.records < wordRecords && w.bytes < wordNoteBytes {
		return err
	}
	return w.finishWords(b.Tx(), last, false)
}

// finishWords ends the words of the blocks up to a revision, and writes them if they are enough, or in any case.
func (w *recordWriter) finishWords(tx *bbolt.Tx, last uint64, all bool) error {
	w.records, w.bytes = 0, 0
	w.words.end(last)
	return w.words.write(tx, w.blocks.encoder, all)
}

// Finish writes the block in the making, if it has records.
func (w *recordWriter) Finish(b *bbolt.Bucket) error { return w.finish(b, w.blocks.Last()) }

// finish writes all that is in the making. It covers the revisions up to the given one.
func (w *recordWriter) finish(b *bbolt.Bucket, last uint64) error {
	if last > w.blocks.Covered() {
		if err := w.finishBlock(b, last); err != nil {
			return err
		}
	}
	return w.finishWords(b.Tx(), last, true)
}

// PutLost copies a block that cannot be read. The block before covers all before it, so that
// what was dropped there is not taken for part of the damage.
func (w *recordWriter) PutLost(b *bbolt.Bucket, l *lostBlock) error {
	if err := w.finish(b, l.First-1); err != nil {
		return err
	}
	w.blocks.Skip(l.Last)
	w.words.from = l.Last // the gap in the words makes searches read the records
	if l.Key == nil {     // missing: the next block shows it, because it begins later
		return nil
	}
	return b.Put(bytes.Clone(l.Key), bytes.Clone(l.Value))
}
