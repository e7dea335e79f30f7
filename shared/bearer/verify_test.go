package bearer_test

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"

	"tidings.example/shared/bearer"
)

// row is one case: a token, and the reason of its refusal or "" if it is valid.
type row struct{ name, token, reason string }

func check(t *testing.T, v *bearer.Verifier, rows []row) {
	t.Helper()
	checkBy(t, v.Verify, rows)
}

// checkBoth verifies tokens as access tokens, and as the assertions of clients (RFC 7523 section 3), whose rules are
// those of tokensvc. Reasons that differ for assertions are in different.
func checkBoth(t *testing.T, rows []row, different map[string]string) {
	t.Helper()
	t.Run("access token", func(t *testing.T) { check(t, newVerifier(t, nil), rows) })
	t.Run("explained", func(t *testing.T) { checkExplained(t, rows) })
	v := newVerifier(t, func(c *bearer.Config) {
		c.Algorithms, c.Types, c.CacheBytes = bearer.Algorithms(), []string{"client-authentication+jwt"}, -1
		c.AnyKeyID, c.SoleAudience = true, true
	})
	rows = slices.Clone(rows)
	for i, r := range rows {
		if reason, ok := different[r.name]; ok {
			rows[i].reason = reason
		}
	}
	t.Run("assertion", func(t *testing.T) {
		checkBy(t, func(ctx context.Context, token string) (*bearer.Caller, error) {
			d, err := bearer.Decode(token)
			if err != nil {
				return nil, err
			}
			return v.VerifyDecoded(ctx, d)
		}, rows)
	})
}

func checkBy(t *testing.T, verify func(context.Context, string) (*bearer.Caller, error), rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			caller, err := verify(t.Context(), r.token)
			if r.reason == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var refusal *bearer.Error
			if !errors.As(err, &refusal) || caller != nil {
				t.Fatalf("accepted, or another error: %v, %v; want %q", caller, err, r.reason)
			}
			// every reason has the same status and challenge.
			if refusal.Reason != r.reason || refusal.Status != http.StatusUnauthorized || bearer.Challenge(err, "") != `Bearer error="invalid_token"` {
				t.Errorf("refused with %d %q, challenge %q; want 401 %q", refusal.Status, refusal.Reason, bearer.Challenge(err, ""), r.reason)
			}
		})
	}
}

// header is a valid header with one more member.
func header(member string) string { return strings.TrimSuffix(good, "}") + "," + member + "}" }

// kid is a valid header with another key id, given as JSON.
func kid(value string) string { return `{"alg":"RS256","kid":` + value + `}` }

// alg is a valid header with another algorithm.
func alg(value string) string { return `{"alg":"` + value + `","kid":"key-1"}` }

