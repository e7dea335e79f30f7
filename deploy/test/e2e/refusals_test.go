package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// testRefusals shows that nothing is served without a good token.
func testRefusals(t *testing.T, w *world) {
	t.Run("WrongSecret", func(t *testing.T) {
		for _, c := range []struct{ id, secret string }{{clientID, "wrong"}, {"nobody", clientSecret}} {
			token, status, err := requestToken(t.Context(), w.tokens, c.id, c.secret)
			if token != "" || status != http.StatusUnauthorized || err == nil || err.Error() != "invalid_client" {
				t.Errorf("client %s: token %q, status %d, error %v; want 401 invalid_client", c.id, token, status, err)
			}
		}
	})

	good := w.token(t)
	parts := strings.Split(good, ".")
	foreign := startIssuer(t, "TOKENSVC_ISSUER=https://elsewhere.example")
	impostor := startIssuer(t, "TOKENSVC_ISSUER="+w.tokens)
	for _, c := range []struct{ name, token string }{
		{"NoToken", ""},
		{"NotAToken", "hello"},
		{"SignatureCutOff", parts[0] + "." + parts[1] + "."},
		{"SignatureOfAnotherToken", parts[0] + "." + parts[1] + "." + strings.Split(foreign, ".")[2]},
		{"AnotherIssuer", foreign},
		{"SameIssuerAnotherKey", impostor},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []request{
				{"GET", eventsIn(w.events, "default"), c.token, "", nil},
				{"GET", w.events + "/apis/events.k8s.io/v1/events?watch=true", c.token, "", nil},
				{"POST", eventsIn(w.events, "default"), c.token, "application/json", encode(newEvent("refused", "Refused"))},
				{"PATCH", eventsIn(w.events, "default") + "/x", c.token, "application/merge-patch+json", []byte("{}")},
				{"DELETE", eventsIn(w.events, "default"), c.token, "", nil},
				{"GET", w.events + "/apis", c.token, "", nil},
				{"GET", w.events + "/nowhere", c.token, "", nil},
			} {
				var status metav1.Status
				code, err := call(t.Context(), http.DefaultClient, r, &status)
				if err != nil || code != http.StatusUnauthorized || status.Reason != metav1.StatusReasonUnauthorized {
					t.Errorf("%s %s: %d %+v, %v; want 401 Unauthorized", r.method, r.url, code, status, err)
				}
			}
		})
	}
}

// TestExpiredToken uses one token until it has expired.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	w := startLocal(t, "TOKENSVC_TOKEN_LIFETIME=2s", "EVENTSVC_CLOCK_SKEW=1s")
	var read request
	var status metav1.Status
	testenv.Eventually(t, "a fresh token is good", deadline, func() error { // unless this machine stands still for as long as it lives
		read = request{"GET", eventsIn(w.events, "default"), w.token(t), "", nil}
		code, err := call(t.Context(), http.DefaultClient, read, &status)
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("status %d, %w", code, err)
		}
		return nil
	})
	testenv.Eventually(t, "the token expires", deadline, func() error {
		code, err := call(t.Context(), http.DefaultClient, read, &status)
		if err != nil || code != http.StatusUnauthorized {
			return fmt.Errorf("status %d, %w", code, err)
		}
		return nil
	})
	if status.Reason != metav1.StatusReasonUnauthorized {
		t.Errorf("refused with %+v", status)
	}
}

// startIssuer runs one more tokensvc, which knows the same client under another
// key, and returns a token of it.
func startIssuer(t *testing.T, env ...string) string {
	t.Helper()
	listen, clients := porttest.Addr(t), filepath.Join(t.TempDir(), "clients.yaml")
	text := fmt.Sprintf("clients: [{client_id: %s, client_name: Impostor, client_secret: '{noop}%s', scope: events, audience: [eventsvc]}]", clientID, clientSecret)
	if err := os.WriteFile(clients, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{name: "tokensvc", env: append([]string{
		"TOKENSVC_LISTEN_HTTP=" + listen,
		"TOKENSVC_LISTEN_ADMIN=" + porttest.Addr(t),
		"TOKENSVC_CLIENTS_FILE=" + clients,
	}, env...)}
	p.launch(t).waitReady(t)
	return (&world{tokens: "http://" + listen}).token(t)
}

// testInsideOutside: a token is accepted wherever it was fetched.
func testInsideOutside(t *testing.T, w *world) {
	for name, token := range map[string]string{"outside": w.token(t), "inside": w.inside(t)} {
		event := newEvent(name, "Compared")
		var got metav1.PartialObjectMetadata
		code, err := call(t.Context(), http.DefaultClient, request{"POST", eventsIn(w.events, "origins"), token, "application/json", encode(event)}, &got)
		if err != nil || code != http.StatusCreated {
			t.Errorf("with a token from %s: status %d, %v", name, code, err)
		}
	}
	var list metav1.PartialObjectMetadataList
	if _, err := call(t.Context(), http.DefaultClient, request{"GET", eventsIn(w.events, "origins"), w.token(t), "", nil}, &list); err != nil || len(list.Items) != 2 {
		t.Errorf("list: %v, %v; want both events", names(list), err)
	}
}

func names(list metav1.PartialObjectMetadataList) string {
	var all []string
	for _, item := range list.Items {
		all = append(all, item.Name)
	}
	return fmt.Sprint(all)
}
