package objectchange

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// State is the file that keeps what was seen of objects. It is safe for concurrent use.
type State struct {
	db *bolt.DB

	mu   sync.Mutex
	pack *flate.Writer
}

// openWait is how long Open waits for another process that has the file.
const openWait = 5 * time.Second

// Position says how far the objects of a resource were seen. The zero value means that nothing was.
type Position struct {
	Version  string    `json:"version"`  // of the source
	Complete time.Time `json:"complete"` // at this time the source had nothing later
}

// Open opens the file, or makes it. Close is to be called.
func Open(path string) (*State, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: openWait})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%s is in use by another process: give each mirror a file of its own", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; without the file the mirror begins anew, and says nothing about what changed before", path, err)
	}
	pack, err := flate.NewWriter(nil, flate.BestSpeed)
	return &State{db: db, pack: pack}, err
}

// Close closes the file.
func (s *State) Close() error { return s.db.Close() }

var positionKey = []byte("\x00position") // no uid begins with NUL

// Position returns how far the objects at a path of the API were seen.
func (s *State) Position(path string) (p Position, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		if b := tx.Bucket([]byte(path)); b != nil {
			if text := b.Get(positionKey); text != nil {
				return json.Unmarshal(text, &p)
			}
		}
		return nil
	})
	return p, err
}

// Object returns what was seen of an object, nil if nothing was.
func (s *State) Object(path, uid string) (seen *Seen, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		if b := tx.Bucket([]byte(path)); b != nil {
			if packed := b.Get([]byte(uid)); packed != nil {
				seen, err = unpack(packed)
			}
		}
		return err
	})
	return seen, err
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
	packed := make(map[string][]byte, len(objects))
	for uid, seen := range objects {
		if seen != nil {
			packed[uid] = s.packed(seen)
		}
	}
	position, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return s.db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(path))
		if err != nil {
			return err
		}
		for uid := range objects {
			if text := packed[uid]; text != nil {
				err = b.Put([]byte(uid), text)
			} else {
				err = b.Delete([]byte(uid))
			}
			if err != nil {
				return err
			}
		}
		return b.Put(positionKey, position)
	})
}

func (s *State) packed(seen *Seen) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	s.pack.Reset(&b)
	_ = json.NewEncoder(s.pack).Encode(seen) // texts, numbers and times, into memory: no error
	_ = s.pack.Close()
	return b.Bytes()
}

// maxSeen bounds what a record of the file may become in memory.
const maxSeen = 16 << 20

func unpack(packed []byte) (*Seen, error) {
	seen := new(Seen)
	if err := json.NewDecoder(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxSeen)).Decode(seen); err != nil {
		return nil, fmt.Errorf("what was seen of an object cannot be read: %w", err)
	}
	return seen, nil
}
