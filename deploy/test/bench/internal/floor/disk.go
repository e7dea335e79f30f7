package floor

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"tidings.example/deploy/test/bench/internal/stats"
)

// Result is a floor's rate and the times of its single operations.
type Result struct {
	Count   int
	Elapsed time.Duration
	Times   stats.Histogram
}

// Rate is operations per second.
func (r *Result) Rate() float64 { return float64(r.Count) / r.Elapsed.Seconds() }

// AppendSync appends 4 KiB to a file in dir and waits until they are on disk,
// again and again. That is the cost of one durable write to a file that grows by
// it. A write over blocks that exist already, as in eventsvc's write-ahead log,
// can cost less.
func AppendSync(dir string, d time.Duration) (*Result, error) {
	f, err := os.Create(filepath.Join(dir, "append"))
	if err != nil {
		return nil, fmt.Errorf("the file to append to: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4<<10)
	r := new(Result)
	for begun := time.Now(); r.Elapsed < d; r.Elapsed = time.Since(begun) {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, fmt.Errorf("append: %w", err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return nil, fmt.Errorf("fdatasync: %w", err)
		}
		r.Times.Add(time.Since(start))
		r.Count++
	}
	return r, nil
}

// BoltPuts puts values of the given size under rising keys. Each of the callers
// waits for its own put. All puts that wait are committed together, in one
// transaction with bbolt's two syncs.
func BoltPuts(dir string, callers, size int, d time.Duration) (*Result, error) {
	db, err := openBolt(filepath.Join(dir, "floor.db"), 0)
	if err != nil {
		return nil, err
	}
	defer os.Remove(db.Path())
	defer db.Close()

	waiting := make(chan chan error, callers)
	var committer sync.WaitGroup
	committer.Go(func() { commit(db, waiting, make([]byte, size)) })
	begun := time.Now()
	parts := make([]Result, callers)
	var putters errgroup.Group
	for i := range parts {
		putters.Go(func() error { return put(waiting, begun.Add(d), &parts[i]) })
	}
	err = putters.Wait()
	close(waiting)
	committer.Wait()
	r := &Result{Elapsed: time.Since(begun)}
	for i := range parts {
		r.Count += parts[i].Count
		r.Times.Merge(&parts[i].Times)
	}
	return r, err
}

// openBolt opens a file with the settings that make its commits cheapest; a
// page size of 0 is the machine's.
func openBolt(path string, pageSize int) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		FreelistType: bbolt.FreelistMapType, NoFreelistSync: true, InitialMmapSize: 1 << 30, PageSize: pageSize, Timeout: time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("the bbolt file: %w", err)
	}
	return db, nil
}

// put asks for one put after the other until end. It asks for one at least,
// even if it begins after end.
func put(waiting chan<- chan error, end time.Time, r *Result) error {
	answer := make(chan error, 1)
	for start := time.Now(); ; {
		waiting <- answer
		if err := <-answer; err != nil {
			return err
		}
		now := time.Now()
		r.Times.Add(now.Sub(start))
		r.Count++
		if now.After(end) {
			return nil
		}
		start = now
	}
}

// commit puts everything that waits into one transaction, again and again, and
// sends each caller the result.
func commit(db *bbolt.DB, waiting <-chan chan error, value []byte) {
	bucket, key := []byte("log"), uint64(0)
	for first := range waiting {
		batch := []chan error{first}
		for n := len(waiting); n > 0; n-- {
			batch = append(batch, <-waiting)
		}
		err := db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			if err != nil {
				return err
			}
			b.FillPercent = 0.95 // the keys only rise
			for range batch {
				key++
				if err := b.Put(binary.BigEndian.AppendUint64(nil, key), value); err != nil {
					return err
				}
			}
			return nil
		})
		for _, answer := range batch {
			answer <- err
		}
	}
}
