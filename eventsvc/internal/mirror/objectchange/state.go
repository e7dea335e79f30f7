package objectchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// State is the file that keeps what was seen of objects. It is safe for concurrent use.
type State struct {
	db     *bolt.DB
	pack   *zstd.Encoder
	unpack *zstd.Decoder
}

const (
	openWait = 5 * time.Second // for another process that has the file
	maxSeen  = 16 << 20        // bounds what a record of the file may become in memory
)

// Position says how far the objects of a resource were seen. The zero value means that nothing was.
type Position struct {
	Version  string               `json:"version"`        // of the source
	Complete time.Time            `json:"complete"`       // at this time the source had nothing later
	Late     map[string]time.Time `json:"late,omitempty"` // objects with a late series, by uid: when it is over
}

// Open opens the file, or makes it. Close is to be called.
func Open(path string) (s *State, err error) {
	s = new(State)
	if s.pack, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return nil, err
	}
	if s.unpack, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSeen)); err != nil {
		return nil, err
	}
	s.db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: openWait})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%s is in use by another process: give each mirror a file of its own", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; without the file the mirror begins anew, and says nothing about what changed before", path, err)
	}
	return s, nil
}

// Close closes the file.
func (s *State) Close() error { return s.db.Close() }

var positionKey = []byte("\x00position") // no uid begins with NUL

// Position returns how far the objects at a path of the API were seen.
func (s *State) Position(path string) (p Position, err error) {
	_, err = s.get(path, positionKey, &p)
	return p, err
}

// Object returns what was seen of an object, nil if nothing was.
func (s *State) Object(path, uid string) (*Seen, error) {
	seen := new(Seen)
	if found, err := s.get(path, []byte(uid), seen); !found || err != nil {
		return nil, err
	}
	return seen, nil
}

// get reads a record of a path. It reports whether there is one.
func (s *State) get(path string, key []byte, into any) (found bool, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(path))
		if b == nil {
			return nil
		}
		packed := b.Get(key)
		if found = packed != nil; !found {
			return nil
		}
		text, err := s.unpack.DecodeAll(packed, nil)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		return err
	})
	return found, err
}

// UIDs returns the uids of the objects that were seen at a path.
func (s *State) UIDs(path string) (uids map[string]bool, err error) {
	uids = map[string]bool{}
	err = s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(path))
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, _ []byte) error {
			if !bytes.Equal(k, positionKey) {
				uids[string(k)] = true
			}
			return nil
		})
	})
	return uids, err
}

// Put stores what was seen at a path, and the position, at once. A nil object is forgotten.
func (s *State) Put(path string, objects map[string]*Seen, p Position) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(path))
		if err != nil {
			return err
		}
		put := func(key []byte, record any) error {
			text, err := json.Marshal(record)
			if err != nil {
				return err
			}
			return b.Put(key, s.pack.EncodeAll(text, nil))
		}
		for uid, seen := range objects {
			if seen == nil {
				err = b.Delete([]byte(uid))
			} else {
				err = put([]byte(uid), seen)
			}
			if err != nil {
				return err
			}
		}
		return put(positionKey, p)
	})
}
