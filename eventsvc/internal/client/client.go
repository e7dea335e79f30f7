package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Config is where a server is and how to be known to it.
type Config struct {
	Server    string      // base URL
	TLS       *tls.Config // nil: the system's authorities
	Tokens    *Tokens     // nil: no Authorization header
	Namespace string      // that a kubeconfig's context names
	UserAgent string
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base   *url.URL
	http   *http.Client
	tokens *Tokens
	agent  string
}

// Bounds that no healthy server reaches.
const (
	answerWait = 90 * time.Second // for the first byte; the server's own limit of a list or write is shorter
	maxBody    = 256 << 20        // of one answer: a page of the largest events
	pingAfter  = 30 * time.Second // a silent HTTP/2 connection is asked whether it lives
)

// New makes a client.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.Server)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("%q is no http(s) URL of a server", c.Server)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: c.TLS, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: answerWait, IdleConnTimeout: 90 * time.Second,
		MaxIdleConnsPerHost: 64,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter / 2},
	}
	return &Client{base: base, tokens: c.Tokens, agent: c.UserAgent, http: &http.Client{
		Transport: transport,
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s; give that address, the token is not sent on", r.URL.Redacted())
		},
	}}, nil
}

// Server is the server's address, for messages.
func (c *Client) Server() string { return c.base.Redacted() }

// Request is one call of the API.
type Request struct {
	Method string // default: GET
	Path   string // below the server's address, escaped
	Query  url.Values
	Body   []byte // JSON
}

// Do sends a request and returns the body of a good answer. Refusals are errors of type
// [k8s.io/apimachinery/pkg/api/errors.StatusError]; everything else means that it is not known whether the server did
// what was asked.
func (c *Client) Do(ctx context.Context, r Request) ([]byte, error) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, &UnreachableError{Server: c.Server(), Err: err}
	}
	return body, nil
}

// send returns only good answers. A token that is refused is replaced once: it may have expired on the way, or its key
// has been withdrawn. What was refused with 401 was not carried out, so that any request can be sent again.
func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, token, err := c.once(ctx, r)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode < 300 {
			return resp, nil
		}
		err = refusal(resp)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized || attempt > 1 || !c.tokens.replace(ctx, token) {
			return nil, err
		}
	}
}

func (c *Client) once(ctx context.Context, r Request) (*http.Response, string, error) {
	target := *c.base
	target.Path, target.RawPath = "", ""
	text := target.String() + c.base.EscapedPath() + r.Path
	if len(r.Query) > 0 {
		text += "?" + r.Query.Encode()
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, text, bytes.NewReader(r.Body))
	if err != nil {
		return nil, "", err
	}
	token, err := c.tokens.Token(ctx)
	if err != nil {
		return nil, "", &TokenError{Err: err}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.agent)
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL, which the error says in its own way
		}
		return nil, "", &UnreachableError{Server: c.Server(), Err: err}
	}
	return resp, token, nil
}

// Page is one page of a list.
type Page struct {
	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}

// List reads one page. query holds the selectors, limit and continue.
func (c *Client) List(ctx context.Context, path string, query url.Values) (*Page, error) {
	body, err := c.Do(ctx, Request{Path: path, Query: query})
	if err != nil {
		return nil, err
	}
	var page Page
	if err := json.Unmarshal(body, &page); err != nil || page.Metadata.ResourceVersion == "" {
		return nil, fmt.Errorf("%s did not answer with a list; is it the address of an event server?", c.Server())
	}
	return &page, nil
}

// EventsPath is the path of the events of a namespace, "" for all of them. group is "" for core/v1, or such as
// events.k8s.io.
func EventsPath(group, namespace string) string {
	path := "/api/v1"
	if group != "" {
		path = "/apis/" + url.PathEscape(group) + "/v1"
	}
	if namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	return path + "/events"
}
