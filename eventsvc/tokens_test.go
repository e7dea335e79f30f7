package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidings.example/shared/certtest"
)

// hostile is one of the tokens that a resource server must refuse, or accept: what is
// sent, and whether it is accepted.
type hostile struct {
	name, token string
	accepted    bool
}

// TestHostileTokens sends every kind of bad token to the running service. All
// refusals look the same. Good tokens of similar form are accepted.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	i := newRotating(t)
	attacker := newAnswering(t, text(`{"keys":[]}`))
	p := start(t, t.TempDir(), &issuer{Server: i.Server, key: i.keys["k1"]}, "--jwks-url="+i.URL, "--audience=eventsvc", "--clock-skew=0s")
	body := ""
	for _, row := range append(i.headerRows(t, attacker.URL), append(i.claimRows(), i.signatureRows()...)...) {
		code, text, header := p.get(map[string][]string{"Authorization": {"Bearer " + row.token}}, "")
		if len(row.token) > 16<<10 { // the server refuses such a header before anybody reads it
			if code != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: %d", row.name, code)
			}
			continue
		}
		if row.accepted {
			if code != http.StatusOK {
				t.Errorf("%s: %d %s", row.name, code, text)
			}
			continue
		}
		if code != http.StatusUnauthorized || header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
			t.Errorf("%s: %d, challenge %q", row.name, code, header.Get("WWW-Authenticate"))
		}
		if body == "" {
			body = text
		}
		if text != body {
			t.Errorf("%s: the answer differs: %s", row.name, text)
		}
	}
	good := "Bearer " + i.token("k1", "demo", "")
	for _, c := range []struct {
		name, query   string
		authorization []string
		code          int
		challenge     string
	}{
		{"none", "", nil, 401, "Bearer"},
		{"Basic", "", []string{"Basic Z29vZDpnb29k"}, 401, "Bearer"},
		{"scheme alone", "", []string{"Bearer"}, 401, `Bearer error="invalid_request", error_description="empty token"`},
		{"empty", "", []string{"Bearer "}, 401, `Bearer error="invalid_request", error_description="empty token"`},
		{"two headers", "", []string{good, good}, 401, `Bearer error="invalid_request", error_description="several Authorization headers"`},
		{"header and query", "?access_token=x", []string{good}, 401, `Bearer error="invalid_request", error_description="tokens in header and query"`},
		{"query only", "?access_token=" + strings.TrimPrefix(good, "Bearer "), nil, 401, "Bearer"},
		{"two blanks", "", []string{"Bearer  " + good[7:]}, 401, `Bearer error="invalid_token"`},
		{"other case", "", []string{"bEARER " + good[7:]}, 200, ""},
	} {
		code, text, header := p.get(map[string][]string{"Authorization": c.authorization}, c.query)
		if code != c.code || header.Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s: %d, challenge %q: %s", c.name, code, header.Get("WWW-Authenticate"), text)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if n := attacker.count(); n > 0 {
		t.Errorf("an address in a token was asked %d times", n)
	}
	if i.fetches > 10 { // the unknown key ids above have caused few
		t.Errorf("the keys were fetched %d times", i.fetches)
	}
}

// get lists events with any headers.
func (p *process) get(header map[string][]string, query string) (int, string, http.Header) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url("--listen-http")+eventsPath+query, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

const goodHeader = `{"alg":"RS256","kid":"k1","typ":"JWT"}`

