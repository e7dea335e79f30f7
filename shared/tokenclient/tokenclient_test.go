package tokenclient_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidings.example/shared/tokenclient"
)

// endpoint answers with a status and a body, and keeps the last form.
func endpoint(t *testing.T, status int, body string) (address string, form *string) {
	t.Helper()
	form = new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		*form = r.Method + " " + r.PostForm.Encode()
		if status == http.StatusFound {
			w.Header().Set("Location", "http://elsewhere.example/token")
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL, form
}

// TestFetch: what is sent for each kind of credentials, and the token of the answer.
func TestFetch(t *testing.T) {
	t.Parallel()
	address, form := endpoint(t, http.StatusOK, `{"access_token":"a","token_type":"Bearer","expires_in":300}`)
	const typ = "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
	for want, r := range map[string]tokenclient.Request{
		"client_id=me&client_secret=s%26x&grant_type=client_credentials":                   {ClientID: "me", Secret: "s&x"},
		"client_assertion=j" + typ + "&grant_type=client_credentials":                      {Assertion: "j"},
		"client_assertion=j" + typ + "&client_id=system%3Ax&grant_type=client_credentials": {ClientID: "system:x", Assertion: "j"},
	} {
		r.TokenURL = address
		before := time.Now()
		got, err := r.Fetch(t.Context(), tokenclient.HTTP(nil))
		if err != nil {
			t.Fatal(err)
		}
		if *form != "POST "+want {
			t.Errorf("sent %s, want %s", *form, want)
		}
		if got.AccessToken != "a" || got.TokenType != "Bearer" || got.Expires.Before(before.Add(5*time.Minute)) || got.Expires.After(time.Now().Add(5*time.Minute)) {
			t.Errorf("token %+v", got)
		}
	}
}

// TestRefusals: an error says what the endpoint has answered and what to look at, and never the secret.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status   int
		body     string
		clientID string
		want     string
	}{
		{401, `{"error":"invalid_client"}`, "me", `does not accept client "me" with the secret in FILE (invalid_client)`},
		{401, `{"error":"invalid_client"}`, "", "does not accept a client with the secret in FILE (invalid_client)"},
		{503, `{"error":"temporarily_unavailable","error_description":"later"}`, "me", "answered 503 Service Unavailable temporarily_unavailable later"},
		{404, "<html>", "me", "answered 404 Not Found without an OAuth error"},
		{200, "<html>", "me", "did not answer with a token"},
		{200, `{"expires_in":300}`, "me", "did not answer with a token"},
		{200, `{"access_token":"` + strings.Repeat("x", 64<<10) + `"}`, "me", "did not answer with a token"},
		{302, "", "me", "it redirects to http://elsewhere.example/token"},
	} {
		address, _ := endpoint(t, tc.status, tc.body)
		_, err := tokenclient.Request{TokenURL: address, ClientID: tc.clientID, Secret: "hidden", Source: "the secret in FILE"}.Fetch(t.Context(), tokenclient.HTTP(nil))
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%d %.40s: %v, want %s", tc.status, tc.body, err, tc.want)
		}
	}
	_, err := tokenclient.Request{TokenURL: "http://127.0.0.1:1/token"}.Fetch(t.Context(), tokenclient.HTTP(nil)) // where nobody listens
	if err == nil || !strings.Contains(err.Error(), "no answer from the token endpoint") {
		t.Errorf("nobody there: %v", err)
	}
}
