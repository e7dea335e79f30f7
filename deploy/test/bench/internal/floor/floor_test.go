package floor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"tidings.example/deploy/test/bench/internal/load"
)

const short = 20 * time.Millisecond

func TestFloorsOfThisProcess(t *testing.T) {
	t.Parallel()
	for name, measure := range map[string]func() (*Result, error){
		"sync":     func() (*Result, error) { return AppendSync(t.TempDir(), short) },
		"bbolt 1":  func() (*Result, error) { return BoltPuts(t.TempDir(), 1, 1000, short) },
		"bbolt 16": func() (*Result, error) { return BoltPuts(t.TempDir(), 16, 1000, short) },
		"sign":     func() (*Result, error) { return Sign(short) },
		"compare":  func() (*Result, error) { return Compare(short) },
	} {
		r, err := measure()
		if err != nil || r.Count == 0 || r.Times.Count() != int64(r.Count) || r.Elapsed < short || r.Rate() <= 0 {
			t.Errorf("%s: %v", name, err)
			if r != nil {
				t.Errorf("%s: %d done, %d timed, in %v", name, r.Count, r.Times.Count(), r.Elapsed)
			}
		}
	}
}

func TestFloorsSayWhereTheyCannotWrite(t *testing.T) {
	t.Parallel()
	if _, err := AppendSync("/nonexistent", short); err == nil {
		t.Error("appended to a file in no directory")
	}
	if _, err := BoltPuts("/nonexistent", 1, 1, short); err == nil {
		t.Error("put into a file in no directory")
	}
}

// serve runs a floor server until the test ends.
func serve(t *testing.T, handle func(net.Conn) error) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = accept(l, handle)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l
}

func TestCopySendsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	c, err := net.Dial("tcp", serve(t, sendBytes).Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, n := range []uint64{1, 0, 1 << 20} {
		if err := binary.Write(c, binary.BigEndian, n); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, c, int64(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStoreAnswersWhatIsInTheFile sends requests at once and one by one, and
// looks for a record of each.
func TestStoreAnswersWhatIsInTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serveStore(l, dir) }()
	const together, each = 8, 5
	var group errgroup.Group
	for range together {
		group.Go(func() error {
			for range each {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://"+l.Addr().String()+"/apis/x", strings.NewReader("{}"))
				if err != nil {
					return err
				}
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					return err
				}
				n, err := io.Copy(io.Discard, answer.Body)
				if err := errors.Join(err, answer.Body.Close()); err != nil || n != answerSize || answer.StatusCode != http.StatusOK {
					return fmt.Errorf("status %d, %d bytes, %w", answer.StatusCode, n, err)
				}
			}
			return nil
		})
	}
	if err := errors.Join(group.Wait(), l.Close()); err != nil {
		t.Fatal(err)
	}
	<-ended
	db, err := openBolt(filepath.Join(dir, storeFile), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("log"))
		if n := b.Stats().KeyN; n != together*each {
			t.Errorf("%d records", n)
		}
		return b.ForEach(func(k, v []byte) error {
			if len(v) != recordSize {
				t.Errorf("record %x has %d bytes", k, len(v))
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFanoutReachesEveryReader posts more than a ring of frames from several
// connections, so that posters wait for readers and readers for posters.
func TestFanoutReachesEveryReader(t *testing.T) {
	t.Parallel()
	const readers, frames = 20, 3 * ringSize
	addr := netip.MustParseAddrPort(serve(t, newHub().serve).Addr().String())
	l, err := load.NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	ld, err := l.NewLoad(load.Spec{
		Addr: addr, Conns: 4, Limit: frames, Check: load.Status(201),
		Next: func(dst []byte, i int) []byte {
			line := fmt.Sprintf(`{"type":"ADDED","object":{"name":"%s%010d",%s}}`+"\n", load.NamePrefix, i, RevisionHole)
			return fmt.Appendf(dst, "POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", len(line), line)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	au, err := l.NewAudience(load.WatchSpec{
		Addr: addr, Watchers: readers, Began: ld.Began,
		Request: func(dst []byte, _ uint64) []byte { return append(dst, "GET / HTTP/1.1\r\n\r\n"...) },
		Sample: func(line []byte) error {
			if !bytes.HasSuffix(line, []byte("}}")) {
				return fmt.Errorf("broken line %q", line)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ld.Start()
	if err := l.Run(time.Minute, ld.Finished); err != nil || ld.Failed > 0 {
		t.Fatal(err, ld.Failure)
	}
	if err := au.Verify(frames, time.Minute); err != nil || au.Cuts > 0 {
		t.Errorf("%v, %d cuts", err, au.Cuts)
	}
}
