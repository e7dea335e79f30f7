package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/api/resource"
	"tidings.example/eventsvc/internal/localca"
	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
)

// Check sets the defaults that depend on other settings. It returns an error for a missing setting, or for two that
// contradict each other, and names them.
func (s *serve) Check() error {
	for _, check := range []func() error{s.checkListeners, s.checkCertificate, s.checkPublicURL, s.checkTrust, s.checkBasic, s.checkNumbers, s.checkDatabase, s.checkOthers} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// when returns an error about the settings if something is wrong with them.
func when(wrong bool, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return cli.Usagef(format, args...)
}

func (s *serve) checkListeners() error {
	return cmp.Or(
		when(s.ListenHTTP == "" && s.ListenHTTPS == "", "--listen-http and --listen-https are both empty: set at least one, or nobody can reach the API"),
		when(s.Profiles && s.ListenAdmin == "", "--profiles is set but --listen-admin is empty: set both or none"),
		when(len(s.AllowedHosts) > 0 && s.ListenAdmin == "", "--allowed-hosts is set but --listen-admin is empty: set both or none"),
		s.Hosts.Check(),
	)
}

func (s *serve) checkPublicURL() (err error) {
	if s.PublicURL, err = resource.PublicURL(s.PublicURL, s.ListenHTTP, s.ResourceScopes); err != nil {
		return &cli.UsageError{Err: err}
	}
	return nil
}

func (s *serve) checkCertificate() error {
	return cmp.Or(
		when((s.TLSCertFile == "") != (s.TLSKeyFile == ""), "--tls-cert-file and --tls-key-file go together: set both or none"),
		when(s.TLSSelfSigned && s.TLSCertFile != "", "--tls-self-signed and --tls-cert-file exclude each other: set one of them"),
		when(s.ListenHTTPS != "" && !s.TLSSelfSigned && s.TLSCertFile == "", "--listen-https needs a certificate: set --tls-cert-file and --tls-key-file, or --tls-self-signed"),
		when(s.ListenHTTPS == "" && s.TLSCertFile != "", "--tls-cert-file is set but --listen-https is not: set --listen-https too, or neither"),
		when(s.ListenHTTPS == "" && s.TLSSelfSigned, "--tls-self-signed is set but --listen-https is not: set --listen-https too, or neither"),
		s.checkSelfSigned(),
	)
}

func (s *serve) checkSelfSigned() error {
	return cmp.Or(
		when(!s.TLSSelfSigned && s.TLSCAConfigMap != (localca.ConfigMap{}), "--tls-ca-configmap has no effect without --tls-self-signed: set both or none"),
		when(s.TLSSelfSigned && len(s.TLSHosts) == 0, "--tls-self-signed needs --tls-hosts: name the hosts that clients will ask for"),
		when(!s.TLSSelfSigned && !slices.Equal(s.TLSHosts, strings.Split(defaultTLSHosts, ",")), "--tls-hosts has no effect without --tls-self-signed: set both or none"),
	)
}

// defaultTLSHosts is the default of --tls-hosts.
const defaultTLSHosts = "localhost,127.0.0.1,::1,eventsvc"

// checkIssuer checks the settings that say whose tokens are accepted.
func (s *serve) checkIssuer() error {
	return cmp.Or(
		when(s.Issuer == "" && s.IssuersFile == "", "--issuer is not set, nor is --issuers-file: name whose tokens to accept, for instance --issuer=http://127.0.0.1:9000"),
		when(s.Issuer == "" && (s.JWKSURL != "" || s.IssuerCAFile != "" || len(s.Audience) > 0 || len(s.Claims) > 0), "--jwks-url, --issuer-ca-file, --audience and --claims are of --issuer, which is not set: use the fields of --issuers-file"),
		when(s.Issuer != "" && s.JWKSURL == "" && !bearer.IsURL(s.Issuer), "--issuer %q is no http(s) URL whose metadata could name the keys, and --jwks-url is not set: set --jwks-url", s.Issuer),
		when(s.JWKSURL != "" && !bearer.IsURL(s.JWKSURL), "--jwks-url %q is no http(s) URL, such as http://127.0.0.1:9000/oauth2/jwks", s.JWKSURL),
	)
}

func (s *serve) checkTrust() error {
	return cmp.Or(
		s.checkIssuer(),
		when(s.ClockSkew < 0 || s.ClockSkew > maxClockSkew, "--clock-skew %s is not between 0s and %s: a larger one would defeat the expiry of tokens", s.ClockSkew, maxClockSkew),
		when(len(s.Claims) > 0 && s.PolicyFile == "", "--claims has no effect without --policy-file: set both or none"),
		when(s.WatchAfterExpiry < 0, "--watch-after-expiry %s is negative: set a duration such as 30m, or 0 to end watches with their token", s.WatchAfterExpiry),
	)
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

// noTokenURL is the --console-token-url of a console that asks for no tokens, and the --basic-token-url of a service
// that does not.
const noTokenURL = "none"

func (s *serve) checkNumbers() error {
	return cmp.Or(
		when(s.Retention < 0, "--retention %s is negative: set a duration such as 7d, or 0 to keep events for ever", s.Retention),
		when(s.History < 0, "--history %s is negative: set a duration such as 24h, or 0 for as long as --retention", s.History),
		when(s.MaxBytes > 0 && s.MaxBytes < leastMaxBytes, "--max-bytes %d is too small: keep at least %dMiB", s.MaxBytes, leastMaxBytes>>20),
		when(s.MaxRequests < 2 || s.MaxWatches < 1, "--max-requests must be at least 2 and --max-watches at least 1"),
		when(s.ObservedMetrics < 0 || s.ObservedMetrics > maxObservedMetrics, "--observed-metrics %d is not between 0 and %d: set a number of series such as 1000, or 0 for no such metric", s.ObservedMetrics, maxObservedMetrics),
		when(s.StopDelay < 0, "--stop-delay %s is negative: set a duration such as 5s, or 0 to stop at once", s.StopDelay),
		checkAuditRoom(s.AuditMaxBytes),
	)
}

// checkAuditRoom checks --audit-max-bytes.
func checkAuditRoom(most cli.Size) error {
	return when(most < auditFiles<<10, "--audit-max-bytes %d is too small: keep at least %dKiB", most, auditFiles)
}

func (s *serve) checkDatabase() (err error) {
	if s.StoreDSN, err = cli.Secret("store-dsn", s.StoreDSN, s.StoreDSNFile); err != nil {
		return err
	}
	s.StoreDSNFile = "" // it was read
	return cmp.Or(
		when(s.StoreMaxStaleness < 0, "--store-max-staleness %s is negative: set a duration such as 10s, or 0 for reads that see every write", s.StoreMaxStaleness),
		when(s.StoreDSN == "" && s.StoreMaxStaleness > 0, "--store-max-staleness has no effect without --store-dsn: set both or none"),
	)
}

// checkOthers checks the settings of the console, the audit log and the place of the files.
func (s *serve) checkOthers() error {
	return cmp.Or(
		when(s.DataDir == "", "--data-dir is empty: name the directory to keep events in"),
		when(s.ConsoleTokenURL != "" && !s.Console, "--console-token-url has no effect without the console: set it without --no-console, or not at all"),
		when(s.ConsoleTokenURL != "" && s.ConsoleTokenURL != noTokenURL && !bearer.IsURL(s.ConsoleTokenURL), "--console-token-url %q is no http(s) URL, such as http://127.0.0.1:9000/oauth2/token, and not %s", s.ConsoleTokenURL, noTokenURL),
		when(s.AuditFile != "" && s.Audit == "off", "--audit-file has no effect without --audit: set both or none"),
	)
}

const (
	maxObservedMetrics = 100_000
	maxClockSkew       = 5 * time.Minute
	leastMaxBytes      = 64 << 20 // has room for files that are being rewritten, too
)