func TestHeaderCases(t *testing.T) {
	t.Parallel()
	own := &testKeys()[0].PublicKey
	der := must(x509.MarshalPKIXPublicKey(own))
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	modulus := base64.RawURLEncoding.EncodeToString(own.N.Bytes())
	none := func([]byte) []byte { return nil }
	foreign := testKeys()[2]
	jwkOfForeign := fmt.Sprintf(`"jwk":{"kty":"RSA","kid":"key-1","n":%q,"e":"AQAB"}`, base64.RawURLEncoding.EncodeToString(foreign.N.Bytes()))
	const badAlg, badKID, badHeader = "alg not allowed", "kid missing or malformed", "header damaged"

	checkBoth(t, []row{
		{"good", token(good, claims()), ""},
		{"alg none, no signature", join(alg("none"), claims(), none), badAlg},
		{"alg None", join(alg("None"), claims(), none), badAlg},
		{"alg nOnE", join(alg("nOnE"), claims(), none), badAlg},
		{"HS256 keyed with the PEM", join(alg("HS256"), claims(), hs256(asPEM)), badAlg},
		{"HS256 keyed with the DER", join(alg("HS256"), claims(), hs256(der)), badAlg},
		{"HS256 keyed with the modulus text", join(alg("HS256"), claims(), hs256([]byte(modulus))), badAlg},
		{"alg absent", token(`{"kid":"key-1"}`, claims()), badAlg},
		{"alg RS512 over an RS256 signature", token(alg("RS512"), claims()), badAlg},
		{"alg in lower case", token(alg("rs256"), claims()), badAlg},
		{"PS256", join(alg("PS256"), claims(), ps256), badAlg},
		{"PS256 called RS256", join(good, claims(), ps256), "signature wrong"},
		{"RS384", join(alg("RS384"), claims(), rs384), badAlg},
		{"RS384 called RS256", join(good, claims(), rs384), "signature wrong"},
		{"ES256", join(alg("ES256"), claims(), es256), badAlg},
		{"ES256 called RS256", join(good, claims(), es256), "signature wrong"},
		{"kid absent", token(`{"alg":"RS256"}`, claims()), badKID},
		{"kid unknown", token(kid(`"key-9"`), claims()), "key unknown"},
		{"kid a number", token(kid(`1`), claims()), badKID},
		{"kid a list", token(kid(`["key-1"]`), claims()), badKID},
		{"kid null", token(kid(`null`), claims()), badKID},
		{"kid empty", token(kid(`""`), claims()), badKID},
		{"kid a path", token(kid(`"../../etc/passwd"`), claims()), "key unknown"},
		{"kid SQL", token(kid(`"' OR 1=1"`), claims()), "key unknown"},
		{"kid of 129 bytes", token(kid(`"`+strings.Repeat("k", 129)+`"`), claims()), badKID},
		{"kid of 64 KiB", token(kid(`"`+strings.Repeat("k", 64<<10)+`"`), claims()), "too long"},
		{"kid with NUL", token(kid(`"key-1\u0000"`), claims()), badKID},
		{"the attacker's key in jwk", signed(foreign, header(jwkOfForeign), claims()), "signature wrong"},
		{"jku", signed(foreign, header(`"jku":"http://127.0.0.1:1/jwks"`), claims()), "signature wrong"},
		{"x5u", signed(foreign, header(`"x5u":"http://127.0.0.1:1/x5u"`), claims()), "signature wrong"},
		{"junk in x5c beside the issuer's signature", token(header(`"x5c":["junk"]`), claims()), ""},
		{"x5c with the attacker's signature", signed(foreign, header(`"x5c":["MIIB"]`), claims()), "signature wrong"},
		{"crit with an unknown name", token(header(`"crit":["exp"],"exp":1`), claims()), "header extension"},
		{"crit empty", token(header(`"crit":[]`), claims()), "header extension"},
		{"crit no list", token(header(`"crit":"b64"`), claims()), "header extension"},
		{"b64 false", token(header(`"b64":false,"crit":["b64"]`), claims()), "header extension"},
		{"b64 alone", token(header(`"b64":true`), claims()), "header extension"},
		{"typ secevent+jwt", token(`{"alg":"RS256","kid":"key-1","typ":"secevent+jwt"}`, claims()), "typ of another token"},
		{"typ dpop+jwt", token(`{"alg":"RS256","kid":"key-1","typ":"dpop+jwt"}`, claims()), "typ of another token"},
		{"typ a number", token(`{"alg":"RS256","kid":"key-1","typ":1}`, claims()), "typ of another token"},
		{"typ empty", token(`{"alg":"RS256","kid":"key-1","typ":""}`, claims()), "typ of another token"},
		{"typ absent", token(`{"alg":"RS256","kid":"key-1"}`, claims()), ""},
		{"typ AT+JWT", token(`{"alg":"RS256","kid":"key-1","typ":"AT+JWT"}`, claims()), ""},
		{"typ application/at+jwt", token(`{"alg":"RS256","kid":"key-1","typ":"application/at+jwt"}`, claims()), ""},
		{"alg twice", token(`{"alg":"none","alg":"RS256","kid":"key-1"}`, claims()), badHeader},
		{"alg twice, once escaped", token(`{"\u0061lg":"RS256","alg":"RS256","kid":"key-1"}`, claims()), badHeader},
		{"bytes behind the header", token(good+`{}`, claims()), badHeader},
		{"header not UTF-8", token(header("\"x\":\"\xff\""), claims()), badHeader},
		{"header with BOM", token("\ufeff"+good, claims()), badHeader},
		{"ALG", token(`{"ALG":"RS256","kid":"key-1"}`, claims()), badAlg},
		{"KID", token(`{"alg":"RS256","KID":"key-1"}`, claims()), badKID},
		{"cty JWT", token(header(`"cty":"JWT"`), claims()), "header extension"},
		{"zip DEF", token(header(`"zip":"DEF"`), claims()), "header extension"},
		{"a JWE", strings.Repeat(encode(`{"alg":"RSA-OAEP","enc":"A256GCM"}`)+".", 4) + "AA", "not three parts"},
		{"header nested 5,000 deep", token(strings.Repeat(`[`, 2500)+strings.Repeat(`]`, 2500), claims()), badHeader},
		{"an ID token by its typ", token(`{"alg":"RS256","kid":"key-1","typ":"id+jwt"}`, claims()), "typ of another token"},
		{"header a list", token(`["RS256"]`, claims()), badHeader},
		{"header empty", token(``, claims()), badHeader},
		{"header cut off", token(`{"alg":"RS256","kid":"key-1"`, claims()), badHeader},
		{"header with a bare name", token(`{"alg":"RS256","kid"}`, claims()), badHeader},
		{"alg not a string", token(`{"alg":["RS256"],"kid":"key-1"}`, claims()), badAlg},
	}, map[string]string{
		"PS256": "signature wrong", "ES256": "signature wrong", "kid absent": "key unknown", "KID": "key unknown",
		"typ AT+JWT": "typ of another token", "typ application/at+jwt": "typ of another token",
	})
}

