// Command tokensvc is an OAuth 2.0 authorization server for one grant, client credentials (RFC 6749 section 4.4): it
// authenticates registered clients and issues access tokens, RS256-signed JWTs whose keys it publishes.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/issuers"
	"tidings.example/shared/printable"
	"tidings.example/shared/service"
	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/client/clientsfile"
	"tidings.example/tokensvc/internal/client/postgres"
	"tidings.example/tokensvc/internal/federation"
	"tidings.example/tokensvc/internal/keyring"
	"tidings.example/tokensvc/internal/oauth"
	"tidings.example/tokensvc/internal/token"
)

func main() {
	ctx, stop := service.Signals(context.Background())
	err := run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(cli.ExitCode(err))
}

// stdio is what commands read and write.
type stdio struct {
	in       *os.File
	out, err *os.File
	listened func(setting string, addr net.Addr) // called with the address of each listener; may be nil
}

// commands is the command line; the settings of each command are next to it.
type commands struct {
	Serve       serve                     `cmd:"" default:"withargs" help:"Run the service (the default)."`
	Healthcheck healthcheck               `cmd:"" help:"Ask the running service whether it is ready; exit code 0 means yes."`
	Token       tokens                    `cmd:"" help:"Fetch tokens and look into them."`
	Credential  credential                `cmd:"" help:"Fetch a token for kubectl: an exec credential plugin (client.authentication.k8s.io/v1)."`
	Keys        keys                      `cmd:"" help:"Look after signing keys in files."`
	ClientKey   clientKeys                `cmd:"" help:"Make and show the keys of clients that need no secret."`
	Config      cli.Config[serve, *serve] `cmd:"" help:"Show the settings."`
	HashSecret  hashSecret                `cmd:"" help:"Hash a client secret for the clients file or the clients table."`
	Completion  cli.Completion            `cmd:"" help:"Print a shell's completion script."`
	service.VersionCommands
}

const description = "OAuth 2.0 client-credentials token service: RS256 access tokens for registered clients."

// run is the whole program except the exit code. It prints errors before it returns them.
func run(ctx context.Context, args []string, std stdio) error {
	var c commands
	selected, err := cli.Parse("tokensvc", "TOKENSVC", description, &c, args, std.out, std.err)
	if err != nil {
		return err // printed already
	}
	selected.BindTo(ctx, (*context.Context)(nil))
	if err = selected.Run(std); err != nil {
		fmt.Fprintln(std.err, "tokensvc:", printable.Lines(err.Error()))
	}
	return err
}

// Run serves until ctx ends.
func (s *serve) Run(ctx context.Context, parsed *cli.Context, std stdio) error {
	since := time.Now().Truncate(time.Second).Add(time.Second) // iat has whole seconds
	log, err := service.Logger(std.err, s.LogFormat, s.LogLevel)
	if err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return err
	}
	changed, err := cli.Changed(parsed)
	if err != nil {
		return err
	}
	log.Info("starting", "version", service.Version(), changed)
	service.LimitMemory(log)
	reg := service.NewRegistry("tokensvc")
	clients, err := s.openClients(log, reg)
	if err != nil {
		return err
	}
	defer func() {
		if err := clients.Close(); err != nil {
			log.Error("database not closed", "error", err)
		}
	}()
	keys, err := keyring.New(keyring.Config{
		Path: s.SigningKey, Rotation: s.KeyRotation, MaxAge: s.JwksMaxAge, Lifetime: s.TokenLifetime,
		Format: keyring.TokenForm{Type: s.TokenType, Thumbprint: s.KeyID == "thumbprint"}, Log: log, Registry: reg,
	})
	if err != nil {
		return cli.Usagef("--signing-key: %w", err)
	}
	trusted, err := s.federation(log, reg)
	if err != nil {
		return err
	}
	api, err := s.handler(clients, keys, trusted, since, log, reg)
	if err != nil {
		return err
	}
	health := &service.Health{}
	health.Add("clients", clients.Ready)
	plain := httpserver.Endpoint{Handler: httpserver.Access(log, reg, api), Streaming: true, Public: true}
	encrypted, renewed, err := s.withTLS(plain, log, reg)
	if err != nil {
		return err
	}
	if s.PrivateKeyJWT { // until then, a new assertion has the iat of one that was used just before the start
		waitUntil(ctx, since)
	}
	admin := s.Guard(s.ListenAdmin, log, service.Profiles(service.Admin(health, reg), s.Profiles))
	return service.Run(ctx, service.Config{
		HTTP: httpserver.Config{Name: "tokensvc", Log: log, Registry: reg, Proxies: s.proxies, Endpoints: []httpserver.Endpoint{
			std.listening(plain, "--listen-http", s.ListenHTTP),
			std.listening(encrypted, "--listen-https", s.ListenHTTPS),
			std.listening(httpserver.Endpoint{Handler: admin}, "--listen-admin", s.ListenAdmin),
		}},
		Health:    health,
		Tasks:     []func(context.Context) error{trusted.Run, keys.Run, clients.Run, renewed.Run, signals(clients, keys, log)},
		StopDelay: s.StopDelay,
	})
}

