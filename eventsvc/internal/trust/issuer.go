package trust

import (
	"fmt"
	"os"
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/shared/issuers"
)

// An Issuer describes whose tokens are accepted, and how they are read. The
// service's flags describe one issuer, the entries of the issuers file the
// others.
type Issuer struct {
	Issuer           string `yaml:"issuer"` // the iss claim, to the letter
	bearer.KeySource `yaml:",inline"`
	Audiences        []string      `yaml:"audiences"`     // a token must be for one of them; empty: any
	MaxTokenLife     time.Duration `yaml:"maxTokenLife"`  // from iat to exp; 0: one hour
	ClientIDClaim    string        `yaml:"clientIDClaim"` // empty: client_id. Keycloak and OpenID Connect use azp
	ScopeClaim       string        `yaml:"scopeClaim"`    // empty: scope
	Claims           []string      `yaml:"claims"`        // claims that the policy may ask for
}

// From implements [issuers.Entry].
func (i Issuer) From() (issuer string, keys bearer.KeySource) { return i.Issuer, i.KeySource }

// ReadIssuers reads an issuers file: a YAML list of [Issuer]. An error names the
// file and the entry.
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
		"maxTokenLife, clientIDClaim, scopeClaim and claims")
	if err != nil {
		return nil, err
	}
	for n := range list {
		if list[n].Issuer == "" {
			return nil, fmt.Errorf("entry %d: issuer is missing: name whose tokens to accept, their iss claim to the letter", n+1)
		}
	}
	return list, nil
}