func TestClaimCases(t *testing.T) {
	t.Parallel()
	at := func(seconds int) string { return fmt.Sprint(now + seconds) }
	change := func(changes ...string) string { return token(good, claims(changes...)) }
	const badTime, badPayload, otherAudience, badClaim = "time missing or malformed", "payload damaged", "other audience", "claim malformed"

	rows := []row{
		{"sub twice", token(good, `{"sub":"other",`+claims()[1:]), badPayload},
		{"bytes behind the payload", token(good, claims()+`x`), badPayload},
		{"a second object", token(good, claims()+`{}`), badPayload},
		{"white space behind the payload", token(good, claims()+" \n"), ""},
		{"null", token(good, `null`), badPayload},
		{"list", token(good, `[]`), badPayload},
		{"string", token(good, `"x"`), badPayload},
		{"empty", token(good, ``), badPayload},
		{"empty object", token(good, `{}`), "other issuer"},
		{"not UTF-8", token(good, strings.Replace(claims(), "client-1", "client-\xff", 1)), badPayload},
		{"BOM", token(good, "\ufeff"+claims()), badPayload},
		{"AUD", change("aud", "", "AUD", `"eventsvc"`), otherAudience},
		{"ISS", change("iss", "", "ISS", `"`+issuer+`"`), "other issuer"},
		{"EXP", change("exp", "", "EXP", at(300)), badTime},
		{"past exp and future EXP", change("exp", at(-60), "EXP", at(300)), "expired"},
		{"exp absent", change("exp", ""), badTime},
		{"exp now, within the leeway", change("iat", at(-60), "nbf", "", "exp", at(0)), ""},
		{"exp a second inside the leeway", change("iat", at(-60), "nbf", "", "exp", at(-9)), ""},
		{"exp at the leeway", change("iat", at(-60), "nbf", "", "exp", at(-10)), "expired"},
		{"exp a second beyond the leeway", change("iat", at(-60), "nbf", "", "exp", at(-11)), "expired"},
		{"exp a string", change("exp", `"`+at(300)+`"`), badTime},
		{"exp with a fraction", change("exp", at(300)+".5"), ""},
		{"exp with an exponent", change("exp", "1.8000003e9"), ""},
		{"exp 1e10", change("exp", "1e10"), "lives too long"},
		{"a life of an hour", change("exp", at(3600)), ""},
		{"a life of an hour and a second", change("exp", at(3601)), "lives too long"},
		{"exp 1e400", change("exp", "1e400"), badTime},
		{"exp 99999999999999999999", change("exp", "99999999999999999999"), badTime},
		{"exp -1", change("exp", "-1"), badTime},
		{"exp null", change("exp", "null"), badTime},
		{"exp true", change("exp", "true"), badTime},
		{"exp {}", change("exp", "{}"), badTime},
		{"nbf a second beyond the leeway", change("nbf", at(11)), "not valid yet"},
		{"nbf at the leeway", change("nbf", at(10)), ""},
		{"nbf absent", change("nbf", ""), ""},
		{"iat a second beyond the leeway", change("iat", at(11)), "not valid yet"},
		{"iat at the leeway", change("iat", at(10)), ""},
		{"iat absent", change("iat", ""), badTime},
		{"exp = iat", change("iat", at(5), "exp", at(5), "nbf", ""), "times contradict each other"},
		{"nbf > exp", change("iat", at(-60), "exp", at(1), "nbf", at(2)), "times contradict each other"},
		{"nbf a string", change("nbf", `"`+at(0)+`"`), badTime},
		{"nbf null", change("nbf", "null"), badTime},
		{"iat a string", change("iat", `"`+at(0)+`"`), badTime},
		{"aud absent", change("aud", ""), otherAudience},
		{"aud an empty list", change("aud", "[]"), otherAudience},
		{"aud wrong", change("aud", `"other"`), otherAudience},
		{"aud a number", change("aud", "1"), badClaim},
		{"aud a list of numbers", change("aud", "[1]"), badClaim},
		{"aud a list with a number beside the right one", change("aud", `["eventsvc",1]`), badClaim},
		{"aud a nested list", change("aud", `[["eventsvc"]]`), badClaim},
		{"aud null", change("aud", "null"), badClaim},
		{"aud among others", change("aud", `["x","eventsvc"]`), ""},
		{"aud is the second accepted name", change("aud", `"other-name"`), ""},
		{"aud in other case", change("aud", `"Eventsvc"`), otherAudience},
		{"aud with a slash", change("aud", `"eventsvc/"`), otherAudience},
		{"aud a prefix", change("aud", `"events"`), otherAudience},
		{"iss absent", change("iss", ""), "other issuer"},
		{"iss other", change("iss", `"https://other.example"`), "other issuer"},
		{"iss with a slash", change("iss", `"`+issuer+`/"`), "other issuer"},
		{"iss a list", change("iss", `["`+issuer+`"]`), "other issuer"},
		{"iss in other case", change("iss", `"https://Issuer.example"`), "other issuer"},
		{"sub absent", change("sub", ""), "sub missing or malformed"},
		{"sub empty", change("sub", `""`), "sub missing or malformed"},
		{"sub a number", change("sub", "1"), "sub missing or malformed"},
		{"sub null", change("sub", "null"), "sub missing or malformed"},
		{"sub of 1,025 bytes", change("sub", `"`+strings.Repeat("s", 1025)+`"`), "sub missing or malformed"},
		{"sub with a line feed", change("sub", `"a\nb"`), "sub missing or malformed"},
		{"sub with half a character", change("sub", `"a\ud800"`), "sub missing or malformed"},
		{"half a character in a name", token(good, `{"x\ud800":1,`+claims()[1:]), badPayload},
		{"client_id a number", change("client_id", "1"), badClaim},
		{"client_id empty", change("client_id", `""`), badClaim},
		{"jti a number", change("jti", "1"), badClaim},
		{"jti absent", change("jti", ""), ""},
		{"payload nested deeply", change("deep", strings.Repeat("[", 2500)+strings.Repeat("]", 2500)), ""},
		{"payload nested 100,000 deep", change("deep", strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)), "too long"},
		{"another kind of token by its aud", change("aud", `"client-1"`), otherAudience},
		{"cnf", change("cnf", `{"jkt":"x"}`), "sender-constrained"},
		{"cnf null", change("cnf", `null`), "sender-constrained"},
		{"scope missing", change("scope", ""), ""},
		{"scope a string", change("scope", `"a b"`), ""},
		{"scope a number", change("scope", "1"), badClaim},
		{"scope a list of numbers", change("scope", "[1]"), badClaim},
		{"scope null", change("scope", "null"), ""},
		{"client_id null", change("client_id", "null"), ""},
		{"scope an object", change("scope", "{}"), badClaim},
		{"scope a list with a null", change("scope", `["a",null]`), badClaim},
	}
	checkBoth(t, rows, map[string]string{"aud among others": "several audiences"})
}

