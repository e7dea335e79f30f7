package main

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/ctl"
	"tidings.example/eventsvc/internal/localca"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/shared/cli"
	"tidings.example/shared/service"
)

// settings is the one table of commands, flags, environment variables
// (EVENTSVC_ and the flag's name), keys of the config file (the flag's name),
// defaults and help.
type settings struct {
	Serve       serve       `cmd:"" default:"withargs" help:"Serve the Events API (the default command)."`
	Aggregate   aggregateC  `cmd:"" help:"Let kubectl read the events of a server through a cluster's kube-apiserver."`
	Healthcheck healthcheck `cmd:"" help:"Ask a running eventsvc whether it is ready."`
	CanI        canI        `cmd:"" name:"can-i" help:"Explain what a policy file allows, and by which rule."`
	Token       token       `cmd:"" help:"Find out why a token is refused."`
	storeCommands
	Database database `cmd:"" help:"Make, upgrade and check a PostgreSQL database for events."`
	ctl.Commands
	Config configCommands `cmd:"" help:"Show the settings."`
	service.VersionCommands

	Completion cli.Completion `cmd:"" help:"Print a shell's completion script."`
}

// serve holds the settings of the service.
type serve struct {
	ListenHTTP  string `group:"listeners" default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Serve the API over HTTP here; empty: not at all."`
	ListenHTTPS string `group:"listeners" placeholder:"HOST:PORT" help:"Serve the API over HTTPS here; kubectl sends no token over plain HTTP."`
	ListenAdmin string `group:"listeners" default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Serve detailed probes, metrics and, for those who can read the data directory, backups here; empty: not at all."`
	Profiles    bool   `group:"listeners" help:"Serve profiles of the Go runtime below /debug/pprof/ of the admin listener."`

	service.Hosts `group:"listeners"`

	PublicURL      string   `group:"listeners" name:"public-url" placeholder:"URL" help:"URL under which clients reach the API; they learn from it where to get tokens (RFC 9728). Default: http:// and --listen-http if that is a loopback address, otherwise they learn nothing."`
	ResourceScopes []string `group:"listeners" placeholder:"SCOPE" help:"Scopes that clients are told to ask for. Default: none, so they get those that they are registered for."`

	TLSCertFile    string            `group:"tls" name:"tls-cert-file" placeholder:"FILE" help:"Certificate chain for HTTPS, PEM."`
	TLSKeyFile     string            `group:"tls" name:"tls-key-file" placeholder:"FILE" help:"Private key for HTTPS, PEM."`
	TLSSelfSigned  bool              `group:"tls" name:"tls-self-signed" help:"Make and keep a local certificate authority and a certificate under tls/ in the data directory."`
	TLSHosts       []string          `group:"tls" name:"tls-hosts" default:"localhost,127.0.0.1,::1,eventsvc" placeholder:"NAME" help:"Names and addresses in the self-signed certificate."`
	TLSCAConfigMap localca.ConfigMap `group:"tls" name:"tls-ca-configmap" placeholder:"NAMESPACE/NAME" help:"Write the authority of --tls-self-signed into this ConfigMap of the pod's cluster, which other pods mount, as ca.crt."`

	StoreDSN          string        `group:"storage" name:"store-dsn" secret:"" placeholder:"DSN" help:"Keep events in this PostgreSQL database, for several replicas; each reads from a copy in its data directory. Default: events are kept in files of the data directory."`
	StoreDSNFile      string        `group:"storage" name:"store-dsn-file" placeholder:"FILE" help:"File that holds --store-dsn."`
	StoreMaxStaleness time.Duration `group:"storage" default:"0s" help:"0: reads see every write that was acknowledged by any replica. More: they see the copy as it is, if it is not older than this; the header Age says how old."`

	DataDir   string        `group:"storage" default:"var/eventsvc" placeholder:"DIR" help:"Where events are kept."`
	Retention time.Duration `group:"retention" default:"168h" help:"How long an event lives after its last change, such as 36h or 30d; 0: for ever."`

	RulesFile     string        `group:"retention" placeholder:"FILE" help:"Other retentions for some events, by what they are about; followed while running. A YAML list of name, where, namespaces, and keep; the first rule that fits counts. Rules with drop are for the mirror."`
	History       time.Duration `group:"retention" default:"0s" help:"How long old versions, superseded or deleted ones, are kept to be read and watched; 0: as long as the retention."`
	MaxBytes      cli.Size      `group:"storage" placeholder:"SIZE" help:"Room on the disk for all files, such as 8GiB; they never take more. At least 86% of it is for events: the oldest are removed when events need more. Old versions take the rest. 0: 8GiB, or 80% of the free space if that is less."`
	CompressAfter cli.Age       `group:"storage" default:"1h" placeholder:"DURATION" help:"Compress files of the log in the background when all of their events are older than this; off: never."`

	GroupDomain string   `group:"api" default:"k8s.io" help:"The API group is events.GROUP-DOMAIN."`
	Namespaces  []string `group:"api" placeholder:"NAME" help:"Refuse new events in namespaces other than these, the well-known ones, and those that hold events. Default: every namespace exists."`

	Issuer            string        `group:"trust" placeholder:"ISSUER" help:"Issuer of the tokens that are accepted: exactly their iss claim. Required unless --issuers-file is set."`
	JWKSURL           string        `group:"trust" name:"jwks-url" placeholder:"URL" help:"Where the issuer's keys are. Default: from the issuer's metadata (RFC 8414)."`
	JWKSAllowHTTPHost []string      `group:"trust" name:"jwks-allow-http-host" placeholder:"HOST" help:"Hosts whose keys may be fetched over plain HTTP, besides loopback addresses."`
	IssuerCAFile      string        `group:"trust" name:"issuer-ca-file" placeholder:"FILE" help:"Certificate authorities, PEM, that the certificates of the issuer and of --basic-token-url are verified with. Default: the system's."`
	Audience          []string      `group:"trust" placeholder:"AUD" help:"Accept only tokens for one of these audiences. Default: any."`
	ClockSkew         time.Duration `group:"trust" default:"1m" help:"How far the issuer's clock may differ."`
	IssuersFile       string        `group:"trust" placeholder:"FILE" help:"Issuers beside or instead of --issuer; followed while running. A YAML list of issuer (cluster: the cluster of this pod), jwksURL, jwksFile, caFile, bearerTokenFile, algorithms, audiences, maxTokenLife, clientIDClaim, scopeClaim, claims, console, advertise."`

	BasicTokenURL string   `group:"trust" name:"basic-token-url" default:"none" placeholder:"URL" help:"Trade a user and a password (HTTP Basic), as client id and secret, for a token here, for machines that cannot renew one: on /loki, /query/v1 and /mcp only. none: not at all."`
	TrustedProxy  []string `group:"listeners" placeholder:"PREFIX" help:"Addresses or CIDR prefixes of proxies whose X-Forwarded-For is believed, for limits of each source address."`

	Console         bool   `group:"api" default:"true" negatable:"" help:"Serve a web page at /console/ that shows events to people; / leads browsers there."`
	ConsoleTokenURL string `group:"api" name:"console-token-url" placeholder:"URL" help:"Where the web page asks for tokens with a client id and secret; none: nowhere, tokens are pasted. Default: /oauth2/token of the issuer if it is the only one and a URL, otherwise none."`

	MCP bool `group:"api" name:"mcp" default:"true" negatable:"" help:"Serve tools for agents at /mcp (Model Context Protocol), which only read. A web page may call them if its host is in --public-url or --allowed-hosts."`

	PolicyFile       string        `group:"rights" placeholder:"FILE" help:"Who may do what; followed while running. Default: every authenticated client may do everything."`
	Claims           []string      `group:"rights" placeholder:"NAME" help:"Claims of the issuer's tokens that the policy may ask for."`
	WatchAfterExpiry time.Duration `group:"rights" default:"30m" help:"How long a watch may run on after its token has expired; 0: it ends with the token."`

	MaxWatches int `group:"limits" default:"20000" help:"Open watches of all clients; one client may have a quarter of them."`

	MaxRequests int `group:"limits" default:"1024" help:"Other requests in flight in all; beyond that, only a client without one is served. One client may have a quarter of them."`

	CreateRate          api.Rate `group:"limits" placeholder:"RATE[:BURST]" help:"New events a second in all, and how many at once (default: as many). Default: no limit."`
	ClientCreateRate    api.Rate `group:"limits" placeholder:"RATE[:BURST]" help:"New events a second of one client. Default: no limit."`
	NamespaceCreateRate api.Rate `group:"limits" placeholder:"RATE[:BURST]" help:"New events a second in one namespace. Default: no limit."`

	Audit         string   `group:"rights" default:"off" enum:"off,metadata,required" help:"off, or metadata: one JSON line per request, who did what and by which rule. required: the same, and writes are refused with 503 while the file cannot be written."`
	AuditFile     string   `group:"rights" placeholder:"FILE" help:"Where the audit log is. Default: audit.log in the data directory."`
	AuditMaxBytes cli.Size `group:"rights" default:"512MiB" help:"Room for the audit log: the current file and seven before it."`

	ObservedMetrics int `group:"process" default:"0" help:"Count what events report in the metric eventsvc_observed_events_total, in at most so many series, for instance 1000; 0: not at all."`

	StopDelay time.Duration `group:"process" default:"0s" help:"Time to go on serving after a stop signal, while not ready, so that load balancers notice."`
	LogFormat string        `group:"process" default:"auto" enum:"auto,text,json" help:"auto, text or json; auto is text on a terminal."`
	LogLevel  string        `group:"process" default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`

	proxies []netip.Prefix // of TrustedProxy
}

