package oauth

import (
	"net"
	"net/netip"
	"slices"

	"github.com/labstack/echo/v4"
)

// sourceAddress returns how the source address of a request is found: it is the peer of the connection or, if that is a
// trusted proxy, the last address in X-Forwarded-For that is not one.
func (s *Server) sourceAddress() echo.IPExtractor {
	if len(s.c.TrustedProxies) == 0 {
		return echo.ExtractIPDirect()
	}
	trust := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range s.c.TrustedProxies {
		trust = append(trust, echo.TrustIPRange(&net.IPNet{
			IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
		}))
	}
	return echo.ExtractIPFromXFFHeader(trust...)
}

// countedSource returns the address under which failures are counted. It is empty for loopback and trusted proxies, which
// stand for many clients.
func (s *Server) countedSource(source string) string {
	addr, err := netip.ParseAddr(source)
	if err != nil {
		return source
	}
	addr = addr.Unmap()
	trusted := slices.ContainsFunc(s.c.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
	if addr.IsLoopback() || trusted {
		return ""
	}
	if addr.Is6() {
		if network, err := addr.WithZone("").Prefix(64); err == nil {
			return network.String() // one subscriber has a whole /64
		}
	}
	return addr.String()
}
