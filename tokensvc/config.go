package main

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/livefile"
	"tidings.example/shared/service"
)

// serve has the settings of the service. Flags, environment variables, keys of the config file, defaults and help are
// all made from it: the flag --some-name is the variable TOKENSVC_SOME_NAME and the key some-name.
type serve struct {
	ListenHTTP  string `group:"listeners" name:"listen-http" default:"127.0.0.1:9000" help:"Address for plain HTTP; empty: none." placeholder:"HOST:PORT"`
	ListenHTTPS string `group:"listeners" name:"listen-https" help:"Address for HTTPS; needs --tls-cert-file and --tls-key-file." placeholder:"HOST:PORT"`
	ListenAdmin string `group:"listeners" default:"127.0.0.1:9001" help:"Address for probes and metrics; for operators only." placeholder:"HOST:PORT"`
	Profiles    bool   `group:"listeners" help:"Serve profiles of the Go runtime below /debug/pprof/ of --listen-admin."`

	service.Hosts `group:"listeners"`

	TLSCertFile string `group:"tls" name:"tls-cert-file" help:"Certificate chain in PEM, read again when it changes." placeholder:"FILE"`
	TLSKeyFile  string `group:"tls" name:"tls-key-file" help:"Private key of the certificate in PEM." placeholder:"FILE"`

	PublicURL string `group:"listeners" name:"public-url" help:"URL under which clients reach the service; the metadata is made from it (default: http://127.0.0.1 with the port of --listen-http)." placeholder:"URL"`
	Issuer    string `group:"tokens" help:"\"iss\" of the tokens, any string (default: the public URL)." placeholder:"TEXT"`

	TokenLifetime   time.Duration `group:"tokens" default:"300s" help:"Lifetime of tokens, in whole seconds."`
	TokenScopeClaim bool          `group:"tokens" help:"Put the scope claim into every token, not only if the request has a scope."`
	TokenType       string        `group:"tokens" help:"\"typ\" in the header of tokens: JWT or at+jwt (RFC 9068); empty: none." enum:",JWT,at+jwt" default:""`

	ClientsFile            string        `group:"clients" help:"Clients in a YAML or JSON file; read again when it changes." placeholder:"FILE"`
	DatabaseDSN            string        `group:"clients" name:"database-dsn" secret:"" help:"Clients in the table \"clients\" of this PostgreSQL database." placeholder:"DSN"`
	DatabaseDSNFile        string        `group:"clients" name:"database-dsn-file" help:"File that holds the DSN." placeholder:"FILE"`
	DatabaseMaxConnections int           `group:"clients" default:"4" help:"Largest number of connections to the database."`
	DatabaseTimeout        time.Duration `group:"clients" default:"2s" help:"Longest time for one look-up, including the connection."`

	SigningKey  string        `group:"keys" help:"PEM file or directory of PEM files with RSA keys; read again when they change (default: a key made at start, in memory only)." placeholder:"PATH"`
	KeyID       string        `group:"keys" name:"key-id" enum:"uuid,thumbprint" default:"uuid" help:"Form of \"kid\": a UUID, or the RFC 7638 thumbprint."`
	KeyRotation time.Duration `group:"keys" default:"0s" help:"Make a new key in memory this often; 0: never."`
	JwksMaxAge  time.Duration `group:"keys" name:"jwks-max-age" default:"5m" help:"How long verifiers may cache the published keys."`

	ClientSecretBasic  bool          `group:"clients" help:"Accept client_secret_basic besides client_secret_post."`
	PrivateKeyJWT      bool          `group:"assertions" name:"private-key-jwt" help:"Accept assertions that clients sign with keys of their own (private_key_jwt)."`
	AssertionLifetime  time.Duration `group:"assertions" default:"5m" help:"Longest lifetime of assertions that clients sign."`
	TrustedIssuersFile string        `group:"assertions" help:"Issuers whose assertions are accepted; followed while running. A YAML list of issuer (cluster: the cluster of this pod), jwksURL, jwksFile, caFile, bearerTokenFile, algorithms, audiences, maxTokenLife, subjects." placeholder:"FILE"`
	JwksAllowHTTPHost  []string      `group:"assertions" name:"jwks-allow-http-host" help:"Host whose keys may be fetched over plain HTTP, for --trusted-issuers-file; repeatable." placeholder:"HOST"`
	CorsOrigin         []string      `group:"listeners" help:"Web origin whose pages may ask for tokens; repeatable (default: none)." placeholder:"ORIGIN"`
	TrustedProxy       []string      `group:"listeners" help:"Address or CIDR prefix of a proxy whose X-Forwarded-For is believed; repeatable." placeholder:"PREFIX"`
	FailureBurst       int           `group:"guessing" default:"10" help:"Failed attempts of a client id before further ones have to wait."`
	FailureRefill      time.Duration `group:"guessing" default:"1s" help:"Time after which a client id that waits may try once more; 0: no throttling."`
	FailureQueue       int           `group:"guessing" default:"8" help:"Different secrets of one client id that are compared, or wait for it, at the same time; further ones are answered 429."`

	LogFormat string        `group:"process" enum:"auto,text,json" default:"auto" help:"Log format: text, json, or auto (text on a terminal)."`
	LogLevel  string        `group:"process" enum:"debug,info,warn,error" default:"info" help:"Lowest level that is logged."`
	StopDelay time.Duration `group:"process" default:"0s" help:"Time to go on serving after a stop signal, while not ready, so that load balancers notice."`

	proxies []netip.Prefix // of TrustedProxy
}