// waitUntil waits until a time, or until ctx ends.
func waitUntil(ctx context.Context, at time.Time) {
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
	}
}

// listening returns an endpoint with its setting and address.
func (std stdio) listening(e httpserver.Endpoint, setting, addr string) httpserver.Endpoint {
	e.Setting, e.Addr = setting, addr
	if std.listened != nil {
		e.OnListen = func(a net.Addr) { std.listened(setting, a) }
	}
	return e
}

// handler returns the handler of the API.
func (s *serve) handler(clients registrations, keys *keyring.Keyring, trusted *federation.Federation, since time.Time, log *slog.Logger, reg *prometheus.Registry) (http.Handler, error) {
	auth, err := client.New(client.Config{
		Store: clients, FailureBurst: s.FailureBurst, FailureRefill: s.FailureRefill, FailureQueue: s.FailureQueue,
		Assertions: client.Assertions{Audience: s.Issuer, Keys: s.PrivateKeyJWT, MaxLife: s.AssertionLifetime, Since: since, Federation: trusted},
		Registry:   reg,
	})
	if err != nil {
		return nil, err
	}
	tokens, err := token.New(token.Config{
		Issuer: s.Issuer, Lifetime: s.TokenLifetime, ScopeClaim: s.TokenScopeClaim, Signer: keys,
	})
	if err != nil {
		return nil, err
	}
	own, err := bearer.New(bearer.Config{
		Issuer: s.Issuer, Keys: keys, MaxLife: s.TokenLifetime, Leeway: keyring.ClockSkew, CacheBytes: 1 << 20, Registry: reg,
	})
	if err != nil {
		return nil, err
	}
	return oauth.New(oauth.Config{
		Issuer: s.Issuer, PublicURL: s.PublicURL,
		Clients: auth, Registrations: clients, Tokens: tokens, Keys: keys, Verify: own.Verify,
		Basic: s.ClientSecretBasic, Assertions: s.PrivateKeyJWT || s.TrustedIssuersFile != "", Origins: s.CorsOrigin, TrustedProxies: s.proxies,
		Log: log, Registry: reg,
	})
}

// federation returns the trusted issuers; nil if there are none.
func (s *serve) federation(log *slog.Logger, reg *prometheus.Registry) (*federation.Federation, error) {
	if s.TrustedIssuersFile == "" {
		return nil, nil
	}
	trusted, err := federation.New(federation.Config{
		Path: s.TrustedIssuersFile, Pod: issuers.ThisPod(), Own: s.Issuer, AllowHTTPHosts: s.JwksAllowHTTPHost, Log: log, Registry: reg,
	})
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	return trusted, nil
}

// registrations is the configured store.
type registrations interface {
	client.Store
	Run(context.Context) error // background work
	Reload()
	Ready(context.Context) error
	Close() error
}

func (s *serve) openClients(log *slog.Logger, reg *prometheus.Registry) (registrations, error) {
	if s.ClientsFile != "" {
		store, err := clientsfile.Open(s.ClientsFile, log)
		if err != nil {
			return nil, cli.Usagef("--clients-file: %w", err)
		}
		return store, nil
	}
	store, err := postgres.Open(postgres.Config{
		DSN: s.DatabaseDSN, MaxConnections: s.DatabaseMaxConnections, Timeout: s.DatabaseTimeout, Log: log, Registry: reg,
	})
	if err != nil {
		return nil, fmt.Errorf("--database-dsn: %w", err)
	}
	return store, nil
}

// signals reloads clients and keys on SIGHUP and rotates keys made in memory on SIGUSR1.
func signals(clients registrations, keys *keyring.Keyring, log *slog.Logger) func(context.Context) error {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP, syscall.SIGUSR1) // so that they no longer end the process
	return func(ctx context.Context) error {
		defer signal.Stop(received)
		for {
			select {
			case <-ctx.Done():
				return nil
			case s := <-received:
				if err := obey(s, clients, keys); err != nil {
					log.Error("signal not carried out, everything stays as it was", "signal", s.String(), "error", err)
				}
			}
		}
	}
}

func obey(s os.Signal, clients registrations, keys *keyring.Keyring) error {
	if s == syscall.SIGUSR1 {
		return keys.Rotate()
	}
	clients.Reload()
	return keys.Reload()
}
