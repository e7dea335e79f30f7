// Command eventsvc serves a Kubernetes-style Events API on an embedded store, or on PostgreSQL.
// See README.md for its settings.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/resource"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/basic"
	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/console"
	"tidings.example/eventsvc/internal/ctl"
	"tidings.example/eventsvc/internal/eventmetrics"
	"tidings.example/eventsvc/internal/localca"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/eventsvc/internal/trust"
	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/issuers"
	"tidings.example/shared/livefile"
	"tidings.example/shared/printable"
	"tidings.example/shared/service"
	"tidings.example/shared/tokenclient"
)

func main() {
	ctx, stop := service.Signals(context.Background())
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, nil)
	stop()
	os.Exit(exitCode(err))
}

// listening is a function that is called with the setting and the address of every listener.
type listening func(setting string, addr net.Addr)

// run is the whole program: it parses the settings and runs the command until
// ctx ends. Errors are printed.
func run(ctx context.Context, args []string, stdout io.Writer, stderr *os.File, tell listening) error {
	var s settings
	parsed, err := cli.Parse("eventsvc", "EVENTSVC", "A Kubernetes-style Events API on an embedded store.", &s, args, stdout, stderr)
	if err != nil {
		return err // printed already
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run(stdio{out: stdout, err: stderr, listened: tell}, ctl.IO{In: os.Stdin, Out: stdout, Err: stderr, OnListen: tell.of("--listen-admin")})
	if err != nil && !errors.Is(err, errFindings) && !errors.Is(err, errNo) { // the last two were printed by their commands
		_, _ = fmt.Fprintln(stderr, "eventsvc:", printable.Lines(err.Error()))
		if hint := client.Hint(err); hint != "" {
			_, _ = fmt.Fprintln(stderr, "  "+hint)
		}
	}
	return err
}

// stdio is what commands write to, besides files.
type stdio struct {
	out      io.Writer
	err      *os.File
	listened listening // may be nil
}

// Run serves until ctx ends.
func (s *serve) Run(ctx context.Context, parsed *cli.Context, std stdio) (err error) {
	log, given, err := s.begin(parsed, std)
	if err != nil {
		return err
	}
	registry := service.NewRegistry("eventsvc")
	formats, err := s.formats()
	if err != nil {
		return err
	}
	var server *api.Server
	var page webPage
	trusted, rights, err := s.access(log, registry, func() { page.issuersChanged() }, func() { server.PolicyChanged() })
	if err != nil {
		return err
	}
	certificate, renewed, err := s.certificate(log, registry)
	if err != nil {
		return err
	}
	db, kept, told, err := s.openStore(ctx, log, registry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	entries, err := openAudit(s.auditPath(), s.AuditMaxBytes, audit.Config{RefuseWrites: s.Audit == auditRequired, Log: log, Registry: registry})
	if err != nil {
		return err
	}
	health := s.health(trusted, db, entries)
	if page, err = s.console(ctx, formats, trusted, db, log); err != nil {
		return err
	}
	passwords, err := s.basic(trusted, log, registry)
	if err != nil {
		return err
	}
	server, err = api.New(api.Config{
		Store: db, Timeline: db.Timeline(), Codec: formats, Verify: trusted.Verify,
		Basic: passwords, Source: httpserver.Source(s.proxies), Resource: s.resource(trusted), Policy: rights.Current, Withdrawn: trusted.Withdrawn, Audit: entries, WatchAfterExpiry: s.WatchAfterExpiry,
		Console: page.Handler, MCP: s.MCP, Hosts: s.pageHosts(), Namespaces: s.Namespaces,
		Probe: health.Handler, Limits: s.limits(), Fresh: db.Fresh, Log: log, Registry: registry,
	})
	if err != nil {
		return err
	}
	management, err := s.management(health, registry, admin.Local{DB: db, Codec: formats, Backed: func() { admin.NoteBackup(s.DataDir, time.Now(), log) }}, entries, log, questions(trusted, rights, given), server.Refused)
	if err != nil {
		return err
	}
	tasks, err := s.optionalTasks(db, &admin.RulesRecorder{Rules: kept.Current, Changed: told, Store: db, Codec: formats, Log: log}, log, registry)
	if err != nil {
		return err
	}
	handler := httpserver.Access(log, registry, audit.Handler(entries, server))
	return service.Run(ctx, service.Config{
		HTTP:   httpserver.Config{Name: "eventsvc", Log: log, Registry: registry, Proxies: s.proxies, Endpoints: s.endpoints(std, log, handler, management, certificate)},
		Health: health,
		Tasks:  append(tasks, trusted.Run, entries.Run, db.Run, rights.Run, kept.Run, renewed.Run, server.Run, page.run),
		Drain:  server.Drain, StopDelay: s.StopDelay,
	})
}

// optionalTasks returns what runs in the background by some settings only.
func (s *serve) optionalTasks(db engine, changes *admin.RulesRecorder, log *slog.Logger, registry *prometheus.Registry) (tasks []func(context.Context) error, err error) {
	if s.RulesFile != "" {
		tasks = append(tasks, changes.Run)
	}
	if s.ObservedMetrics > 0 {
		tasks = append(tasks, eventmetrics.New(db, s.ObservedMetrics, log, registry).Run)
	}
	if s.TLSCAConfigMap != (localca.ConfigMap{}) {
		publish, err := localca.Publisher(filepath.Join(s.DataDir, "tls"), s.TLSCAConfigMap, log)
		if err != nil {
			return nil, cli.Usagef("--tls-ca-configmap: %w", err)
		}
		tasks = append(tasks, publish)
	}
	return tasks, nil
}

// begin checks the settings, begins the log and limits the memory. It returns the settings as config print shows them.
func (s *serve) begin(parsed *cli.Context, std stdio) (log *slog.Logger, given string, err error) {
	changed, err := cli.Changed(parsed)
	if err != nil {
		return nil, "", err
	}
	if given, err = cli.Settings(parsed); err != nil {
		return nil, "", err
	}
	if err := s.Check(); err != nil {
		return nil, "", err
	}
	if log, err = service.Logger(std.err, s.LogFormat, s.LogLevel); err != nil {
		return nil, "", err
	}
	log.Info("starting", "version", service.Version(), changed)
	service.LimitMemory(log)
	return log, given, nil
}

// questions are the handlers of the management listener that do not concern the store.
func questions(trusted *trust.Trust, rights *policy.Live, given string) map[string]http.Handler {
	return map[string]http.Handler{
		"token":  &admin.TokenChecker{Explain: trusted.Explain, Policy: rights.Current},
		"config": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, given) }),
	}
}

