package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// testConsole: a browser gets the page without a token, and the page may ask for one as soon as both services run.
func testConsole(t *testing.T, page, tokens string) {
	t.Helper()
	send := func(method, url, body string, headers ...string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp
	}
	origin, isPage := strings.CutSuffix(page, "/console/")
	resp := send("GET", page, "")
	policy := resp.Header.Get("Content-Security-Policy")
	if !isPage || resp.StatusCode != http.StatusOK || !strings.Contains(policy, "connect-src 'self' "+tokens+";") {
		t.Errorf("%s: %d, Content-Security-Policy: %s", page, resp.StatusCode, policy)
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {clientSecret}}
	resp = send("POST", tokens+"/oauth2/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", origin)
	if allowed := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != http.StatusOK || allowed != origin {
		t.Errorf("a token for the page: %d, Access-Control-Allow-Origin: %s", resp.StatusCode, allowed)
	}
}
