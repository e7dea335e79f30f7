// Package federation verifies assertions of other issuers: the service-account tokens of a Kubernetes cluster, the
// JWT-SVIDs of SPIFFE, the tokens of a CI system. It says whose subject a workload is (RFC 7523 section 3); which
// client that may be is decided by package client.
//
// Every issuer has its own keys, audiences and rules, so none can speak in the name of another, and one that is slow or
// away does not delay the assertions of others. An issuer that does not answer is asked at most once a second, and its
// last keys stay in use for a day.
package federation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/issuers"
)

// Issuer is a trusted issuer: an entry of the file.
type Issuer struct {
	Issuer           string `yaml:"issuer"` // the iss claim, to the letter, or [issuers.Cluster]
	bearer.KeySource `yaml:",inline"`
	Audiences        []string     `yaml:"audiences"`    // the only aud of an assertion is one of them; empty: our issuer
	MaxTokenLife     cli.Duration `yaml:"maxTokenLife"` // from iat to exp; 0: a quarter of an hour
	Subjects         []string     `yaml:"subjects"`     // those that the issuer may assert; one that ends with * stands for all that begin so; empty: any
}

// From implements [issuers.Settings].
func (i Issuer) From() (issuer string, keys bearer.KeySource) { return i.Issuer, i.KeySource }

// parse parses a file of trusted issuers. An error names the entry.
func (c *Config) parse(data []byte) ([]Issuer, error) {
	list, err := issuers.Parse[Issuer](data, "issuer, jwksURL, jwksFile, caFile, bearerTokenFile, algorithms, audiences, maxTokenLife and subjects")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("must list at least one issuer")
	}
	for n := range list {
		i := &list[n]
		if i.Issuer == issuers.Cluster {
			i.Issuer, i.KeySource, err = c.Pod.Issuer(i.KeySource)
		}
		if err := cmp.Or(err, c.check(*i)); err != nil {
			return nil, fmt.Errorf("entry %d: %w", n+1, err)
		}
		i.MaxTokenLife = cmp.Or(i.MaxTokenLife, cli.Duration(usualLife))
	}
	return list, nil
}

func (c *Config) check(i Issuer) error {
	switch i.Issuer {
	case "":
		return errors.New("issuer is missing: name whose assertions to accept, their iss claim to the letter")
	case c.Own:
		return fmt.Errorf("issuer %q is this service, whose tokens are no assertions", i.Issuer)
	}
	for _, s := range i.Subjects {
		if name := strings.TrimSuffix(s, "*"); name == "" || strings.Contains(name, "*") {
			return fmt.Errorf("subjects: %q is neither a name nor the beginning of names with a * behind it", s)
		}
	}
	return nil
}

// Config are the settings of a [Federation].
type Config struct {
	Path           string      // of the file of trusted issuers, which is followed
	Pod            issuers.Pod // the file may mean its cluster
	Own            string      // issuer of this service, which is not trusted and is the default audience
	AllowHTTPHosts []string    // hosts whose keys may be fetched over plain HTTP, besides loopback addresses
	Log            *slog.Logger
	Registry       prometheus.Registerer
	Now            func() time.Time // nil: time.Now
}

// Federation verifies the assertions of trusted issuers. It is safe for concurrent use.
type Federation struct {
	live *issuers.Live[Issuer]
}

// usualLife is how long an assertion may live unless its issuer's entry allows more. Whoever reads one can use it until
// it expires, because nothing but its life ends it.
const usualLife = 15 * time.Minute

// skew is the allowance for issuers whose clocks differ.
const skew = 10 * time.Second

// New reads the file and sets up its issuers. An error names the setting, the file and the entry.
func New(c Config) (*Federation, error) {
	live, err := issuers.New(issuers.Config[Issuer]{
		Path: c.Path, Pod: c.Pod, Setting: "--trusted-issuers-file", Parse: c.parse, Keys: c.keys, Verifier: c.verifier, Added: c.warn, Log: c.Log, Registry: c.Registry,
	})
	if err != nil {
		return nil, err
	}
	return &Federation{live}, nil
}

func (c *Config) warn(i Issuer) {
	if life := time.Duration(i.MaxTokenLife); life > usualLife {
		c.Log.Warn("maxTokenLife is long: whoever reads an assertion of the issuer can use it until it expires", "issuer", i.Issuer, "maxTokenLife", life, "usual", usualLife)
	}
}

func (c *Config) keys(i Issuer) (*bearer.IssuerKeys, error) {
	keys, err := bearer.NewIssuerKeys(i.Issuer, i.KeySource, bearer.JWKSConfig{AllowHTTPHosts: c.AllowHTTPHosts, Log: c.Log, Registry: c.Registry})
	if err != nil {
		return nil, fmt.Errorf("issuer %s: %w", i.Issuer, err)
	}
	return keys, nil
}

func (c *Config) verifier(i Issuer, keys *bearer.IssuerKeys) (*bearer.Verifier, error) {
	if len(i.Audiences) == 0 {
		i.Audiences = []string{c.Own}
	}
	verifier, err := bearer.New(bearer.Config{
		Issuer: i.Issuer, Audience: i.Audiences, SoleAudience: true, Keys: keys, Algorithms: i.Algorithms,
		// SPIFFE's JWT-SVIDs may say JOSE. Access tokens (at+jwt) are not accepted.
		Types:  []string{"jose", "client-authentication+jwt", "application/client-authentication+jwt"},
		Leeway: skew, MaxLife: time.Duration(i.MaxTokenLife), Now: c.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("issuer %s: %w", i.Issuer, err)
	}
	return verifier, nil
}

// Trusts reports whether the issuer is trusted.
func (f *Federation) Trusts(issuer string) bool {
	return f != nil && f.live.Current().Find(issuer) != nil
}

// Verify returns the subject of an assertion of a trusted issuer. An error is a *[bearer.Error]; with its status 503,
// the keys of the issuer are not available at present.
func (f *Federation) Verify(ctx context.Context, assertion *bearer.Decoded) (subject string, err error) {
	for {
		now := f.live.Current()
		subject, err = verify(ctx, now.Find(assertion.Issuer), assertion)
		if f.live.Current() == now {
			return subject, err
		}
	}
}

// verify verifies an assertion of an issuer, which is nil if it is not trusted.
func verify(ctx context.Context, i *issuers.Issuer[Issuer], assertion *bearer.Decoded) (subject string, err error) {
	if i == nil {
		return "", &bearer.Error{Reason: "other issuer"}
	}
	caller, err := i.Verifier.VerifyDecoded(ctx, assertion)
	if err != nil {
		return "", err
	}
	if !i.Settings.covers(caller.Subject) {
		return "", &bearer.Error{Reason: "subject not covered"}
	}
	return caller.Subject, nil
}

// covers reports whether the issuer may assert the subject.
func (i *Issuer) covers(subject string) bool {
	return len(i.Subjects) == 0 || slices.ContainsFunc(i.Subjects, func(rule string) bool {
		beginning, open := strings.CutSuffix(rule, "*")
		return rule == subject || open && strings.HasPrefix(subject, beginning)
	})
}

// Run keeps the keys of the issuers fresh and follows the file, until ctx ends.
func (f *Federation) Run(ctx context.Context) error {
	if f == nil {
		return nil
	}
	return f.live.Run(ctx)
}
