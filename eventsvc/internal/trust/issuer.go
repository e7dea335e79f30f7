package trust

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/issuers"
)

// An Issuer describes whose tokens are accepted, and how they are read. The
// service's flags describe one issuer, the entries of the issuers file the
// others.
type Issuer struct {
	Issuer           string `yaml:"issuer"` // the iss claim, to the letter, or [issuers.Cluster]
	bearer.KeySource `yaml:",inline"`
	Audiences        []string     `yaml:"audiences"`     // a token must be for one of them; empty: any
	MaxTokenLife     cli.Duration `yaml:"maxTokenLife"`  // from iat to exp; 0: one hour
	ClientIDClaim    string       `yaml:"clientIDClaim"` // empty: client_id. Keycloak and OpenID Connect use azp
	ScopeClaim       string       `yaml:"scopeClaim"`    // empty: scope
	Claims           []string     `yaml:"claims"`        // claims that the policy may ask for
	Console          *SignIn      `yaml:"console"`       // how people sign in there; nil: not at all
	Advertise        bool         `yaml:"advertise"`     // name the issuer to clients that look for a token service
	Cluster          bool         `yaml:"-"`             // the file has [issuers.Cluster], and Issuer is the issuer of the pod's cluster
}

// From implements [issuers.Settings].
func (i Issuer) From() (issuer string, keys bearer.KeySource) { return i.Issuer, i.KeySource }

// ReadIssuers reads an issuers file: a YAML list of [Issuer]. [issuers.Cluster] stays
// what it is, because this need not be a pod. An error names the file and the entry.
func ReadIssuers(path string) ([]Issuer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func parse(data []byte) ([]Issuer, error) {
	list, err := issuers.Parse[Issuer](data, "issuer, jwksURL, jwksFile, caFile, bearerTokenFile, algorithms, audiences, "+
		"maxTokenLife, clientIDClaim, scopeClaim, claims, console and advertise")
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "in type trust.SignIn", "in console (there are "+signInMembers+")"))
	}
	for n, i := range list {
		switch {
		case i.Issuer == "":
			return nil, fmt.Errorf("entry %d: issuer is missing: name whose tokens to accept, their iss claim to the letter", n+1)
		case i.Issuer == issuers.Cluster && len(i.Audiences) == 0:
			return nil, fmt.Errorf("entry %d: issuer: cluster: audiences is missing: name what tokens are made for, such as eventsvc, because every pod has one for the API server", n+1)
		case i.Advertise && !bearer.IsURL(i.Issuer):
			return nil, fmt.Errorf("entry %d: advertise is for issuers that clients can ask for tokens, and %q is no http(s) URL: leave it out", n+1, i.Issuer)
		}
		if s := list[n].Console; s != nil {
			if err := s.complete(list[n].Issuer); err != nil {
				return nil, fmt.Errorf("entry %d: %w", n+1, err)
			}
		}
	}
	return list, nil
}
