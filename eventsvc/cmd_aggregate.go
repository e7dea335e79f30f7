package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/api/aggregate"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/ctl"
	"tidings.example/eventsvc/internal/localca"
	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/livefile"
	"tidings.example/shared/service"
)

// aggregateC answers kube-apiserver for an event server. Its connection is to the event server.
type aggregateC struct {
	ctl.Connection `embed:""`
	ctl.Kubernetes `embed:""`
	GroupDomain    string   `placeholder:"DOMAIN" help:"The API group is events.GROUP-DOMAIN, as on the event server; k8s.io is kube-apiserver's own."`
	Cluster        string   `placeholder:"NAME" help:"Show only events of the cluster of this name. Default: what the policy of the event server lets this process see."`
	Advertise      []string `default:"get" placeholder:"VERB,..." help:"Verbs in the cluster's discovery: get, or get and list, with which some tools list every event again and again. All are served: get, list and watch."`

	ListenHTTPS   string        `default:":10250" placeholder:"HOST:PORT" help:"Serve kube-apiserver here."`
	TLSCertFile   string        `name:"tls-cert-file" placeholder:"FILE" help:"Certificate chain for HTTPS, PEM; its name is SERVICE.NAMESPACE.svc."`
	TLSKeyFile    string        `name:"tls-key-file" placeholder:"FILE" help:"Private key for HTTPS, PEM."`
	TLSOwnDir     string        `name:"tls-own-dir" placeholder:"DIR" help:"Instead, make a certificate with an authority of this replica's own here, renew it, and add the authority to the caBundle of the APIService, which this process then needs get and update of."`
	TLSHosts      []string      `name:"tls-hosts" placeholder:"NAME,..." help:"Names in the certificate of --tls-own-dir: SERVICE.NAMESPACE.svc."`
	ListenAdmin   string        `default:"127.0.0.1:8083" placeholder:"HOST:PORT" help:"Serve detailed probes and metrics here; empty: not at all."`
	Hosts         service.Hosts `embed:""`
	AuditFile     string        `placeholder:"FILE" help:"Write one JSON line per request here: who asked for what, and whether that was allowed. Default: not at all."`
	AuditMaxBytes cli.Size      `default:"512MiB" help:"Room for the audit log: the current file and seven before it."`

	StopDelay time.Duration `default:"0s" help:"Time to go on serving after a stop signal, while not ready, so that kube-apiserver notices."`
	LogFormat string        `default:"auto" enum:"auto,text,json" help:"auto, text or json; auto is text on a terminal."`
	LogLevel  string        `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
}

// Help is shown below the settings.
func (*aggregateC) Help() string {
	return `Examples:

    kubectl get history -n shop
    kubectl get history -n shop --field-selector regarding.name=web-0 --watch

An aggregated API server: with an APIService for v1.events.GROUP-DOMAIN that points to it, people read events with their own
kubeconfig, and the cluster's RBAC decides.

It keeps nothing, and any number of replicas may run. It needs the ConfigMap extension-apiserver-authentication of kube-system
(role extension-apiserver-authentication-reader) and reviews of access (cluster role system:auth-delegator) of the cluster, and
get, list and watch of the event server. It only reads.

Exit codes: 0 after a signal, 1 failure, 2 usage. It waits for a cluster or server that does not answer.`
}

func (a *aggregateC) check() error {
	return cmp.Or(
		when(a.GroupDomain == "", "--group-domain is not set: give the domain of the event server, such as tidings.example"),
		when(a.GroupDomain == "k8s.io", "--group-domain k8s.io is served by kube-apiserver itself: give the event server and this process a domain of yours"),
		when(!slices.Equal(a.Advertise, []string{"get"}) && !slices.Equal(a.Advertise, []string{"get", "list"}), "--advertise %s: there are get, and get,list: with other verbs controllers would watch and delete history", strings.Join(a.Advertise, ",")),
		when(a.Cluster != "" && len(validation.IsValidLabelValue(a.Cluster)) > 0, "--cluster %q cannot be the value of a label: give the name that the mirror has", a.Cluster),
		when(a.ListenHTTPS == "", "--listen-https is empty: kube-apiserver has to reach this process"),
		when(a.TLSOwnDir != "" && (a.TLSCertFile != "" || a.TLSKeyFile != ""), "--tls-own-dir and --tls-cert-file exclude each other: give one"),
		when((a.TLSOwnDir == "") != (len(a.TLSHosts) == 0), "--tls-own-dir and --tls-hosts belong together: give SERVICE.NAMESPACE.svc as the host"),
		when(a.TLSOwnDir == "" && (a.TLSCertFile == "" || a.TLSKeyFile == ""), "--tls-cert-file and --tls-key-file are not both set, and --tls-own-dir neither: kube-apiserver verifies the certificate"),
		a.Hosts.Check(), checkAuditRoom(a.AuditMaxBytes),
	)
}

// Run serves until ctx ends.
func (a *aggregateC) Run(ctx context.Context, std stdio) error {
	if err := a.check(); err != nil {
		return err
	}
	formats, err := codec.New(a.GroupDomain)
	if err != nil {
		return cli.Usagef("--group-domain: %w", err)
	}
	log, err := service.Logger(std.err, a.LogFormat, a.LogLevel)
	if err != nil {
		return err
	}
	registry := service.NewRegistry("eventsvc")
	cluster, err := a.Kubernetes.Open()
	if err != nil {
		return err
	}
	var certificate *tls.Config
	var renewed func(context.Context) error
	if a.TLSOwnDir == "" {
		var file *livefile.File
		certificate, file, err = httpserver.CertFiles(a.TLSCertFile, a.TLSKeyFile, log, registry)
		renewed = file.Run
	} else {
		registered := &localca.APIService{Name: "v1.events." + a.GroupDomain, Dir: a.TLSOwnDir, Hosts: a.TLSHosts, API: cluster, Log: log}
		certificate, err = registered.TLSConfig()
		renewed = registered.Run
	}
	if err != nil {
		return err
	}
	certificate.ClientAuth = tls.RequestClientCert // verified for each request, so that another authority counts at once
	events, err := a.Connection.Open()
	if err != nil {
		return err
	}
	service.LimitMemory(log)
	health := &service.Health{}
	proxy := aggregate.NewFrontProxy(cluster, log)
	health.Add("front-proxy", proxy.Ready)
	server, err := aggregate.New(aggregate.Config{
		Events: events, Cluster: a.Cluster, Codec: formats, Advertise: a.Advertise, FrontProxy: proxy,
		Reviewer: aggregate.NewReviewer(cluster, log, registry), Probe: health.Handler, Log: log, Registry: registry,
	})
	if err != nil {
		return err
	}
	entries, err := openAudit(a.AuditFile, a.AuditMaxBytes, audit.Config{Log: log, Registry: registry})
	if err != nil {
		return err
	}
	return service.Run(ctx, service.Config{
		HTTP: httpserver.Config{Name: "eventsvc", Log: log, Registry: registry, Endpoints: []httpserver.Endpoint{
			std.endpoint("--listen-https", a.ListenHTTPS, httpserver.Access(log, registry, audit.Handler(entries, server)), certificate),
			std.endpoint("--listen-admin", a.ListenAdmin, a.Hosts.Guard(a.ListenAdmin, log, service.Admin(health, registry)), nil),
		}},
		Health: health, Tasks: []func(context.Context) error{renewed, proxy.Run, entries.Run},
		Drain: server.Drain, StopDelay: a.StopDelay,
	})
}
