package main

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
)

// TestHostileTexts: no control character of a token, of a token endpoint or of an issuer reaches the terminal.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const evil = "\u009b31m\u202e\x7f\xff"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refused":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"x` + evil + `\u001b[2J","error_description":"\u001b]0;x\u0007\n` + evil + `"}`))
		case "/token":
			_, _ = w.Write([]byte(`{"access_token":"\u001b[2J` + evil + `","token_type":"Bearer","expires_in":300}`))
		case "/type":
			_, _ = w.Write([]byte(`{"access_token":"a","token_type":"\u001b[2J` + evil + `","expires_in":300}`))
		default:
			_, _ = w.Write([]byte(`{"issuer":"\u001b[2J` + evil + `"}`))
		}
	}))
	t.Cleanup(server.Close)
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	token := part(`{"alg":"RS256","kid":"`+evil+`\u001b[2J"}`) + "." + part(`{"iss":"`+server.URL+`","aud":"`+evil+`\u001b[2J"}`) + ".AAAA"
	fetch := func(path string) []string {
		return []string{"token", "fetch", "--token-url", server.URL + path, "--client-id", "a", "--client-secret-file", tempFile(t, "secret", "s")}
	}
	for name, args := range map[string][]string{
		"refusal": fetch("/refused"), "token": fetch("/token"), "type": fetch("/type"), "no token": fetch("/other"),
		"inspect":        {"token", "inspect", tempFile(t, "token", token)},
		"inspect, other": {"token", "inspect", "--issuer", "x", "--jwks-url", server.URL, tempFile(t, "token", token)},
	} {
		stdout, stderr, err := command(t, "", args...)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if printed := stdout + stderr; strings.ContainsFunc(printed, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) || printed != strings.ToValidUTF8(printed, "") {
			t.Errorf("%s prints %q", name, printed)
		}
	}
}
