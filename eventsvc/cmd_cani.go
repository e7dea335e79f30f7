package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/trust"
	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
)

// canI explains what a policy file decides, without a running service.
type canI struct {
	Verb          string            `arg:"" help:"get, list, watch, create, update, patch, delete, deletecollection or *."`
	Namespace     string            `short:"n" default:"default" help:"The namespace of the events."`
	AllNamespaces bool              `short:"A" help:"Across all namespaces."`
	Cluster       *string           `placeholder:"NAME" help:"Events of this cluster; empty: events without one. Default: events of any cluster."`
	PolicyFile    string            `placeholder:"FILE" help:"The policy file; without it every authenticated client may do everything."`
	ClientID      string            `name:"client-id" help:"The client id of the token."`
	Scope         string            `help:"The scope claim of the token."`
	Claim         map[string]string `placeholder:"NAME=VALUE;..." help:"Other claims of the token."`
	TokenIssuer   string            `placeholder:"ISSUER" help:"The issuer of the token. Default: --issuer."`

	Issuer      string   `default:"default" help:"The --issuer of the service; empty if it has only an issuers file."`
	IssuersFile string   `placeholder:"FILE" help:"The other issuers that the service accepts."`
	Claims      []string `placeholder:"NAME" help:"The claims that the service reads."`
}

// options returns the options of a service with the same settings.
func (c *canI) options() (policy.Options, error) {
	var all []trust.Issuer
	if c.IssuersFile != "" {
		var err error
		if all, err = trust.ReadIssuers(c.IssuersFile); err != nil {
			return policy.Options{}, err
		}
	}
	if c.Issuer != "" {
		all = append(all, trust.Issuer{Issuer: c.Issuer, Claims: c.Claims})
	}
	of := cmp.Or(c.TokenIssuer, c.Issuer) // the issuer whose claims the service reads
	for i := range all {
		if all[i].Issuer == of {
			all[i].Claims = slices.AppendSeq(slices.Clone(all[i].Claims), maps.Keys(c.Claim))
		}
	}
	return policyOptions(c.Issuer, all), nil
}

// policy returns the policy that the service would start with. An issuer of the cluster need not be known for that.
func (c *canI) policy() (*policy.Policy, error) {
	o, err := c.options()
	if err != nil {
		return nil, cli.Usagef("--issuers-file: %w", err)
	}
	live, err := policy.NewLive(policy.Config{
		Path: c.PolicyFile, Options: func() policy.Options { return o }, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		return nil, cli.Usagef("--policy-file: %w", err)
	}
	return live.Current(), nil
}

// Run prints the answer and the rule that gives it.
func (c *canI) Run(std stdio) error {
	verb, err := policy.ParseVerb(c.Verb)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	p, err := c.policy()
	if err != nil {
		return err
	}
	std.warn(p.Unreachable())
	caller := &bearer.Caller{Issuer: cmp.Or(c.TokenIssuer, c.Issuer), ClientID: c.ClientID, Scopes: strings.Fields(c.Scope), Claims: map[string][]string{}}
	for name, value := range c.Claim {
		caller.Claims[name] = strings.Split(value, ",")
	}
	namespace := c.Namespace
	if c.AllNamespaces {
		namespace = policy.AllNamespaces
	}
	d := p.Decide(caller, verb, namespace).Of(c.Cluster)
	answer := "no"
	if d.Allowed {
		answer = "yes"
	}
	if _, err := fmt.Fprintf(std.out, "%s: %s\n", answer, d.Rule); err != nil || d.Allowed {
		return err
	}
	return errNo
}
