package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/shared/certtest"
	"tidings.example/tokensvc/internal/client/clienttest"
)

// ours is the issuer of the services that [start] starts, and so the audience of assertions.
const ours = "http://tokens.test"

// The two ways to authenticate by an assertion, as audit lines and metrics name them.
const (
	byOwnKey = "private_key_jwt"
	byIssuer = "federated_jwt"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// party signs assertions by hand, without the library that verifies them: a client with keys of its own, or an issuer.
type party struct {
	iss, sub string
	rsa      *rsa.PrivateKey   // with the kid rsa
	ec       *ecdsa.PrivateKey // with the kid ec
}

func newParty(t *testing.T, iss, sub string) *party {
	t.Helper()
	return &party{iss, sub, certtest.RSA(t), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
}

// rsaJWK is a public key in a JWK set, with further members.
func rsaJWK(kid string, key *rsa.PrivateKey, more string) string {
	return fmt.Sprintf(`{"kty":"RSA","kid":%q,"n":%q,"e":"AQAB"%s}`, kid, encode(key.N.Bytes()), more)
}

// jwks is the set of both keys, and of others.
func (p *party) jwks(others ...string) string {
	point := must(p.ec.PublicKey.Bytes()) // 4, x, y
	keys := append(others, rsaJWK("rsa", p.rsa, ""),
		fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":"ec","x":%q,"y":%q}`, encode(point[1:33]), encode(point[33:])))
	return `{"keys":[` + strings.Join(keys, ",") + `]}`
}

// claims is a good payload with some members changed: name, JSON value, …; an empty value leaves the member out.
func (p *party) claims(changes ...string) string {
	now := time.Now().Unix()
	members := map[string]string{
		"iss": fmt.Sprintf("%q", p.iss), "sub": fmt.Sprintf("%q", p.sub), "aud": fmt.Sprintf("%q", ours),
		"iat": fmt.Sprint(now), "exp": fmt.Sprint(now + 300), "jti": fmt.Sprintf("%q", rand.Text()),
	}
	for i := 0; i < len(changes); i += 2 {
		members[changes[i]] = changes[i+1]
	}
	var fields []string
	for name, value := range members {
		if value != "" {
			fields = append(fields, fmt.Sprintf("%q:%s", name, value))
		}
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// good is the header of good assertions by RS256.
const good = `{"alg":"RS256","kid":"rsa","typ":"JWT"}`

// join makes a token with any signature.
func join(header, payload string, sign func(input []byte) []byte) string {
	input := encode([]byte(header)) + "." + encode([]byte(payload))
	return input + "." + encode(sign([]byte(input)))
}

// token signs by RS256.
func (p *party) token(header, payload string) string { return join(header, payload, rs256(p.rsa)) }

// with is a good assertion with a member added to its header.
func (p *party) with(member string) string {
	return p.token(strings.TrimSuffix(good, "}")+","+member+"}", p.claims())
}

// saying is a good assertion with some claims changed.
func (p *party) saying(changes ...string) string { return p.token(good, p.claims(changes...)) }

func rs256(key *rsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		sum := sha256.Sum256(input)
		return must(rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:]))
	}
}

func rs384(key *rsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		sum := sha512.Sum384(input)
		return must(rsa.SignPKCS1v15(nil, key, crypto.SHA384, sum[:]))
	}
}

func ps256(key *rsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		sum := sha256.Sum256(input)
		return must(rsa.SignPSS(rand.Reader, key, crypto.SHA256, sum[:], nil))
	}
}

func es256(key *ecdsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		sum := sha256.Sum256(input)
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			panic(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
}

func hs256(secret []byte) func([]byte) []byte {
	return func(input []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(input)
		return mac.Sum(nil)
	}
}

func fixed(signature []byte) func([]byte) []byte { return func([]byte) []byte { return signature } }

// publicPEM is a public key in PEM, whose bytes an attacker can use as the secret of an HMAC.
func publicPEM(key crypto.PublicKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(key))})
}

// hostileRow is an assertion, and what the audit line of its refusal says: the detail of a wrong assertion, or another
// outcome. An empty text stands for an assertion that is accepted.
type hostileRow struct{ name, assertion, want string }

// The audit lines of assertions that are of no client.
const (
	unknownIssuer  = "unknown_client: iss is neither a client nor a trusted issuer"
	unknownSubject = "unknown_client: no client has this subject, or this client_id"
)

