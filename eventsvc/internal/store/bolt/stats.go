package bolt

import (
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/seglog"
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
		Revision: db.Revision(), Oldest: db.log.CompactRevision(),
		Events: db.live.events.Load(), LiveBytes: db.live.bytes.Load(), DeadBytes: db.dead.total(),
	}
	s.FileBytes = disk.Usage(db.index.Path()) + disk.Usage(filepath.Join(db.o.Dir, walName))
	var records int64
	for _, seg := range db.log.Segments() {
		records += seg.Bytes()
		s.FileBytes += disk.Usage(seg.Path)
		s.Segments++
	}
	s.HistoryBytes = max(0, records-s.LiveBytes-s.DeadBytes)
	return s
}

// OldestTime returns the time of the oldest record that the log holds, zero if
// it is empty.
func (db *DB) OldestTime() (oldest time.Time) {
	_ = db.log.View(func(log *seglog.Reader) error {
		return log.Scan(0, db.Revision(), func(e seglog.Entry) bool {
			oldest = e.Time
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
func (d *deadBytes) keep(ss seglog.Segments) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.bytes, func(base uint64, _ int64) bool {
		return !slices.ContainsFunc(ss, func(s *seglog.Segment) bool { return s.Base == base })
	})
}

// all returns a copy.
func (d *deadBytes) all() map[uint64]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.bytes)
}

// loadAccounts reads what the index has of live and dead records.
func (db *DB) loadAccounts() error {
	live, account, err := db.index.Accounts()
	db.live.events.Store(live.Events)
	db.live.bytes.Store(live.Bytes)
	db.maintenance.trimmed, db.dead.bytes = account.Trimmed, account.Dead
	return err
}
