package usage

import (
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
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
	PackedBytes  int64  `json:"packedBytes"`  // what they would take if all of the log were packed as its compressed part is; 0: nothing is compressed
	Segments     int    `json:"segments"`     // files of the log
	Compressed   int    `json:"compressed"`   // of these, those whose records are compressed

	MaxBytes int64 `json:"maxBytes"` // what the files may take; 0: no limit
}

// A SegmentAccount says how much of one segment of the log is no longer needed.
type SegmentAccount struct {
	Dead     int64 // bytes of records that nothing needs
	Retained int64 // bytes of the deletions that the last rewrite has kept, because rebuilding the index needs them
	Counted  bool  // Dead was found by reading the segment since the start
	Damaged  bool  // once counted: it has a record that may be an older version of any event
}

// Clean reports whether the segment holds no version of an event that was superseded or
// deleted, as far as the account tells.
func (s SegmentAccount) Clean() bool { return s.Dead == 0 && !s.Damaged }

// Usage is the account of an open store.
type Usage struct {
	Namespaces Namespaces

	dir     string
	limits  Limits
	records seglog.IndexedLog

	sealed   atomic.Int64 // bytes of the sealed segments
	largest  atomic.Int64 // bytes that the rewrite of any of them, or of the head once sealed, needs
	wal      atomic.Int64 // bytes of the write-ahead log
	spare    atomic.Int64 // bytes of the spare file
	reserved atomic.Int64 // for a file that is being rewritten
	lowered  atomic.Bool  // the limit is less than the files took at the start; until they fit, it cannot be kept to

	bytes atomic.Int64 // of the records of the events that exist

	mu       sync.Mutex // guards the next two
	trimmed  uint64     // what is dead is accounted for up to this revision
	segments map[uint64]SegmentAccount
}

// New returns the account that the index has saved, without segments that are not there: a process can end after it has
// removed one and before it has saved that. It counts the events of each namespace, and finds damage among the keys of
// the index by that.
func New(dir string, limits Limits, r seglog.IndexedLog) (*Usage, error) {
	live, account, err := r.Index.Accounts()
	if err != nil {
		return nil, err
	}
	u := &Usage{dir: dir, limits: limits, records: r, trimmed: account.Trimmed, segments: map[uint64]SegmentAccount{}}
	merged := r.Index.Merged()
	var newest uint64
	if err := r.Index.View(func(v index.View) error { newest, err = u.Namespaces.Count(v, merged); return err }); err != nil {
		return nil, err
	}
	events, _ := u.Namespaces.At("", merged)
	if err := r.Index.Counted(newest, events); err != nil {
		return nil, err
	}
	u.bytes.Store(live.Bytes)
	u.spare.Store(disk.Usage(u.sparePath()))
	for _, s := range r.Log.Segments() {
		if dead := account.Dead[s.Base]; dead != 0 {
			u.segments[s.Base] = SegmentAccount{Dead: dead}
		}
	}
	u.Measure()
	u.lowered.Store(limits.MaxBytes > 0 && u.left(u.used(), 0) < 0)
	return u, nil
}

// Live returns the number of the events that exist, and the bytes of their records.
func (u *Usage) Live() index.Live {
	events, _ := u.Namespaces.At("", math.MaxUint64)
	return index.Live{Events: events, Bytes: u.bytes.Load()}
}

// AddBytes counts the bytes of the records of events that exist, which are fewer where it is negative.
func (u *Usage) AddBytes(n int64) { u.bytes.Add(n) }

// Trimmed returns the revision up to which dead records are accounted for.
func (u *Usage) Trimmed() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.trimmed
}

// Segment returns the account of a segment.
func (u *Usage) Segment(base uint64) SegmentAccount {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.segments[base]
}

// SetSegment replaces the account of a segment, and saves what is dead in it if that has
// changed. The account of a segment that was unlinked is empty.
func (u *Usage) SetSegment(base uint64, s SegmentAccount) error {
	var before SegmentAccount
	account := u.change(func() {
		before = u.segments[base]
		if u.segments[base] = s; s == (SegmentAccount{}) {
			delete(u.segments, base)
		}
	})
	if before.Dead == s.Dead {
		return nil
	}
	if err := u.records.Index.SaveAccount(account, nil); !disk.IsFull(err) {
		return err
	}
	return nil // the next start counts again
}

// Trim counts records up to a revision as dead: so many bytes by the base of their
// segment. In the same transaction that saves this, keys of which only deletions are left are taken out of the index.
func (u *Usage) Trim(trimmed uint64, dead map[uint64]int64, gone []index.KeyPointer) error {
	account := u.change(func() {
		u.trimmed = trimmed
		for base, n := range dead {
			s := u.segments[base]
			s.Dead += n
			u.segments[base] = s
		}
	})
	return u.records.Index.SaveAccount(account, gone)
}

