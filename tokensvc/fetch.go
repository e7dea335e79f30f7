package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"tidings.example/shared/cli"
)

// tokenSource has the settings of the commands that fetch a token.
type tokenSource struct {
	TokenURL         string `name:"token-url" required:"" help:"Token endpoint." placeholder:"URL"`
	ClientID         string `required:"" help:"Client to authenticate as." placeholder:"ID"`
	ClientSecretFile string `required:"" help:"File that holds the client's secret." placeholder:"FILE"`
	CAFile           string `name:"ca-file" help:"Certificates in PEM to trust instead of the system's." placeholder:"FILE"`

	Timeout time.Duration `default:"20s" help:"Time to get a token."`
}

// check returns an error for settings that cannot work.
func (t tokenSource) check() error {
	u, err := url.Parse(t.TokenURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return cli.Usagef("--token-url %q is no http or https URL, such as http://127.0.0.1:9000/oauth2/token", t.TokenURL)
	}
	if t.Timeout <= 0 {
		return cli.Usagef("--timeout is %v; set more than 0, such as 20s", t.Timeout)
	}
	return nil
}

// fetched is the answer of the token endpoint.
type fetched struct {
	AccessToken string    `json:"access_token"`
	TokenType   string    `json:"token_type"`
	ExpiresIn   int64     `json:"expires_in"`
	Expires     time.Time `json:"expires"` // computed, not sent by the endpoint
}

// fetch requests a token (RFC 6749 section 4.4.2). An error has the endpoint's answer, and never the secret.
func (t tokenSource) fetch(ctx context.Context) (*fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	secret, err := cli.Secret("client-secret", "", t.ClientSecretFile)
	if err != nil {
		return nil, err
	}
	hc, err := t.httpClient()
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {t.ClientID}, "client_secret": {secret}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, cli.Usagef("--token-url: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	asked := time.Now()
	resp, err := hc.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("no answer from the token endpoint %s within %s: is --token-url right? --timeout waits longer", t.TokenURL, t.Timeout)
	}
	if err != nil {
		return nil, fmt.Errorf("no answer from the token endpoint: %w; is tokensvc running, and --token-url right?", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", t.TokenURL, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, t.refused(resp.StatusCode, body)
	}
	var f fetched
	if err := json.Unmarshal(body, &f); err != nil || f.AccessToken == "" {
		return nil, fmt.Errorf("%s did not answer with a token; is it a token endpoint?", t.TokenURL)
	}
	f.Expires = asked.Add(time.Duration(f.ExpiresIn) * time.Second)
	return &f, nil
}

// refused returns the endpoint's error as text.
func (t tokenSource) refused(status int, body []byte) error {
	var e struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &e) != nil || e.Code == "" {
		return fmt.Errorf("%s answered %d without an OAuth error; is it a token endpoint?", t.TokenURL, status)
	}
	if e.Code == "invalid_client" {
		return fmt.Errorf("%s does not accept client %q with the secret in %s (invalid_client)", t.TokenURL, t.ClientID, t.ClientSecretFile)
	}
	return fmt.Errorf("%s answered %d %s %s", t.TokenURL, status, e.Code, e.Description)
}

func (t tokenSource) httpClient() (*http.Client, error) {
	hc := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the token endpoint redirects; give its final address, the secret is not sent on")
	}}
	if t.CAFile == "" {
		return hc, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, cli.Usagef("--ca-file: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, cli.Usagef("--ca-file: %s holds no certificate in PEM", t.CAFile)
	}
	hc.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return hc, nil
}
