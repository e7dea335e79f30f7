package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/cli"
	"tidings.example/shared/service"
)

// token has the commands for tokens.
type token struct {
	Check tokenCheck `cmd:"" help:"Say by which rule the service refuses a token, and what would be right; takes the flags of serve."`
}

// tokenCheck checks a token by the settings of the service.
type tokenCheck struct {
	Token     string        `arg:"" optional:"" help:"The token; - reads it from standard input, which keeps it out of the list of processes."`
	TokenFile string        `placeholder:"FILE" help:"The file that holds the token."`
	Running   bool          `help:"Ask the running service at --listen-admin, instead of the settings given here."`
	Verb      string        `placeholder:"VERB" help:"Check the policy too: get, list, watch, create, update, patch, delete or deletecollection."`
	Namespace string        `short:"n" default:"default" help:"The namespace of --verb; * stands for a request across all namespaces."`
	Cluster   *string       `placeholder:"NAME" help:"The cluster whose events --verb is about; empty: events without one. Default: any."`
	Wait      time.Duration `default:"5s" help:"How long to wait for the keys of the issuer."`
	Settings  serve         `embed:""`
}

// Help is the rest of the command's help.
func (*tokenCheck) Help() string {
	return `Examples:

    eventsvc token check --issuer http://127.0.0.1:9000 --token-file token.txt
    eventsvc token check --running --verb create --namespace shop - < token.txt

Applies every rule of the service to a token and says which ones refuse it. Give the flags and variables that the service was
started with, or --running to ask the service itself. The first needs the issuer, the second the data directory.

Exit codes: 0 accepted, 1 refused, 2 wrong settings.`
}

// Run prints the table and the verdict.
func (c *tokenCheck) Run(ctx context.Context, std stdio) error {
	text, err := c.token()
	if err != nil {
		return err
	}
	if c.Verb != "" {
		if _, err := policy.ParseVerb(c.Verb); err != nil {
			return cli.Usagef("--verb: %w", err)
		}
	}
	question := admin.TokenRequest{Token: text, Verb: c.Verb, Namespace: c.Namespace, Cluster: c.Cluster}
	if c.Namespace == "*" {
		question.Namespace = policy.AllNamespaces
	}
	ask := c.offline
	if c.Running {
		ask = c.online
	}
	report, err := ask(ctx, std, question)
	if err != nil {
		return err
	}
	if err := report.Print(std.out); err != nil || report.Accepted {
		return err
	}
	return errNo
}

// token returns the token, wherever it is.
func (c *tokenCheck) token() (string, error) {
	text, err := c.Token, error(nil)
	if text == "-" {
		var all []byte
		if all, err = io.ReadAll(io.LimitReader(os.Stdin, 1<<20)); err != nil {
			return "", fmt.Errorf("standard input: %w", err)
		}
		text = string(all)
	} else if text, err = cli.Secret("token", text, c.TokenFile); err == nil && text == "" {
		err = cli.Usagef("no token: give it as the argument, in --token-file, or with - on standard input")
	}
	return strings.TrimSpace(text), err
}

// online asks the running service.
func (c *tokenCheck) online(ctx context.Context, _ stdio, r admin.TokenRequest) (*admin.TokenReport, error) {
	remote, err := admin.NewRemote(c.Settings.DataDir, c.Settings.ListenAdmin)
	if err != nil {
		return nil, err
	}
	return remote.CheckToken(ctx, r)
}

// offline does what a service with these settings would do. It waits for the keys of the issuer.
func (c *tokenCheck) offline(ctx context.Context, std stdio, r admin.TokenRequest) (*admin.TokenReport, error) {
	if err := c.Settings.checkTrust(); err != nil {
		return nil, err
	}
	log, err := service.Logger(std.err, c.Settings.LogFormat, "warn")
	if err != nil {
		return nil, err
	}
	trusted, rights, err := c.Settings.access(log, prometheus.NewRegistry(), func() {}, func() {})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { _ = trusted.Run(ctx) }() // ends with ctx
	return (&admin.TokenChecker{Explain: trusted.Explain, Policy: rights.Current}).Await(ctx, r, c.Wait)
}