// The reasons of refusals.
const (
	badAlg, badKID, badHeader, extension = "alg not allowed", "kid missing or malformed", "header damaged", "header extension"
	badSignature, noBase64, noParts      = "signature wrong", "not base64url", "not three parts"
	badPayload, badTime, badClaim        = "payload damaged", "time missing or malformed", "claim malformed"
	badSub, otherAudience, severalAud    = "sub missing or malformed", "other audience", "several audiences"
	otherType, tooLong                   = "typ of another token", "too long"
)

// headerRows are the cases N5 to N24 of the design that are about the header.
func (p *party) headerRows(stranger *party, attacker string) []hostileRow {
	c := p.claims
	der := must(x509.MarshalPKIXPublicKey(&p.rsa.PublicKey))
	strangers := func(member string) string { return stranger.token(`{"alg":"RS256","kid":"rsa",`+member+`}`, c()) }
	kid := func(value string) string { return p.token(`{"alg":"RS256","kid":`+value+`}`, c()) }
	return []hostileRow{
		{"N5 alg none", join(`{"alg":"none","kid":"rsa"}`, c(), fixed(nil)), badAlg},
		{"N5 alg none with a signature", p.token(`{"alg":"none","kid":"rsa"}`, c()), badAlg},
		{"N6 alg None", join(`{"alg":"None","kid":"rsa"}`, c(), fixed(nil)), badAlg},
		{"N6 alg nOnE", join(`{"alg":"nOnE","kid":"rsa"}`, c(), fixed(nil)), badAlg},
		{"N7 HS256 keyed with the PEM of the RSA key", join(`{"alg":"HS256","kid":"rsa"}`, c(), hs256(publicPEM(&p.rsa.PublicKey))), badAlg},
		{"N7 HS256 keyed with the PEM of the EC key", join(`{"alg":"HS256","kid":"ec"}`, c(), hs256(publicPEM(&p.ec.PublicKey))), badAlg},
		{"N7 that HMAC called RS256", join(good, c(), hs256(publicPEM(&p.rsa.PublicKey))), badSignature},
		{"N8 HS256 keyed with the DER", join(`{"alg":"HS256","kid":"rsa"}`, c(), hs256(der)), badAlg},
		{"N8 HS256 keyed with the modulus", join(`{"alg":"HS256","kid":"rsa"}`, c(), hs256([]byte(encode(p.rsa.N.Bytes())))), badAlg},
		{"N9 alg absent", p.token(`{"kid":"rsa"}`, c()), badAlg},
		{"N10 RS512 over an RS256 signature", p.token(`{"alg":"RS512","kid":"rsa"}`, c()), badAlg},
		{"N11 alg in lower case", p.token(`{"alg":"rs256","kid":"rsa"}`, c()), badAlg},
		{"N12 RS384", join(`{"alg":"RS384","kid":"rsa"}`, c(), rs384(p.rsa)), badAlg},
		{"N12 RS384 called RS256", join(good, c(), rs384(p.rsa)), badSignature},
		{"N12 PS256", join(`{"alg":"PS256","kid":"rsa"}`, c(), ps256(p.rsa)), ""},
		{"N12 PS256 called RS256", join(good, c(), ps256(p.rsa)), badSignature},
		{"N12 ES256", join(`{"alg":"ES256","kid":"ec"}`, c(), es256(p.ec)), ""},
		{"N12 EC signature under the kid of the RSA key", join(`{"alg":"ES256","kid":"rsa"}`, c(), es256(p.ec)), badSignature},
		{"N12 RSA signature under the kid of the EC key", p.token(`{"alg":"RS256","kid":"ec"}`, c()), badSignature},
		{"N12 EC signature called RS256", join(`{"alg":"RS256","kid":"ec"}`, c(), es256(p.ec)), badSignature},
		{"N12 RSA signature called ES256", p.token(`{"alg":"ES256","kid":"ec"}`, c()), badSignature},
		{"N12 ES256 in DER", join(`{"alg":"ES256","kid":"ec"}`, c(), func(input []byte) []byte {
			sum := sha256.Sum256(input)
			return must(ecdsa.SignASN1(rand.Reader, p.ec, sum[:]))
		}), badSignature},
		{"N12 ES256 all zero", join(`{"alg":"ES256","kid":"ec"}`, c(), fixed(make([]byte, 64))), badSignature},
		{"N13 kid absent", p.token(`{"alg":"RS256"}`, c()), ""},
		{"N14 kid unknown", kid(`"rsa2"`), badSignature},
		{"N15 kid a number", kid(`1`), badKID},
		{"N15 kid a list", kid(`["rsa"]`), badKID},
		{"N15 kid null", kid(`null`), badKID},
		{"N15 kid empty", kid(`""`), badKID},
		{"N16 kid a path", kid(`"../../etc/passwd"`), badSignature},
		{"N16 kid SQL", kid(`"' OR 1=1"`), badSignature},
		{"N16 kid of 129 bytes", kid(`"` + strings.Repeat("k", 129) + `"`), badKID},
		{"N16 kid with NUL", kid(`"rsa\u0000"`), badKID},
		{"N17 the attacker's key in jwk", strangers(`"jwk":` + rsaJWK("rsa", stranger.rsa, "")), badSignature},
		{"N18 jku", strangers(`"jku":"` + attacker + `/jwks"`), badSignature},
		{"N18 x5u", strangers(`"x5u":"` + attacker + `/x5u"`), badSignature},
		{"N18 jku and a kid that only it has", stranger.token(`{"alg":"RS256","kid":"new","jku":"`+attacker+`/jwks"}`, c()), badSignature},
		{"N18 jku beside the right signature", p.with(`"jku":"` + attacker + `/jwks"`), ""},
		{"N18 x5u beside the right signature", p.with(`"x5u":"` + attacker + `/x5u"`), ""},
		{"N19 junk in x5c beside the right signature", p.with(`"x5c":["junk"]`), ""},
		{"N19 x5c with the attacker's signature", strangers(`"x5c":["MIIB"]`), badSignature},
		{"N20 crit with an unknown name", p.with(`"crit":["exp"],"exp":1`), extension},
		{"N21 crit empty", p.with(`"crit":[]`), extension},
		{"N21 crit no list", p.with(`"crit":"b64"`), extension},
		{"N22 b64 false with crit", p.with(`"b64":false,"crit":["b64"]`), extension},
		{"N22 b64 alone", p.with(`"b64":false`), extension},
		{"N23 typ secevent+jwt", p.token(`{"alg":"RS256","kid":"rsa","typ":"secevent+jwt"}`, c()), otherType},
		{"N23 typ dpop+jwt", p.token(`{"alg":"RS256","kid":"rsa","typ":"dpop+jwt"}`, c()), otherType},
		{"N23 typ a number", p.token(`{"alg":"RS256","kid":"rsa","typ":1}`, c()), otherType},
		{"N23 typ absent", p.token(`{"alg":"RS256","kid":"rsa"}`, c()), ""},
		{"N23 typ of assertions", p.token(`{"alg":"RS256","kid":"rsa","typ":"Client-Authentication+JWT"}`, c()), ""},
		{"N24 alg twice", p.token(`{"alg":"none","alg":"RS256","kid":"rsa"}`, c()), badHeader},
		{"N24 kid twice, once escaped", p.token(`{"alg":"RS256","kid":"x","\u006bid":"rsa"}`, c()), badHeader},
		{"N26 bytes behind the header", p.token(good+`{}`, c()), badHeader},
		{"N28 header not UTF-8", p.token("{\"alg\":\"RS256\",\"kid\":\"rsa\",\"x\":\"\xff\"}", c()), badHeader},
		{"N28 header with BOM", p.token("\ufeff"+good, c()), badHeader},
		{"N29 ALG", p.token(`{"ALG":"RS256","kid":"rsa"}`, c()), badAlg},
		{"N56 cty JWT", p.with(`"cty":"JWT"`), extension},
		{"N56 zip DEF", p.with(`"zip":"DEF"`), extension},
		{"N58 header nested 1,000 deep", p.token(strings.Repeat("[", 1000)+strings.Repeat("]", 1000), c()), badHeader},
		{"N59 an ID token by its typ", p.token(`{"alg":"RS256","kid":"rsa","typ":"id+jwt"}`, c()), otherType},
		{"N59 an access token by its typ", p.token(`{"alg":"RS256","kid":"rsa","typ":"at+jwt"}`, c()), otherType},
	}
}

