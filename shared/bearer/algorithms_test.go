package bearer_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/shared/bearer"
)

// signECDSA signs by ES256 with a given key (RFC 7518 section 3.4).
func signECDSA(key *ecdsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		sum := sha256.Sum256(input)
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			panic(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
}

// signECDSAInDER signs in the encoding of X.509, which is not that of JWS.
func signECDSAInDER(key *ecdsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		sum := sha256.Sum256(input)
		return must(ecdsa.SignASN1(rand.Reader, key, sum[:]))
	}
}

func signEd25519(key ed25519.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte { return ed25519.Sign(key, input) }
}

// TestAlgorithms: an algorithm is accepted if it is configured and fits the key, whatever the header says.
func TestAlgorithms(t *testing.T) {
	t.Parallel()
	ec := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs256 := func(input []byte) []byte {
		sum := sha256.Sum256(input)
		return must(rsa.SignPKCS1v15(nil, testKeys()[0], crypto.SHA256, sum[:]))
	}
	head := func(alg, kid string) string { return fmt.Sprintf(`{"alg":%q,"kid":%q}`, alg, kid) }
	newKey := func(public crypto.PublicKey, algorithms ...string) bearer.Key {
		return must(bearer.NewPublicKey(public, algorithms))
	}
	all := bearer.Algorithms()
	v := newVerifier(t, func(c *bearer.Config) {
		c.Algorithms = all
		c.Keys = fixedKeys{
			"rsa": newKey(&testKeys()[0].PublicKey, all...), "only-ps": newKey(&testKeys()[0].PublicKey, bearer.PS256),
			"ec": newKey(&ec.PublicKey, all...), "ed": newKey(ed.Public(), all...),
		}
	})
	const wrong, badAlg = "signature wrong", "alg not allowed"
	check(t, v, []row{
		{"RS256", join(head("RS256", "rsa"), claims(), rs256), ""},
		{"PS256", join(head("PS256", "rsa"), claims(), ps256), ""},
		{"ES256", join(head("ES256", "ec"), claims(), signECDSA(ec)), ""},
		{"Ed25519", join(head("Ed25519", "ed"), claims(), signEd25519(ed)), ""},
		{"EdDSA", join(head("EdDSA", "ed"), claims(), signEd25519(ed)), ""},
		{"PS256 where the key allows it only", join(head("PS256", "only-ps"), claims(), ps256), ""},
		{"RS256 with a key for PS256", join(head("RS256", "only-ps"), claims(), rs256), wrong},
		{"RS256 called PS256", join(head("PS256", "rsa"), claims(), rs256), wrong},
		{"ES256 with the RSA key", join(head("ES256", "rsa"), claims(), signECDSA(ec)), wrong},
		{"RS256 with the EC key", join(head("RS256", "ec"), claims(), rs256), wrong},
		{"EdDSA with the EC key", join(head("EdDSA", "ec"), claims(), signEd25519(ed)), wrong},
		{"Ed25519 with the EC key", join(head("Ed25519", "ec"), claims(), signEd25519(ed)), wrong},
		{"ES256 called Ed25519", join(head("Ed25519", "ed"), claims(), signECDSA(ec)), wrong},
		{"Ed25519 called ES256", join(head("ES256", "ec"), claims(), signEd25519(ed)), wrong},
		{"Ed25519 in lower case", join(head("ed25519", "ed"), claims(), signEd25519(ed)), badAlg},
		{"Ed448", join(head("Ed448", "ed"), claims(), signEd25519(ed)), badAlg},
		{"ES256 with the Ed25519 key", join(head("ES256", "ed"), claims(), signECDSA(ec)), wrong},
		{"HS256 keyed with the Ed25519 key", join(head("HS256", "ed"), claims(), hs256(ed.Public().(ed25519.PublicKey))), badAlg},
		{"EdDSA keyed like HS256", join(head("EdDSA", "ed"), claims(), hs256(ed.Public().(ed25519.PublicKey))), wrong},
		{"ES256 in DER", join(head("ES256", "ec"), claims(), signECDSAInDER(ec)), wrong},
		{"ES256 of zeros (CVE-2022-21449)", join(head("ES256", "ec"), claims(), func([]byte) []byte { return make([]byte, 64) }), wrong},
		{"ES256 of another key", join(head("ES256", "ec"), claims(), es256), wrong},
		{"EdDSA one byte short", join(head("EdDSA", "ed"), claims(), func(in []byte) []byte { return ed25519.Sign(ed, in)[:63] }), wrong},
		{"EdDSA without a signature", join(head("EdDSA", "ed"), claims(), func([]byte) []byte { return nil }), wrong},
		{"ES384", join(head("ES384", "ec"), claims(), signECDSA(ec)), badAlg},
		{"none", join(head("none", "ed"), claims(), func([]byte) []byte { return nil }), badAlg},
	})
}

