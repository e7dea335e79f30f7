package trust

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// SignIn says how people sign in to the console at an issuer, by the code flow of OpenID Connect with PKCE. It is the
// block console of an issuer's entry.
type SignIn struct {
	ClientID   string            `yaml:"clientID"`   // of the console, registered there as a public client
	Name       string            `yaml:"name"`       // of the issuer, for people; empty: the host of its URL
	Scopes     []string          `yaml:"scopes"`     // asked for; empty: openid and profile
	Token      string            `yaml:"token"`      // which token is sent to this service: access or id; empty: access
	Parameters map[string]string `yaml:"parameters"` // added to the authorization request
}

// signInMembers are the names above, for errors.
const signInMembers = "clientID, name, scopes, token and parameters"

// ownParameters are those of the authorization request that the page sets itself, or that would change how it is
// answered.
var ownParameters = []string{
	"response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge", "code_challenge_method",
	"response_mode", "request", "request_uri",
}

// complete checks the block of an issuer, and sets what it leaves to defaults.
func (s *SignIn) complete(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return fmt.Errorf("console: people cannot sign in at issuer %q, which is neither https nor http on this machine: take the block out", issuer)
	}
	if s.ClientID == "" {
		return errors.New("console: clientID is missing: register the console at the issuer as a public client, and name it")
	}
	s.Name, s.Token = cmp.Or(s.Name, u.Host), cmp.Or(s.Token, "access")
	if s.Token != "access" && s.Token != "id" {
		return fmt.Errorf("console: token %q is neither access nor id: which of the issuer's tokens is for this service?", s.Token)
	}
	if len(s.Scopes) == 0 {
		s.Scopes = []string{"openid", "profile"}
	}
	if !slices.Contains(s.Scopes, "openid") {
		return fmt.Errorf("console: scopes has no openid, without which there is no sign-in by OpenID Connect: add it to %s", strings.Join(s.Scopes, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Parameters)) {
		if slices.Contains(ownParameters, name) {
			return fmt.Errorf("console: parameters has %s, which the page sets itself: take it out", name)
		}
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