// Help is shown above the settings.
func (*serve) Help() string {
	return `A clients file, for demonstrations:

    tokensvc --clients-file clients.yaml
    curl http://127.0.0.1:9000/oauth2/token -d grant_type=client_credentials -d client_id=demo -d client_secret=demo-secret

Clients in PostgreSQL, behind a proxy that terminates TLS, with keys that replicas share:

    tokensvc --listen-http :9000 --public-url https://tokens.example.com --trusted-proxy 10.0.0.0/8 \
        --database-dsn-file /run/secrets/dsn --signing-key /keys

SIGHUP reads clients file, trusted issuers and key files again at once, SIGUSR1 replaces a key made in memory.`
}

// Check sets the defaults that depend on other settings, and returns an error if settings contradict each other.
func (s *serve) Check() error {
	for _, check := range []func() error{s.completeClients, s.completeURLs, s.Hosts.Check, s.checkTLS, s.checkTokens, s.checkAssertions, s.checkTimes, s.checkOrigins, s.parseProxies} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *serve) completeClients() error {
	dsn, err := cli.Secret("database-dsn", s.DatabaseDSN, s.DatabaseDSNFile)
	if err != nil {
		return err
	}
	s.DatabaseDSN = dsn
	const settings = "--clients-file (TOKENSVC_CLIENTS_FILE) and --database-dsn or --database-dsn-file (TOKENSVC_DATABASE_DSN, TOKENSVC_DATABASE_DSN_FILE)"
	switch {
	case s.ClientsFile == "" && dsn == "":
		return cli.Usagef("no clients: of %s exactly one must be set, none is", settings)
	case s.ClientsFile != "" && dsn != "":
		return cli.Usagef("two sources of clients: of %s exactly one must be set, both are", settings)
	case s.DatabaseMaxConnections < 1:
		return cli.Usagef("--database-max-connections is %d; set at least 1", s.DatabaseMaxConnections)
	case s.DatabaseTimeout <= 0:
		return cli.Usagef("--database-timeout is %v; set more than 0", s.DatabaseTimeout)
	}
	return nil
}

func (s *serve) completeURLs() error {
	if s.PublicURL == "" {
		if s.ListenHTTP == "" {
			return cli.Usagef("--public-url must be set where --listen-http is empty")
		}
		_, port, err := net.SplitHostPort(s.ListenHTTP)
		if err != nil {
			return cli.Usagef("--listen-http: %w; give HOST:PORT", err)
		}
		if port == "0" {
			return cli.Usagef("--public-url must be set where --listen-http leaves the port open (0)")
		}
		s.PublicURL = "http://" + net.JoinHostPort("127.0.0.1", port)
	}
	u, err := url.Parse(s.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return cli.Usagef("--public-url %q is no http or https URL without query and fragment", s.PublicURL)
	}
	s.PublicURL = strings.TrimSuffix(s.PublicURL, "/")
	if s.Issuer == "" {
		s.Issuer = s.PublicURL
	}
	return nil
}

func (s *serve) checkTLS() error {
	files := s.TLSCertFile != "" && s.TLSKeyFile != ""
	switch {
	case s.ListenHTTPS != "" && !files:
		return cli.Usagef("--listen-https needs both --tls-cert-file and --tls-key-file")
	case (s.TLSCertFile == "") != (s.TLSKeyFile == ""):
		return cli.Usagef("--tls-cert-file and --tls-key-file go together; set both or none")
	case s.ListenHTTPS == "" && files:
		return cli.Usagef("--tls-cert-file and --tls-key-file have no effect without --listen-https; set it, or leave them out")
	case s.Profiles && s.ListenAdmin == "":
		return cli.Usagef("--profiles has no effect without --listen-admin; set both or none")
	case len(s.AllowedHosts) > 0 && s.ListenAdmin == "":
		return cli.Usagef("--allowed-hosts has no effect without --listen-admin; set both or none")
	case s.ListenHTTPS == "" && s.ListenHTTP == "":
		return cli.Usagef("both --listen-http and --listen-https are empty; set one")
	}
	return nil
}