func (i *rotating) headerRows(t *testing.T, attacker string) []hostile {
	t.Helper()
	public := &i.keys["k1"].PublicKey
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	foreign := certtest.RSA(t)
	hs256 := func(secret []byte) string {
		input := encode([]byte(`{"alg":"HS256","kid":"k1"}`)) + "." + encode([]byte(i.payload()))
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(input))
		return input + "." + encode(mac.Sum(nil))
	}
	rows := []hostile{
		{"none", encode([]byte(`{"alg":"none","kid":"k1"}`)) + "." + encode([]byte(i.payload())) + ".", false},
		{"HS256 with the PEM", hs256(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), false},
		{"HS256 with the DER", hs256(der), false},
		{"HS256 with the modulus", hs256([]byte(encode(public.N.Bytes()))), false},
		{"jwk", signedBy(foreign, fmt.Sprintf(`{"alg":"RS256","kid":"k1","jwk":{"kty":"RSA","n":%q,"e":"AQAB"}}`, encode(foreign.N.Bytes())), i.payload()), false},
		{"jku", signedBy(foreign, `{"alg":"RS256","kid":"k1","jku":"`+attacker+`/jwks"}`, i.payload()), false},
		{"x5u", signedBy(foreign, `{"alg":"RS256","kid":"k9","x5u":"`+attacker+`/x5u"}`, i.payload()), false},
		{"another key", signedBy(foreign, goodHeader, i.payload()), false},
	}
	for header, accepted := range map[string]bool{
		goodHeader:                   true,
		`{"alg":"RS256","kid":"k1"}`: true,
		`{"alg":"RS256","kid":"k1","typ":"at+jwt"}`:                true,
		`{"alg":"RS256","kid":"k1","x5c":["junk"]}`:                true,
		`{"alg":"None","kid":"k1"}`:                                false,
		`{"kid":"k1"}`:                                             false,
		`{"alg":"RS512","kid":"k1"}`:                               false,
		`{"alg":"rs256","kid":"k1"}`:                               false,
		`{"alg":"PS256","kid":"k1"}`:                               false,
		`{"alg":"RS256"}`:                                          false,
		`{"alg":"RS256","kid":"k9"}`:                               false,
		`{"alg":"RS256","kid":1}`:                                  false,
		`{"alg":"RS256","kid":["k1"]}`:                             false,
		`{"alg":"RS256","kid":null}`:                               false,
		`{"alg":"RS256","kid":"../../etc/passwd"}`:                 false,
		`{"alg":"RS256","kid":"' OR 1=1"}`:                         false,
		`{"alg":"RS256","kid":"k1\u0000"}`:                         false,
		`{"alg":"RS256","kid":"k1","crit":["x"]}`:                  false,
		`{"alg":"RS256","kid":"k1","crit":[]}`:                     false,
		`{"alg":"RS256","kid":"k1","b64":false}`:                   false,
		`{"alg":"RS256","kid":"k1","typ":"dpop+jwt"}`:              false,
		`{"alg":"none","alg":"RS256","kid":"k1"}`:                  false,
		goodHeader + `{}`:                                          false,
		"\ufeff" + goodHeader:                                      false,
		`{"ALG":"RS256","kid":"k1"}`:                               false,
		`{"alg":"RS256","KID":"k1"}`:                               false,
		`{"alg":"RS256","kid":"k1","cty":"JWT"}`:                   false,
		`{"alg":"RS256","kid":"k1","zip":"DEF"}`:                   false,
		strings.Repeat("[", 2000):                                  false,
		`{"alg":"RS256","kid":"k1","typ":"id+jwt"}`:                false,
		`{"alg":"RS256","kid":"` + strings.Repeat("k", 129) + `"}`: false,
	} {
		rows = append(rows, hostile{"header " + header, i.signed("k1", header, i.payload()), accepted})
	}
	return rows
}

