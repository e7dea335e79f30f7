package floor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"tidings.example/deploy/bench/internal/load"
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
		if err != nil || r.Count == 0 || r.Times.Count() != uint64(r.Count) || r.Elapsed < short || r.Rate() <= 0 {
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
