package mcp

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/shared/httpserver"
)

// Origin returns the 403 for a request that a browser sends for a page of another host. The name of such a host may be
// an alias of this service's address (DNS rebinding), so that the Host of the request says nothing. Programs send no
// Origin.
func (s *Server) Origin(r *http.Request) error {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 || len(origins) == 1 && s.allows(r, origins[0]) {
		return nil
	}
	httpserver.Annotate(r.Context(), slog.String("refused", "origin"))
	return httpio.Beyond("origin", unfit(http.StatusForbidden, metav1.StatusReasonForbidden,
		"pages of this origin may not call tools: add its host to --allowed-hosts, or serve the page where --public-url says"))
}

// allows reports whether pages of an origin may call tools.
func (s *Server) allows(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false // such as null
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host != "" && slices.Contains(s.Hosts, host) {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return local != nil && local.IP.IsLoopback() && isLoopback(host)
}

// isLoopback reports whether a name or an address means this machine (RFC 6761 section 6.3).
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}
