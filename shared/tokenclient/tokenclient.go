// Package tokenclient asks a token endpoint for an access token by the grant client_credentials (RFC 6749 section 4.4).
// It keeps no tokens. Its errors never contain credentials.
package tokenclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tidings.example/shared/printable"
	"tidings.example/shared/trustfile"
)

// Request is how a client authenticates: by a secret, or by an assertion (RFC 7523 section 2.2).
type Request struct {
	TokenURL  string
	ClientID  string // empty: the client that the assertion is about
	Secret    string
	Assertion string // instead of Secret
	Source    string // what the client authenticates with, for errors, such as "the secret in FILE"

	Setting      string // the name of the setting of TokenURL, for errors; empty: --token-url
	ForwardedFor string // address of the client that this one asks for, as X-Forwarded-For; empty: none
}

// Token is the answer of the endpoint.
type Token struct {
	AccessToken string    `json:"access_token"`
	TokenType   string    `json:"token_type"`
	ExpiresIn   int64     `json:"expires_in"`
	Expires     time.Time `json:"expires"` // computed, not sent by the endpoint
}

// UnavailableError means that the same request may succeed later: no whole answer came, or the endpoint was busy or
// stopping.
type UnavailableError struct {
	Err        error
	Status     int           // of the answer; 0: there was none
	RetryAfter time.Duration // for which the endpoint asks; 0: it asks for none
}

// Error tells the cause.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// RefusedError is an error that the endpoint has answered with, and will again (RFC 6749 section 5.2).
type RefusedError struct {
	Code string // such as invalid_client
	text string
}

// Error tells what was answered.
func (e *RefusedError) Error() string { return e.text }

// HTTP returns a client for requests to a token endpoint. It follows no redirects, because credentials must not reach
// another server. A nil config stands for the certificates that the system trusts.
func HTTP(config *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s; give that address, credentials are not sent on", r.URL.Redacted())
		},
	}
}

// Trusting returns the client of [HTTP] for the certificate authorities, PEM, in a file, which is followed; empty:
// those that the system trusts.
func Trusting(caFile string) (*http.Client, error) {
	client := HTTP(nil)
	if caFile == "" {
		return client, nil
	}
	trusting, err := trustfile.New(client.Transport.(*http.Transport), caFile)
	client.Transport = trusting
	return client, err
}

// maxAnswer is the largest answer in bytes.
const maxAnswer = 64 << 10

// Fetch requests a token. The error is an [UnavailableError] if a later request may succeed.
func (r Request) Fetch(ctx context.Context, client *http.Client) (*Token, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.TokenURL, strings.NewReader(r.form()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if r.ForwardedFor != "" {
		req.Header.Set("X-Forwarded-For", r.ForwardedFor)
	}
	asked := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return nil, &UnavailableError{Err: fmt.Errorf("no answer from the token endpoint: %w; is it running, and %s right?", err, cmp.Or(r.Setting, "--token-url"))}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, &UnavailableError{Err: fmt.Errorf("read the answer of %s: %w", r.TokenURL, err)}
	}
	switch code := resp.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		wait, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return nil, &UnavailableError{Err: r.refusal(resp.Status, body), Status: code, RetryAfter: time.Duration(min(max(wait, 0), 3600)) * time.Second}
	case code != http.StatusOK:
		return nil, r.refusal(resp.Status, body)
	}
	token, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("%s did not answer with a token: %w; is it a token endpoint?", r.TokenURL, err)
	}
	token.Expires = asked.Add(time.Duration(token.ExpiresIn) * time.Second)
	return token, nil
}

// The largest token in bytes, and the longest life of one in seconds. A longer token fits into the header of no
// request.
const (
	maxToken = 16 << 10
	maxLife  = 366 * 24 * 60 * 60
)

// decode checks the answer of an endpoint (RFC 6749 section 5.1).
func decode(body []byte) (*Token, error) {
	var answer struct {
		AccessToken string          `json:"access_token"`
		TokenType   string          `json:"token_type"`
		ExpiresIn   json.RawMessage `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errors.New("the answer is no JSON object with access_token")
	}
	token := &Token{AccessToken: answer.AccessToken, TokenType: answer.TokenType}
	switch {
	case token.AccessToken == "":
		return nil, errors.New("access_token is missing")
	case len(token.AccessToken) > maxToken:
		return nil, fmt.Errorf("access_token has more than %d bytes", maxToken)
	case strings.ContainsFunc(token.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }): // it would not be one word of a header
		return nil, errors.New("access_token has characters other than printable ASCII, or spaces")
	case !strings.EqualFold(token.TokenType, "Bearer"):
		return nil, fmt.Errorf("token_type is %.20q, not Bearer", token.TokenType)
	case answer.ExpiresIn == nil: // how long the token lives is not known
		return token, nil
	}
	var err error
	if token.ExpiresIn, err = strconv.ParseInt(string(answer.ExpiresIn), 10, 64); err != nil || token.ExpiresIn < 1 || token.ExpiresIn > maxLife {
		return nil, fmt.Errorf("expires_in is %.20q, not a whole number of seconds from 1 to %d", answer.ExpiresIn, maxLife)
	}
	return token, nil
}

func (r Request) form() string {
	form := url.Values{"grant_type": {"client_credentials"}}
	if r.ClientID != "" {
		form.Set("client_id", r.ClientID)
	}
	if r.Assertion == "" {
		form.Set("client_secret", r.Secret)
		return form.Encode()
	}
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", r.Assertion)
	return form.Encode()
}

// refusal returns the endpoint's error (RFC 6749 section 5.2) as an error.
func (r Request) refusal(status string, body []byte) error {
	var e struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &e) != nil || e.Code == "" {
		return fmt.Errorf("%s answered %.500s without an OAuth error; is it a token endpoint?", r.TokenURL, printable.OneLine(status))
	}
	if e.Code != "invalid_client" {
		text := printable.OneLine(fmt.Sprintf("%s %s %s", status, e.Code, e.Description))
		return &RefusedError{e.Code, fmt.Sprintf("%s answered %.500s", r.TokenURL, text)}
	}
	who := "a client"
	if r.ClientID != "" {
		who = fmt.Sprintf("client %q", r.ClientID)
	}
	return &RefusedError{e.Code, fmt.Sprintf("%s does not accept %s with %s (invalid_client)", r.TokenURL, who, r.Source)}
}
