package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/shared/trustfile"
)

// Config describes a server and how to authenticate to it.
type Config struct {
	Server    string      // base URL
	TLS       *tls.Config // nil: trust the system's authorities
	CAFile    string      // of authorities in PEM that are trusted instead, as they are now; "": those of TLS
	Tokens    *Tokens     // nil: send no token
	Namespace string      // of the kubeconfig's context; may be empty
	UserAgent string
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base   string // without / at the end
	server string // the same without a password, for messages
	http   *http.Client
	tokens *Tokens
	agent  string
	// metadata: lists, watches and answers have the metadata of objects only; see [Client.Metadata].
	metadata bool
	protobuf bool // lists of events are read in protobuf; see [Client.Protobuf]
}

// Limits that a healthy server does not reach.
const (
	answerWait = 90 * time.Second // until the first byte; a server ends a list or a write earlier
	maxBody    = 256 << 20        // of one answer: a page of the largest events
	pingAfter  = 30 * time.Second // then a silent HTTP/2 connection is pinged
)

// New returns a client. It sends nothing yet.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.Server)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("%q is no http(s) URL of a server", c.Server)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	sender := newHTTP(c.TLS)
	if c.CAFile != "" {
		if sender.Transport, err = trustfile.New(sender.Transport.(*http.Transport), c.CAFile); err != nil {
			return nil, err
		}
	}
	return &Client{
		base: base.String(), server: base.Redacted(), http: sender, tokens: c.Tokens, agent: c.UserAgent,
	}, nil
}

// newHTTP returns an HTTP client that follows no redirects, because the token must not reach another server.
func newHTTP(config *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: answerWait, IdleConnTimeout: 90 * time.Second,
			MaxIdleConnsPerHost: 64,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter / 2},
		},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s; give that address, the token is not sent on", r.URL.Redacted())
		},
	}
}

// Metadata returns a client of the same server that reads the metadata of objects and not their content:
// PartialObjectMetadata of meta.k8s.io/v1, which every API server since Kubernetes 1.15 has.
func (c *Client) Metadata() *Client {
	only := *c
	only.metadata = true
	return &only
}

// Protobuf returns a client of the same server that asks for lists of events in protobuf, which takes a fraction of the
// time of JSON. A server that has no protobuf answers in JSON.
func (c *Client) Protobuf() *Client {
	fast := *c
	fast.protobuf = true
	return &fast
}

// Server returns the server's address for messages.
func (c *Client) Server() string { return c.server }

// Request is one call of the API.
type Request struct {
	Method string // "": GET
	Path   string // below the server's address, escaped
	Query  url.Values
	Header http.Header // besides those of every request; Accept replaces the one for JSON
	Body   any         // sent as JSON, unless it is nil

	list  bool   // the answer is a list
	proto []byte // sent as it is, as protobuf
}

// Do sends a request and decodes the JSON of the answer into answer, unless that is nil.
func (c *Client) Do(ctx context.Context, r Request, answer any) error {
	body, _, err := c.read(ctx, r)
	if err != nil || answer == nil {
		return err
	}
	return c.understood(json.Unmarshal(body, answer))
}

// read sends a request and returns the body of the answer and its media type.
func (c *Client) read(ctx context.Context, r Request) (body []byte, media string, err error) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, "", err
	}
	body, err = c.bodyOf(resp)
	return body, resp.Header.Get("Content-Type"), err
}

// bodyOf reads the body of an answer, and closes it.
func (c *Client) bodyOf(resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, &UnreachableError{Server: c.Server(), Err: err}
	}
	return body, nil
}

// understood adds to the error of an answer that cannot be decoded that the server is perhaps no event server.
func (c *Client) understood(err error) error {
	if err != nil {
		err = fmt.Errorf("%s did not answer as an event server does; is it the address of one? %w", c.Server(), err)
	}
	return err
}

// Exchange sends a request and returns the body of the answer, with its status, whether that is a good one or not.
func (c *Client) Exchange(ctx context.Context, r Request) (status int, body []byte, err error) {
	resp, err := c.Open(ctx, r)
	if err != nil {
		return 0, nil, err
	}
	body, err = c.bodyOf(resp)
	return resp.StatusCode, body, err
}

// send returns the answer if its status is good.
func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	resp, err := c.Open(ctx, r)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, refusal(resp)
}

// Open sends a request and returns the answer, whatever its status, with its body still to be read and closed. A token
// that is refused with 401 may have expired on the way, or its key may have been withdrawn: the request, which was not
// carried out, is sent once more if there is another token.
func (c *Client) Open(ctx context.Context, r Request) (*http.Response, error) {
	body := r.proto
	if r.Body != nil {
		var err error
		if body, err = json.Marshal(r.Body); err != nil {
			return nil, err
		}
	}
	for attempt := 1; ; attempt++ {
		resp, token, err := c.attempt(ctx, r, body)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized || attempt > 1 {
			return resp, nil
		}
		another, noToken := c.tokens.replace(ctx, token)
		if noToken == nil && !another {
			return resp, nil
		}
		_ = resp.Body.Close()
		if noToken != nil {
			return nil, &TokenError{Err: noToken}
		}
	}
}