// formats returns the codec of the API group.
func (s *serve) formats() (*codec.Codec, error) {
	c, err := codec.New(s.GroupDomain)
	if err != nil {
		return nil, cli.Usagef("--group-domain: %w", err)
	}
	return c, nil
}

// access returns whose tokens are accepted, and what these callers may do. It calls
// issuersChanged after a new version of the issuers file has come into force, and changed
// after a new policy has.
func (s *serve) access(log *slog.Logger, registry *prometheus.Registry, issuersChanged, changed func()) (trusted *trust.Trust, rights *policy.Live, err error) {
	trusted, err = trust.New(trust.Config{
		Issuer: trust.Issuer{
			Issuer: s.Issuer, KeySource: bearer.KeySource{JWKSURL: s.JWKSURL, CAFile: s.IssuerCAFile},
			Audiences: s.Audience, Claims: s.Claims, Advertise: bearer.IsURL(s.Issuer),
		},
		Resources:   resource.Identifiers(s.PublicURL),
		IssuersFile: s.IssuersFile, Pod: issuers.ThisPod(), Changed: func() { issuersChanged(); rights.Recheck() }, // the policy may name other issuers and claims now
		AllowHTTPHosts: s.JWKSAllowHTTPHost, MaxStale: jwksMaxStale, ClockSkew: s.ClockSkew, NoConsole: !s.Console, Log: log, Registry: registry,
	})
	if err != nil {
		return nil, nil, cli.Usagef("%w", err)
	}
	rights, err = policy.NewLive(policy.Config{
		Path: s.PolicyFile, Options: func() policy.Options { return policyOptions(s.Issuer, trusted.Issuers()) }, Log: log, Registry: registry, Changed: changed,
	})
	if err != nil {
		return nil, nil, cli.Usagef("--policy-file: %w", err)
	}
	return trusted, rights, nil
}

// resource is what clients without a token are told.
func (s *serve) resource(trusted *trust.Trust) resource.Config {
	c := resource.Config{PublicURL: s.PublicURL, Issuers: trusted.Advertised, Scopes: s.ResourceScopes}
	if s.Console {
		c.Documentation = s.PublicURL + console.Folder + "/help/"
	}
	return c
}

// basic returns what turns a user and a password into a caller, or nil if a setting does not ask for that.
func (s *serve) basic(trusted *trust.Trust, log *slog.Logger, registry *prometheus.Registry) (func(ctx context.Context, user, password, source string) (*bearer.Caller, error), error) {
	if s.BasicTokenURL == noTokenURL {
		return nil, nil
	}
	client, err := tokenclient.Trusting(s.IssuerCAFile)
	if err != nil {
		return nil, cli.Usagef("--issuer-ca-file: %w", err)
	}
	return basic.New(basic.Config{TokenURL: s.BasicTokenURL, Client: client, Verify: trusted.Verify, Log: log, Registry: registry}).Verify, nil
}

// policyOptions returns the issuers, and the claims of their tokens, that a policy may refer to.
func policyOptions(first string, accepted []trust.Issuer) policy.Options {
	o := policy.Options{Default: first, Aliases: map[string]string{}, Claims: map[string][]string{}}
	for _, i := range accepted {
		if i.Cluster {
			o.Aliases[issuers.Cluster] = i.Issuer
		}
		o.Issuers = append(o.Issuers, i.Issuer)
		o.Claims[i.Issuer] = i.Claims
	}
	return o
}

