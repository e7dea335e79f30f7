package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/tokenclient"
	"tidings.example/tokensvc/internal/clientkey"
)

// tokenSource has the settings of the commands that fetch a token. The client authenticates by exactly one of the three
// files.
type tokenSource struct {
	TokenURL         string `name:"token-url" required:"" help:"Token endpoint." placeholder:"URL"`
	ClientID         string `help:"Client to authenticate as; may be left out with --assertion-file." placeholder:"ID"`
	ClientSecretFile string `help:"File that holds the client's secret." placeholder:"FILE"`
	ClientKeyFile    string `help:"File that holds the client's private key, to sign an assertion with (private_key_jwt)." placeholder:"FILE"`
	AssertionFile    string `help:"File that holds an assertion, such as a service-account token of Kubernetes; read each time." placeholder:"FILE"`
	Audience         string `name:"assertion-audience" help:"Issuer of the token service, which is the audience of assertions signed with --client-key-file (default: --token-url without /oauth2/token)." placeholder:"TEXT"`
	CAFile           string `name:"ca-file" help:"Certificates in PEM to trust instead of the system's." placeholder:"FILE"`

	Timeout time.Duration `default:"20s" help:"Time to get a token."`
}

// check returns an error for settings that cannot work, and sets the default of Audience.
func (t *tokenSource) check() error {
	if !bearer.IsURL(t.TokenURL) {
		return cli.Usagef("--token-url %q is no http or https URL, such as http://127.0.0.1:9000/oauth2/token", t.TokenURL)
	}
	if t.Timeout <= 0 {
		return cli.Usagef("--timeout is %v; set more than 0, such as 20s", t.Timeout)
	}
	return t.checkCredentials()
}

// checkCredentials returns an error unless exactly one kind of credentials is given, with what it needs.
func (t *tokenSource) checkCredentials() error {
	files := 0
	for _, file := range []string{t.ClientSecretFile, t.ClientKeyFile, t.AssertionFile} {
		if file != "" {
			files++
		}
	}
	issuer, derived := strings.CutSuffix(t.TokenURL, "/oauth2/token")
	switch {
	case files != 1:
		return cli.Usagef("of --client-secret-file, --client-key-file and --assertion-file exactly one must be set, %d are", files)
	case t.ClientID == "" && t.AssertionFile == "":
		return cli.Usagef("--client-id is missing")
	case t.Audience != "" && t.ClientKeyFile == "":
		return cli.Usagef("--assertion-audience has no effect without --client-key-file")
	case t.Audience == "" && t.ClientKeyFile != "" && !derived:
		return cli.Usagef("--assertion-audience must be set where --token-url does not end with /oauth2/token")
	case t.Audience == "":
		t.Audience = issuer
	}
	return nil
}

// request returns how the client authenticates.
func (t *tokenSource) request() (r tokenclient.Request, err error) {
	r = tokenclient.Request{TokenURL: t.TokenURL, ClientID: t.ClientID}
	switch {
	case t.ClientSecretFile != "":
		r.Source = "the secret in " + t.ClientSecretFile
		r.Secret, err = cli.Secret("client-secret", "", t.ClientSecretFile)
	case t.AssertionFile != "":
		r.Source = "the assertion in " + t.AssertionFile
		r.Assertion, err = cli.Secret("assertion", "", t.AssertionFile)
	default:
		r.Source = "the key in " + t.ClientKeyFile
		var key *clientkey.Private
		if key, err = readClientKey(t.ClientKeyFile); err == nil {
			r.Assertion, err = key.Assertion(t.ClientID, t.Audience, time.Now())
		}
	}
	return r, err
}

// fetch requests a token.
func (t *tokenSource) fetch(ctx context.Context) (*tokenclient.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	r, err := t.request()
	if err != nil {
		return nil, err
	}
	hc, err := t.httpClient()
	if err != nil {
		return nil, err
	}
	token, err := r.Fetch(ctx, hc)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("no answer from the token endpoint %s within %s: is --token-url right? --timeout waits longer", t.TokenURL, t.Timeout)
	}
	return token, err
}

func (t *tokenSource) httpClient() (*http.Client, error) {
	client, err := tokenclient.Trusting(t.CAFile)
	if err != nil {
		return nil, cli.Usagef("--ca-file: %w", err)
	}
	return client, nil
}
