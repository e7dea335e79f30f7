package main

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/localca"
	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
)

// Check sets the defaults that depend on other settings. It returns an error for a missing setting, or for two that
// contradict each other, and names them.
func (s *serve) Check() error {
	for _, check := range []func() error{s.checkListeners, s.checkCertificate, s.completePublicURL, s.checkTrust, s.checkBasic, s.checkConsole, s.checkLimits, s.checkStore, s.checkAudit, s.checkStop} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *serve) checkListeners() error {
	switch {
	case s.ListenHTTP == "" && s.ListenHTTPS == "":
		return cli.Usagef("--listen-http and --listen-https are both empty: set at least one, or nobody can reach the API")
	case s.Profiles && s.ListenAdmin == "":
		return cli.Usagef("--profiles is set but --listen-admin is empty: set both or none")
	case len(s.AllowedHosts) > 0 && s.ListenAdmin == "":
		return cli.Usagef("--allowed-hosts is set but --listen-admin is empty: set both or none")
	}
	return s.Hosts.Check()
}

// completePublicURL makes a public URL of a listener only if nobody but this machine reaches that, because the name
// that others know is not to be seen here.
func (s *serve) completePublicURL() error {
	if s.PublicURL == "" {
		host, port, err := net.SplitHostPort(s.ListenHTTP)
		if ip := net.ParseIP(host); err == nil && port != "0" && (host == "localhost" || ip.IsLoopback()) {
			s.PublicURL = "http://" + s.ListenHTTP
		}
	}
	u, err := url.Parse(s.PublicURL)
	switch {
	case s.PublicURL == "" && len(s.ResourceScopes) > 0:
		return cli.Usagef("--resource-scopes has no effect without --public-url: set both or none")
	case s.PublicURL == "":
		return nil
	case err != nil, !bearer.IsURL(s.PublicURL), u.RawQuery != "", u.Fragment != "", u.User != nil, strings.ContainsAny(s.PublicURL, "?#"):
		return cli.Usagef("--public-url %q is no http(s) URL without user, query and fragment, such as https://events.example", s.PublicURL)
	}
	s.PublicURL = strings.TrimSuffix(s.PublicURL, "/")
	return s.checkScopes()
}

func (s *serve) checkScopes() error {
	for _, scope := range s.ResourceScopes {
		if strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) || scope == "" {
			return cli.Usagef("--resource-scopes: %q is no scope (RFC 6749 section 3.3): write words without spaces, quotes and backslashes, separated by commas", scope)
		}
	}
	return nil
}

func (s *serve) checkCertificate() error {
	switch {
	case (s.TLSCertFile == "") != (s.TLSKeyFile == ""):
		return cli.Usagef("--tls-cert-file and --tls-key-file go together: set both or none")
	case s.TLSSelfSigned && s.TLSCertFile != "":
		return cli.Usagef("--tls-self-signed and --tls-cert-file exclude each other: set one of them")
	case s.ListenHTTPS != "" && !s.TLSSelfSigned && s.TLSCertFile == "":
		return cli.Usagef("--listen-https needs a certificate: set --tls-cert-file and --tls-key-file, or --tls-self-signed")
	case s.ListenHTTPS == "" && s.TLSCertFile != "":
		return cli.Usagef("--tls-cert-file is set but --listen-https is not: set --listen-https too, or neither")
	case s.ListenHTTPS == "" && s.TLSSelfSigned:
		return cli.Usagef("--tls-self-signed is set but --listen-https is not: set --listen-https too, or neither")
	}
	return s.checkSelfSigned()
}

func (s *serve) checkSelfSigned() error {
	switch {
	case !s.TLSSelfSigned && s.TLSCAConfigMap != (localca.ConfigMap{}):
		return cli.Usagef("--tls-ca-configmap has no effect without --tls-self-signed: set both or none")
	case s.TLSSelfSigned && len(s.TLSHosts) == 0:
		return cli.Usagef("--tls-self-signed needs --tls-hosts: name the hosts that clients will ask for")
	case !s.TLSSelfSigned && !slices.Equal(s.TLSHosts, strings.Split(defaultTLSHosts, ",")):
		return cli.Usagef("--tls-hosts has no effect without --tls-self-signed: set both or none")
	}
	return nil
}

// defaultTLSHosts is the default of --tls-hosts.
const defaultTLSHosts = "localhost,127.0.0.1,::1,eventsvc"

// checkIssuer checks the settings that say whose tokens are accepted.
func (s *serve) checkIssuer() error {
	switch {
	case s.Issuer == "" && s.IssuersFile == "":
		return cli.Usagef("--issuer is not set, nor is --issuers-file: name whose tokens to accept, for instance --issuer=http://127.0.0.1:9000")
	case s.Issuer == "" && (s.JWKSURL != "" || s.IssuerCAFile != "" || len(s.Audience) > 0 || len(s.Claims) > 0):
		return cli.Usagef("--jwks-url, --issuer-ca-file, --audience and --claims are of --issuer, which is not set: use the fields of --issuers-file")
	case s.Issuer != "" && s.JWKSURL == "" && !bearer.IsURL(s.Issuer):
		return cli.Usagef("--issuer %q is no http(s) URL whose metadata could name the keys, and --jwks-url is not set: set --jwks-url", s.Issuer)
	case s.JWKSURL != "" && !bearer.IsURL(s.JWKSURL):
		return cli.Usagef("--jwks-url %q is no http(s) URL, such as http://127.0.0.1:9000/oauth2/jwks", s.JWKSURL)
	}
	return nil
}

