// Package trust decides whose tokens the service accepts: it turns the settings
// of issuers into one verifier with the keys of each.
//
// # Contract
//
// [New] reports settings that cannot be used. [Trust.Verify] returns the caller of
// a token or a *[bearer.Error]. Every issuer has its own keys, so none can sign in
// the name of another. Run [Trust.Run]: it finds the issuers' keys, keeps them fresh
// and follows the issuers file. Until the keys of an issuer are found, its tokens are
// refused with 503, so an issuer may start later than this service.
//
// All methods are safe for concurrent use. The package knows no policy: it says who
// a caller is, package policy says what a caller may do.
package trust

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
	"tidings.example/shared/issuers"
)

// Config are the settings of a [Trust].
type Config struct {
	Issuer         Issuer        // of the flags; its zero value: none, the file must list one
	IssuersFile    string        // with more of them; empty: none
	Pod            issuers.Pod   // the file may mean its cluster
	Changed        func()        // called after a new version of the file has come into force
	Resources      []string      // what advertised issuers may name in aud, besides the audiences of their own
	AllowHTTPHosts []string      // hosts whose keys may be fetched over plain HTTP, besides loopback addresses
	MaxStale       time.Duration // how long the last keys are used when an issuer does not answer
	ClockSkew      time.Duration // by which issuers' clocks may differ
	NoConsole      bool          // nobody signs in to a page
	Log            *slog.Logger
	Registry       prometheus.Registerer
}

// Trust verifies the tokens of all issuers.
type Trust struct {
	*issuers.Live[Issuer]
}

// New sets up the issuers. An error names the setting that cannot be used.
func New(c Config) (*Trust, error) {
	var fixed []Issuer
	if c.Issuer.Issuer != "" {
		fixed = append(fixed, c.Issuer)
	}
	live, err := issuers.New(issuers.Config[Issuer]{
		Fixed: fixed, Path: c.IssuersFile, Pod: c.Pod, Setting: "--issuers-file", Parse: c.parse, Keys: c.keys, Verifier: c.verifier,
		Added: c.warn, Changed: c.Changed, Log: c.Log, Registry: c.Registry,
	})
	if err != nil {
		return nil, err
	}
	return &Trust{live}, nil
}

// parse reads a version of the issuers file. Without an issuer at all nobody could be let in.
func (c *Config) parse(data []byte) ([]Issuer, error) {
	list, err := parse(data)
	if err == nil && len(list) == 0 && c.Issuer.Issuer == "" {
		return nil, errors.New("the file lists no issuer, and --issuer is not set: list one whose tokens to accept")
	}
	for n := range list {
		i := &list[n]
		if i.Issuer != issuers.Cluster {
			continue
		}
		if i.Issuer, i.KeySource, err = c.Pod.Issuer(i.KeySource); err != nil {
			return nil, fmt.Errorf("entry %d: %w", n+1, err)
		}
		i.Cluster = true
	}
	return list, err
}

func (c *Config) keys(i Issuer) (*bearer.IssuerKeys, error) {
	k, err := bearer.NewIssuerKeys(i.Issuer, i.KeySource, bearer.JWKSConfig{
		AllowHTTPHosts: c.AllowHTTPHosts, MaxStale: c.MaxStale, Log: c.Log, Registry: c.Registry,
	})
	if err != nil {
		return nil, fmt.Errorf("keys of the issuer %s (--jwks-url or jwksURL, --issuer-ca-file or caFile, --jwks-allow-http-host): %w", i.Issuer, err)
	}
	return k, nil
}

func (c *Config) verifier(i Issuer, keys *bearer.IssuerKeys) (*bearer.Verifier, error) {
	audiences := i.Audiences
	if i.Advertise && len(audiences) > 0 {
		audiences = slices.Concat(audiences, c.Resources)
	}
	v, err := bearer.New(bearer.Config{
		Issuer: i.Issuer, Audience: audiences, Keys: keys, Algorithms: i.Algorithms, Leeway: c.ClockSkew, MaxLife: time.Duration(i.MaxTokenLife),
		ClientIDClaim: i.ClientIDClaim, ScopeClaim: i.ScopeClaim, KeepClaims: i.Claims, Registry: c.Registry,
	})
	if err != nil {
		return nil, fmt.Errorf("--issuer %s: %w", i.Issuer, err)
	}
	return v, nil
}

func (c *Config) warn(i Issuer) {
	if len(i.Audiences) == 0 {
		c.Log.Warn("--audience is not set: tokens of the issuer that are meant for other services are accepted too", "issuer", i.Issuer)
	}
	if c.NoConsole && i.Console != nil {
		c.Log.Warn("--no-console is set: the block console of the issuer has no effect", "issuer", i.Issuer)
	}
}

// Verify returns the caller that sent the token, or a *[bearer.Error].
func (t *Trust) Verify(ctx context.Context, token string) (*bearer.Caller, error) {
	for {
		now := t.Current()
		caller, err := now.Verify(ctx, token)
		if t.Current() == now {
			return caller, err
		}
	}
}

// Withdrawn reports whether the caller's token must no longer be used: its key has left
// the keys of its issuer, or the issuer is no longer trusted.
func (t *Trust) Withdrawn(ctx context.Context, c *bearer.Caller) bool {
	return t.Current().Withdrawn(ctx, c)
}

// Explain is [bearer.Issuers.Explain] of the issuers in force.
func (t *Trust) Explain(ctx context.Context, token string) *bearer.Explanation {
	return t.Current().Explain(ctx, token)
}

// Advertised returns the URLs of the issuers in force that clients may ask for tokens, the issuer of the flags first.
func (t *Trust) Advertised() (urls []string) {
	for _, i := range t.Issuers() {
		if i.Advertise {
			urls = append(urls, i.Issuer)
		}
	}
	return urls
}

// Issuers returns the issuers in force.
func (t *Trust) Issuers() []Issuer { return t.Current().Entries() }
