package seglog

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// A recordWriter writes records to the blocks of a new file, and their notes.
type recordWriter struct {
	blocks *blockWriter
	notes  noteWriter
}

// newRecordWriter returns a recordWriter to a file with a base. Close must be called.
func newRecordWriter(base uint64) (*recordWriter, error) {
	b, err := newBlockWriter(base - 1)
	if err != nil {
		return nil, err
	}
	w := &recordWriter{b, noteWriter{encoder: b.encoder, words: wordWriter{in: map[string]uint64{}}}}
	w.notes.skip(base - 1)
	return w, nil
}

// Close gives up the memory of the encoder.
func (w *recordWriter) Close() error { return w.blocks.Close() }

// Put adds a record to the block in the making, which is written to a bucket when it is full.
func (w *recordWriter) Put(b *bbolt.Bucket, revision uint64, record []byte) error {
	if !w.blocks.Fits(record) {
		if err := b.Put(w.blocks.Finish(w.blocks.Last())); err != nil {
			return err
		}
	}
	if err := w.blocks.Add(revision, record); err != nil {
		return err
	}
	return w.notes.add(b.Tx(), revision, record)
}

// Finish writes the block in the making, if it has records.
func (w *recordWriter) Finish(b *bbolt.Bucket) error {
	last := w.blocks.Last()
	if last > w.blocks.Covered() {
		if err := b.Put(w.blocks.Finish(last)); err != nil {
			return err
		}
	}
	return w.notes.finish(b.Tx(), last)
}

// PutLost copies a block that cannot be read. The block before covers all before it, so that
// what was dropped there is not taken for part of the damage.
func (w *recordWriter) PutLost(b *bbolt.Bucket, l *lostBlock) error {
	if l.First-1 > w.blocks.Covered() {
		if err := b.Put(w.blocks.Finish(l.First - 1)); err != nil {
			return err
		}
	}
	if err := w.notes.finish(b.Tx(), l.First-1); err != nil {
		return err
	}
	w.blocks.Skip(l.Last)
	w.notes.skip(l.Last) // what is missing there has every search look at the records
	if l.Key == nil {    // it is missing, which the next block tells, because it begins behind it
		return nil
	}
	return b.Put(bytes.Clone(l.Key), bytes.Clone(l.Value))
}