// change changes the account of what is dead, and returns it as the index saves it.
func (u *Usage) change(f func()) index.Account {
	u.mu.Lock()
	defer u.mu.Unlock()
	f()
	a := index.Account{Trimmed: u.trimmed, Dead: map[uint64]int64{}}
	for base, s := range u.segments {
		if s.Dead != 0 {
			a.Dead[base] = s.Dead
		}
	}
	return a
}

func (u *Usage) dead() (sum int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.segments {
		sum += s.Dead
	}
	return sum
}

// Stats returns the present figures.
func (u *Usage) Stats() Stats {
	live, log := u.Live(), u.records.Log
	s := Stats{
		Revision: log.Published(), Oldest: log.CompactRevision(),
		Events: live.Events, LiveBytes: live.Bytes, DeadBytes: u.dead(),
		FileBytes: u.otherBytes(), MaxBytes: max(0, u.limits.MaxBytes),
	}
	var records, packed, packedFiles int64
	other := s.FileBytes
	for _, seg := range log.Segments() {
		records += seg.Bytes()
		size := disk.Usage(seg.Path)
		s.FileBytes += size
		s.Segments++
		if seg.Compressed {
			s.Compressed++
			packed += seg.Bytes()
			packedFiles += size
		}
	}
	if packed > 0 {
		s.PackedBytes = other + int64(float64(packedFiles)*float64(records)/float64(packed))
	}
	s.HistoryBytes = max(0, records-s.LiveBytes-s.DeadBytes)
	return s
}

// otherBytes returns what the index and the write-ahead log take on the disk.
func (u *Usage) otherBytes() int64 {
	return disk.Usage(u.records.Index.Path()) + disk.Usage(filepath.Join(u.dir, wal.FileName))
}

// Measure notes what the files take, except the head and the index, which [Usage.Full] measures. It
// is to be called after one of them has changed.
func (u *Usage) Measure() {
	var sealed, largest int64
	ss := u.records.Log.Segments()
	for _, s := range ss[:len(ss)-1] {
		sealed += disk.Usage(s.Path)
		largest = max(largest, RewriteBytes(s))
	}
	u.sealed.Store(sealed)
	u.largest.Store(max(largest, RewriteBytes(ss.Head())))
	u.wal.Store(disk.Usage(filepath.Join(u.dir, wal.FileName)))
	if u.lowered.Load() && u.used() <= u.restPart() {
		u.lowered.Store(false)
	}
}

// Collectors returns the metrics of the accounts and the limits.
func (u *Usage) Collectors() []prometheus.Collector {
	plain := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	gauge := func(name, help string, f func(Stats) int64) prometheus.Collector {
		return plain(name, help, func() float64 { return float64(f(u.Stats())) })
	}
	return []prometheus.Collector{
		gauge("store_events", "Events that exist.", func(s Stats) int64 { return s.Events }),
		gauge("store_live_bytes", "Bytes of the events that exist.", func(s Stats) int64 { return s.LiveBytes }),
		gauge("store_history_bytes", "Bytes that only older states need.", func(s Stats) int64 { return s.HistoryBytes }),
		gauge("store_dead_bytes", "Bytes that nothing needs until they are compacted.", func(s Stats) int64 { return s.DeadBytes }),
		gauge("store_file_bytes", "Bytes that the files take on the disk.", func(s Stats) int64 { return s.FileBytes }),
		gauge("store_segments", "Files of the log.", func(s Stats) int64 { return int64(s.Segments) }),
		gauge("store_compressed_segments", "Files of the log whose records are compressed.", func(s Stats) int64 { return int64(s.Compressed) }),
		plain("store_events_limit", "About how many events fit into the bytes that the files may take, by what those take that exist; 0: no limit.",
			func() float64 { return float64(u.Stats().Fits()) }),
		gauge("store_revision", "Revision of the newest write.", func(s Stats) int64 { return int64(s.Revision) }),
		gauge("store_oldest_revision", "The oldest revision whose state can be read.", func(s Stats) int64 { return int64(s.Oldest) }),
		plain("store_full", "1 if there is no room for new events.", func() float64 {
			if create, _ := u.Full(0); create != nil {
				return 1
			}
			return 0
		}),
		plain("store_disk_free_bytes", "Bytes that the disk has left.", func() float64 { free, _ := u.Free(); return float64(free) }),
		plain("store_max_bytes", "Bytes that the files may take.", func() float64 { return float64(u.limits.MaxBytes) }),
	}
}
