package httpserver

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/labstack/echo/v4"
)

// Proxies parses addresses and prefixes of proxies whose X-Forwarded-For is believed.
func Proxies(given []string) (proxies []netip.Prefix, err error) {
	for _, text := range given {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil {
				return nil, fmt.Errorf("%q is neither an address nor a prefix such as 10.0.0.0/8", text)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		proxies = append(proxies, prefix.Masked())
	}
	return proxies, nil
}

// Source returns how the address that a request comes from is found: it is the peer of the connection or, if that is
// one of the proxies, the last address in X-Forwarded-For that is none of them.
func Source(proxies []netip.Prefix) func(*http.Request) string {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	trust := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range proxies {
		trust = append(trust, echo.TrustIPRange(&net.IPNet{
			IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
		}))
	}
	return echo.ExtractIPFromXFFHeader(trust...)
}

// Subscriber returns what limits count as one source: an IPv4 address, or the 64-bit network of an IPv6 address,
// because one subscriber has all of such a network.
func Subscriber(source string) string {
	addr, err := netip.ParseAddr(source)
	if err != nil {
		return source
	}
	addr = addr.Unmap()
	if addr.Is6() {
		if network, err := addr.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return addr.String()
}