// TestKeysOfOneID: keys of one kid and different kty or alg (RFC 7517 section 4.5) are told apart by the alg of the
// token.
func TestKeysOfOneID(t *testing.T) {
	t.Parallel()
	ec := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	point := must(ec.PublicKey.ECDH()).Bytes()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, otherEd, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	type signer struct {
		name string
		sign func([]byte) []byte
		jwk  func(alg string) string // empty: none
	}
	member := func(alg string) string {
		if alg == "" {
			return ""
		}
		return fmt.Sprintf(`,"alg":%q`, alg)
	}
	bytes64 := base64.RawURLEncoding.EncodeToString
	rsaSigner := func(key *rsa.PrivateKey) func([]byte) []byte {
		return func(input []byte) []byte {
			sum := sha256.Sum256(input)
			return must(rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:]))
		}
	}
	okp := func(key ed25519.PrivateKey) func(string) string {
		return func(alg string) string {
			return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":"one","x":%q%s}`, bytes64(key.Public().(ed25519.PublicKey)), member(alg))
		}
	}
	a := signer{"RSA a", rsaSigner(testKeys()[0]), func(alg string) string { return entry("one", testKeys()[0], member(alg)) }}
	pss := signer{"RSA a", ps256, a.jwk}
	b := signer{"RSA b", rsaSigner(testKeys()[1]), func(alg string) string { return entry("one", testKeys()[1], member(alg)) }}
	curve := signer{"EC", signECDSA(ec), func(alg string) string {
		return fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":"one","x":%q,"y":%q%s}`, bytes64(point[1:33]), bytes64(point[33:]), member(alg))
	}}
	edwards := signer{"Ed25519", signEd25519(ed), okp(ed)}
	otherEdwards := signer{"Ed25519, another", signEd25519(otherEd), okp(otherEd)}
	for name, tc := range map[string]struct {
		set     []string
		good    map[string]signer // by the alg of the token
		refused map[string]signer // because of the signature
	}{
		"two types": {[]string{a.jwk(""), curve.jwk("")}, map[string]signer{"RS256": a, "PS256": pss, "ES256": curve},
			map[string]signer{"EdDSA": edwards}},
		"two types with alg": {[]string{curve.jwk("ES256"), a.jwk("RS256")}, map[string]signer{"RS256": a, "ES256": curve},
			map[string]signer{"PS256": pss}},
		"three types": {[]string{a.jwk(""), curve.jwk(""), edwards.jwk("")}, map[string]signer{"RS256": a, "ES256": curve, "Ed25519": edwards, "EdDSA": edwards},
			map[string]signer{"RS256": b}},
		"two algorithms of a type": {[]string{b.jwk("RS256"), a.jwk("PS256")}, map[string]signer{"RS256": b, "PS256": pss},
			map[string]signer{"RS256": a}},
		"one without alg first":  {[]string{b.jwk(""), a.jwk("PS256")}, map[string]signer{"RS256": b, "PS256": pss}, map[string]signer{"RS256": a}},
		"one without alg second": {[]string{a.jwk("PS256"), b.jwk("")}, map[string]signer{"RS256": b, "PS256": pss}, map[string]signer{"RS256": a}},
		"the same key for two":   {[]string{a.jwk("RS256"), a.jwk("PS256")}, map[string]signer{"RS256": a, "PS256": pss}, map[string]signer{"ES256": curve}},
		"both names of Ed25519": {[]string{edwards.jwk("EdDSA"), otherEdwards.jwk("Ed25519")}, map[string]signer{"EdDSA": edwards, "Ed25519": otherEdwards},
			map[string]signer{"Ed25519": edwards}},
		"the older name of Ed25519":   {[]string{edwards.jwk("EdDSA")}, map[string]signer{"EdDSA": edwards, "Ed25519": edwards}, map[string]signer{"ES256": curve}},
		"the newer name of Ed25519":   {[]string{edwards.jwk("Ed25519")}, map[string]signer{"EdDSA": edwards, "Ed25519": edwards}, map[string]signer{"RS256": a}},
		"nothing to tell them by":     {[]string{a.jwk("RS256"), b.jwk("RS256")}, map[string]signer{"RS256": a}, map[string]signer{"RS256": b}},
		"an alg of another type":      {[]string{a.jwk("ES256"), curve.jwk("")}, map[string]signer{"ES256": curve}, map[string]signer{"RS256": a}},
		"a key that cannot be used":   {[]string{`{"kty":"LMS","kid":"one"}`, curve.jwk("")}, map[string]signer{"ES256": curve}, map[string]signer{"RS256": a}},
		"one for encryption, first":   {[]string{strings.Replace(a.jwk(""), "{", `{"use":"enc",`, 1), b.jwk("")}, map[string]signer{"RS256": b}, map[string]signer{"RS256": a}},
		"an alg that is not accepted": {[]string{a.jwk("RS512"), b.jwk("")}, map[string]signer{"RS256": b}, map[string]signer{"RS256": a}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newJWKS(t, &fakeIssuer{answer: func(*http.Request) (*http.Response, error) { return answer(200, document(tc.set...)) }},
				func(c *bearer.JWKSConfig) { c.Algorithms = bearer.Algorithms() })
			v := newVerifier(t, func(c *bearer.Config) { c.Algorithms, c.Keys = bearer.Algorithms(), k })
			var rows []row
			for _, tokens := range []struct {
				by     map[string]signer
				reason string
			}{{tc.good, ""}, {tc.refused, "signature wrong"}} {
				for alg, s := range tokens.by {
					rows = append(rows, row{alg + " by " + s.name, join(fmt.Sprintf(`{"alg":%q,"kid":"one"}`, alg), claims(), s.sign), tokens.reason})
				}
			}
			check(t, v, rows)
			check(t, v, rows) // from memory
		})
	}
}

