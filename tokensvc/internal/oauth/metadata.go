package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

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
}

// published is a document that never changes.
type published struct {
	body []byte
	etag string
}

func newMetadata(issuer, publicURL string, basic bool) (published, error) {
	base := strings.TrimSuffix(publicURL, "/")
	methods := []string{client.AuthMethod}
	if basic {
		methods = append(methods, "client_secret_basic")
	}
	body, err := json.Marshal(metadata{
		Issuer:                   issuer,
		TokenEndpoint:            base + pathToken,
		JWKSURI:                  base + pathJWKS,
		IntrospectionEndpoint:    base + pathIntrospect,
		IntrospectionAuthMethods: []string{"Bearer"},
		ResponseTypes:            []string{},
		GrantTypes:               []string{client.GrantType},
		TokenAuthMethods:         methods,
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
