package bolt

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Where nothing is said, a store takes at most so much of the disk.
const (
	defaultMaxBytes = 8 << 30
	defaultShare    = 0.8 // of what is free at start
)

// Parts of MaxBytes. Maintenance keeps what is needed below keepShare, events
// alone below liveShare of it, so that there is room for what is written before
// its next round, for dead records before they are compacted, and for a segment
// to be written anew.
const (
	keepShare = 0.64
	liveShare = 0.52
)

// packing is the part of the files that is records; the rest is the index, and
// the slack of pages.
func (m *maintenance) packing() float64 {
	var records, files int64
	for _, s := range m.db.log.Segments() {
		records += s.Bytes()
		files += disk.Usage(s.Path)
	}
	return min(1, max(0.4, float64(records)/float64(files+disk.Usage(m.db.index.Path())+1)))
}

// limitBytes fills in MaxBytes by what is free now, counting what the store
// takes already.
func (o *Options) limitBytes() error {
	if o.MaxBytes != 0 {
		return nil
	}
	free, err := disk.Free(o.Dir)
	if err != nil {
		return err
	}
	o.MaxBytes = min(defaultMaxBytes, int64(defaultShare*float64(free+directoryBytes(o.Dir))))
	return nil
}

// full returns why there is no room for more events, nil if there is. It is
// asked before every commit; deletions go through regardless, into what
// MinFree keeps back.
func (db *DB) full() error {
	free, err := disk.Free(db.o.Dir)
	if err != nil {
		return err
	}
	if free < db.o.MinFree {
		return fmt.Errorf("%w: %d MiB are free on the disk, %d MiB are kept back for deletions", store.ErrFull, free>>20, db.o.MinFree>>20)
	}
	if db.o.MaxBytes > 0 {
		used := db.sealed.Load() + disk.Usage(db.log.Head().Path)
		if used > db.o.MaxBytes {
			db.maintenance.hurry()
			return fmt.Errorf("%w: %d MiB are in use, the limit is %d MiB", store.ErrFull, used>>20, db.o.MaxBytes>>20)
		}
	}
	return nil
}

// hurry has the next round of maintenance begin at once.
func (m *maintenance) hurry() {
	select {
	case m.urgent <- struct{}{}:
	default:
	}
}

// measureFiles notes the size of everything but the head.
func (db *DB) measureFiles() {
	ss := db.log.Segments()
	size := disk.Usage(db.index.Path()) + disk.Usage(filepath.Join(db.o.Dir, walName))
	for _, s := range ss[:len(ss)-1] {
		size += disk.Usage(s.Path)
	}
	db.sealed.Store(size)
}

// historyLimit is how many bytes of history fit beside the events: none when
// the disk has no room left, whoever has filled it.
func (m *maintenance) historyLimit() int64 {
	if free, err := disk.Free(m.db.o.Dir); err == nil && free < m.db.o.MinFree {
		return 0
	}
	if m.db.o.MaxBytes <= 0 {
		return math.MaxInt64
	}
	room := int64(keepShare*m.packing()*float64(m.db.o.MaxBytes)) - m.db.live.bytes.Load()
	return max(0, min(m.db.o.MaxBytes/4, room))
}

// expireOldest deletes the events that were not written for longest, until
// those that are left fit the limits of bytes and count.
func (m *maintenance) expireOldest(ctx context.Context) error {
	for {
		bytes, events := int64(math.MaxInt64), int64(math.MaxInt64)
		if m.db.o.MaxBytes > 0 {
			bytes = int64(liveShare * m.packing() * float64(m.db.o.MaxBytes))
		}
		if m.db.o.MaxEvents > 0 {
			events = m.db.o.MaxEvents
		}
		excessBytes, excess := m.db.live.bytes.Load()-bytes, m.db.live.events.Load()-events
		if excessBytes <= 0 && excess <= 0 {
			return nil
		}
		var oldest []store.Seen
		at := m.oldest
		err := m.db.scanLog(at, m.db.Revision(), func(e *seglog.Entry, p index.Pointer) bool {
			if excessBytes <= 0 && excess <= 0 {
				return false
			}
			if p == index.NewPointer(e.Revision, false) {
				oldest = append(oldest, e.Seen())
				excess--
				excessBytes -= e.Size()
			}
			at = e.Revision
			return len(oldest) < expiryBatch
		})
		if err != nil || at == m.oldest {
			return err
		}
		if _, _, err := m.db.DeleteMany(ctx, oldest); err != nil {
			return err
		}
		m.oldest = at
	}
}
