package aggregate

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/client"
)

// configNamespace and configName name the ConfigMap in which kube-apiserver says how its front proxy is recognized.
const (
	configNamespace = "kube-system"
	configName      = "extension-apiserver-authentication"
)

// proxyConfig is one version of that ConfigMap. It does not change.
type proxyConfig struct {
	roots    *x509.CertPool
	names    []string // common names of certificates; empty: any
	users    []string // headers, in canonical form
	groups   []string
	uids     []string
	prefixes []string // of headers with extra attributes, in lower case
}

// errShared means that certificates of others would be taken for the front proxy's.
var errShared = errors.New("requestheader-client-ca-file has a certificate authority of client-ca-file, or one that has signed it, and requestheader-allowed-names is empty, " +
	"so whoever has a client certificate of the cluster could name any user: give kube-apiserver --requestheader-allowed-names, or a --requestheader-client-ca-file of its own")

// parseConfig reads the data of the ConfigMap.
func parseConfig(data map[string]string) (*proxyConfig, error) {
	c := &proxyConfig{roots: x509.NewCertPool()}
	authorities, err := certificates(data["requestheader-client-ca-file"])
	if err != nil || len(authorities) == 0 {
		return nil, errors.Join(errors.New("requestheader-client-ca-file has no certificate authority: the front proxy is not set up (--requestheader-client-ca-file of kube-apiserver)"), err)
	}
	for _, authority := range authorities {
		c.roots.AddCert(authority)
	}
	for _, of := range []struct {
		key  string
		into *[]string
	}{
		{"requestheader-allowed-names", &c.names}, {"requestheader-username-headers", &c.users}, {"requestheader-group-headers", &c.groups},
		{"requestheader-uid-headers", &c.uids}, {"requestheader-extra-headers-prefix", &c.prefixes},
	} {
		if data[of.key] == "" { // a kube-apiserver before 1.33 has no uid
			continue
		}
		if err := json.Unmarshal([]byte(data[of.key]), of.into); err != nil {
			return nil, fmt.Errorf("%s is no JSON list of strings: %w", of.key, err)
		}
	}
	if len(c.users) == 0 {
		return nil, errors.New("requestheader-username-headers names no header")
	}
	for _, headers := range [][]string{c.users, c.groups, c.uids} {
		for i, name := range headers {
			headers[i] = http.CanonicalHeaderKey(name)
		}
	}
	for i, prefix := range c.prefixes {
		c.prefixes[i] = strings.ToLower(prefix)
	}
	others, err := certificates(data["client-ca-file"])
	if err != nil {
		return nil, fmt.Errorf("client-ca-file: %w", err)
	}
	if len(c.names) == 0 && slices.ContainsFunc(authorities, func(a *x509.Certificate) bool {
		return slices.ContainsFunc(others, func(b *x509.Certificate) bool {
			return bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo) || b.CheckSignatureFrom(a) == nil
		})
	}) {
		return nil, errShared
	}
	return c, nil
}

// certificates reads a bundle in PEM.
func certificates(bundle string) (all []*x509.Certificate, err error) {
	for rest := []byte(bundle); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all, nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, certificate)
	}
}

// identityError is why a request is not from the front proxy, or names no user.
type identityError struct {
	reason string // label of a metric
	err    error
}

func (e *identityError) Error() string {
	if e.err == nil {
		return e.reason
	}
	return e.reason + ": " + e.err.Error()
}

// The reasons why an identity is refused.
const (
	reasonNotReady  = "not-ready"         // the ConfigMap was not read yet
	reasonMissing   = "no-certificate"    //
	reasonAuthority = "unknown-authority" // or a certificate that is otherwise bad
	reasonExpired   = "expired"           // or not valid yet
	reasonUsage     = "no-client-auth"    // the certificate is not for clients
	reasonName      = "name-not-allowed"  //
	reasonNoUser    = "no-user"           // or one whose name is no UTF-8
)

var identityReasons = []string{reasonNotReady, reasonMissing, reasonAuthority, reasonExpired, reasonUsage, reasonName, reasonNoUser}

// identify returns the user whom the front proxy names. The certificate is verified for each request, so that another
// authority counts at once, for open connections too.
func (c *proxyConfig) identify(r *http.Request, now time.Time) (*authenticationv1.UserInfo, *identityError) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, &identityError{reason: reasonMissing}
	}
	leaf, options := r.TLS.PeerCertificates[0], x509.VerifyOptions{
		Roots: c.roots, Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, other := range r.TLS.PeerCertificates[1:] {
		options.Intermediates.AddCert(other)
	}
	if _, err := leaf.Verify(options); err != nil {
		return nil, &identityError{badCertificate(err), err}
	}
	if len(c.names) > 0 && !slices.Contains(c.names, leaf.Subject.CommonName) {
		return nil, &identityError{reasonName, fmt.Errorf("common name %q", leaf.Subject.CommonName)}
	}
	return c.user(r.Header)
}

func badCertificate(err error) (reason string) {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		switch invalid.Reason {
		case x509.Expired:
			return reasonExpired
		case x509.IncompatibleUsage:
			return reasonUsage
		}
	}
	return reasonAuthority
}

