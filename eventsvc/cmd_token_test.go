package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// checkedPolicy lets a client of these tests read one namespace.
const checkedPolicy = `
roles:
  - name: reader
    rules: [{verbs: [get, list], namespaces: [shop]}, {verbs: [create], namespaces: [mail], clusters: [east]}]
bindings: [{role: reader, subjects: [{clientID: demo}]}]`

// TestTokenCheck: the command names the rule that refuses a token, and what would be right. It never prints the token,
// and the service, which is asked next, says the same and acts accordingly.
func TestTokenCheck(t *testing.T) {
	t.Parallel()
	i := newRotating(t)
	at := func(seconds int64) string { return fmt.Sprint(time.Now().Unix() + seconds) }
	dir := t.TempDir()
	settings := []string{
		"--issuer=" + i.URL, "--jwks-url=" + i.URL, "--audience=eventsvc", "--clock-skew=1m",
		"--policy-file=" + writeFile(t, "policy.yaml", checkedPolicy),
	}
	p := start(t, dir, &issuer{Server: i.Server, key: i.keys["k1"]}, settings...)
	admin := strings.TrimPrefix(p.url("--listen-admin"), "http://")
	with := func(changes ...string) string { return i.signed("k1", goodHeader, i.payload(changes...)) }
	good := with()
	// The times of these are near their limits, and a subtest may have to wait for its turn: they are signed when it
	// has it.
	late := map[string]func() string{
		"expired": func() string { return with("iat", at(-100), "nbf", "", "exp", at(-80)) },
		"not yet": func() string { return with("nbf", at(200)) },
		"order":   func() string { return with("iat", at(20), "nbf", "", "exp", at(10)) },
	}
	for name, test := range map[string]struct {
		token   string
		args    []string
		reason  string // empty: accepted
		details []string
	}{
		"accepted":           {token: good, details: []string{"it may get,list in shop"}},
		"accepted by policy": {token: good, args: []string{"--verb=list", "-n", "shop"}},
		"policy":             {token: good, args: []string{"--verb=create", "-n", "shop"}, reason: "not allowed by the policy", details: []string{"create in shop"}},
		"slash":              {token: with("iss", `"`+i.URL+`/"`), reason: "other issuer", details: []string{`wanted: "` + i.URL + `"`, "a slash at the end counts"}},
		"audience":           {token: with("aud", `"shop"`), reason: "other audience", details: []string{`aud "shop"`, `wanted: "eventsvc"`}},
		"no audience":        {token: with("aud", ""), reason: "other audience"},
		"expired":            {reason: "expired", details: []string{"1m0s for clocks that differ"}},
		"not yet":            {reason: "not valid yet", details: []string{"--clock-skew"}},
		"life":               {token: with("exp", at(7200)), reason: "lives too long", details: []string{"1h0m0s after iat", "maxTokenLife"}},
		"order":              {reason: "times contradict each other"},
		"no times":           {token: with("exp", ""), reason: "time missing or malformed"},
		"kid":                {token: i.signed("k1", `{"alg":"RS256","kid":"k9"}`, i.payload()), reason: "key unknown", details: []string{`kid "k9"`}},
		"no kid":             {token: i.signed("k1", `{"alg":"RS256"}`, i.payload()), reason: "kid missing or malformed"},
		"alg":                {token: i.signed("k1", `{"alg":"HS256","kid":"k1"}`, i.payload()), reason: "alg not allowed", details: []string{`wanted: "RS256"`}},
		"type":               {token: i.signed("k1", `{"alg":"RS256","kid":"k1","typ":"id+jwt"}`, i.payload()), reason: "typ of another token"},
		"crit":               {token: i.signed("k1", `{"alg":"RS256","kid":"k1","crit":["x"]}`, i.payload()), reason: "header extension"},
		"header":             {token: i.signed("k1", `[]`, i.payload()), reason: "header damaged"},
		"payload":            {token: i.signed("k1", goodHeader, `[]`), reason: "payload damaged"},
		"signature":          {token: good[:len(good)-8] + "AAAAAAAA", reason: "signature wrong"},
		"subject":            {token: with("sub", ""), reason: "sub missing or malformed"},
		"scope":              {token: with("scope", "7"), reason: "claim malformed", details: []string{"scope 7"}},
		"cnf":                {token: with("cnf", "{}"), reason: "sender-constrained"},
		"cut":                {token: good[:50], reason: "not three parts"},
		"quotes":             {token: `"` + good + `"`, reason: "not base64url"},
		"long":               {token: strings.Repeat("x", 17000), reason: "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if sign := late[name]; sign != nil {
				test.token = sign()
			}
			want := 1
			if test.reason == "" {
				want = 0
			}
			for _, place := range [][]string{settings, {"--running", "--data-dir=" + dir, "--listen-admin=" + admin}} {
				out := command(t, want, append(append([]string{"token", "check", "--token-file=" + file(t, test.token+"\n")}, test.args...), place...)...)
				for _, detail := range append(test.details, test.reason) {
					if !strings.Contains(out, detail) {
						t.Errorf("%v: no %q in:\n%s", place, detail, out)
					}
				}
				if verdict := "\nrefused: " + test.reason + "\n  "; test.reason != "" && (!strings.Contains(out, verdict) || strings.HasSuffix(out, verdict+"\n")) {
					t.Errorf("%v: the verdict is missing, or without what to do:\n%s", place, out)
				}
				if tail := test.token[max(0, len(test.token)-30):]; strings.Contains(out, tail) {
					t.Errorf("%v: the token is printed:\n%s", place, out)
				}
			}
			if accepted := strings.HasPrefix(test.reason, "not allowed") || test.reason == ""; !strings.ContainsAny(test.token, "\"") {
				if code, _, _ := p.get(bearing(test.token), ""); (code != 401) != accepted {
					t.Errorf("the service answers %d", code)
				}
			}
		})
	}
}

// TestTokenCheckRefuses: mistakes in the settings are told from refused tokens by the exit code.
func TestTokenCheckRefuses(t *testing.T) {
	t.Parallel()
	i := newRotating(t)
	trust := []string{"--issuer=" + i.URL, "--jwks-url=" + i.URL}
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no token":       {trust, 2, "no token"},
		"no file":        {append(trust, "--token-file=/nowhere"), 2, "--token-file"},
		"no issuer":      {[]string{"x"}, 2, "--issuer is not set"},
		"verb":           {append(trust, "x", "--verb=eat"), 2, "--verb"},
		"policy file":    {append(trust, "x", "--policy-file=/nowhere"), 2, "--policy-file"},
		"no service":     {[]string{"x", "--running", "--data-dir=" + t.TempDir()}, 1, "admin.token"},
		"no keys":        {[]string{i.token("k1", "demo", ""), "--issuer=" + i.URL, "--jwks-url=http://127.0.0.1:1/", "--wait=0s"}, 1, "reach the issuer"},
		"not the token":  {append(trust, "x"), 1, "not three parts"},
		"unknown flag":   {append(trust, "x", "--tokn-file=y"), 2, "--token-file"},
		"wrong audience": {append(trust, i.token("k1", "demo", ""), "--audience=other"), 1, "other audience"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := command(t, test.code, append([]string{"token", "check"}, test.args...)...); !strings.Contains(out, test.says) {
				t.Errorf("no %q in:\n%s", test.says, out)
			}
		})
	}
}
