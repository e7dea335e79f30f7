package service

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
)

// Hosts are the names under which an admin listener may be asked, as a setting of a service.
type Hosts struct {
	AllowedHosts []string `placeholder:"NAME" help:"Names that the admin listener may be asked under, besides localhost and IP addresses. Others are refused if it listens on a loopback address, or if this is set."`
}

// Check returns an error for what is no name of a host.
func (h Hosts) Check() error {
	for _, name := range h.AllowedHosts {
		if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.:") != "" || hostOf(name) != normalHost(name) || normalHost(name) == "" {
			return cli.Usagef("--allowed-hosts: %q is no name of a host: give names without scheme, port or *, such as eventsvc.tidings.svc", name)
		}
	}
	return nil
}

// Names returns the names in lower case and without the dot of the DNS root at their end.
func (h Hosts) Names() (names []string) {
	for _, name := range h.AllowedHosts {
		names = append(names, normalHost(name))
	}
	return names
}

// Guard refuses requests to the listener at addr, given as to its setting, that ask for another host. The listener
// requires no token, and a web page can make its own host name an alias of a loopback address (DNS rebinding): the
// browser then sends the page's requests to the listener, with that name as Host.
func (h Hosts) Guard(addr string, log *slog.Logger, next http.Handler) http.Handler {
	own, _, _ := net.SplitHostPort(addr)
	ip, err := netip.ParseAddr(own)
	everywhere := own == "" || err == nil && ip.IsUnspecified()
	names := append(h.Names(), normalHost(own), "localhost")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		checked := len(h.AllowedHosts) > 0 || !everywhere && local != nil && local.IP.IsLoopback()
		host := hostOf(r.Host)
		if _, err := netip.ParseAddr(host); !checked || err == nil || host != "" && slices.Contains(names, host) || strings.HasSuffix(host, ".localhost") {
			next.ServeHTTP(w, r)
			return
		}
		log.WarnContext(r.Context(), "admin request for another host refused", "host", httpserver.Shorten(r.Host), "remote", r.RemoteAddr)
		http.Error(w, fmt.Sprintf("this listener is not asked under the name %q: use an IP address or localhost, or add the name to --allowed-hosts", r.Host),
			http.StatusForbidden)
	})
}

// hostOf returns the name or address in a Host header, without the port.
func hostOf(header string) string {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	return normalHost(host)
}

// normalHost returns a host in lower case and without the dot of the DNS root at its end.
func normalHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
