package bearer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"tidings.example/shared/trustfile"
)

// KeySource says where the public keys of an issuer are, and which signatures are accepted. Its zero value stands for
// the URL in the issuer's metadata and for RS256. The names are those in files of issuers.
type KeySource struct {
	JWKSURL    string   `yaml:"jwksURL"`         // of the JWK set
	JWKSFile   string   `yaml:"jwksFile"`        // with the JWK set; read again when it changes
	CAFile     string   `yaml:"caFile"`          // PEM certificates to trust, followed; empty: the system's
	TokenFile  string   `yaml:"bearerTokenFile"` // with the token to fetch the keys with; read for each fetch
	Algorithms []string `yaml:"algorithms"`      // accepted signature algorithms; empty: RS256
}

// IsURL reports whether text is an http or https URL with a host.
func IsURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// check reports a setting that is missing, or cannot be used for the keys of the issuer.
func (s *KeySource) check(issuer string) error {
	if err := checkAlgorithms(s.Algorithms); err != nil {
		return fmt.Errorf("algorithms: %w", err)
	}
	address := cmp.Or(s.JWKSURL, issuer)
	switch {
	case s.JWKSFile != "" && (s.JWKSURL != "" || s.CAFile != "" || s.TokenFile != ""):
		return errors.New("jwksFile is given beside jwksURL, caFile or bearerTokenFile: keys come from a file or from a URL")
	case s.JWKSFile != "":
		return nil
	case s.JWKSURL == "" && !IsURL(issuer):
		return fmt.Errorf("issuer %q is no http(s) URL whose metadata could name the keys: set jwksURL or jwksFile", issuer)
	case s.JWKSURL != "" && !IsURL(s.JWKSURL):
		return fmt.Errorf("jwksURL %q is no http(s) URL", s.JWKSURL)
	case s.CAFile != "" && strings.HasPrefix(address, "http:"):
		return fmt.Errorf("caFile has no effect on %s, which is plain HTTP: set https or no authorities", address)
	case s.TokenFile != "" && strings.HasPrefix(address, "http:"):
		return fmt.Errorf("bearerTokenFile would be sent to %s in plain HTTP: set https", address)
	}
	return nil
}

// client returns the client that fetches the keys; nil stands for the default one. It trusts the certificates of CAFile
// instead of the system's, as they are now, and sends the token.
func (s *KeySource) client() (*http.Client, error) {
	if s.CAFile == "" && s.TokenFile == "" {
		return nil, nil
	}
	like := http.DefaultTransport.(*http.Transport).Clone()
	var transport http.RoundTripper = like
	if s.CAFile != "" {
		trusting, err := trustfile.New(like, s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
		transport = trusting
	}
	if s.TokenFile == "" {
		return &http.Client{Transport: transport}, nil
	}
	return &http.Client{Transport: authorized{transport, s.TokenFile}}, nil
}

// authorized sends the token in a file with every request. The file is read each time, because a service-account token
// of Kubernetes is replaced every hour.
type authorized struct {
	http.RoundTripper
	file string
}

// maxTokenFile is more than any token needs.
const maxTokenFile = 64 << 10

// RoundTrip implements [http.RoundTripper].
func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := ReadTokenFile(a.file)
	if err != nil {
		return nil, fmt.Errorf("bearerTokenFile: %w", err)
	}
	if r.URL.Scheme != "https" { // the issuer's metadata may name such a URL on this machine
		return nil, errors.New("bearerTokenFile would be sent in plain HTTP")
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return a.RoundTripper.RoundTrip(r)
}

// ReadTokenFile returns the token in a file.
func ReadTokenFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \r\n") {
		return "", fmt.Errorf("%s holds no token", path)
	}
	return token, nil
}