// Help is shown above the settings.
func (*serve) Help() string {
	return `With the tokens of one issuer, on this machine:

    eventsvc --issuer http://127.0.0.1:9000

For kubectl and other machines, with a certificate and rules of who may do what:

    eventsvc --listen-https :8443 --tls-cert-file tls.crt --tls-key-file tls.key \
        --issuer https://tokens.example.com --audience eventsvc --policy-file policy.yaml

For 30 days in at most 20 GiB:

    eventsvc --issuer https://tokens.example.com --retention 30d --max-bytes 20GiB --data-dir /var/lib/eventsvc

SIGHUP reads the files of policy, rules and issuers again at once.`
}

// rules reads the rules of what to keep. They are followed by [rules.Live.Run].
func (s *serve) rules(log *slog.Logger, registry prometheus.Registerer, changed func()) (*rules.Live, error) {
	live, err := rules.NewLive(rules.Config{Path: s.RulesFile, Changed: changed, Log: log, Registry: registry})
	if err != nil {
		return nil, cli.Usagef("--rules-file: %w", err)
	}
	return live, nil
}

// limits are those of the API.
func (s *serve) limits() api.Limits {
	l := api.LimitsOf(s.MaxWatches, s.MaxRequests)
	l.CreateRates = api.Rates{All: s.CreateRate, Client: s.ClientCreateRate, Namespace: s.NamespaceCreateRate}
	return l
}

// jwksMaxStale is long enough for a failure of the issuer that is noticed on the next day.
const jwksMaxStale = 24 * time.Hour

// healthcheck asks the admin listener, for containers without a shell.
type healthcheck struct {
	ListenAdmin string        `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"The admin listener of the service that is asked."`
	Wait        time.Duration `default:"0s" help:"Keep asking for this long until it is ready."`
}