// TestNewKeyOfAnOldID: a key that joins another under its kid is fetched with its first token, and its callers are
// withdrawn when it alone leaves.
func TestNewKeyOfAnOldID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ec := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
		point := must(ec.PublicKey.ECDH()).Bytes()
		old := entry("one", testKeys()[0], "")
		added := fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":"one","x":%q,"y":%q}`, encode(string(point[1:33])), encode(string(point[33:])))
		set := document(old)
		k := newJWKS(t, &fakeIssuer{answer: func(*http.Request) (*http.Response, error) { return answer(200, set, "Cache-Control", "max-age=60") }},
			func(c *bearer.JWKSConfig) { c.Algorithms = bearer.Algorithms() })
		v := newVerifier(t, func(c *bearer.Config) { c.Algorithms, c.Keys = bearer.Algorithms(), k })
		byRSA := must(v.Verify(t.Context(), token(`{"alg":"RS256","kid":"one"}`, claims())))
		set = document(old, added)
		time.Sleep(2 * time.Second)
		byEC, err := v.Verify(t.Context(), join(`{"alg":"ES256","kid":"one"}`, claims(), signECDSA(ec)))
		if err != nil {
			t.Fatalf("the first token of the key that was added: %v", err)
		}
		set = document(old)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = k.Run(ctx) }()
		time.Sleep(2 * time.Minute)
		if v.Withdrawn(t.Context(), byRSA) || !v.Withdrawn(t.Context(), byEC) {
			t.Error("not exactly the key that has left is withdrawn")
		}
	})
}