// user reads the headers as kube-apiserver does (k8s.io/apiserver, headerrequest): the first header with a value names
// the user, groups are the values of all headers, keys of extra attributes are in lower case and percent-decoded where
// that is possible.
func (c *proxyConfig) user(h http.Header) (*authenticationv1.UserInfo, *identityError) {
	u := &authenticationv1.UserInfo{Username: first(h, c.users), UID: first(h, c.uids)}
	if u.Username == "" || !utf8.ValidString(u.Username) { // a review in JSON, and a label, would be about somebody else
		return nil, &identityError{reason: reasonNoUser}
	}
	for _, name := range c.groups {
		for _, group := range h[name] {
			if group != "" {
				u.Groups = append(u.Groups, group)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h)) { // two names may be one key
		lower := strings.ToLower(name)
		for _, prefix := range c.prefixes {
			key, ok := strings.CutPrefix(lower, prefix)
			if !ok {
				continue
			}
			if decoded, err := url.PathUnescape(key); err == nil {
				key = decoded
			}
			if u.Extra == nil {
				u.Extra = map[string]authenticationv1.ExtraValue{}
			}
			u.Extra[key] = append(u.Extra[key], h[name]...)
		}
	}
	return u, nil
}

// first returns the first value of the first header that has one.
func first(h http.Header, names []string) string {
	for _, name := range names {
		if value := h.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// FrontProxy identifies the users of kube-apiserver's requests. It follows the ConfigMap
// extension-apiserver-authentication, which has the authority and the names of the headers.
type FrontProxy struct {
	api     *client.Client // of the cluster
	log     *slog.Logger
	current atomic.Pointer[proxyConfig]
}

// NewFrontProxy returns a front proxy that is not ready before [FrontProxy.Run] has read the ConfigMap.
func NewFrontProxy(api *client.Client, log *slog.Logger) *FrontProxy {
	return &FrontProxy{api: api, log: log}
}

// Ready returns an error until the ConfigMap was read once.
func (p *FrontProxy) Ready(context.Context) error {
	if p.current.Load() == nil {
		return fmt.Errorf("ConfigMap %s/%s was not read yet", configNamespace, configName)
	}
	return nil
}

// identify returns the user whom the front proxy names.
func (p *FrontProxy) identify(r *http.Request) (*authenticationv1.UserInfo, *identityError) {
	c := p.current.Load()
	if c == nil {
		return nil, &identityError{reason: reasonNotReady}
	}
	return c.identify(r, time.Now())
}

// configPath lists the ConfigMaps that hold it. The role extension-apiserver-authentication-reader allows no other
// list.
const configPath = "/api/v1/namespaces/" + configNamespace + "/configmaps"

var configQuery = url.Values{"fieldSelector": {"metadata.name=" + configName}}

// Run follows the ConfigMap until ctx ends. Its first version is an error if it is not safe; after that, the last good
// version stays in force.
func (p *FrontProxy) Run(ctx context.Context) error {
	var wait client.Backoff
	for {
		err := p.follow(ctx, &wait)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errShared) && p.current.Load() == nil:
			return fmt.Errorf("ConfigMap %s/%s: %w", configNamespace, configName, err)
		case client.Gone(err), errors.Is(err, client.ErrRewound): // read it again
		default:
			p.log.ErrorContext(ctx, "the ConfigMap of the front proxy cannot be followed, the last version counts", "error", err, "hint", client.Hint(err))
		}
		if wait.Wait(ctx, err) != nil {
			return nil
		}
	}
}

// follow reads the ConfigMap and then its changes.
func (p *FrontProxy) follow(ctx context.Context, wait *client.Backoff) error {
	found := false
	version, err := p.api.Pages(ctx, configPath, configQuery, func(page *client.Page) error {
		for _, object := range page.Items {
			found = true
			if err := p.apply(ctx, object); err != nil {
				return err
			}
		}
		return nil
	}, func(err error) error { return err })
	if err != nil {
		return err
	}
	if !found {
		p.gone(ctx)
	}
	wait.Reset()
	return p.api.Follow(ctx, configPath, version, configQuery, client.Follower{
		OnlySelected: true,
		Connected:    func() {},
		Interrupted: func(err error) {
			p.log.WarnContext(ctx, "the watch of the ConfigMap of the front proxy was interrupted", "error", err)
		},
		Change: func(change client.Change) error {
			switch {
			case change.Seen():
				return p.apply(ctx, change.Object)
			case change.Type == watch.Deleted:
				p.gone(ctx)
			}
			return nil
		},
	})
}

func (p *FrontProxy) gone(ctx context.Context) {
	p.log.ErrorContext(ctx, "there is no ConfigMap of the front proxy, the last version counts", "configmap", configNamespace+"/"+configName)
}

// apply puts a version into force. It returns an error only for the first one.
func (p *FrontProxy) apply(ctx context.Context, object json.RawMessage) error {
	var configMap corev1.ConfigMap
	err := json.Unmarshal(object, &configMap)
	var c *proxyConfig
	if err == nil {
		c, err = parseConfig(configMap.Data)
	}
	switch {
	case err == nil:
		p.current.Store(c)
		p.log.InfoContext(ctx, "the front proxy is known", "version", configMap.ResourceVersion, "allowed_names", c.names)
		return nil
	case p.current.Load() == nil:
		return err
	}
	p.log.ErrorContext(ctx, "the ConfigMap of the front proxy is bad, the last version counts", "version", configMap.ResourceVersion, "error", err)
	return nil
}
