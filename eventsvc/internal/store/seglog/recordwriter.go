package seglog

import (
	"bytes"
	"errors"

	"go.etcd.io/bbolt"
)

// A recordWriter writes records to the blocks of a new file, and their columns.
type recordWriter struct {
	blocks  *blockWriter
	columns columnWriter
}

// newRecordWriter returns a recordWriter to a file with a base. Close must be called.
func newRecordWriter(base uint64) (*recordWriter, error) {
	b, err := newBlockWriter(base - 1)
	if err != nil {
		return nil, err
	}
	return &recordWriter{blocks: b}, nil
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
	return errors.Join(w.blocks.Add(revision, record), w.columns.add(b, revision, record))
}

// finishBlock writes the block in the making, which covers the revisions up to the given one.
func (w *recordWriter) finishBlock(b *bbolt.Bucket, last uint64) error {
	key, value, err := w.blocks.Finish(last)
	if err != nil {
		return err
	}
	return b.Put(key, value)
}

// Finish writes what is in the making.
func (w *recordWriter) Finish(b *bbolt.Bucket) error {
	return errors.Join(w.finish(b, w.blocks.Last()), w.columns.end(b.Tx()))
}

// finish writes the block in the making, if it has records. It covers the revisions up to the given one.
func (w *recordWriter) finish(b *bbolt.Bucket, last uint64) error {
	if last > w.blocks.Covered() {
		if err := w.finishBlock(b, last); err != nil {
			return err
		}
	}
	return nil
}

// PutLost copies a block that cannot be read. The block before covers all before it, so that
// what was dropped there is not taken for part of the damage.
func (w *recordWriter) PutLost(b *bbolt.Bucket, l *lostBlock) error {
	if err := w.finish(b, l.First-1); err != nil {
		return err
	}
	w.blocks.Skip(l.Last)
	if err := w.columns.lose(b.Tx(), l.Last); err != nil {
		return err
	}
	if l.Key == nil { // missing: the next block shows it, because it begins later
		return nil
	}
	return b.Put(bytes.Clone(l.Key), bytes.Clone(l.Value))
}
