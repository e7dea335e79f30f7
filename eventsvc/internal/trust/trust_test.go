package trust_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/trust"
	"tidings.example/shared/bearer"
	"tidings.example/shared/certtest"
	"tidings.example/shared/waittest"
)

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// TestRemovedWhileWaiting: a token waits for the keys of its issuer. When they come, the issuer is no longer trusted.
func TestRemovedWhileWaiting(t *testing.T) {
	t.Parallel()
	key := certtest.RSA(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	i := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		once()
		<-answer
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"k","n":%q,"e":"AQAB"}]}`, encode(key.N.Bytes()))
	}))
	t.Cleanup(i.Close)
	path := filepath.Join(t.TempDir(), "issuers.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "- {issuer: %q, jwksURL: %q}\n", i.URL, i.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	trusted, err := trust.New(trust.Config{
		Issuer:      trust.Issuer{Issuer: "https://tokens.example", KeySource: bearer.KeySource{JWKSURL: i.URL + "/own"}},
		IssuersFile: path, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	input := encode([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + encode(fmt.Appendf(nil, `{"iss":%q,"sub":"me","iat":%d,"exp":%d}`, i.URL, now, now+3600))
	sum := sha256.Sum256([]byte(input))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() {
		_, err := trusted.Verify(t.Context(), input+"."+encode(signature))
		refused <- err
	}()
	waittest.Within(t, asked)
	if err := os.WriteFile(path+".new", []byte("[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	trusted.Reload() // not when Run looks: the fetch of the keys has a limit of time
	close(answer)
	if err := waittest.Within(t, refused); err == nil || err.Error() != "other issuer" {
		t.Errorf("%v", err)
	}
}

// TestClusterElsewhere: an entry that means the pod's cluster is refused outside of one, and without an audience
// everywhere.
func TestClusterElsewhere(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"- {issuer: cluster}":                        "entry 1: issuer: cluster: audiences is missing",
		"- {issuer: cluster, audiences: [eventsvc]}": "entry 1: issuer: cluster: this is no pod of a cluster",
		"- {issuer: a, jwksFile: /x}\n- {issuer: cluster, audiences: [eventsvc], jwksFile: /x}": "entry 2: issuer: cluster: the pod's own cluster says where its keys are",
	} {
		path := filepath.Join(t.TempDir(), "issuers.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := trust.New(trust.Config{IssuersFile: path, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}

// TestDays: the life of tokens may be in days, as other settings are.
func TestDays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "issuers.yaml")
	if err := os.WriteFile(path, []byte("- {issuer: a, maxTokenLife: 1d12h}\n- {issuer: b}\n- {issuer: c, maxTokenLife: }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := trust.ReadIssuers(path)
	if err != nil || time.Duration(list[0].MaxTokenLife) != 36*time.Hour || list[1].MaxTokenLife != 0 || list[2].MaxTokenLife != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
