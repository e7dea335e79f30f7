package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// TestRefusedToken: a token that is no longer accepted, as after new keys, is renewed at once, and the event is
// written.
func TestRefusedToken(t *testing.T) {
	tokens, written := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			tokens++
			fmt.Fprintf(w, `{"access_token":"%d","expires_in":300}`, tokens)
		case r.Header.Get("Authorization") != "Bearer 2":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			written++
			fmt.Fprint(w, `{"metadata":{"name":"web-1"}}`)
		}
	}))
	defer server.Close()
	r := &recorder{tokenURL: server.URL + "/token", eventsURL: server.URL, client: server.Client(), login: url.Values{}}
	for range 2 {
		r.record(t.Context(), life()[0], newPod(), 1)
	}
	if tokens != 2 || written != 2 || r.name != "web-1" {
		t.Errorf("%d tokens, %d events, the last %q", tokens, written, r.name)
	}
}
