package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"tidings.example/eventsvc/internal/store"
)

// Digest is a checksum of all events of a store, without their resourceVersion, which is each store's own.
type Digest struct {
	Events   int64  `json:"events"`
	Revision uint64 `json:"revision"`
	Digest   string `json:"digest"` // hexadecimal
}

// NewDigest reads all events of a store. Two stores whose digests are equal hold the same events, whatever their
// engine.
func NewDigest(ctx context.Context, s Store, progress store.Progress) (Digest, error) {
	var sum digest
	result := Digest{}
	err := s.Export(ctx, 0, func(revision uint64, total int64) io.Writer {
		result.Revision = revision
		sum.tell = func(n int64) { progress(n, total) }
		return &sum
	})
	result.Events, result.Digest = sum.events, hex.EncodeToString(sum.sum[:])
	return result, err
}

// BookmarkHead begins each line of an export that is no event.
var BookmarkHead = []byte(`{"type":"BOOKMARK"`)

// digest is the exclusive or of the SHA-256 of each event in an export, so their order does not matter.
type digest struct {
	sum    [sha256.Size]byte
	events int64
	rest   []byte // a line that has not ended
	tell   func(events int64)
}

// Write implements [io.Writer].
func (d *digest) Write(p []byte) (int, error) {
	d.rest = append(d.rest, p...)
	for {
		line, rest, ended := bytes.Cut(d.rest, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		if err := d.add(line); err != nil {
			return 0, err
		}
		d.rest = rest
	}
}

// add adds a line of an export.
func (d *digest) add(line []byte) error {
	if bytes.HasPrefix(line, BookmarkHead) {
		return nil
	}
	var frame struct {
		Object map[string]json.RawMessage `json:"object"`
	}
	var metadata map[string]json.RawMessage
	if err := json.Unmarshal(line, &frame); err != nil {
		return err
	}
	if err := json.Unmarshal(frame.Object["metadata"], &metadata); err != nil {
		return err
	}
	delete(metadata, "resourceVersion")
	var err error
	if frame.Object["metadata"], err = json.Marshal(metadata); err != nil {
		return err
	}
	event, err := json.Marshal(frame.Object) // with sorted keys
	if err != nil {
		return err
	}
	for i, b := range sha256.Sum256(event) {
		d.sum[i] ^= b
	}
	d.events++
	d.tell(d.events)
	return nil
}
