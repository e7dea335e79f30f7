package target

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// The algorithms by which clients of the benchmark sign assertions.
const (
	RS256 = "RS256"
	ES256 = "ES256"
	EdDSA = "EdDSA"
)

// ClusterIssuer is the trusted issuer of the service-account tokens that clients of the benchmark send.
const ClusterIssuer = "https://cluster.example"

// Signers are the private keys of clients without secrets. Each algorithm has clients of its own with one key.
type Signers struct {
	keys map[string]crypto.Signer
}

// NewSigners makes the keys.
func NewSigners() (*Signers, error) {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("RSA key: %w", err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("EC key: %w", err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("Ed25519 key: %w", err)
	}
	return &Signers{map[string]crypto.Signer{RS256: r, ES256: ec, EdDSA: ed}}, nil
}

// SignerID is the id of client i of an algorithm, counted in a circle.
func SignerID(alg string, i int) string { return fmt.Sprintf("%s-client-%02d", alg, i%ClientCount) }

// AccountID is the id of client i that sends a service-account token, counted in a circle.
func AccountID(i int) string {
	return fmt.Sprintf("system:serviceaccount:bench:client-%02d", i%ClientCount)
}

// Options writes the registrations and the trusted issuer, and returns the options of services that use them.
func (s *Signers) Options(dir string) (Options, error) {
	text := "clients:\n"
	for alg, key := range s.keys {
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			return Options{}, fmt.Errorf("public key: %w", err)
		}
		public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		for i := range ClientCount {
			text += fmt.Sprintf("- {client_id: %s, client_name: Bench, scope: events, public_keys: %q}\n", SignerID(alg, i), public)
		}
	}
	for i := range ClientCount {
		text += fmt.Sprintf("- {client_id: %q, client_name: Bench, scope: events, assertion_issuer: %q}\n", AccountID(i), ClusterIssuer)
	}
	n := base64.RawURLEncoding.EncodeToString(s.keys[RS256].Public().(*rsa.PublicKey).N.Bytes())
	files := map[string]string{
		"keyed.yaml":   text,
		"jwks.json":    fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"k","n":%q,"e":"AQAB"}]}`, n),
		"issuers.yaml": fmt.Sprintf("- {issuer: %q, jwksFile: %q}\n", ClusterIssuer, filepath.Join(dir, "jwks.json")),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return Options{}, err
		}
	}
	return Options{
		Clients: filepath.Join(dir, "keyed.yaml"),
		Token:   []string{"--private-key-jwt", "--trusted-issuers-file=" + filepath.Join(dir, "issuers.yaml")},
	}, nil
}

// assertionLife is how long assertions live: longer than a row takes, and less than the default limit.
const assertionLife = 290 * time.Second

// claims is the payload of an assertion, with a jti that is not used again.
func claims(issuer, subject, audience string) []byte {
	now := time.Now().Unix()
	return fmt.Appendf(nil, `{"iss":%q,"sub":%q,"aud":%q,"jti":%q,"iat":%d,"exp":%d}`,
		issuer, subject, audience, rand.Text(), now, now+int64(assertionLife/time.Second))
}

var base64url = base64.RawURLEncoding

// sign returns an assertion with a header and a payload.
func (s *Signers) sign(alg, kid string, payload []byte) (string, error) {
	input := signingInput(alg, kid, payload)
	signature, err := signature(s.keys[alg], []byte(input))
	return input + "." + base64url.EncodeToString(signature), err
}

// signingInput is what is signed. The kid may be empty.
func signingInput(alg, kid string, payload []byte) string {
	header := fmt.Sprintf(`{"alg":%q}`, alg)
	if kid != "" {
		header = fmt.Sprintf(`{"alg":%q,"kid":%q}`, alg, kid)
	}
	return base64url.EncodeToString([]byte(header)) + "." + base64url.EncodeToString(payload)
}

func signature(key crypto.Signer, input []byte) ([]byte, error) {
	sum := sha256.Sum256(input)
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			return nil, err
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), nil
	case ed25519.PrivateKey:
		return ed25519.Sign(key, input), nil
	}
	return key.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// AssertionRequests formats requests of the algorithm's clients in turn, each with an assertion of its own, because an
// assertion is good once. Both cores sign, before anything is measured.
func (s *Signers) AssertionRequests(up *Services, alg string, count int) ([][]byte, error) {
	requests := make([][]byte, count)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range requests {
		group.Go(func() error {
			id := SignerID(alg, i)
			assertion, err := s.sign(alg, "", claims(id, id, up.Issuer()))
			requests[i] = up.assertionRequest(assertion)
			return err
		})
	}
	return requests, group.Wait()
}

// AccountRequests formats a request for each client that sends a service-account token, which it can send again.
func (s *Signers) AccountRequests(up *Services) ([][]byte, error) {
	requests := make([][]byte, ClientCount)
	for i := range requests {
		var err error
		if requests[i], err = s.AccountRequest(up, AccountID(i)); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// AccountRequest formats a request with a service-account token of a subject, which no client may have.
func (s *Signers) AccountRequest(up *Services, subject string) ([]byte, error) {
	assertion, err := s.sign(RS256, "k", claims(ClusterIssuer, subject, up.Issuer()))
	return up.assertionRequest(assertion), err
}

// ForgedRequest formats a request with an assertion whose signature nobody made. Its form is right, so that it is
// refused no earlier than a good one. The kid may be empty.
func (s *Services) ForgedRequest(alg, kid, issuer, subject string) []byte {
	signature := make([]byte, 64)
	if alg == RS256 {
		signature = make([]byte, 256)
	}
	if _, err := rand.Read(signature); err != nil {
		panic(err) // cannot happen: crypto/rand does not fail
	}
	signature[0] &= 0x7f                // RSA: below every modulus
	signature[len(signature)-1] &= 0x0f // Ed25519: below the order of the group
	input := signingInput(alg, kid, claims(issuer, subject, s.Issuer()))
	return s.assertionRequest(input + "." + base64url.EncodeToString(signature))
}

// Issuer is the issuer of the access tokens, and the audience of assertions.
func (s *Services) Issuer() string { return "http://" + s.TokenAddr.String() }

func (s *Services) assertionRequest(assertion string) []byte {
	body := url.Values{
		"grant_type": {"client_credentials"}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}.Encode()
	return []byte("POST " + tokenPath + " HTTP/1.1\r\nHost: " + s.TokenAddr.String() +
		"\r\nContent-Type: " + formType + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}