func (i *rotating) claimRows() []hostile {
	now := time.Now().Unix()
	at := func(seconds int64) string { return fmt.Sprint(now + seconds) }
	var rows []hostile
	add := func(name, payload string, accepted bool) {
		rows = append(rows, hostile{name, i.signed("k1", goodHeader, payload), accepted})
	}
	add("sub twice", `{"sub":"admin",`+i.payload()[1:], false)
	add("bytes behind", i.payload()+"x", false)
	for _, payload := range []string{"null", "[]", `"x"`, "", "{}"} {
		add(""+payload, payload, false)
	}
	add("not UTF-8", strings.Replace(i.payload(), "demo", "\xff", 1), false)
	for _, c := range []struct {
		name     string
		changes  []string
		accepted bool
	}{
		{"EXP", []string{"exp", "", "EXP", at(300)}, false},
		{"past exp, future EXP", []string{"exp", at(-60), "EXP", at(300)}, false},
		{"AUD", []string{"aud", "", "AUD", `"eventsvc"`}, false},
		{"no exp", []string{"exp", ""}, false},
		{"exp now", []string{"iat", at(-60), "nbf", "", "exp", at(0)}, false},
		{"exp a string", []string{"exp", `"` + at(300) + `"`}, false},
		{"exp with a fraction", []string{"exp", at(300) + ".5"}, true},
		{"too long a life", []string{"exp", at(3700)}, false},
		{"exp 99999999999999999999", []string{"exp", "99999999999999999999"}, false},
		{"exp -1", []string{"exp", "-1"}, false},
		{"exp null", []string{"exp", "null"}, false},
		{"nbf in the future", []string{"nbf", at(1800), "exp", at(2000)}, false},
		{"iat in the future", []string{"iat", at(1800), "nbf", "", "exp", at(2000)}, false},
		{"no iat", []string{"iat", ""}, false},
		{"exp before iat", []string{"iat", at(-1), "exp", at(-2), "nbf", ""}, false},
		{"nbf a string", []string{"nbf", `"x"`}, false},
		{"no aud", []string{"aud", ""}, false},
		{"aud empty", []string{"aud", "[]"}, false},
		{"aud a number", []string{"aud", "1"}, false},
		{"aud nested", []string{"aud", `[["eventsvc"]]`}, false},
		{"aud among others", []string{"aud", `["x","eventsvc"]`}, true},
		{"aud in other case", []string{"aud", `"Eventsvc"`}, false},
		{"aud with a slash", []string{"aud", `"eventsvc/"`}, false},
		{"no iss", []string{"iss", ""}, false},
		{"iss with a slash", []string{"iss", `"` + i.URL + `/"`}, false},
		{"iss in other case", []string{"iss", `"` + strings.ToUpper(i.URL) + `"`}, false},
		{"iss another", []string{"iss", `"https://other.example"`}, false},
		{"iss a list", []string{"iss", `["` + i.URL + `"]`}, false},
		{"no sub", []string{"sub", ""}, false},
		{"sub a number", []string{"sub", "1"}, false},
		{"sub long", []string{"sub", `"` + strings.Repeat("s", 2000) + `"`}, false},
		{"client_id empty", []string{"client_id", `""`}, false},
		{"a token for its client", []string{"aud", `"demo"`}, false},
		{"cnf", []string{"cnf", `{"jkt":"x"}`}, false},
		{"scope a list", []string{"scope", `["a","b"]`}, true},
		{"scope a number", []string{"scope", "1"}, false},
	} {
		add(c.name, i.payload(c.changes...), c.accepted)
	}
	return rows
}

// standardBase64 is a token whose signature has characters of another alphabet.
func (i *rotating) standardBase64() string {
	for n := 0; ; n++ {
		whole := i.signed("k1", goodHeader, i.payload("jti", fmt.Sprintf(`"%d"`, n)))
		signature := strings.LastIndexByte(whole, '.')
		if other := strings.NewReplacer("-", "+", "_", "/").Replace(whole[signature:]); other != whole[signature:] {
			return whole[:signature] + other
		}
	}
}

func (i *rotating) signatureRows() []hostile {
	whole := i.signed("k1", goodHeader, i.payload())
	parts := strings.Split(whole, ".")
	raw, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		panic(err)
	}
	with := func(signature []byte) string { return parts[0] + "." + parts[1] + "." + encode(signature) }
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(whole) - 1
	return []hostile{
		{"good", whole, true},
		{"payload changed", parts[0] + "." + encode([]byte(i.payload("sub", `"admin"`))) + "." + parts[2], false},
		{"header changed", encode([]byte(`{"alg":"RS256","kid":"k1"}`)) + "." + parts[1] + "." + parts[2], false},
		{"empty", with(nil), false},
		{"a byte short", with(raw[:255]), false},
		{"a byte long", with(append(raw[:256:256], 0)), false},
		{"zero", with(make([]byte, 256)), false},
		{"at least the modulus", with(new(big.Int).Add(new(big.Int).SetBytes(raw), i.keys["k1"].N).Bytes()), false},
		{"standard base64", i.standardBase64(), false},
		{"padded", whole + "==", false},
		{"stray bits", whole[:last] + string(alphabet[strings.IndexByte(alphabet, whole[last])|1]), false},
		{"a blank in front", " " + whole, false},
		{"a blank inside", parts[0] + " ." + parts[1] + "." + parts[2], false},
		{"a tab inside", parts[0] + ".\t" + parts[1] + "." + parts[2], false},
		{"one part", parts[0], false},
		{"four parts", whole + ".x", false},
		{"dots", strings.Repeat(".", 8000), false},
		{"JSON", fmt.Sprintf(`{"payload":%q,"signatures":[{"protected":%q,"signature":%q}]}`, parts[1], parts[0], parts[2]), false},
		{"8 KiB and a byte", whole + strings.Repeat("A", 8<<10+1-len(whole)), false},
		{"1 MiB", whole + strings.Repeat("A", 1<<20), false},
	}
}
