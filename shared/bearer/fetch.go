package bearer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidings.example/shared/httpserver"
)

const (
	maxRedirects = 3
	fetchTimeout = 5 * time.Second
	maxDocument  = 512 << 10 // bytes

	// An API server of Kubernetes answers 406 to a request for its keys that does not name their type (RFC 7517 section
	// 8.5.1).
	accepted = "application/json, application/jwk-set+json, */*;q=0.1"
)

// sameHostClient returns a copy of a client that follows no redirect to another host or scheme. Nil stands for the
// default client.
func sameHostClient(client *http.Client) *http.Client {
	own := http.Client{}
	if client != nil {
		own = *client
	}
	own.CheckRedirect = sameHost
	return &own
}

func sameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Scheme != via[0].URL.Scheme || req.URL.Host != via[0].URL.Host {
		return errors.New("redirected to another host, which is refused")
	}
	if len(via) > maxRedirects {
		return errors.New("redirected too often")
	}
	return nil
}

// get fetches a document of an issuer in bounded time and size, and returns it and how long it may be cached; 0 if the
// answer does not say. The caller has checked the address by CheckAddress.
func get(ctx context.Context, client *http.Client, address string) ([]byte, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", accepted)
	httpserver.PassTrace(ctx, req.Header) // if a request with an unknown key caused the fetch, ctx is its context
	resp, err := client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("%s answered %d", address, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", address, err)
	}
	if len(body) > maxDocument {
		return nil, 0, fmt.Errorf("%s answered more than %d bytes", address, maxDocument)
	}
	return body, maxAge(resp.Header), nil
}

// maxAge returns the max-age of Cache-Control (RFC 9111 section 5.2.2.1), or 0.
func maxAge(header http.Header) time.Duration {
	for directive := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if strings.EqualFold(name, "max-age") {
			if seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32); err == nil && seconds > 0 {
				return time.Duration(seconds) * time.Second
			}
		}
	}
	return 0
}

// CheckAddress returns an error unless the URL is https, or http to this machine or to one of allowHTTPHosts. Plain
// HTTP is restricted because anyone who can change the keys in transit can sign tokens.
func CheckAddress(address string, allowHTTPHosts []string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return fmt.Errorf("%q is no URL: %w", address, err)
	// net/url allows these characters in a host, but a Content-Security-Policy would read them as its own.
	case u.Host == "" || u.User != nil || strings.ContainsAny(u.Host, "!$&'()*+,;="):
		return fmt.Errorf("%q is no URL of the form https://host/path", address)
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return fmt.Errorf("%q is neither an https nor an http URL", address)
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() || slices.Contains(allowHTTPHosts, host) {
		return nil
	}
	return fmt.Errorf("%q is plain HTTP to another machine: use https, or allow the host %q where the network is trusted", address, host)
}

// DiscoverJWKS returns the URL of an issuer's keys from its metadata: RFC 8414 section 3 first, then OpenID Connect
// Discovery. Metadata must name exactly the issuer that was asked for (RFC 8414 section 3.3). An answer without such
// metadata counts as none, because an issuer may answer every path, or have another document at one of them. An error
// says what each path answered. A nil client is the default one.
func DiscoverJWKS(ctx context.Context, issuer string, client *http.Client, allowHTTPHosts []string) (string, error) {
	var uri string
	err := discover(ctx, issuer, client, allowHTTPHosts, func(m object) (err error) {
		uri, err = m.address("jwks_uri", allowHTTPHosts)
		return err
	})
	return uri, err
}

// discover gives the metadata of an issuer to take, which may refuse it.
func discover(ctx context.Context, issuer string, client *http.Client, allowHTTPHosts []string, take func(object) error) error {
	if err := CheckAddress(issuer, allowHTTPHosts); err != nil {
		return fmt.Errorf("issuer: %w", err)
	}
	u, err := url.Parse(issuer)
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("issuer: %q has a query or a fragment", issuer)
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	base := u.Scheme + "://" + u.Host
	client = sameHostClient(client)
	var failures []string
	for _, address := range []string{
		base + "/.well-known/oauth-authorization-server" + path,
		base + path + "/.well-known/openid-configuration",
	} {
		body, _, err := get(ctx, client, address)
		if err != nil {
			failures = append(failures, err.Error())
			continue
		}
		m, err := metadata(body, issuer)
		if err == nil {
			err = take(m)
		}
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Sprintf("%s answered 200, but %v", address, err))
	}
	return fmt.Errorf("no usable metadata of issuer %s: %s", issuer, strings.Join(failures, "; "))
}

// metadata decodes the metadata of an issuer.
func metadata(body []byte, issuer string) (object, error) {
	m, err := decodeObject(body)
	if err != nil {
		return nil, fmt.Errorf("the body is no JSON object: %w", err)
	}
	switch named, ok := m.text("issuer"); {
	case !ok:
		return nil, errors.New("it names no issuer")
	case named != issuer:
		return nil, fmt.Errorf("it is the metadata of another issuer, %.*q", maxFound, named)
	}
	return m, nil
}

// address returns a URL that metadata must have.
func (o object) address(name string, allowHTTPHosts []string) (string, error) {
	text, ok := o.text(name)
	if !ok {
		return "", fmt.Errorf("it has no %s", name)
	}
	if err := CheckAddress(text, allowHTTPHosts); err != nil {
		return "", fmt.Errorf("its %s cannot be used: %w", name, err)
	}
	return text, nil
}
