package clientkey_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/shared/certtest"
	"tidings.example/tokensvc/internal/clientkey"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// verify verifies an assertion with a set of keys, as the service does.
func verify(t *testing.T, keys []clientkey.Public, assertion string) (*bearer.Caller, error) {
	t.Helper()
	var kinds clientkey.Kinds
	v, err := bearer.New(bearer.Config{
		Issuer: "reporter", Audience: []string{"https://tokens.example"}, Keys: kinds.Set(keys), Algorithms: bearer.Algorithms(), AnyKeyID: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify(t.Context(), assertion)
}

// TestKeys: what a client makes and prints is what the service reads, and it verifies what the client signs.
func TestKeys(t *testing.T) {
	t.Parallel()
	other := must(clientkey.New("ES256"))
	for _, alg := range []string{"ES256", "Ed25519", "EdDSA", "RS256"} {
		t.Run(alg, func(t *testing.T) {
			t.Parallel()
			made := must(clientkey.New(alg))
			key := must(clientkey.ParsePrivate(must(made.PEM())))
			if key.ID != made.ID {
				t.Errorf("kid %q after reading it, %q before", key.ID, made.ID)
			}
			fromJWKS := must(clientkey.ParseJWKS(must(clientkey.JWKS(other, key))))
			fromPEM := must(clientkey.ParsePEM(must(clientkey.PublicPEM(key, other))))
			assertion := must(key.Assertion("reporter", "https://tokens.example", time.Now()))
			for form, keys := range map[string][]clientkey.Public{"JWKS": fromJWKS, "PEM": fromPEM} {
				caller, err := verify(t, keys, assertion)
				if err != nil || caller.Subject != "reporter" || caller.ID == "" || caller.KeyID != key.ID {
					t.Errorf("%s: %+v, %v", form, caller, err)
				}
			}
			if _, err := verify(t, fromPEM[1:], assertion); err == nil {
				t.Error("good for the key of another client")
			}
			if _, err := verify(t, nil, assertion); err == nil {
				t.Error("good for no key")
			}
		})
	}
}

// TestAssertionsDiffer: an assertion is good once, so two must never be the same.
func TestAssertionsDiffer(t *testing.T) {
	t.Parallel()
	key, now := must(clientkey.New("EdDSA")), time.Now()
	first, second := must(key.Assertion("a", "b", now)), must(key.Assertion("a", "b", now))
	if first == second {
		t.Error("two assertions are the same")
	}
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// TestForeignKeys: the forms in which other programs write private keys.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	ec, large := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	r := certtest.RSA(t)
	for name, tc := range map[string]struct {
		text string
		good bool
	}{
		"EC of OpenSSL":    {block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(ec))), true},
		"RSA of OpenSSL":   {block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(r)), true},
		"PKCS #8":          {block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(r))), true},
		"P-521":            {block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(large))), false},
		"public key":       {block("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(&ec.PublicKey))), false},
		"damaged":          {block("PRIVATE KEY", []byte("x")), false},
		"other block":      {block("CERTIFICATE", []byte("x")), false},
		"no PEM":           {"{}", false},
		"Diffie-Hellman":   {block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(must(ec.ECDH())))), true}, // the same form as ECDSA
		"empty":            {"", false},
		"encrypted PKCS 8": {block("ENCRYPTED PRIVATE KEY", []byte("x")), false},
	} {
		if _, err := clientkey.ParsePrivate([]byte(tc.text)); (err == nil) != tc.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func jwk(key *rsa.PublicKey, more string) string {
	return fmt.Sprintf(`{"kty":"RSA","n":%q,"e":"AQAB"%s}`, base64.RawURLEncoding.EncodeToString(key.N.Bytes()), more)
}

// TestBadPublicKeys: keys that cannot be used are an error, because the client could not authenticate.
func TestBadPublicKeys(t *testing.T) {
	t.Parallel()
	r := &certtest.RSA(t).PublicKey
	odd := &must(rsa.GenerateKey(rand.Reader, 2304)).PublicKey
	set := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	if keys, err := clientkey.ParseJWKS([]byte(set(jwk(r, "")))); err != nil || len(keys) != 1 || keys[0].ID == "" {
		t.Fatalf("a good set: %v, %v", keys, err)
	}
	for name, text := range map[string]string{
		"empty": "", "no JSON": "{", "a list": `[]`, "no keys": `{"keys":[]}`, "one key without a set": jwk(r, ""), "null": "null",
		"private key": set(jwk(r, `,"d":"AQ"`)), "secret": set(`{"kty":"oct","k":"AAAA"}`), "kid twice": set(jwk(r, `,"kid":"a"`), jwk(odd, `,"kid":"a"`)),
		"three keys": set(jwk(r, `,"kid":"a"`), jwk(r, `,"kid":"b"`), jwk(r, `,"kid":"c"`)), "RSA of 2304 bits": set(jwk(odd, "")),
		"for encryption": set(jwk(r, `,"use":"enc"`)), "alg RS512": set(jwk(r, `,"alg":"RS512"`)), "alg ES256": set(jwk(r, `,"alg":"ES256"`)),
		"a good and a bad one": set(jwk(r, ""), `{}`),
	} {
		if keys, err := clientkey.ParseJWKS([]byte(text)); err == nil {
			t.Errorf("JWKS, %s: accepted as %v", name, keys)
		}
	}
	der := must(x509.MarshalPKIXPublicKey(r))
	p384 := must(x509.MarshalPKIXPublicKey(must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)).Public()))
	for name, text := range map[string]string{
		"empty": "", "no PEM": "x", "private key": block("PRIVATE KEY", der), "certificate": block("CERTIFICATE", der), "damaged": block("PUBLIC KEY", der[1:]),
		"the same twice": block("PUBLIC KEY", der) + block("PUBLIC KEY", der), "P-384": block("PUBLIC KEY", p384),
	} {
		if keys, err := clientkey.ParsePEM([]byte(text)); err == nil {
			t.Errorf("PEM, %s: accepted as %v", name, keys)
		}
	}
	if keys, err := clientkey.Join(must(clientkey.ParseJWKS([]byte(set(jwk(r, ""))))), must(clientkey.ParsePEM([]byte(block("PUBLIC KEY", der))))); err == nil {
		t.Errorf("the same key in both forms: accepted as %v", keys)
	}
	if _, err := clientkey.New("HS256"); err == nil {
		t.Error("made a key for HS256")
	}
}

