package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
	"tidings.example/shared/service"
)

// issuerSettings are those of one issuer of tokens. The flags describe the
// first, the entries of the issuers file the others.
type issuerSettings struct {
	Issuer        string        `yaml:"issuer"`
	JWKSURL       string        `yaml:"jwksURL"`
	CAFile        string        `yaml:"caFile"` // the system's authorities if it is empty
	Audiences     []string      `yaml:"audiences"`
	MaxTokenLife  time.Duration `yaml:"maxTokenLife"`
	ClientIDClaim string        `yaml:"clientIDClaim"` // client_id; Keycloak and OpenID Connect: azp
	ScopeClaim    string        `yaml:"scopeClaim"`    // scope
	Claims        []string      `yaml:"claims"`        // that the policy may ask for
}

// check finds what is missing or cannot be used.
func (i *issuerSettings) check() error {
	switch {
	case i.Issuer == "":
		return errors.New("issuer is missing: name whose tokens to accept, their iss claim to the letter")
	case i.JWKSURL == "" && !isURL(i.Issuer):
		return fmt.Errorf("issuer %q is no http(s) URL whose metadata could name the keys: set jwksURL", i.Issuer)
	case i.JWKSURL != "" && !isURL(i.JWKSURL):
		return fmt.Errorf("jwksURL %q of the issuer %q is no http(s) URL", i.JWKSURL, i.Issuer)
	}
	return nil
}

// client asks the issuer. Its certificate has to be good for the name in the
// address, by an authority of the file or, without one, of the system.
func (i *issuerSettings) client() (*http.Client, error) {
	if i.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(i.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no PEM certificate", i.CAFile)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport}, nil
}

// readIssuers reads an issuers file: a YAML list.
func readIssuers(path string) ([]issuerSettings, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []issuerSettings
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		text := strings.NewReplacer("in type main.issuerSettings", "(there are issuer, jwksURL, caFile, audiences, maxTokenLife, clientIDClaim, "+
			"scopeClaim and claims)", "into []main.issuerSettings", "into a list of issuers", "into main.issuerSettings", "into an issuer").
			Replace(strings.TrimPrefix(err.Error(), "yaml: "))
		return nil, fmt.Errorf("%s: %s", path, text)
	}
	for n := range list {
		if err := list[n].check(); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", path, n+1, err)
		}
	}
	return list, nil
}

// trust is everything that tells who a caller is.
type trust struct {
	*bearer.Issuers
	keys    []*keys
	options policy.Options
}

// newTrust sets up the issuers that the settings name.
func (s *serve) newTrust(log *slog.Logger, reg prometheus.Registerer) (*trust, error) {
	all := []issuerSettings{{Issuer: s.Issuer, JWKSURL: s.JWKSURL, CAFile: s.IssuerCAFile, Audiences: s.Audience, MaxTokenLife: s.MaxTokenLife, Claims: s.Claims}}
	if s.IssuersFile != "" {
		more, err := readIssuers(s.IssuersFile)
		if err != nil {
			return nil, service.Usagef("--issuers-file: %w", err)
		}
		all = append(all, more...)
	}
	t := &trust{}
	var verifiers []*bearer.Verifier
	for _, i := range all {
		if address := cmp.Or(i.JWKSURL, i.Issuer); i.CAFile != "" && strings.HasPrefix(address, "http:") {
			return nil, service.Usagef("--issuer-ca-file (caFile) of the issuer %s has no effect on its --jwks-url %s, which is plain HTTP: set https or no authorities", i.Issuer, address)
		}
		client, err := i.client()
		if err != nil {
			return nil, service.Usagef("--issuer-ca-file (caFile) of the issuer %s: %w", i.Issuer, err)
		}
		k, err := newKeys(i.Issuer, bearer.JWKSConfig{
			URL: i.JWKSURL, Client: client, AllowHTTPHosts: s.JWKSAllowHTTPHost, MaxStale: s.JWKSMaxStale, Log: log, Registry: reg,
		})
		if err != nil {
			where := "--issuer (issuer)"
			if i.JWKSURL != "" {
				where = "--jwks-url (jwksURL) of the issuer " + i.Issuer
			}
			return nil, service.Usagef("%s: %w, with --jwks-allow-http-host", where, err)
		}
		v, err := bearer.New(bearer.Config{
			Issuer: i.Issuer, Audience: i.Audiences, Keys: k, Leeway: s.ClockSkew, MaxLife: i.MaxTokenLife,
			ClientIDClaim: i.ClientIDClaim, ScopeClaim: i.ScopeClaim, KeepClaims: i.Claims, Registry: reg,
		})
		if err != nil {
			return nil, service.Usagef("--issuer %s: %w", i.Issuer, err)
		}
		if len(i.Audiences) == 0 {
			log.Warn("--audience is not set: tokens of the issuer that are meant for other services are accepted too", "issuer", i.Issuer)
		}
		t.keys, verifiers = append(t.keys, k), append(verifiers, v)
		t.options.Issuers = append(t.options.Issuers, i.Issuer)
		t.options.Claims = append(t.options.Claims, i.Claims...)
	}
	var err error
	if t.Issuers, err = bearer.NewIssuers(verifiers...); err != nil {
		return nil, service.Usagef("--issuers-file: %w", err)
	}
	return t, nil
}

// tasks keep the keys of all issuers fresh.
func (t *trust) tasks() []func(context.Context) error {
	var tasks []func(context.Context) error
	for _, k := range t.keys {
		tasks = append(tasks, k.Run)
	}
	return tasks
}

// Ready tells whether anybody can be authenticated: the keys of one issuer are
// enough, so that another's outage does not stop everything.
func (t *trust) Ready(ctx context.Context) error {
	var errs []error
	for _, k := range t.keys {
		errs = append(errs, k.Ready(ctx))
	}
	if slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}
