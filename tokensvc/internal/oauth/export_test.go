package oauth

import "net/netip"

// CountedSource is under which name failures from an address are counted; empty: they are not.
func CountedSource(source string, proxies ...netip.Prefix) string {
	s := &Server{c: Config{TrustedProxies: proxies}}
	return s.countedSource(source)
}
