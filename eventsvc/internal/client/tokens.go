package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Tokens is a source of bearer tokens that fetches a new token before the current one expires: a command may run for days,
// and tokens live for minutes. A nil *Tokens returns no token. It is safe for concurrent use; one caller at a time fetches.
type Tokens struct {
	fetch func(context.Context) (credential, error)

	mu   sync.Mutex
	kept credential
}

// credential is a token and the time until which it can be used. Without a time it is used once.
type credential struct {
	token string
	until time.Time
}

// tokenMargin is how long before its end a token is no longer used, so that it does not expire on the way.
const tokenMargin = 10 * time.Second

// Token returns the token to send now, or "" if there is no source.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	if t == nil {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Until(t.kept.until) > 0 {
		return t.kept.token, nil
	}
	c, err := t.fetch(ctx)
	if err != nil {
		return "", err
	}
	t.kept = c
	return c.token, nil
}

// replace drops a token that a server refused, and reports whether there is another one now.
func (t *Tokens) replace(ctx context.Context, refused string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	if t.kept.token == refused {
		t.kept = credential{}
	}
	t.mu.Unlock()
	token, err := t.Token(ctx)
	return err == nil && token != refused
}

// StaticToken returns a source that has only this token.
func StaticToken(token string) *Tokens {
	return &Tokens{fetch: func(context.Context) (credential, error) { return credential{token: token}, nil }}
}

// FileToken returns a source that reads a file for each request, so that others, such as a kubelet, can renew the file.
func FileToken(name string) *Tokens {
	return &Tokens{fetch: func(context.Context) (credential, error) {
		content, err := os.ReadFile(name)
		if err != nil {
			return credential{}, err
		}
		token := strings.TrimPrefix(strings.TrimSpace(string(content)), "Bearer ")
		if token == "" {
			return credential{}, fmt.Errorf("%s is empty", name)
		}
		return credential{token: token}, nil
	}}
}

// bareTokenLife is how long a token is used that a program prints without an expiry time.
const bareTokenLife = 30 * time.Second

// CommandToken returns a source that runs a program. The program prints either a credential for kubectl (ExecCredential of
// client.authentication.k8s.io, as `tokensvc credential` does) or only a token (as `tokensvc token fetch` does). env is
// added to the environment.
func CommandToken(env []string, name string, args ...string) *Tokens {
	return &Tokens{fetch: func(ctx context.Context) (credential, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Env = append(os.Environ(), env...)
		if err := cmd.Run(); err != nil {
			return credential{}, fmt.Errorf("%s: %w %s", name, err, bytes.TrimSpace(stderr.Bytes()))
		}
		return readCredential(name, bytes.TrimSpace(stdout.Bytes()))
	}}
}

func readCredential(name string, printed []byte) (credential, error) {
	if len(printed) == 0 {
		return credential{}, fmt.Errorf("%s printed no token", name)
	}
	if printed[0] != '{' {
		if bytes.ContainsAny(printed, " \n\t") {
			return credential{}, fmt.Errorf("%s printed something else than a token", name)
		}
		return credential{token: string(printed), until: time.Now().Add(bareTokenLife)}, nil
	}
	var e struct {
		Kind   string
		Status struct {
			Token                 string
			ClientCertificateData string
			ExpirationTimestamp   time.Time
		}
	}
	if err := json.Unmarshal(printed, &e); err != nil || e.Kind != "ExecCredential" {
		return credential{}, fmt.Errorf("%s printed JSON that is no ExecCredential", name)
	}
	if e.Status.Token == "" {
		if e.Status.ClientCertificateData != "" {
			return credential{}, fmt.Errorf("%s gives a client certificate; only tokens of programs can be used", name)
		}
		return credential{}, fmt.Errorf("%s printed an ExecCredential without a token", name)
	}
	until := e.Status.ExpirationTimestamp
	if until.IsZero() { // kubectl uses such a token until it is refused; send asks again then
		until = time.Now().Add(time.Hour)
	}
	return credential{token: e.Status.Token, until: until}, nil
}

// ClientCredentials is a client of a token endpoint (RFC 6749 section 4.4). It authenticates with a secret or with an
// assertion (RFC 7523 section 2.2), whose file is read for each token, because others replace it: an operator the secret, a
// kubelet the assertion.
type ClientCredentials struct {
	TokenURL      string
	ClientID      string // empty: the client that the assertion is about
	SecretFile    string
	AssertionFile string // instead of SecretFile
	TLS           *tls.Config
}

// form returns the parameters of a request for a token.
func (c ClientCredentials) form() (url.Values, error) {
	content, err := os.ReadFile(cmp.Or(c.AssertionFile, c.SecretFile))
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(content))
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.ClientID != "" {
		form.Set("client_id", c.ClientID)
	}
	if c.AssertionFile == "" {
		form.Set("client_secret", text)
		return form, nil
	}
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", text)
	return form, nil
}

// refused describes the refusal of the client.
func (c ClientCredentials) refused() error {
	if c.AssertionFile == "" {
		return fmt.Errorf("%s does not accept client %q with the secret in %s (invalid_client)", c.TokenURL, c.ClientID, c.SecretFile)
	}
	who := "a client"
	if c.ClientID != "" {
		who = fmt.Sprintf("client %q", c.ClientID)
	}
	return fmt.Errorf("%s does not accept %s with the assertion in %s (invalid_client)", c.TokenURL, who, c.AssertionFile)
}

// FetchedToken returns a source that asks a token endpoint, some time before the current token expires.
func FetchedToken(c ClientCredentials) *Tokens {
	sender := newHTTP(c.TLS, "secret")
	sender.Timeout = 30 * time.Second
	return &Tokens{fetch: func(ctx context.Context) (credential, error) { return c.fetch(ctx, sender) }}
}

func (c ClientCredentials) fetch(ctx context.Context, sender *http.Client) (credential, error) {
	form, err := c.form()
	if err != nil {
		return credential{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return credential{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	asked := time.Now()
	resp, err := sender.Do(req)
	if err != nil {
		return credential{}, fmt.Errorf("no answer from the token endpoint: %w; is it running, and --token-url right?", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return credential{}, fmt.Errorf("read the answer of %s: %w", c.TokenURL, err)
	}
	var answer struct {
		Token     string `json:"access_token"`
		ExpiresIn int64  `json:"expires_in"`
		Code      string `json:"error"`
		Text      string `json:"error_description"`
	}
	switch err := json.Unmarshal(body, &answer); {
	case err != nil:
		return credential{}, fmt.Errorf("%s answered %s without JSON; is it a token endpoint?", c.TokenURL, resp.Status)
	case answer.Code == "invalid_client":
		return credential{}, c.refused()
	case resp.StatusCode != http.StatusOK || answer.Token == "":
		return credential{}, errors.New(strings.TrimSpace(fmt.Sprintf("%s answered %s %s %s", c.TokenURL, resp.Status, answer.Code, answer.Text)))
	}
	life := time.Duration(answer.ExpiresIn) * time.Second
	return credential{token: answer.Token, until: asked.Add(life - min(tokenMargin, life/2))}, nil
}