// claimRows are the cases N25 to N61 that are about the claims. Their times are minutes away from every limit, because
// the assertions are sent later than they are made.
func (p *party) claimRows() []hostileRow {
	now := time.Now().Unix()
	at := func(seconds int64) string { return fmt.Sprint(now + seconds) }
	sub := func(value string) string { return p.saying("sub", value) }
	return []hostileRow{
		{"N25 sub twice", p.token(good, `{"sub":"admin",`+p.claims()[1:]), badPayload},
		{"N25 aud twice, once escaped", p.token(good, `{"\u0061ud":"x",`+p.claims()[1:]), badPayload},
		{"N26 bytes behind the payload", p.token(good, p.claims()+"x"), badPayload},
		{"N26 a second object", p.token(good, p.claims()+"{}"), badPayload},
		{"N27 null", p.token(good, "null"), badPayload},
		{"N27 list", p.token(good, "[]"), badPayload},
		{"N27 string", p.token(good, `"x"`), badPayload},
		{"N27 empty", p.token(good, ""), badPayload},
		{"N27 empty object", p.token(good, "{}"), unknownIssuer},
		{"N28 not UTF-8", p.token(good, strings.Replace(p.claims(), "{", "{\"x\":\"\xff\",", 1)), badPayload},
		{"N28 BOM", p.token(good, "\ufeff"+p.claims()), badPayload},
		{"N29 AUD", p.saying("aud", "", "AUD", `"`+ours+`"`), otherAudience},
		{"N29 ISS", p.saying("iss", "", "ISS", `"`+p.iss+`"`), unknownIssuer},
		{"N29 EXP", p.saying("exp", "", "EXP", at(300)), badTime},
		{"N29 past exp and future EXP", p.saying("iat", at(-300), "exp", at(-200), "EXP", at(300)), "expired"},
		{"N30 exp absent", p.saying("exp", ""), badTime},
		{"N32 expired", p.saying("iat", at(-300), "exp", at(-11)), "expired"},
		{"N33 exp a string", p.saying("exp", `"`+at(300)+`"`), badTime},
		{"N34 exp with a fraction", p.saying("exp", at(299)+".5"), ""},
		{"N35 exp 1e10", p.saying("exp", "1e10"), "lives too long"},
		{"N35 a life of more than an hour", p.saying("exp", at(3700)), "lives too long"},
		{"N36 exp 1e400", p.saying("exp", "1e400"), badTime},
		{"N36 exp 99999999999999999999", p.saying("exp", "99999999999999999999"), badTime},
		{"N36 exp -1", p.saying("exp", "-1"), badTime},
		{"N36 exp null", p.saying("exp", "null"), badTime},
		{"N36 exp true", p.saying("exp", "true"), badTime},
		{"N36 exp {}", p.saying("exp", "{}"), badTime},
		{"N37 nbf in the future", p.saying("nbf", at(290)), "not valid yet"},
		{"N38 iat in the future", p.saying("iat", at(250), "exp", at(400)), "not valid yet"},
		{"N39 iat absent", p.saying("iat", ""), badTime},
		{"N39 nbf after exp", p.saying("nbf", at(301)), "not valid yet"},
		{"N40 nbf a string", p.saying("nbf", `"`+at(0)+`"`), badTime},
		{"N40 iat null", p.saying("iat", "null"), badTime},
		{"N41 aud absent", p.saying("aud", ""), otherAudience},
		{"N41 aud an empty list", p.saying("aud", "[]"), otherAudience},
		{"N41 aud of a resource", p.saying("aud", `"eventsvc"`), otherAudience},
		{"N41 aud of the API server", p.saying("aud", `["https://kubernetes.default.svc"]`), otherAudience},
		{"N41 aud the token endpoint", p.saying("aud", `"`+ours+`/oauth2/token"`), otherAudience},
		{"N41 aud the own id", p.saying("aud", `"`+p.sub+`"`), otherAudience},
		{"N41 aud a number", p.saying("aud", "1"), badClaim},
		{"N41 aud a list of numbers", p.saying("aud", "[1]"), badClaim},
		{"N41 aud a nested list", p.saying("aud", `[["`+ours+`"]]`), badClaim},
		{"N42 aud among others", p.saying("aud", `["`+ours+`","https://other.example"]`), severalAud},
		{"N42 aud behind the token endpoint", p.saying("aud", `["`+ours+`/oauth2/token","`+ours+`"]`), severalAud},
		{"N42 aud twice the same", p.saying("aud", `["`+ours+`","`+ours+`"]`), severalAud},
		{"N42 aud a list of one", p.saying("aud", `["`+ours+`"]`), ""},
		{"N43 aud in other case", p.saying("aud", `"HTTP://tokens.test"`), otherAudience},
		{"N43 aud with a slash", p.saying("aud", `"`+ours+`/"`), otherAudience},
		{"N43 aud a prefix", p.saying("aud", `"http://tokens"`), otherAudience},
		{"N44 iss absent", p.saying("iss", ""), unknownIssuer},
		{"N44 iss other", p.saying("iss", `"https://other.example"`), unknownIssuer},
		{"N44 iss with a slash", p.saying("iss", `"`+p.iss+`/"`), unknownIssuer},
		{"N44 iss a list", p.saying("iss", `["`+p.iss+`"]`), unknownIssuer},
		{"N44 iss in other case", p.saying("iss", `"`+strings.ToUpper(p.iss)+`"`), unknownIssuer},
		{"N44 iss the token service", p.saying("iss", `"`+ours+`"`), unknownIssuer},
		{"N46 sub absent", p.saying("sub", ""), badSub},
		{"N46 sub empty", sub(`""`), badSub},
		{"N46 sub a number", sub("1"), badSub},
		{"N46 sub null", sub("null"), badSub},
		{"N46 sub of 1,025 bytes", sub(`"` + strings.Repeat("s", 1025) + `"`), badSub},
		{"N46 sub of 10 KiB", sub(`"` + strings.Repeat("s", 10<<10) + `"`), tooLong},
		{"N46 sub with a line feed", sub(`"a\nb"`), badSub},
		{"N46 sub of nobody", sub(`"nobody"`), "sub is not iss"},
		{"N46 sub of a client with a secret", sub(`"demo"`), "sub is not iss"},
		{"N46 jti a number", p.saying("jti", "1"), badClaim},
		{"N46 jti empty", p.saying("jti", `""`), badClaim},
		{"N46 jti absent", p.saying("jti", ""), "no jti"},
		{"N58 payload nested 1,000 deep", p.saying("deep", strings.Repeat("[", 1000)+strings.Repeat("]", 1000)), ""},
		{"N58 payload nested 5,000 deep", p.saying("deep", strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), tooLong},
		{"N60 cnf", p.saying("cnf", `{"jkt":"x"}`), "sender-constrained"},
		{"N61 scope a number", p.saying("scope", "1"), badClaim},
		{"N61 scope, which changes nothing", p.saying("scope", `"admin"`), ""},
	}
}

