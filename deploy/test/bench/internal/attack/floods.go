package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"

	"tidings.example/deploy/test/bench/internal/target"
)

// Flooding is a kind of flood: what costs the server more than its sender.
type Flooding struct {
	Name  string
	Conns int           // connections at once
	Pause time.Duration // between two of them
	plain bool          // HTTP/1.1, and not TLS with HTTP/2

	// send sends on a connection until it ends. Unless the flood is one without a token, the request is one with one.
	send func(conn net.Conn, request string) (sent int, err error)
}

// Starts are watches that begin with all events, of clients that leave when they have begun.
var Starts = Flooding{Name: "starts", Conns: 1500, Pause: time.Second, plain: true, send: func(conn net.Conn, request string) (int, error) {
	if _, err := io.WriteString(conn, request); err != nil {
		return 0, err
	}
	_, err := conn.Read(make([]byte, 1<<10))
	return 1, err
}}

// The floods of clients without a token, over HTTPS where that is what they are about.
var (
	Handshakes = Flooding{Name: "handshakes", Conns: 32, Pause: time.Millisecond, send: func(net.Conn, string) (int, error) { return 1, nil }}
	Resets     = Flooding{Name: "resets", Conns: 32, Pause: time.Millisecond, send: frames(func(f *http2.Framer, block []byte, i int) error {
		id := uint32(2*i + 1)
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true})
		if err == nil {
			err = f.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		return err
	})}
	Pings    = Flooding{Name: "pings", Conns: 32, Pause: time.Millisecond, send: frames(func(f *http2.Framer, _ []byte, i int) error { return f.WritePing(false, [8]byte{byte(i)}) })}
	Settings = Flooding{Name: "settings", Conns: 32, Pause: time.Millisecond, send: frames(func(f *http2.Framer, _ []byte, i int) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i % 1000)})
	})}
	Malformed = Flooding{Name: "malformed", Conns: 32, Pause: time.Millisecond, plain: true, send: func(conn net.Conn, _ string) (int, error) {
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nno header\r\n\r\n"); err != nil {
			return 0, err
		}
		_, err := io.Copy(io.Discard, conn) // the answer, after which the server closes
		return 1, err
	}}
)

// Floods are all of them.
var Floods = []Flooding{Handshakes, Resets, Pings, Settings, Malformed}

// frames sends the same kind of frame again and again, in writes of about 16 KiB, and reads what comes back.
func frames(next func(f *http2.Framer, block []byte, i int) error) func(net.Conn, string) (int, error) {
	return func(conn net.Conn, _ string) (sent int, err error) {
		var out, block bytes.Buffer
		fields := hpack.NewEncoder(&block)
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", "/livez"}} {
			_ = fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // to memory, without a table: each header block is the same
		}
		framer := http2.NewFramer(&out, nil)
		out.WriteString(http2.ClientPreface)
		if err := framer.WriteSettings(); err != nil {
			return 0, err
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }() // until the connection ends
		for ; ; sent++ {
			if err := next(framer, block.Bytes(), sent); err != nil {
				return sent, err
			}
			if out.Len() < 16<<10 {
				continue
			}
			if _, err := conn.Write(out.Bytes()); err != nil {
				return sent, err
			}
			out.Reset()
		}
	}
}

// Command is the first argument of the program when it is to send a flood; the next are those of [Send].
const Command = "flood"

// Begin sends a flood from a process of the lowest priority, until stop is called. Stop returns how often something was
// sent. In this process the threads of an attack would keep those of the good clients waiting.
func (f Flooding) Begin(ctx context.Context, s *Source) (stop func() (int64, error), err error) {
	e, err := s.Services.EventsOf(ctx, s.Client, s.Namespace)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, Command, f.Name, s.addr(f.plain).String(), string(e.All("GET", "?watch=true", target.JSONType)))
	cmd.Stderr = os.Stderr
	end, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		err = unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, 19) // before it has threads that matter
	}
	return func() (sent int64, err error) {
		err = end.Close()
		if err == nil {
			_, err = fmt.Fscan(said, &sent)
		}
		return sent, errors.Join(err, cmd.Wait())
	}, err
}

// Send sends a flood to an address until the standard input ends, and prints how often something was sent.
func Send(name, addr, request string) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	for _, f := range append([]Flooding{Starts}, Floods...) {
		if f.Name != name {
			continue
		}
		stop := f.begin(context.Background(), to, request)
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Println(stop())
		return nil
	}
	return fmt.Errorf("there is no flood %q", name)
}

// begin sends from an address of its own, and opens connections that have ended again, after a pause.
func (f Flooding) begin(ctx context.Context, addr netip.AddrPort, request string) (stop func() int64) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}, Timeout: 5 * time.Second}
	ctx, cancel := context.WithCancel(ctx)
	var conns sync.WaitGroup
	var sent atomic.Int64
	for range f.Conns {
		conns.Go(func() {
			for ctx.Err() == nil {
				if conn, err := dialer.DialContext(ctx, "tcp", addr.String()); err == nil {
					sent.Add(int64(f.over(ctx, conn, request)))
				}
				select {
				case <-ctx.Done():
				case <-time.After(f.Pause):
				}
			}
		})
	}
	return func() int64 { cancel(); conns.Wait(); return sent.Load() }
}

// over sends over one connection until that ends, and returns how often something was sent.
func (f Flooding) over(ctx context.Context, conn net.Conn, request string) (sent int) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if !f.plain {
		secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) // an attacker does not care who answers
		if secure.HandshakeContext(ctx) != nil {
			return 0
		}
		conn = secure
	}
	sent, _ = f.send(conn, request) // the server ends it, or stop
	return sent
}