// TestKeysOfOneID: a client may have two keys of one kid, of different kty or alg (RFC 7517 section 4.5), and either is
// good.
func TestKeysOfOneID(t *testing.T) {
	t.Parallel()
	const kid = "2026"
	entry := func(key *clientkey.Private, more string) string {
		var set struct{ Keys []map[string]any }
		if err := json.Unmarshal(must(clientkey.JWKS(key)), &set); err != nil {
			t.Fatal(err)
		}
		set.Keys[0]["kid"] = kid
		if more != "" {
			delete(set.Keys[0], "alg")
		}
		return strings.Replace(string(must(json.Marshal(set.Keys[0]))), "{", "{"+more, 1)
	}
	ec, otherEC := must(clientkey.New("ES256")), must(clientkey.New("ES256"))
	edwards, r := must(clientkey.New("Ed25519")), must(clientkey.New("RS256"))
	for name, tc := range map[string]struct {
		entries []string
		signers []*clientkey.Private // nil: the set is refused
	}{
		"two types":                {[]string{entry(ec, ""), entry(edwards, "")}, []*clientkey.Private{ec, edwards}},
		"two types without alg":    {[]string{entry(r, `"key_ops":["verify"],`), entry(ec, `"key_ops":["verify"],`)}, []*clientkey.Private{r, ec}},
		"one with alg":             {[]string{entry(ec, ""), entry(otherEC, `"key_ops":["verify"],`)}, []*clientkey.Private{ec, otherEC}},
		"the same type and alg":    {[]string{entry(ec, ""), entry(otherEC, "")}, nil},
		"the same type and no alg": {[]string{entry(ec, `"key_ops":["verify"],`), entry(otherEC, `"key_ops":["verify"],`)}, nil},
	} {
		keys, err := clientkey.ParseJWKS([]byte(`{"keys":[` + strings.Join(tc.entries, ",") + `]}`))
		if (err == nil) != (tc.signers != nil) || err != nil && !strings.Contains(err.Error(), `the kid "2026" is used twice for the same kty and alg`) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for n, signer := range tc.signers {
			signer.ID = kid
			assertion := must(signer.Assertion("reporter", "https://tokens.example", time.Now()))
			if _, err := verify(t, keys, assertion); err != nil {
				t.Errorf("%s, key %d: %v", name, n+1, err)
			}
			if _, err := verify(t, slices.Delete(slices.Clone(keys), n, n+1), assertion); err == nil {
				t.Errorf("%s: key %d is good when only the other is registered", name, n+1)
			}
		}
	}
}

// TestPrintedKeysArePublic: no member of a printed set is of a private key.
func TestPrintedKeysArePublic(t *testing.T) {
	t.Parallel()
	for _, alg := range []string{"ES256", "Ed25519", "EdDSA", "RS256"} {
		var set struct{ Keys []map[string]any }
		if err := json.Unmarshal(must(clientkey.JWKS(must(clientkey.New(alg)))), &set); err != nil {
			t.Fatal(err)
		}
		for member := range set.Keys[0] {
			if !strings.Contains(" kty alg use kid crv x y n e ", " "+member+" ") {
				t.Errorf("%s: member %q is printed", alg, member)
			}
		}
	}
}

// TestPublishedThumbprint: a key without kid has the RFC 7638 thumbprint, here that of RFC 8037 appendix A.3.
func TestPublishedThumbprint(t *testing.T) {
	t.Parallel()
	keys, err := clientkey.ParseJWKS([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
	if err != nil || keys[0].ID != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("%v, %v", keys, err)
	}
}
