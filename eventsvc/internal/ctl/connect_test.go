package ctl

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/client"
)

// TestAssertionIsReadAgain: an assertion is sent instead of a secret (RFC 7523 section 2.2), and its file is read for
// each token, because a kubelet replaces it.
func TestAssertionIsReadAgain(t *testing.T) {
	t.Parallel()
	var asked []string
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		asked = append(asked, r.PostForm.Encode())
		if r.PostForm.Get("client_assertion") == "refused" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error":"invalid_client"}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"access_token":"t","token_type":"Bearer"}`) // used once
	}))
	t.Cleanup(endpoint.Close)
	file := filepath.Join(t.TempDir(), "token")
	source := func(c Connection) *client.Tokens {
		tokens, err := c.tokens()
		if err != nil {
			t.Fatal(err)
		}
		return tokens
	}
	tokens := source(Connection{TokenURL: endpoint.URL, AssertionFile: file})
	named := source(Connection{TokenURL: endpoint.URL, ClientID: "shop", AssertionFile: file})
	const grant = "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
	var want []string
	for _, content := range []string{"first", "second", "refused"} {
		if err := os.WriteFile(file, []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := tokens.Token(t.Context())
		_, errNamed := named.Token(t.Context())
		if refused := content == "refused"; (err != nil) != refused || (errNamed != nil) != refused {
			t.Errorf("%s: %v, %v", content, err, errNamed)
		}
		if err != nil && !strings.Contains(err.Error(), "does not accept a client with the assertion in "+file) {
			t.Error(err)
		}
		want = append(want, "client_assertion="+content+grant+"&grant_type=client_credentials",
			"client_assertion="+content+grant+"&client_id=shop&grant_type=client_credentials")
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Token(t.Context()); err == nil || !strings.Contains(err.Error(), file+" is empty") {
		t.Errorf("an empty file: %v", err)
	}
}
