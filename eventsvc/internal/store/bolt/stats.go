package bolt

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
)

// Stats say how much the store holds.
type Stats struct {
	Revision     uint64 `json:"revision"`     // of the newest write
	Oldest       uint64 `json:"oldest"`       // the oldest state that can be read
	Events       int64  `json:"events"`       // that exist
	LiveBytes    int64  `json:"liveBytes"`    // records of events that exist
	HistoryBytes int64  `json:"historyBytes"` // records that only older states need
	DeadBytes    int64  `json:"deadBytes"`    // records that nothing needs, until they are compacted
	FileBytes    int64  `json:"fileBytes"`    // what the files take
	Segments     int    `json:"segments"`     // files of the log
}

// Stats returns the present figures.
func (db *DB) Stats() Stats {
	s := Stats{
		Revision: db.Revision(), Oldest: db.horizon.Load(),
		Events: db.live.events.Load(), LiveBytes: db.live.bytes.Load(), DeadBytes: db.dead.total(),
	}
	s.FileBytes = disk.Usage(db.index.path) + disk.Usage(filepath.Join(db.o.Dir, walName))
	var records int64
	for _, seg := range *db.segments.Load() {
		records += seg.records.Load()
		s.FileBytes += disk.Usage(seg.path)
		s.Segments++
	}
	s.HistoryBytes = max(0, records-s.LiveBytes-s.DeadBytes)
	return s
}

// OldestTime returns the time of the oldest record that the log holds, zero if
// it is empty.
func (db *DB) OldestTime() (oldest time.Time) {
	_ = db.readLog(func(log *logReader) error {
		return log.scan(0, db.Revision(), func(e entry) bool {
			oldest = e.time
			return false
		})
	})
	return oldest
}

// directoryBytes returns what the files of the store take before it is opened.
func directoryBytes(dir string) (sum int64) {
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		return 0
	}
	for _, path := range append(files, filepath.Join(dir, walName)) {
		sum += disk.Usage(path)
	}
	return sum
}

// liveCount counts the events that exist. The committer keeps it; each frozen
// memtable takes the count of its moment into the index.
type liveCount struct{ events, bytes atomic.Int64 }

// encode returns the count as it is kept in the index.
func (l *liveCount) encode() []byte {
	return be.AppendUint64(be.AppendUint64(nil, uint64(l.events.Load())), uint64(l.bytes.Load()))
}

// deadBytes is how many bytes of each segment, by its base, nothing needs.
type deadBytes struct {
	mu    sync.Mutex
	bytes map[uint64]int64
}

func (d *deadBytes) total() (sum int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.bytes {
		sum += n
	}
	return sum
}

func (d *deadBytes) of(base uint64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes[base]
}

func (d *deadBytes) add(more map[uint64]int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for base, n := range more {
		d.bytes[base] += n
	}
}

// set corrects the account of a segment that was compacted or unlinked.
func (d *deadBytes) set(base uint64, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bytes[base] = n; n == 0 {
		delete(d.bytes, base)
	}
}

// keep forgets segments that are not there: one was removed, and the process
// ended before the account had that.
func (d *deadBytes) keep(ss segments) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.bytes, func(base uint64, _ int64) bool {
		return !slices.ContainsFunc(ss, func(s *segment) bool { return s.base == base })
	})
}

// save writes the account, and up to which revision it goes.
func (d *deadBytes) save(tx *bbolt.Tx, trimmed uint64) error {
	d.mu.Lock()
	bytes := maps.Clone(d.bytes)
	d.mu.Unlock()
	text, err := json.Marshal(bytes)
	if err != nil {
		return err
	}
	meta := tx.Bucket([]byte(boltfile.Meta))
	if err := meta.Put([]byte(metaDead), text); err != nil {
		return err
	}
	return meta.Put([]byte(metaTrimmed), revisionKey(trimmed))
}

// loadAccounts reads what the index file says of live and dead records.
func (db *DB) loadAccounts() error {
	db.dead.bytes = map[uint64]int64{}
	return db.index.view(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(boltfile.Meta))
		if v := meta.Get([]byte(metaLive)); len(v) == 16 {
			db.live.events.Store(int64(be.Uint64(v)))
			db.live.bytes.Store(int64(be.Uint64(v[8:])))
		}
		if v := meta.Get([]byte(metaTrimmed)); len(v) == 8 {
			db.trimmed = be.Uint64(v)
		}
		if v := meta.Get([]byte(metaDead)); v != nil {
			return json.Unmarshal(v, &db.dead.bytes)
		}
		return nil
	})
}
