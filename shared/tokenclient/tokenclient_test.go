package tokenclient_test

import (
	"errors"
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
		w.Header().Set("Retry-After", "7")
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
		{400, `{"error":"invalid_scope","error_description":"\u001b]0;x\u0007\nnot\u009bmine\u202e"}`, "me", "400 Bad Request invalid_scope �]0;x� not�mine�"},
		{302, "", "me", "it redirects to http://elsewhere.example/token"},
	} {
		address, _ := endpoint(t, tc.status, tc.body)
		_, err := tokenclient.Request{TokenURL: address, ClientID: tc.clientID, Secret: "hidden", Source: "the secret in FILE"}.Fetch(t.Context(), tokenclient.HTTP(nil))
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%d %.40s: %v, want %s", tc.status, tc.body, err, tc.want)
		}
		later, ok := errors.AsType[*tokenclient.UnavailableError](err)
		if want := tc.status == 302 || tc.status == 503; ok != want || tc.status == 503 && later.RetryAfter != 7*time.Second {
			t.Errorf("%d: a later request may succeed: %t, want %t: %+v", tc.status, ok, want, later)
		}
	}
	_, err := tokenclient.Request{TokenURL: "http://127.0.0.1:1/token"}.Fetch(t.Context(), tokenclient.HTTP(nil)) // where nobody listens
	if err == nil || !strings.Contains(err.Error(), "no answer from the token endpoint") {
		t.Errorf("nobody there: %v", err)
	}
}

// TestAnswers: a token is used only if it can be one word of a header, and for a time that makes sense.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const bearer = `{"access_token":"a","token_type":"Bearer"`
	for body, want := range map[string]string{
		bearer + `,"expires_in":300}`:                                                    "",
		bearer + `,"expires_in":1}`:                                                      "",
		bearer + `,"expires_in":31622400}`:                                               "",
		bearer + `}`:                                                                     "",
		bearer + `,"expires_in":null}`:                                                   "expires_in",
		bearer + `,"expires_in":0}`:                                                      "expires_in",
		bearer + `,"expires_in":-1}`:                                                     "expires_in",
		bearer + `,"expires_in":31622401}`:                                               "expires_in",
		bearer + `,"expires_in":9223372036854775807}`:                                    "expires_in",
		bearer + `,"expires_in":9223372036854775808}`:                                    "expires_in",
		bearer + `,"expires_in":1e400}`:                                                  "expires_in",
		bearer + `,"expires_in":300.5}`:                                                  "expires_in",
		bearer + `,"expires_in":"300"}`:                                                  "expires_in",
		bearer + `,"expires_in":"\u001b[2J"}`:                                            "expires_in",
		bearer + `,"expires_in":[300]}`:                                                  "expires_in",
		bearer + `,"expires_in":true}`:                                                   "expires_in",
		`{"access_token":"a.b-c_d~e+f/g=","token_type":"bearer"}`:                        "",
		`{"access_token":"` + strings.Repeat("x", 16<<10) + `","token_type":"BEARER"}`:   "",
		`{"access_token":"` + strings.Repeat("x", 16<<10+1) + `","token_type":"Bearer"}`: "access_token has more than",
		`{"access_token":"a\r\nX-Evil: 1","token_type":"Bearer"}`:                        "access_token has characters",
		`{"access_token":"a\nb","token_type":"Bearer"}`:                                  "access_token has characters",
		`{"access_token":"a b","token_type":"Bearer"}`:                                   "access_token has characters",
		`{"access_token":" a","token_type":"Bearer"}`:                                    "access_token has characters",
		`{"access_token":"\u001b[2Ja","token_type":"Bearer"}`:                            "access_token has characters",
		`{"access_token":"a\u0000","token_type":"Bearer"}`:                               "access_token has characters",
		`{"access_token":"\u007f","token_type":"Bearer"}`:                                "access_token has characters",
		`{"access_token":"ü","token_type":"Bearer"}`:                                     "access_token has characters",
		`{"access_token":"","token_type":"Bearer"}`:                                      "access_token is missing",
		`{"access_token":7,"token_type":"Bearer"}`:                                       "no JSON object",
		`{"access_token":"a"}`:                                                           `token_type is ""`,
		`{"access_token":"a","token_type":"DPoP"}`:                                       `token_type is "DPoP"`,
		`{"access_token":"a","token_type":"mac\u001b[2J"}`:                               `token_type is "mac\x1b[2J"`,
		`["a"]`:           "no JSON object",
		bearer + `} more`: "no JSON object",
	} {
		address, _ := endpoint(t, http.StatusOK, body)
		got, err := tokenclient.Request{TokenURL: address}.Fetch(t.Context(), tokenclient.HTTP(nil))
		switch {
		case want == "" && err != nil:
			t.Errorf("%.80s: %v", body, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.80s: %+v, %v; want %s", body, got, err, want)
		case err != nil && strings.ContainsAny(err.Error(), "\x1b\n\r\x00"):
			t.Errorf("%.80s: the error has its control characters: %q", body, err)
		}
	}
}
