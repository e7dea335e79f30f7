package httpserver

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
)

// The limits of strangers: connections and requests that no token and no limit of the service stands for yet. There is
// one limit for all strangers, one for each source, and a part that a source always gets. [Leave] ends the counting.
const (
	strangers       = 1024 // connections in all; an idle one takes about 40 KiB with TLS
	strangersSource = 512
	unread          = 512 // requests over HTTP/2 in all; one whose answer is not read takes about 50 KiB
	unreadSource    = 128
	always          = 16
)

// share counts connections, or requests, in all and of each source.
type share struct {
	most, mostSource int

	mu  sync.Mutex
	all int
	of  map[string]int
}

func newShare(most, mostSource int) *share {
	return &share{most: most, mostSource: mostSource, of: map[string]int{}}
}

// enter counts one more of a source, and returns what ends it, once. It returns nil if it is one too many. An empty
// source has no limit of its own.
func (s *share) enter(source string) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.of[source]
	if source != "" && n >= s.mostSource || s.all >= s.most && (source == "" || n >= always) {
		return nil
	}
	s.all++
	s.of[source]++
	var left atomic.Bool
	return func() {
		if left.Swap(true) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.of[source]--; s.of[source] == 0 {
			delete(s.of, source)
		}
	}
}

// stranger is a request for which no token and no limit answers yet.
type stranger struct {
	leave func() // nil: it is not counted
	conn  *connection
	known bool
}

type strangerKey struct{}

// Leave tells the server that something else bounds the request of a context from now on, such as the limits of its
// caller. It is no longer counted among those of its source, nor is its connection, and it may take as long as its
// caller needs to read its answer. It is for the goroutine that serves the request.
func Leave(ctx context.Context) {
	s, ok := ctx.Value(strangerKey{}).(*stranger)
	if !ok || s.known {
		return
	}
	s.known = true
	if s.leave != nil {
		s.leave()
	}
	if s.conn != nil && s.conn.leave != nil {
		s.conn.leave()
		s.conn.pace.leave()
	}
}

// sourceOf returns the source of a connection: empty for a proxy, which many share.
func sourceOf(address net.Addr, proxies []netip.Prefix) string {
	peer, err := netip.ParseAddrPort(address.String())
	if err != nil || slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(peer.Addr().Unmap()) }) {
		return ""
	}
	return Subscriber(peer.Addr().String())
}
