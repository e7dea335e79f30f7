package resource

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"tidings.example/shared/bearer"
)

// PublicURL checks a public URL, and the scopes that clients are told to ask for there. If there is none, it makes one
// of the address of a listener, only if nobody but this machine reaches that, because the name that others know is not
// to be seen here. It returns an empty one if clients learn nothing.
func PublicURL(public, listen string, scopes []string) (string, error) {
	if public == "" {
		host, port, err := net.SplitHostPort(listen)
		if ip := net.ParseIP(host); err == nil && port != "0" && (host == "localhost" || ip.IsLoopback()) {
			public = "http://" + listen
		}
	}
	u, err := url.Parse(public)
	switch {
	case public == "" && len(scopes) > 0:
		return "", errors.New("--resource-scopes has no effect without --public-url: set both or none")
	case public == "":
		return "", nil
	case err != nil, !bearer.IsURL(public), u.RawQuery != "", u.Fragment != "", u.User != nil, strings.ContainsAny(public, "?#"):
		return "", fmt.Errorf("--public-url %q is no http(s) URL without user, query and fragment, such as https://events.example", public)
	}
	for _, scope := range scopes {
		if !isScope(scope) {
			return "", fmt.Errorf("--resource-scopes: %q is no scope (RFC 6749 section 3.3): write words without spaces, quotes and backslashes, separated by commas", scope)
		}
	}
	return strings.TrimSuffix(public, "/"), nil
}

// isScope follows RFC 6749 section 3.3.
func isScope(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}
