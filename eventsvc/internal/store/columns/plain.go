package columns

import (
	"encoding/binary"

	"tidings.example/eventsvc/internal/event"
)

const (
	// plainTemplate is the code of the template of notes that have none: they are stored as they are.
	plainTemplate = 0
	// hole stands for a word in a template, and plainMark is the template of plain notes. A note that has one of these
	// is plain.
	hole      = event.NoteHole
	plainMark = event.NoteMark

	maxTemplates = 1 << 16
	maxWords     = 1 << 18
)

// appendPlain appends the plain notes of a chunk, each with its length (uvarint).
func appendPlain(dst, note []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(note))), note...)
}

// cutPlain splits off the first of plain notes.
func cutPlain(b []byte) (note, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}
