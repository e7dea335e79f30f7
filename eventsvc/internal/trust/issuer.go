package trust

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// An Issuer describes whose tokens are accepted, and how they are read. The
// service's flags describe the first issuer, the entries of the issuers file the
// others.
type Issuer struct {
	Issuer        string        `yaml:"issuer"`        // the iss claim, to the letter
	JWKSURL       string        `yaml:"jwksURL"`       // where the keys are; empty: the issuer's metadata says
	CAFile        string        `yaml:"caFile"`        // PEM certificates to trust; empty: the system's
	Audiences     []string      `yaml:"audiences"`     // a token must be for one of them; empty: any
	MaxTokenLife  time.Duration `yaml:"maxTokenLife"`  // from iat to exp; 0: one hour
	ClientIDClaim string        `yaml:"clientIDClaim"` // empty: client_id. Keycloak and OpenID Connect use azp
	ScopeClaim    string        `yaml:"scopeClaim"`    // empty: scope
	Claims        []string      `yaml:"claims"`        // claims that the policy may ask for
}

// ReadIssuers reads an issuers file: a YAML list of [Issuer]. An error names the
// file and the entry.
func ReadIssuers(path string) ([]Issuer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []Issuer
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		text := strings.NewReplacer("in type trust.Issuer", "(there are issuer, jwksURL, caFile, audiences, maxTokenLife, clientIDClaim, "+
			"scopeClaim and claims)", "into []trust.Issuer", "into a list of issuers", "into trust.Issuer", "into an issuer").
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

// check reports a setting that is missing or cannot be used.
func (i *Issuer) check() error {
	switch {
	case i.Issuer == "":
		return errors.New("issuer is missing: name whose tokens to accept, their iss claim to the letter")
	case i.JWKSURL == "" && !IsURL(i.Issuer):
		return fmt.Errorf("issuer %q is no http(s) URL whose metadata could name the keys: set jwksURL", i.Issuer)
	case i.JWKSURL != "" && !IsURL(i.JWKSURL):
		return fmt.Errorf("jwksURL %q of the issuer %q is no http(s) URL", i.JWKSURL, i.Issuer)
	}
	return nil
}

// IsURL reports whether text is an http or https URL with a host.
func IsURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// client returns the client that fetches the issuer's keys; nil stands for the
// default one. It trusts the certificates of CAFile instead of the system's.
func (i *Issuer) client() (*http.Client, error) {
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
