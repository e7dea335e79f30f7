package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"tidings.example/shared/bearer"
	"tidings.example/tokensvc/internal/client"
)

// metadataMaxAge is how long the metadata may be cached; it only changes with the configuration.
const metadataMaxAge = time.Hour

// pathAuthorize is not served.
const pathAuthorize = "/oauth2/authorize"

// metadata is the document of RFC 8414 section 2 and of OpenID Connect Discovery section 3. This service authenticates
// no users. The members that are about them are here because OpenID Connect requires them, and stock clients do of both
// documents.
type metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"` // answers as an unknown path
	TokenEndpoint         string   `json:"token_endpoint"`
	JWKSURI               string   `json:"jwks_uri"`
	ResponseTypes         []string `json:"response_types_supported"` // required, and must not be empty (RFC 8414 section 3.2)
	GrantTypes            []string `json:"grant_types_supported"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	TokenAuthAlgorithms   []string `json:"token_endpoint_auth_signing_alg_values_supported,omitempty"` // required with private_key_jwt
	SubjectTypes          []string `json:"subject_types_supported"`
	IDTokenAlgorithms     []string `json:"id_token_signing_alg_values_supported"`

	// The MCP SDK for Go (v1.8.0) takes a server without it for one that it must not use, whatever the grant.
	CodeChallengeMethods []string `json:"code_challenge_methods_supported"`
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
		Issuer:                c.Issuer,
		AuthorizationEndpoint: base + pathAuthorize,
		TokenEndpoint:         base + pathToken,
		JWKSURI:               base + pathJWKS,
		ResponseTypes:         []string{"none"}, // OAuth 2.0 Multiple Response Type Encoding Practices section 4
		GrantTypes:            []string{client.GrantType},
		TokenAuthMethods:      methods,
		TokenAuthAlgorithms:   algorithms,
		SubjectTypes:          []string{"public"},
		IDTokenAlgorithms:     []string{bearer.RS256},
		CodeChallengeMethods:  []string{"S256"},
	})
	if err != nil {
		return published{}, fmt.Errorf("encode metadata: %w", err)
	}
	sum := sha256.Sum256(body)
	return published{body: body, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, nil
}

// paths returns the paths at which resources are served, each with the one that it stands for. Those below the path of
// the public URL are for proxies that keep this path, the others for proxies that remove it. The metadata of an issuer
// with a path is also where RFC 8414 section 3.1 and OpenID Connect Discovery section 4 put it. An issuer that is not a
// URL has no metadata.
func paths(c Config) map[string]string {
	base, tenant := pathOf(c.PublicURL), pathOf(c.Issuer)
	served := map[string]string{}
	for _, path := range []string{pathToken, pathJWKS, pathClient} {
		served[path], served[routed(base+path)] = path, path
	}
	if u, err := url.Parse(c.Issuer); err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return served
	}
	own := tenant
	if rest, below := strings.CutPrefix(tenant+"/", base+"/"); below {
		own = strings.TrimSuffix("/"+rest, "/") // of the issuer, for a proxy that removes base
	}
	for _, path := range []string{
		pathMetadata, pathOpenID, base + pathMetadata, base + pathOpenID, pathMetadata + tenant, tenant + pathOpenID, own + pathOpenID,
	} {
		served[routed(path)] = pathMetadata
	}
	return served
}

// pathOf returns the path of a URL as it is encoded there, without a slash at the end.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// routed returns a path as the router compares it with the path of a request.
func routed(path string) string {
	u, err := url.Parse("//host" + path)
	if err != nil {
		return path
	}
	return echo.GetPath(&http.Request{URL: u})
}