// attempt sends a request once and returns the token that it has used.
func (c *Client) attempt(ctx context.Context, r Request, body []byte) (resp *http.Response, token string, err error) {
	target := c.base + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	maps.Copy(req.Header, r.Header)
	if token, err = c.tokens.Token(ctx); err != nil {
		return nil, "", &TokenError{Err: err}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if r.Header.Get("Accept") == "" {
		req.Header.Set("Accept", c.accept(r.list))
	}
	req.Header.Set("User-Agent", c.agent)
	switch {
	case r.proto != nil:
		req.Header.Set("Content-Type", mediaProtobuf)
	case body != nil:
		req.Header.Set("Content-Type", "application/json")
	}
	if resp, err = c.http.Do(req); err == nil {
		return resp, token, nil
	}
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the URL, because UnreachableError names the server
	}
	return nil, "", &UnreachableError{Server: c.Server(), Err: err}
}

// accept returns the media type to ask for.
func (c *Client) accept(list bool) string {
	switch {
	case c.protobuf && list:
		return mediaProtobuf + ",application/json"
	case !c.metadata:
		return "application/json"
	case list:
		return "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	default:
		return "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	}
}

// Page is one page of a list.
type Page struct {
	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`

	Events []corev1.Event `json:"-"` // the items of a list in protobuf
}

// list reads one page. query holds the selectors, limit and continue.
func (c *Client) list(ctx context.Context, path string, query url.Values) (*Page, error) {
	page := new(Page)
	body, media, err := c.read(ctx, Request{Path: path, Query: query, list: true})
	switch {
	case err != nil:
	case media == mediaProtobuf:
		err = c.understood(page.readEvents(body))
	default:
		err = c.understood(json.Unmarshal(body, page))
	}
	if err == nil && page.Metadata.ResourceVersion == "" {
		err = fmt.Errorf("%s did not answer with a list; is it the address of an event server?", c.Server())
	}
	return page, err
}

// PageSize is the number of events of one page of a list, if its query has no limit.
const PageSize = 500

// Pages reads a list page by page and returns the resourceVersion of the list. It calls each with every page, and asks
// for the next page meanwhile. After a failure it calls again, and asks for the same page once more if that returns
// nil; otherwise it returns that error.
func (c *Client) Pages(ctx context.Context, path string, query url.Values, each func(*Page) error, again func(error) error) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := url.Values{"limit": {strconv.Itoa(PageSize)}}
	maps.Copy(q, query)
	read := func() func() (*Page, error) {
		var page *Page
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			page, err = c.list(ctx, path, q)
		}()
		return func() (*Page, error) { <-done; return page, err }
	}
	for next := read(); ; {
		page, err := next()
		if err != nil {
			if err = again(err); err != nil {
				return "", err
			}
			next = read()
			continue
		}
		if page.Metadata.Continue != "" {
			q.Set("continue", page.Metadata.Continue)
			next = read()
		}
		if err := each(page); err != nil {
			return "", err
		}
		if page.Metadata.Continue == "" {
			return page.Metadata.ResourceVersion, nil
		}
	}
}

// Version returns the server's current resourceVersion.
func (c *Client) Version(ctx context.Context, path string) (string, error) {
	return c.version(ctx, path, nil)
}

// version is Version for a caller that may list only what selectors select.
func (c *Client) version(ctx context.Context, path string, selectors url.Values) (string, error) {
	q := url.Values{}
	maps.Copy(q, selectors)
	q.Set("limit", "1")
	page, err := c.list(ctx, path, q)
	return page.Metadata.ResourceVersion, err
}

// Create stores an object under a name, once. If the answer is lost, the object may be stored: it is sent again under
// the same name, and if that name is taken, same tells whether the stored object is the one that was sent. After a
// failure Create calls again, and tries once more if that returns nil; otherwise it returns that error.
func (c *Client) Create(ctx context.Context, path, name string, object any, same func(json.RawMessage) bool, again func(error) error) (json.RawMessage, error) {
	for {
		var stored json.RawMessage
		err := c.Do(ctx, Request{Method: http.MethodPost, Path: path, Body: object}, &stored)
		if err == nil {
			return stored, nil
		}
		if Code(err) == http.StatusConflict {
			getErr := c.Do(ctx, Request{Path: path + "/" + url.PathEscape(name)}, &stored)
			switch {
			case getErr == nil && same(stored):
				return stored, nil
			case getErr == nil:
				return nil, err
			case Code(getErr) != http.StatusNotFound: // with 404 the name has become free
				err = getErr
			}
		}
		if err = again(err); err != nil {
			return nil, err
		}
	}
}

// EventsPath returns the path of the events of a namespace, or of all namespaces if it is "". group is "" for core/v1,
// or a name such as events.k8s.io.
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