func TestSignatureCases(t *testing.T) {
	t.Parallel()
	whole := token(good, claims())
	parts := strings.Split(whole, ".")
	raw := must(base64.RawURLEncoding.DecodeString(parts[2]))
	signature := func(sig []byte) string {
		return parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(sig)
	}
	plusModulus := new(big.Int).Add(new(big.Int).SetBytes(raw), testKeys()[0].N)

	// A signature of 256 bytes ends in a character with four unused bits.
	last := parts[2][len(parts[2])-1]
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	stray := parts[2][:len(parts[2])-1] + string(alphabet[strings.IndexByte(alphabet, last)|1])

	// A token whose signature has both characters that the two alphabets of base64 do not share.
	var signedPart, urlSafe string
	for i := 0; !strings.Contains(urlSafe, "-") || !strings.Contains(urlSafe, "_"); i++ {
		made := token(good, claims("jti", fmt.Sprintf(`"%d"`, i)))
		dot := strings.LastIndexByte(made, '.') + 1
		signedPart, urlSafe = made[:dot], made[dot:]
	}
	standard := strings.NewReplacer("-", "+", "_", "/")

	const notBase64 = "not base64url"
	checkBoth(t, []row{
		{"signed by another key of ours that is not this issuer's", signed(testKeys()[1], good, claims()), "signature wrong"},
		{"another key under the right kid", signed(testKeys()[2], good, claims()), "signature wrong"},
		{"payload changed", parts[0] + "." + encode(claims("sub", `"admin"`)) + "." + parts[2], "signature wrong"},
		{"header changed", encode(kid(`"key-1"`)) + "." + parts[1] + "." + parts[2], "signature wrong"},
		{"signature empty", signature(nil), "signature wrong"},
		{"a byte short", signature(raw[:255]), "signature wrong"},
		{"a byte long", signature(append(raw[:256:256], 0)), "signature wrong"},
		{"all zero", signature(make([]byte, 256)), "signature wrong"},
		{"at least the modulus", signature(plusModulus.Bytes()), "signature wrong"},
		{"standard base64", signedPart + standard.Replace(urlSafe), notBase64},
		{"the same in base64url", signedPart + urlSafe, ""},
		{"signature padded", whole + "==", notBase64},
		{"header padded", parts[0] + "=." + parts[1] + "." + parts[2], notBase64},
		{"stray low bits", parts[0] + "." + parts[1] + "." + stray, notBase64},
		{"leading blank", " " + whole, notBase64},
		{"trailing line feed", whole + "\n", notBase64},
		{"line feed inside", parts[0] + "." + parts[1][:8] + "\n" + parts[1][8:] + "." + parts[2], notBase64},
		{"carriage return inside", parts[0] + "." + parts[1] + "." + parts[2][:8] + "\r" + parts[2][8:], notBase64},
		{"empty", "", "not three parts"},
		{"one part", parts[0], "not three parts"},
		{"two parts", parts[0] + "." + parts[1], "not three parts"},
		{"four parts", whole + ".", "not three parts"},
		{"five parts", whole + "..", "not three parts"},
		{"8,000 dots", strings.Repeat(".", 8000), "not three parts"},
		{"a million dots", strings.Repeat(".", 1_000_000), "too long"},
		{"JSON flattened", fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q}`, parts[0], parts[1], parts[2]), "not three parts"},
		{"JSON general", fmt.Sprintf(`{"payload":%q,"signatures":[{"protected":%q,"signature":%q}]}`, parts[1], parts[0], parts[2]), "not three parts"},
		{"16 KiB and a byte", whole + strings.Repeat("A", bearer.MaxToken+1-len(whole)), "too long"},
		{"1 MiB", whole + strings.Repeat("A", 1<<20), "too long"},
		{"16 KiB, well signed", sized(t, bearer.MaxToken), ""},
	}, nil)
}

// sized is a good token of exactly n bytes.
func sized(t *testing.T, n int) string {
	t.Helper()
	const signature = 342 // characters of 256 bytes
	length := func(header, payload string) int { return len(encode(header)) + len(encode(payload)) + signature + 2 }
	padded := func(pad int) string { return claims("pad", `"`+strings.Repeat("p", pad)+`"`) }
	for _, h := range []string{good, good + " "} { // base64 cannot have every length; the other header has those that are missing
		for pad := (n-length(h, padded(0)))*3/4 + 3; pad > 0 && length(h, padded(pad)) >= n; pad-- {
			if length(h, padded(pad)) == n {
				return token(h, padded(pad))
			}
		}
	}
	t.Fatalf("no token has %d bytes", n)
	return ""
}

func TestVerifyCaller(t *testing.T) {
	t.Parallel()
	want := &bearer.Caller{
		Issuer: issuer, Subject: "client-1", ClientID: "client-1", Audience: []string{audience}, Scopes: []string{"a", "b"},
		ID: "3f0a", KeyID: goodKID, Algorithm: bearer.RS256, IssuedAt: time.Unix(now, 0), Expires: time.Unix(now+300, 0),
	}
	v := newVerifier(t, nil)
	for _, round := range []string{"first", "replayed, whatever became of the client"} {
		got, err := v.Verify(t.Context(), token(good, claims()))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", round, err, diff)
		}
	}
	got, err := v.Verify(t.Context(), token(good, claims("client_id", `"id"`, "scope", `"x  y"`, "aud", `["eventsvc","z"]`)))
	want = &bearer.Caller{Subject: "client-1", ClientID: "id", Audience: []string{audience, "z"}, Scopes: []string{"x", "y"}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(bearer.Caller{}, "Issuer", "ID", "KeyID", "Algorithm", "IssuedAt", "Expires")); err != nil || diff != "" {
		t.Errorf("RFC 9068 shape: %v (-want +got):\n%s", err, diff)
	}
}

// TestVerifyTokensOfAnotherLibrary takes tokens signed by jwx's high-level interface.
func TestVerifyTokensOfAnotherLibrary(t *testing.T) {
	t.Parallel()
	key := must(jwk.FromRaw(testKeys()[0]))
	if err := key.Set(jwk.KeyIDKey, goodKID); err != nil {
		t.Fatal(err)
	}
	made := must(jws.Sign([]byte(claims()), jws.WithKey(jwa.RS256, key)))
	if _, err := newVerifier(t, nil).Verify(t.Context(), string(made)); err != nil {
		t.Error(err)
	}
}

func TestVerifyWithoutAudience(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, func(c *bearer.Config) { c.Audience = nil })
	check(t, v, []row{
		{"any aud", token(good, claims("aud", `"client-1"`)), ""},
		{"no aud", token(good, claims("aud", "")), ""},
		{"aud of the wrong type", token(good, claims("aud", "1")), "claim malformed"},
	})
}

// TestKubernetesToken verifies a token as a Kubernetes API server issues it to a pod, with a lifetime of a day.
func TestKubernetesToken(t *testing.T) {
	t.Parallel()
	payload := fmt.Sprintf(`{"aud":["eventsvc"],"exp":%d,"iat":%d,"iss":%q,"jti":"0b5c5f0e-3f5c-4b8e-9c43-2f6f1c0c7a01",
		"kubernetes.io":{"namespace":"default","node":{"name":"n1","uid":"u1"},"pod":{"name":"p","uid":"u2"},
		"serviceaccount":{"name":"reporter","uid":"u3"},"warnafter":%d},"nbf":%d,"sub":"system:serviceaccount:default:reporter"}`,
		now+86400, now, issuer, now+3607, now)
	day := newVerifier(t, func(c *bearer.Config) { c.MaxLife = 24 * time.Hour })
	caller, err := day.Verify(t.Context(), token(kid(`"key-1"`), payload))
	if err != nil || caller.Subject != "system:serviceaccount:default:reporter" || caller.ClientID != caller.Subject {
		t.Errorf("with a maximum life of a day: %+v, %v", caller, err)
	}
	check(t, newVerifier(t, nil), []row{{"default maximum life", token(kid(`"key-1"`), payload), "lives too long"}})
}

// TestClock: dates are checked with and without leeway, for fresh and for remembered tokens.
func TestClock(t *testing.T) {
	t.Parallel()
	made := token(good, claims())
	for _, leeway := range []time.Duration{0, 10 * time.Second} {
		time0 := time.Unix(now, 0)
		current := time0
		v := newVerifier(t, func(c *bearer.Config) {
			c.Leeway = leeway
			c.Now = func() time.Time { return current }
		})
		for _, step := range []struct {
			at   time.Duration
			good bool
		}{
			{-leeway - time.Second, false}, {-leeway, true}, {0, true}, {300*time.Second + leeway - 1, true},
			{300*time.Second + leeway, false}, {time.Hour, false},
		} {
			current = time0.Add(step.at)
			if _, err := v.Verify(t.Context(), made); (err == nil) != step.good {
				t.Errorf("leeway %s, clock %s: %v, want good = %v", leeway, step.at, err, step.good)
			}
		}
	}
}

// TestRememberedTokens: a token is remembered until its key is withdrawn. When another key gets the same id, the tokens
// of the old key are refused.
func TestRememberedTokens(t *testing.T) {
	t.Parallel()
	keys := fixedKeys{goodKID: public(testKeys()[0])}
	v := newVerifier(t, func(c *bearer.Config) { c.Keys = keys })
	made := token(good, claims())
	first, err := v.Verify(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := v.Verify(t.Context(), made); again != first || err != nil {
		t.Errorf("not remembered: %v", err)
	}
	copied := rsa.PublicKey{N: new(big.Int).Set(testKeys()[0].N), E: testKeys()[0].E}
	keys[goodKID] = must(bearer.NewPublicKey(&copied, []string{bearer.RS256}))
	if again, err := v.Verify(t.Context(), made); again != first || err != nil {
		t.Errorf("forgotten for an equal key: %v", err)
	}
	keys[goodKID] = public(testKeys()[1])
	if _, err := v.Verify(t.Context(), made); err == nil || err.Error() != "signature wrong" {
		t.Errorf("after the key was replaced: %v", err)
	}
	delete(keys, goodKID)
	if _, err := v.Verify(t.Context(), made); err == nil || err.Error() != "key unknown" {
		t.Errorf("after the key was withdrawn: %v", err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, func(c *bearer.Config) { c.CacheBytes = 16 << 10 })
	first := token(good, claims("jti", `"0"`))
	oldest := must(v.Verify(t.Context(), first))
	used := oldest
	for i := range 40 { // some 8 fit into a generation
		must(v.Verify(t.Context(), token(good, claims("jti", fmt.Sprintf(`"%d"`, i+1)))))
		if i%3 == 0 {
			used = must(v.Verify(t.Context(), first))
		}
	}
	if used != oldest {
		t.Error("a token in use was forgotten")
	}
	for i := range 40 {
		must(v.Verify(t.Context(), token(good, claims("jti", fmt.Sprintf(`"x%d"`, i)))))
	}
	if must(v.Verify(t.Context(), first)) == oldest {
		t.Error("a token that was not used is still remembered after 40 others")
	}
}

// TestConcurrentBadTokens: valid tokens are verified correctly while many bad tokens arrive.
func TestConcurrentBadTokens(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, nil)
	made := token(good, claims())
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			if _, err := v.Verify(t.Context(), made+fmt.Sprint(i)); err == nil {
				t.Error("a bad token was accepted")
			}
			if _, err := v.Verify(t.Context(), made); err != nil {
				t.Errorf("a good token was refused: %v", err)
			}
		})
	}
	wg.Wait()
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]bearer.Config{
		"no issuer":         {Keys: fixedKeys{}},
		"no keys":           {Issuer: issuer},
		"an empty audience": {Issuer: issuer, Keys: fixedKeys{}, Audience: []string{""}},
		"a large leeway":    {Issuer: issuer, Keys: fixedKeys{}, Leeway: time.Hour},
		"negative life":     {Issuer: issuer, Keys: fixedKeys{}, MaxLife: -1},
	} {
		if _, err := bearer.New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkRememberedToken(b *testing.B) {
	v, made := newVerifier(b, nil), token(good, claims())
	must(v.Verify(b.Context(), made))
	b.ReportAllocs()
	for b.Loop() {
		must(v.Verify(b.Context(), made))
	}
}

func BenchmarkNewToken(b *testing.B) {
	v := newVerifier(b, func(c *bearer.Config) { c.CacheBytes = 1 }) // remembers two tokens at most
	made := [3]string{token(good, claims("jti", `"a"`)), token(good, claims("jti", `"b"`)), token(good, claims("jti", `"c"`))}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		must(v.Verify(b.Context(), made[i%3]))
	}
}