// TestKeyTypes: keys that are weak or of other curves are refused.
func TestKeyTypes(t *testing.T) {
	t.Parallel()
	p384 := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	for name, public := range map[string]crypto.PublicKey{
		"P-384": &p384.PublicKey, "RSA-1024": &must(rsa.GenerateKey(rand.Reader, 1024)).PublicKey, "nil": nil, "a secret": []byte("secret"),
	} {
		if _, err := bearer.NewPublicKey(public, bearer.Algorithms()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := bearer.NewPublicKey(&testKeys()[0].PublicKey, []string{bearer.ES256}); err == nil {
		t.Error("an RSA key for ES256: accepted")
	}
	for _, document := range []string{
		`{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}`, `{"kty":"EC","crv":"P-384","x":"AQ","y":"AQ"}`,
		`{"kty":"OKP","crv":"Ed25519","x":"AQ"}`, `{"kty":"OKP","crv":"X25519","x":"` + strings.Repeat("A", 43) + `"}`,
		`{"kty":"OKP","crv":"Ed25519"}`, `{"kty":"EC","crv":"P-256"}`, `{"kty":"oct","k":"AAAA"}`,
		entry("x", testKeys()[0], `,"alg":"ES256"`), entry("x", testKeys()[0], `,"alg":"none"`),
	} {
		if _, _, err := bearer.ParseKey([]byte(document), bearer.Algorithms()); err == nil {
			t.Errorf("%.60s: accepted", document)
		}
	}
}

// TestAssertionRules: the rules for client assertions (RFC 7523 section 3), which access tokens do not have.
func TestAssertionRules(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, func(c *bearer.Config) {
		c.SoleAudience, c.AnyKeyID, c.Types = true, true, []string{"client-authentication+jwt"}
		c.Keys = fixedKeys{goodKID: public(testKeys()[0]), "": public(testKeys()[1])}
	})
	typ := func(value string) string { return `{"alg":"RS256","kid":"key-1","typ":"` + value + `"}` }
	check(t, v, []row{
		{"one audience", token(good, claims()), ""},
		{"one audience in a list", token(good, claims("aud", `["eventsvc"]`)), ""},
		{"two audiences", token(good, claims("aud", `["eventsvc","z"]`)), "several audiences"},
		{"the same audience twice", token(good, claims("aud", `["eventsvc","eventsvc"]`)), "several audiences"},
		{"no audience", token(good, claims("aud", "")), "other audience"},
		{"typ of client assertions", token(typ("client-authentication+jwt"), claims()), ""},
		{"typ in other case", token(typ("Client-Authentication+JWT"), claims()), ""},
		{"typ of access tokens", token(typ("at+jwt"), claims()), "typ of another token"},
		{"typ of access tokens, in full", token(typ("application/at+jwt"), claims()), "typ of another token"},
		{"no kid", signed(testKeys()[1], `{"alg":"RS256"}`, claims()), ""},
		{"no kid, another key", token(`{"alg":"RS256"}`, claims()), "signature wrong"},
		{"kid empty", signed(testKeys()[1], `{"alg":"RS256","kid":""}`, claims()), "kid missing or malformed"},
	})
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ token, issuer, subject string }{
		"good":           {token(good, claims()), issuer, "client-1"},
		"forged":         {join(good, claims(), func([]byte) []byte { return nil }), issuer, "client-1"},
		"no names":       {token(good, claims("iss", "", "sub", "1")), "", ""},
		"names twice":    {token(good, `{"iss":"a","iss":"b"}`), "", ""},
		"not a token":    {"abc", "", ""},
		"8 KiB":          {strings.Repeat("a.", 5000), "", ""},
		"claims no JSON": {token(good, `abc`), "", ""},
	} {
		d, err := bearer.Decode(tc.token)
		if good := tc.issuer != "" || name == "no names"; good != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (d.Issuer != tc.issuer || d.Subject != tc.subject) {
			t.Errorf("%s: %q, %q", name, d.Issuer, d.Subject)
		}
	}
}

// TestVerifyDecoded: a token that was decoded before is verified by the same rules, and remembered.
func TestVerifyDecoded(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, nil)
	verify := func(token string) (*bearer.Caller, error) {
		return v.VerifyDecoded(t.Context(), must(bearer.Decode(token)))
	}
	first, err := verify(token(good, claims()))
	if err != nil || first.Subject != "client-1" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := verify(token(good, claims())); again != first || err != nil {
		t.Errorf("not remembered: %v", err)
	}
	if caller, err := verify(join(good, claims(), func([]byte) []byte { return make([]byte, 256) })); err == nil {
		t.Errorf("forged, and accepted as %+v", caller)
	}
}

// TestNoMemory: a verifier without memory verifies a token each time.
func TestNoMemory(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, func(c *bearer.Config) { c.CacheBytes = -1 })
	first, err := v.Verify(t.Context(), token(good, claims()))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := v.Verify(t.Context(), token(good, claims())); again == first || err != nil {
		t.Errorf("remembered: %v", err)
	}
}

// TestPublishedVectors: the examples of the RFCs, whose keys and signatures others have made.
func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	const joe = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
	for name, tc := range map[string]struct{ key, alg, input, signature string }{
		"RFC 7515 appendix A.2": {
			`{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}`,
			"RS256", "eyJhbGciOiJSUzI1NiJ9." + joe,
			"cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
		},
		"RFC 7515 appendix A.3": {
			`{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`,
			"ES256", "eyJhbGciOiJFUzI1NiJ9." + joe,
			"DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
		},
		"RFC 8037 appendix A.4, by the name of RFC 9864": {
			`{"kty":"OKP","crv":"Ed25519","alg":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`,
			"Ed25519", "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
			"hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
		},
		"RFC 8037 appendix A.4": {
			`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`,
			"EdDSA", "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
			"hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
		},
	} {
		_, key, err := bearer.ParseKey([]byte(tc.key), bearer.Algorithms())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		signature := must(base64.RawURLEncoding.DecodeString(tc.signature))
		if !key.Verify(tc.alg, []byte(tc.input), signature) {
			t.Errorf("%s: refused", name)
		}
		if key.Verify(tc.alg, []byte(tc.input+"A"), signature) {
			t.Errorf("%s: accepted for another input", name)
		}
	}
}