// auditRequired is the value of --audit for writes that are refused without an entry.
const auditRequired = "required"

// auditPath returns the file of the audit log, empty if there is no log.
func (s *serve) auditPath() string {
	if s.Audit == "off" {
		return ""
	}
	return cmp.Or(s.AuditFile, filepath.Join(s.DataDir, "audit.log"))
}

// auditFiles is the number of files of an audit log. With eight, a new file pushes out only an eighth of the log.
const auditFiles = 8

// openAudit opens an audit log. It returns nil if there is no path.
func openAudit(path string, room cli.Size, c audit.Config) (*audit.Log, error) {
	if path == "" {
		return nil, nil
	}
	c.Path, c.MaxBytes, c.Files = path, int64(room)/auditFiles, auditFiles
	entries, err := audit.Open(c)
	if err != nil {
		return nil, fmt.Errorf("--audit-file: %w", err)
	}
	return entries, nil
}

// health returns the probes. If writes are allowed without the audit log, its failure
// is a warning and the service stays ready.
func (s *serve) health(trusted *trust.Trust, db engine, entries *audit.Log) *service.Health {
	health := &service.Health{}
	health.Add("keys", trusted.Ready)
	health.Add("store", db.Ready)
	health.Add("room", db.Room)
	health.Add("retention", db.OnTime)
	if database, ok := db.(*postgres.DB); ok {
		s.databaseHealth(health, database)
	}
	switch {
	case entries == nil:
	case s.Audit == auditRequired:
		health.Add("audit", entries.Failing)
	default:
		health.AddWarning("audit", entries.Failing)
	}
	return health
}

// management returns the handler of the management listener: probes, metrics, and
// work on the store for callers that can read the data directory.
func (s *serve) management(health *service.Health, reg *prometheus.Registry, db admin.Local, entries *audit.Log, log *slog.Logger, questions map[string]http.Handler, refused func(limit string)) (http.Handler, error) {
	admin.RegisterBackups(reg, s.DataDir)
	token, err := admin.NewToken(s.DataDir, log)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", service.Profiles(service.Admin(health, reg), s.Profiles))
	mux.Handle(admin.Path, admin.NewHandler(db, token, entries, questions, refused))
	// Probes and scrapes have metrics of their own, which are not exposed: they would dilute the rates that alerts use.
	return httpserver.Access(log, prometheus.NewRegistry(), audit.Handler(entries, s.Guard(s.ListenAdmin, log, mux))), nil
}

// pageHosts are the hosts whose pages may call the tools for agents.
func (s *serve) pageHosts() []string {
	hosts := s.Names()
	if u, err := url.Parse(s.PublicURL); err == nil && s.PublicURL != "" {
		hosts = append(hosts, strings.ToLower(u.Hostname()))
	}
	return hosts
}

// endpoints returns all listeners. Certificate is nil if HTTPS is not served.
func (s *serve) endpoints(std stdio, log *slog.Logger, api, management http.Handler, certificate *tls.Config) []httpserver.Endpoint {
	return []httpserver.Endpoint{
		s.tellConsole(log, std.endpoint("--listen-http", s.ListenHTTP, api, nil)),
		s.tellConsole(log, std.endpoint("--listen-https", s.ListenHTTPS, api, certificate)),
		std.endpoint("--listen-admin", s.ListenAdmin, management, nil),
	}
}

// endpoint returns a listener of the service, which strangers reach but for the admin one. TLS is nil for plain HTTP.
func (s stdio) endpoint(setting, address string, h http.Handler, c *tls.Config) httpserver.Endpoint {
	return httpserver.Endpoint{Setting: setting, Addr: address, Handler: h, Streaming: true, Public: setting != "--listen-admin", TLS: c, OnListen: s.listened.of(setting)}
}

func (t listening) of(setting string) func(net.Addr) {
	if t == nil {
		return nil
	}
	return func(a net.Addr) { t(setting, a) }
}

// certificate returns the TLS configuration of HTTPS, or nil if it is not served, and the file of a certificate, which
// has to be followed.
func (s *serve) certificate(log *slog.Logger, registry *prometheus.Registry) (config *tls.Config, renewed *livefile.File, err error) {
	switch {
	case s.ListenHTTPS == "":
		return nil, &livefile.File{}, nil
	case s.TLSSelfSigned:
		if config, err = localca.TLSConfig(filepath.Join(s.DataDir, "tls"), s.TLSHosts, time.Now()); err != nil {
			return nil, nil, fmt.Errorf("--tls-self-signed: %w", err)
		}
		return config, &livefile.File{}, nil
	}
	if config, renewed, err = httpserver.CertFiles(s.TLSCertFile, s.TLSKeyFile, log, registry); err != nil {
		return nil, nil, fmt.Errorf("--tls-cert-file, --tls-key-file: %w", err)
	}
	return config, renewed, nil
}

// Run asks the admin listener's readiness probe.
func (h *healthcheck) Run(ctx context.Context) error {
	return service.Healthcheck(ctx, h.ListenAdmin, h.Wait)
}
