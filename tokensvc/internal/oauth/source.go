package oauth

import (
	"net/netip"
	"slices"

	"tidings.example/shared/httpserver"
)

// countedSource returns the address under which failures are counted. It is empty for loopback and trusted proxies,
// which stand for many clients.
func (s *Server) countedSource(source string) string {
	if addr, err := netip.ParseAddr(source); err == nil {
		addr = addr.Unmap()
		trusted := slices.ContainsFunc(s.c.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
		if addr.IsLoopback() || trusted {
			return ""
		}
	}
	return httpserver.Subscriber(source)
}
