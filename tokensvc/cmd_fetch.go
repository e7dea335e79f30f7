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
	u, err := url.Parse(t.TokenURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
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

// credentials returns the file by which the client authenticates, and the parameters that it makes.
func (t *tokenSource) credentials() (file string, form url.Values, err error) {
	form = url.Values{"grant_type": {"client_credentials"}}
	if t.ClientID != "" {
		form.Set("client_id", t.ClientID)
	}
	if t.ClientSecretFile != "" {
		secret, err := cli.Secret("client-secret", "", t.ClientSecretFile)
		form.Set("client_secret", secret)
		return t.ClientSecretFile, form, err
	}
	var assertion string
	if file = t.AssertionFile; file != "" {
		assertion, err = cli.Secret("assertion", "", file)
	} else {
		file = t.ClientKeyFile
		var key *clientkey.Private
		if key, err = readClientKey(file); err == nil {
			assertion, err = key.Assertion(t.ClientID, t.Audience, time.Now())
		}
	}
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer") // RFC 7523 section 2.2
	form.Set("client_assertion", assertion)
	return file, form, err
}

// fetched is the answer of the token endpoint.
type fetched struct {
	AccessToken string    `json:"access_token"`
	TokenType   string    `json:"token_type"`
	ExpiresIn   int64     `json:"expires_in"`
	Expires     time.Time `json:"expires"` // computed, not sent by the endpoint
}

// fetch requests a token (RFC 6749 section 4.4.2). An error has the endpoint's answer, and never the secret.
func (t *tokenSource) fetch(ctx context.Context) (*fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	file, form, err := t.credentials()
	if err != nil {
		return nil, err
	}
	hc, err := t.httpClient()
	if err != nil {
		return nil, err
	}
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
		return nil, t.refused(resp.StatusCode, body, file)
	}
	var f fetched
	if err := json.Unmarshal(body, &f); err != nil || f.AccessToken == "" {
		return nil, fmt.Errorf("%s did not answer with a token; is it a token endpoint?", t.TokenURL)
	}
	f.Expires = asked.Add(time.Duration(f.ExpiresIn) * time.Second)
	return &f, nil
}

// refused returns the endpoint's error as text.
func (t *tokenSource) refused(status int, body []byte, file string) error {
	var e struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &e) != nil || e.Code == "" {
		return fmt.Errorf("%s answered %d without an OAuth error; is it a token endpoint?", t.TokenURL, status)
	}
	if e.Code == "invalid_client" {
		kind := "secret"
		switch file {
		case t.ClientKeyFile:
			kind = "key"
		case t.AssertionFile:
			kind = "assertion"
		}
		return fmt.Errorf("%s does not accept client %q with the %s in %s (invalid_client)", t.TokenURL, t.ClientID, kind, file)
	}
	return fmt.Errorf("%s answered %d %s %s", t.TokenURL, status, e.Code, e.Description)
}

func (t *tokenSource) httpClient() (*http.Client, error) {
	hc := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the token endpoint redirects; give its final address, credentials are not sent on")
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
