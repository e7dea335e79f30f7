// Package trust decides whose tokens the service accepts: it turns the settings
// of issuers into one verifier with the keys of each.
//
// # Contract
//
// [New] reports settings that cannot be used. [Trust.Verify] returns the caller of
// a token or a *[bearer.Error]. Every issuer has its own keys, so none can sign in
// the name of another. Run the functions of [Trust.Tasks]: they find the issuers'
// keys and keep them fresh. Until the keys of an issuer are found, its tokens are
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
)

// Config are the settings of a [Trust].
type Config struct {
	Issuers        []Issuer      // at least one
	AllowHTTPHosts []string      // hosts whose keys may be fetched over plain HTTP, besides loopback addresses
	MaxStale       time.Duration // how long the last keys are used when an issuer does not answer
	ClockSkew      time.Duration // by which issuers' clocks may differ
	Log            *slog.Logger
	Registry       prometheus.Registerer
}

// Trust verifies the tokens of all issuers. Its Verify and Withdrawn are those of
// [bearer.Issuers].
type Trust struct {
	*bearer.Issuers
	keys []*bearer.IssuerKeys
}

// New sets up the issuers. An error names the setting that cannot be used.
func New(c Config) (*Trust, error) {
	t := &Trust{}
	var verifiers []*bearer.Verifier
	for n := range c.Issuers {
		v, err := t.add(&c.Issuers[n], &c)
		if err != nil {
			return nil, err
		}
		verifiers = append(verifiers, v)
	}
	var err error
	if t.Issuers, err = bearer.NewIssuers(verifiers...); err != nil {
		return nil, fmt.Errorf("--issuers-file: %w", err)
	}
	return t, nil
}

// add sets up one issuer.
func (t *Trust) add(i *Issuer, c *Config) (*bearer.Verifier, error) {
	k, err := bearer.NewIssuerKeys(bearer.IssuerKeysConfig{
		Issuer: i.Issuer, Source: i.KeySource, AllowHTTPHosts: c.AllowHTTPHosts, MaxStale: c.MaxStale, Log: c.Log, Registry: c.Registry,
	})
	if err != nil {
		return nil, fmt.Errorf("keys of the issuer %s (--jwks-url or jwksURL, --issuer-ca-file or caFile, --jwks-allow-http-host): %w", i.Issuer, err)
	}
	v, err := bearer.New(bearer.Config{
		Issuer: i.Issuer, Audience: i.Audiences, Keys: k, Algorithms: i.Algorithms, Leeway: c.ClockSkew, MaxLife: i.MaxTokenLife,
		ClientIDClaim: i.ClientIDClaim, ScopeClaim: i.ScopeClaim, KeepClaims: i.Claims, Registry: c.Registry,
	})
	if err != nil {
		return nil, fmt.Errorf("--issuer %s: %w", i.Issuer, err)
	}
	if len(i.Audiences) == 0 {
		c.Log.Warn("--audience is not set: tokens of the issuer that are meant for other services are accepted too", "issuer", i.Issuer)
	}
	t.keys = append(t.keys, k)
	return v, nil
}

// Tasks returns a function for each issuer that keeps its keys fresh until its
// context ends.
func (t *Trust) Tasks() []func(context.Context) error {
	var tasks []func(context.Context) error
	for _, k := range t.keys {
		tasks = append(tasks, k.Run)
	}
	return tasks
}

// Ready returns nil if tokens can be verified. The keys of one issuer are enough,
// so that the outage of another does not stop the service.
func (t *Trust) Ready(ctx context.Context) error {
	var errs []error
	for _, k := range t.keys {
		errs = append(errs, k.Ready(ctx))
	}
	if slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}