// signatureRows are the cases N45 to N57 that are about the form of a token and its signature.
func (p *party) signatureRows(other, stranger *party) []hostileRow {
	whole := p.saying()
	parts := strings.Split(whole, ".")
	raw := must(base64.RawURLEncoding.DecodeString(parts[2]))
	resigned := func(signature []byte) string { return parts[0] + "." + parts[1] + "." + encode(signature) }
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	end := len(whole) - 1 // a signature of 256 bytes ends in a character with four unused bits
	var urlSafe string    // has both characters that the alphabets of base64 do not share
	for !strings.Contains(urlSafe, "-") || !strings.Contains(urlSafe, "_") {
		made := p.saying()
		urlSafe = made[strings.LastIndexByte(made, '.'):]
	}
	standard := strings.NewReplacer("-", "+", "_", "/").Replace(urlSafe)
	header := encode([]byte(good))
	return []hostileRow{
		{"N45 signed by another one that is known", other.token(good, p.claims()), badSignature},
		{"N47 signed by a stranger under the right kid", stranger.token(good, p.claims()), badSignature},
		{"N47 signed by a stranger's EC key under the right kid", join(`{"alg":"ES256","kid":"ec"}`, p.claims(), es256(stranger.ec)), badSignature},
		{"N48 payload changed", header + "." + encode([]byte(p.claims("admin", "true"))) + "." + parts[2], badSignature},
		{"N48 header changed", encode([]byte(`{"alg":"RS256","kid":"rsa"}`)) + "." + parts[1] + "." + parts[2], badSignature},
		{"N49 signature empty", resigned(nil), badSignature},
		{"N49 a byte short", resigned(raw[:255]), badSignature},
		{"N49 a byte long", resigned(append(raw[:256:256], 0)), badSignature},
		{"N49 all zero", resigned(make([]byte, 256)), badSignature},
		{"N49 at least the modulus", resigned(new(big.Int).Add(new(big.Int).SetBytes(raw), p.rsa.N).Bytes()), badSignature},
		{"N50 standard base64", header + "." + parts[1] + standard, noBase64},
		{"N51 signature padded", whole + "==", noBase64},
		{"N51 header padded", parts[0] + "=." + parts[1] + "." + parts[2], noBase64},
		{"N52 stray low bits", whole[:end] + string(alphabet[strings.IndexByte(alphabet, whole[end])|1]), noBase64},
		{"N53 leading blank", " " + whole, noBase64},
		{"N53 trailing line feed", whole + "\n", noBase64},
		{"N53 line feed inside", parts[0] + "." + parts[1][:8] + "\n" + parts[1][8:] + "." + parts[2], noBase64},
		{"N54 one part", "x", noParts},
		{"N54 two parts", parts[0] + "." + parts[1], noParts},
		{"N54 four parts", whole + ".", noParts},
		{"N54 five parts", whole + "..", noParts},
		{"N54 8,000 dots", strings.Repeat(".", 8000), noParts},
		{"N55 JSON flattened", fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q}`, parts[0], parts[1], parts[2]), noParts},
		{"N55 JSON general", fmt.Sprintf(`{"payload":%q,"signatures":[{"protected":%q,"signature":%q}]}`, parts[1], parts[0], parts[2]), noParts},
		{"N56 a JWE", strings.Repeat(encode([]byte(`{"alg":"RSA-OAEP","enc":"A256GCM"}`))+".", 4) + "AA", noParts},
		{"N56 a token in a token", p.token(good, whole), badPayload},
		{"N56 a token in a token, as its cty says", p.token(`{"alg":"RS256","kid":"rsa","cty":"JWT"}`, whole), badPayload},
		{"N57 8 KiB and a byte", whole + strings.Repeat("A", 8<<10+1-len(whole)), tooLong},
	}
}

// replayRows send assertions again, in forms that differ by their text only.
func (p *party) replayRows() []hostileRow {
	claims := p.claims()
	again := join(`{"alg":"ES256","kid":"ec"}`, claims, es256(p.ec))
	dot := strings.LastIndexByte(again, '.') + 1
	signature := must(base64.RawURLEncoding.DecodeString(again[dot:]))
	mirrored := new(big.Int).Sub(elliptic.P256().Params().N, new(big.Int).SetBytes(signature[32:])).FillBytes(make([]byte, 32))
	return []hostileRow{
		{"N71 first", again, ""},
		{"N71 the same again", again, "replayed"},
		{"N71 with the other signature that ECDSA takes for good", again[:dot] + encode(append(signature[:32:32], mirrored...)), "replayed"},
		{"N71 signed again by the other key", p.token(good, claims), "replayed"},
		{"N71 with a later end", p.token(good, strings.Replace(claims, "{", `{"more":1,`, 1)), "replayed"},
	}
}

// hostileWorld is a service with clients of both kinds, and who sends it assertions.
type hostileWorld struct {
	*running
	parties  map[string]*party // by the method of authentication
	others   map[string]*party // known to the service too
	stranger *party
	badKeys  []hostileRow // signed by keys that the issuer publishes and that are no good
	asked    *atomic.Int32
	attacker string // address that counts its connections in asked
	sent     atomic.Int32
	refusal  string // the first one
}

func newHostileWorld(t *testing.T, args ...string) *hostileWorld {
	t.Helper()
	const cluster, second, account = "https://cluster.example", "https://second.example", "system:serviceaccount:shop:reporter"
	w := &hostileWorld{
		parties:  map[string]*party{byOwnKey: newParty(t, "keyed", "keyed"), byIssuer: newParty(t, cluster, account)},
		others:   map[string]*party{byOwnKey: newParty(t, "other", "other"), byIssuer: newParty(t, second, account)},
		stranger: newParty(t, "nobody", "nobody"), asked: new(atomic.Int32),
	}
	weak, issuer := must(rsa.GenerateKey(rand.Reader, 1024)), w.parties[byIssuer]
	published := []string{`{"kty":"LMS","kid":"lms"}`, `{"kty":"oct","kid":"oct","k":"c2VjcmV0"}`, "7", "{}", rsaJWK("weak", weak, "")}
	for kid, more := range map[string]string{"enc": `,"use":"enc"`, "ops": `,"key_ops":["sign"]`, "private": `,"d":"AQAB"`, "rs384": `,"alg":"RS384"`} {
		published = append(published, rsaJWK(kid, w.stranger.rsa, more))
		w.badKeys = append(w.badKeys, hostileRow{"N70 a key for something else: " + kid, w.stranger.token(`{"alg":"RS256","kid":"`+kid+`"}`, issuer.claims()), "key unknown"})
	}
	w.badKeys = append(w.badKeys,
		hostileRow{"N68 a weak key", join(`{"alg":"RS256","kid":"weak"}`, issuer.claims(), rs256(weak)), "key unknown"},
		hostileRow{"N68 a secret in the set", join(`{"alg":"HS256","kid":"oct"}`, issuer.claims(), hs256([]byte("secret"))), badAlg})
	entry := func(p *party, jwks string) string {
		return fmt.Sprintf("- {issuer: %q, jwksFile: %q, algorithms: [RS256, ES256]}\n", p.iss, tempFile(t, "jwks.json", jwks))
	}
	w.running = start(t, append([]string{
		"--private-key-jwt", "--failure-refill", "0", "--client-secret-basic",
		"--clients-file", tempFile(t, "clients.yaml", strings.ReplaceAll(demoClients, "HASH", clienttest.Hash)+fmt.Sprintf(`
- {client_id: keyed, scope: read, jwks: %s}
- {client_id: other, scope: read, jwks: %s}
- {client_id: %q, scope: read, assertion_issuer: %q, audience: [%q]}
`, w.parties[byOwnKey].jwks(), w.others[byOwnKey].jwks(), account, cluster, ours)),
		"--trusted-issuers-file", tempFile(t, "issuers.yaml", entry(issuer, issuer.jwks(published...))+entry(w.others[byIssuer], w.others[byIssuer].jwks())),
	}, args...)...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			w.asked.Add(1)
			conn.Close()
		}
	}()
	w.attacker = "http://" + listener.Addr().String()
	return w
}

// answer is what the token endpoint has answered.
type answer struct {
	id     string // of the request
	status int
	text   string // without Date and the id
}

// post sends a form to the token endpoint, after the changes to the request.
func (w *hostileWorld) post(ctx context.Context, form string, changes ...func(*http.Request)) (answer, error) {
	a := answer{id: fmt.Sprintf("row-%d", w.sent.Add(1))}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.api+"/oauth2/token", strings.NewReader(form))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Request-Id", a.id)
	for _, change := range changes {
		change(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	resp.Header.Del("Date")
	resp.Header.Del("X-Request-Id")
	text, err := httputil.DumpResponse(resp, true)
	a.status, a.text = resp.StatusCode, string(text)
	return a, err
}

// audit returns the line of a refused request: the outcome with its detail, without wrong_assertion.
func (w *hostileWorld) audit(t *testing.T, a answer) string {
	t.Helper()
	for text := range strings.Lines(w.log()) {
		if !strings.Contains(text, a.id) {
			continue
		}
		var line struct {
			Msg, Outcome, Detail string
			ID                   string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if line.Msg == "token request" && line.ID == a.id {
			return strings.TrimPrefix(strings.TrimSuffix(line.Outcome+": "+line.Detail, ": "), "wrong_assertion: ")
		}
	}
	t.Fatalf("no audit line for %s", a.id)
	return ""
}

// send sends a form and returns the answer, with the audit line if it is a refusal.
func (w *hostileWorld) send(t *testing.T, form string, changes ...func(*http.Request)) (a answer, audit string) {
	t.Helper()
	a, err := w.post(t.Context(), form, changes...)
	if err != nil {
		t.Fatal(err)
	}
	if a.status == http.StatusOK { // such lines are written later
		return a, ""
	}
	return a, w.audit(t, a)
}

// check sends assertions. Every refusal is the same answer, to the byte; only the audit line says why.
func (w *hostileWorld) check(t *testing.T, rows []hostileRow, more ...string) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, audit := w.send(t, assertionForm(row.assertion, more...))
			if row.want == "" {
				if got.status != http.StatusOK {
					t.Errorf("refused with %d, %s", got.status, audit)
				}
				return
			}
			if w.refusal == "" {
				w.refusal = got.text
			}
			if got.text != w.refusal {
				t.Errorf("another answer than that of other refusals:\n%s\n%s", got.text, w.refusal)
			}
			if got.status != http.StatusUnauthorized || audit != row.want {
				t.Errorf("%d, %s; want 401, %s", got.status, audit, row.want)
			}
		})
	}
}

// TestHostileAssertions sends the hostile tokens of the design (N5 to N75) as assertions to the running service, signed
// by a client or by an issuer. Names are the numbers of the table.
func TestHostileAssertions(t *testing.T) {
	t.Parallel()
	w := newHostileWorld(t)
	different := map[string]string{ // where an issuer's assertions are treated otherwise than a client's
		"N12 PS256":                          badAlg,
		"N13 kid absent":                     badKID,
		"N14 kid unknown":                    "key unknown",
		"N16 kid a path":                     "key unknown",
		"N16 kid SQL":                        "key unknown",
		"N18 jku and a kid that only it has": "key unknown",
		"N46 sub of nobody":                  unknownSubject,
		"N46 sub of a client with a secret":  "client bound to another issuer",
		"N46 jti absent":                     "",
		"N71 the same again":                 "", // such tokens are used again by design
		"N71 with a later end":               "",
		"N71 signed again by the other key":  "",
		"N71 with the other signature that ECDSA takes for good": "",
	}
	for _, method := range []string{byOwnKey, byIssuer} {
		t.Run(method, func(t *testing.T) {
			p := w.parties[method]
			rows := append(p.headerRows(w.stranger, w.attacker), p.claimRows()...)
			rows = append(rows, p.signatureRows(w.others[method], w.stranger)...)
			rows = append(rows, p.replayRows()...)
			if method == byIssuer {
				for i, row := range rows {
					if want, ok := different[row.name]; ok {
						rows[i].want = want
						delete(different, row.name)
					}
				}
				rows = append(rows, w.badKeys...)
			}
			w.check(t, rows)
		})
	}
	for name := range different {
		t.Errorf("no row is named %q", name)
	}
	if n := w.asked.Load(); n > 0 {
		t.Errorf("an address in an assertion was asked %d times", n)
	}
}

// TestTokenConfusion: no other token that an attacker may have is an assertion, and no assertion is another token.
func TestTokenConfusion(t *testing.T) {
	t.Parallel()
	w := newHostileWorld(t)
	client, issuer := w.parties[byOwnKey], w.parties[byIssuer]
	access, _ := askToken(t, w.running, demoForm)
	toUs, _ := askToken(t, w.running, assertionForm(issuer.saying())) // its audience is this service
	typed := newHostileWorld(t, "--token-type", "at+jwt")
	accessTyped, _ := askToken(t, typed.running, demoForm)
	w.check(t, []hostileRow{
		{"N59 an access token of this service", access, unknownIssuer},
		{"N59 one whose audience is this service", toUs, unknownIssuer},
		{"N59 one that says its type", accessTyped, unknownIssuer},
		{"N59 an access token of the trusted issuer", issuer.token(`{"alg":"RS256","kid":"rsa","typ":"at+jwt"}`, issuer.claims()), otherType},
		{"N59 a client's assertion for another server", client.saying("aud", `"https://other.example"`), otherAudience},
		{"N59 a client that speaks for the trusted issuer", client.saying("iss", `"`+issuer.iss+`"`, "sub", `"`+issuer.sub+`"`), badSignature},
		{"N59 the trusted issuer that speaks for a client", issuer.saying("iss", `"keyed"`, "sub", `"keyed"`), badSignature},
		{"N59 the trusted issuer about a client with a key", issuer.saying("sub", `"keyed"`), "client bound to another issuer"},
		{"N45 another trusted issuer about the same account", w.others[byIssuer].saying(), "client bound to another issuer"},
		{"N72 a client that has been deleted", w.stranger.saying(), unknownIssuer},
		{"N72 an account that has been deleted", issuer.saying("sub", `"system:serviceaccount:shop:gone"`), unknownSubject},
	})
	t.Run("with the client_id of another", func(t *testing.T) {
		w.check(t, []hostileRow{
			{byOwnKey, client.saying(), "client_id is not iss"},
			{byIssuer, issuer.saying(), "client bound to another issuer"},
		}, "client_id", "other")
	})
	for name, assertion := range map[string]string{byOwnKey: client.saying(), byIssuer: issuer.saying()} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.api+"/oauth2/client", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+assertion)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("an assertion (%s) as an access token: %d", name, resp.StatusCode)
		}
	}
}