func (s *serve) checkTrust() error {
	if err := s.checkIssuer(); err != nil {
		return err
	}
	switch {
	case s.ClockSkew < 0 || s.ClockSkew > maxClockSkew:
		return cli.Usagef("--clock-skew %s is not between 0s and %s: a larger one would defeat the expiry of tokens", s.ClockSkew, maxClockSkew)
	case len(s.Claims) > 0 && s.PolicyFile == "":
		return cli.Usagef("--claims has no effect without --policy-file: set both or none")
	case s.WatchAfterExpiry < 0:
		return cli.Usagef("--watch-after-expiry %s is negative: set a duration such as 30m, or 0 to end watches with their token", s.WatchAfterExpiry)
	}
	return nil
}

func (s *serve) checkBasic() (err error) {
	if s.proxies, err = httpserver.Proxies(s.TrustedProxy); err != nil {
		return cli.Usagef("--trusted-proxy %w", err)
	}
	if s.BasicTokenURL == noTokenURL {
		return nil
	}
	if err := bearer.CheckAddress(s.BasicTokenURL, s.JWKSAllowHTTPHost); err != nil {
		return cli.Usagef("--basic-token-url (with --jwks-allow-http-host): %w; %s switches it off", err, noTokenURL)
	}
	return nil
}

func (s *serve) checkConsole() error {
	switch {
	case s.ConsoleTokenURL == "":
	case !s.Console:
		return cli.Usagef("--console-token-url has no effect without the console: set it without --no-console, or not at all")
	case s.ConsoleTokenURL != noTokenURL && !bearer.IsURL(s.ConsoleTokenURL):
		return cli.Usagef("--console-token-url %q is no http(s) URL, such as http://127.0.0.1:9000/oauth2/token, and not %s", s.ConsoleTokenURL, noTokenURL)
	}
	return nil
}

// noTokenURL is the --console-token-url of a console that asks for no tokens, and the --basic-token-url of a service
// that does not.
const noTokenURL = "none"

const maxClockSkew = 5 * time.Minute

func (s *serve) checkLimits() error {
	switch {
	case s.MaxRequests < 2 || s.MaxWatches < 1:
		return cli.Usagef("--max-requests must be at least 2 and --max-watches at least 1")
	case s.ObservedMetrics < 0 || s.ObservedMetrics > maxObservedMetrics:
		return cli.Usagef("--observed-metrics %d is not between 0 and %d: set a number of series such as 1000, or 0 for no such metric", s.ObservedMetrics, maxObservedMetrics)
	}
	return nil
}

const maxObservedMetrics = 100_000

func (s *serve) checkStore() error {
	switch {
	case s.DataDir == "":
		return cli.Usagef("--data-dir is empty: name the directory to keep events in")
	case s.Retention < 0:
		return cli.Usagef("--retention %s is negative: set a duration such as 7d, or 0 to keep events for ever", s.Retention)
	case s.History < 0:
		return cli.Usagef("--history %s is negative: set a duration such as 24h, or 0 for as long as --retention", s.History)
	}
	return s.checkDatabase()
}

func (s *serve) checkDatabase() (err error) {
	if s.StoreDSN, err = cli.Secret("store-dsn", s.StoreDSN, s.StoreDSNFile); err != nil {
		return err
	}
	s.StoreDSNFile = "" // it was read
	switch {
	case s.StoreMaxStaleness < 0:
		return cli.Usagef("--store-max-staleness %s is negative: set a duration such as 10s, or 0 for reads that see every write", s.StoreMaxStaleness)
	case s.StoreDSN == "" && s.StoreMaxStaleness > 0:
		return cli.Usagef("--store-max-staleness has no effect without --store-dsn: set both or none")
	case s.MaxBytes > 0 && s.MaxBytes < leastMaxBytes:
		return cli.Usagef("--max-bytes %d is too small: keep at least %dMiB", s.MaxBytes, leastMaxBytes>>20)
	}
	return nil
}

// leastMaxBytes has room for files that are being rewritten, too.
const leastMaxBytes = 64 << 20

func (s *serve) checkAudit() error {
	if s.AuditFile != "" && s.Audit == "off" {
		return cli.Usagef("--audit-file has no effect without --audit: set both or none")
	}
	return checkAuditRoom(s.AuditMaxBytes)
}

func checkAuditRoom(most size) error {
	if most < auditFiles<<10 {
		return cli.Usagef("--audit-max-bytes %d is too small: keep at least %dKiB", most, auditFiles)
	}
	return nil
}

func (s *serve) checkStop() error {
	if s.StopDelay < 0 {
		return cli.Usagef("--stop-delay %s is negative: set a duration such as 5s, or 0 to stop at once", s.StopDelay)
	}
	return nil
}
