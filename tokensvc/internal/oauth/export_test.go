package oauth

import "net/netip"

// CountedSource returns the name under which failures of an address are counted; empty: they are not counted.
func CountedSource(source string, proxies ...netip.Prefix) string {
	s := &Server{c: Config{TrustedProxies: proxies}}
	return s.countedSource(source)
}