func (s *serve) checkTokens() error {
	switch {
	case s.TokenLifetime < time.Second || s.TokenLifetime%time.Second != 0:
		return cli.Usagef("--token-lifetime is %v; give whole seconds, at least 1s", s.TokenLifetime)
	case s.JwksMaxAge < time.Second:
		return cli.Usagef("--jwks-max-age is %v; give at least 1s", s.JwksMaxAge)
	case s.KeyRotation < 0:
		return cli.Usagef("--key-rotation is %v; give 0 or more", s.KeyRotation)
	case s.KeyRotation > 0 && s.SigningKey != "":
		return cli.Usagef("--key-rotation is for keys made in memory and --signing-key for keys in files; set one (files are rotated by `tokensvc keys rotate`)")
	case s.KeyRotation > 0 && s.KeyRotation < 4*s.JwksMaxAge:
		return cli.Usagef("--key-rotation is %v and --jwks-max-age %v: a key must live at least four times as long as others remember the published keys", s.KeyRotation, s.JwksMaxAge)
	case s.FailureRefill > 0 && (s.FailureBurst < 1 || s.FailureQueue < 1):
		return cli.Usagef("--failure-burst is %d and --failure-queue %d; give at least 1, or --failure-refill 0 for no throttling", s.FailureBurst, s.FailureQueue)
	}
	return nil
}

func (s *serve) checkAssertions() error {
	switch {
	case s.AssertionLifetime < time.Second || s.AssertionLifetime > time.Hour:
		return cli.Usagef("--assertion-lifetime is %v; give 1s to 1h", s.AssertionLifetime)
	case len(s.JwksAllowHTTPHost) > 0 && s.TrustedIssuersFile == "":
		return cli.Usagef("--jwks-allow-http-host has no effect without --trusted-issuers-file; set both or none")
	}
	return nil
}

func (s *serve) checkTimes() error {
	for _, of := range []struct {
		setting string
		time.Duration
	}{{"--failure-refill", s.FailureRefill}, {"--stop-delay", s.StopDelay}} {
		if of.Duration < 0 {
			return cli.Usagef("%s is %v; give 0 or more", of.setting, of.Duration)
		}
	}
	return nil
}

// checkOrigins refuses values that no browser sends as an origin (RFC 6454 section 6.2), and "*": every origin that may
// ask for tokens is to be named.
func (s *serve) checkOrigins() error {
	for _, origin := range s.CorsOrigin {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || origin != strings.ToLower(u.Scheme+"://"+u.Host) {
			return cli.Usagef("--cors-origin %q is no origin; give scheme, host and port only, such as https://console.example.com", origin)
		}
	}
	return nil
}

func (s *serve) parseProxies() (err error) {
	if s.proxies, err = httpserver.Proxies(s.TrustedProxy); err != nil {
		return cli.Usagef("--trusted-proxy %w", err)
	}
	return nil
}

// withTLS adds the configured certificate to an endpoint, and returns its file, which has to be followed.
func (s *serve) withTLS(e httpserver.Endpoint, log *slog.Logger, reg prometheus.Registerer) (_ httpserver.Endpoint, renewed *livefile.File, err error) {
	if s.ListenHTTPS == "" {
		return e, &livefile.File{}, nil
	}
	e.TLS, renewed, err = httpserver.CertFiles(s.TLSCertFile, s.TLSKeyFile, log, reg)
	return e, renewed, err
}

type healthcheck struct {
	ListenAdmin string        `default:"127.0.0.1:9001" help:"Address of the service's probes, as given to serve." placeholder:"HOST:PORT"`
	Wait        time.Duration `default:"0s" help:"Keep asking for this long."`
}

// Help is shown above the settings.
func (*healthcheck) Help() string {
	return `In a script that needs the service:

    tokensvc healthcheck --wait 30s && ./use-it`
}

// Run asks the readiness probe.
func (h *healthcheck) Run(ctx context.Context) error {
	return service.Healthcheck(ctx, h.ListenAdmin, h.Wait)
}
