package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/tokensvc/internal/client"
)

// metadataMaxAge is how long the metadata may be cached; it only changes with the configuration.
const metadataMaxAge = time.Hour

// metadata is the document of RFC 8414 section 2. It lists only endpoints that exist.
type metadata struct {
	Issuer                   string   `json:"issuer"`
	TokenEndpoint            string   `json:"token_endpoint"`
	JWKSURI                  string   `json:"jwks_uri"`
	IntrospectionEndpoint    string   `json:"introspection_endpoint"`
	IntrospectionAuthMethods []string `json:"introspection_endpoint_auth_methods_supported"`
	ResponseTypes            []string `json:"response_types_supported"` // required; empty without an authorization endpoint
	GrantTypes               []string `json:"grant_types_supported"`
	TokenAuthMethods         []string `json:"token_endpoint_auth_methods_supported"`
	TokenAuthAlgorithms      []string `json:"token_endpoint_auth_signing_alg_values_supported,omitempty"` // required with private_key_jwt
}

// published is a document that never changes.
type published struct {
	body []byte
	etag string
}

func newMetadata(c Config) (published, error) {
	base := strings.TrimSuffix(c.PublicURL, "/")
	methods := []string{client.MethodPost}
	if c.Basic {
		methods = append(methods, client.MethodBasic)
	}
	var algorithms []string
	if c.Assertions {
		methods, algorithms = append(methods, client.MethodKey), bearer.Algorithms()
	}
	body, err := json.Marshal(metadata{
		Issuer:                   c.Issuer,
		TokenEndpoint:            base + pathToken,
		JWKSURI:                  base + pathJWKS,
		IntrospectionEndpoint:    base + pathIntrospect,
		IntrospectionAuthMethods: []string{"Bearer"},
		ResponseTypes:            []string{},
		GrantTypes:               []string{client.GrantType},
		TokenAuthMethods:         methods,
		TokenAuthAlgorithms:      algorithms,
	})
	if err != nil {
		return published{}, fmt.Errorf("encode metadata: %w", err)
	}
	sum := sha256.Sum256(body)
	return published{body: body, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, nil
}

// metadataPaths returns the paths of the metadata: the well-known paths and, for an issuer with a path, also those of
// RFC 8414 section 3.1 and OpenID Connect Discovery section 4. An issuer that is not a URL has no metadata.
func metadataPaths(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil
	}
	paths := []string{pathMetadata, pathOpenID}
	if below := strings.TrimSuffix(u.EscapedPath(), "/"); below != "" {
		paths = append(paths, pathMetadata+below, below+pathOpenID)
	}
	return paths
}
