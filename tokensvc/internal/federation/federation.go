// Package federation verifies assertions of other issuers: the service-account tokens of a Kubernetes cluster, the JWT-SVIDs
// of SPIFFE, the tokens of a CI system. It says whose subject a workload is (RFC 7523 section 3); which client that may be
// is decided by package client.
//
// Every issuer has its own keys, audiences and rules, so none can speak in the name of another, and one that is slow or away
// does not delay the assertions of others. An issuer that does not answer is asked at most once a second, and its last keys
// stay in use for a day.
package federation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
)

// Issuer is a trusted issuer: an entry of the file.
type Issuer struct {
	Issuer           string `yaml:"issuer"` // the iss claim, to the letter
	bearer.KeySource `yaml:",inline"`
	Audiences        []string      `yaml:"audiences"`    // the only aud of an assertion is one of them; empty: our issuer
	MaxTokenLife     time.Duration `yaml:"maxTokenLife"` // from iat to exp; 0: one hour
	Subjects         []string      `yaml:"subjects"`     // that the issuer may assert; one that ends with * stands for all that begin so; empty: any
}

// Read reads a file of trusted issuers. An error names the file and the entry.
func Read(path string) ([]Issuer, error) {
	list, err := bearer.ReadIssuers[Issuer](path, "issuer, jwksURL, jwksFile, caFile, bearerTokenFile, algorithms, audiences, maxTokenLife and subjects")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: must list at least one issuer", path)
	}
	return list, nil
}

// Config are the settings of a [Federation].
type Config struct {
	Issuers        []Issuer
	Own            string   // issuer of this service, which is not trusted and is the default audience
	AllowHTTPHosts []string // hosts whose keys may be fetched over plain HTTP, besides loopback addresses
	Log            *slog.Logger
	Registry       prometheus.Registerer
	Now            func() time.Time // nil: time.Now
}

// Federation verifies the assertions of trusted issuers. It is safe for concurrent use.
type Federation struct {
	issuers map[string]*trusted
}

// trusted is one issuer.
type trusted struct {
	verifier *bearer.Verifier
	keys     *bearer.IssuerKeys
	subjects []string
}

// skew is the allowance for issuers whose clocks differ.
const skew = 10 * time.Second

// New sets up the issuers. An error names the entry and the setting that cannot be used.
func New(c Config) (*Federation, error) {
	f := &Federation{issuers: map[string]*trusted{}}
	for n, i := range c.Issuers {
		if err := f.add(i, c); err != nil {
			return nil, fmt.Errorf("entry %d: %w", n+1, err)
		}
	}
	return f, nil
}

func (f *Federation) add(i Issuer, c Config) error {
	switch {
	case i.Issuer == "":
		return errors.New("issuer is missing: name whose assertions to accept, their iss claim to the letter")
	case i.Issuer == c.Own:
		return fmt.Errorf("issuer %q is this service, whose tokens are no assertions", i.Issuer)
	case f.issuers[i.Issuer] != nil:
		return fmt.Errorf("issuer %q is listed twice", i.Issuer)
	}
	for _, s := range i.Subjects {
		if name := strings.TrimSuffix(s, "*"); name == "" || strings.Contains(name, "*") {
			return fmt.Errorf("subjects: %q is neither a name nor the beginning of names with a * behind it", s)
		}
	}
	keys, err := bearer.NewIssuerKeys(bearer.IssuerKeysConfig{
		Issuer: i.Issuer, Source: i.KeySource, AllowHTTPHosts: c.AllowHTTPHosts, Log: c.Log, Registry: c.Registry,
	})
	if err != nil {
		return fmt.Errorf("issuer %s: %w", i.Issuer, err)
	}
	if len(i.Audiences) == 0 {
		i.Audiences = []string{c.Own}
	}
	verifier, err := bearer.New(bearer.Config{
		Issuer: i.Issuer, Audience: i.Audiences, SoleAudience: true, Keys: keys, Algorithms: i.Algorithms,
		// SPIFFE's JWT-SVIDs may say JOSE. Access tokens (at+jwt) are not accepted.
		Types:  []string{"jose", "client-authentication+jwt", "application/client-authentication+jwt"},
		Leeway: skew, MaxLife: i.MaxTokenLife, Now: c.Now,
	})
	if err != nil {
		return fmt.Errorf("issuer %s: %w", i.Issuer, err)
	}
	f.issuers[i.Issuer] = &trusted{verifier: verifier, keys: keys, subjects: i.Subjects}
	return nil
}

// Trusts reports whether the issuer is trusted.
func (f *Federation) Trusts(issuer string) bool { return f != nil && f.issuers[issuer] != nil }

// Verify returns the subject of an assertion, whose issuer must be trusted. An error is a *[bearer.Error]; with its
// status 503, the keys of the issuer are not available at present.
func (f *Federation) Verify(ctx context.Context, assertion *bearer.Decoded) (subject string, err error) {
	i := f.issuers[assertion.Issuer]
	caller, err := i.verifier.VerifyDecoded(ctx, assertion)
	if err != nil {
		return "", err
	}
	if !i.covers(caller.Subject) {
		return "", &bearer.Error{Reason: "subject not covered"}
	}
	return caller.Subject, nil
}

// covers reports whether the issuer may assert the subject.
func (i *trusted) covers(subject string) bool {
	return len(i.subjects) == 0 || slices.ContainsFunc(i.subjects, func(rule string) bool {
		beginning, open := strings.CutSuffix(rule, "*")
		return rule == subject || open && strings.HasPrefix(subject, beginning)
	})
}

// Tasks returns a function for each issuer that keeps its keys fresh until its context ends.
func (f *Federation) Tasks() []func(context.Context) error {
	if f == nil {
		return nil
	}
	var tasks []func(context.Context) error
	for _, i := range f.issuers {
		tasks = append(tasks, i.keys.Run)
	}
	return tasks
}
