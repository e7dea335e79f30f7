package bearer_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidings.example/shared/bearer"
)

// TestDiscoverEndpoints: what a person's browser is sent to is on the web or on this machine. Where one document lacks
// what a sign-in needs, the other is looked at; what it only would like to have may be missing, or be of no use.
func TestDiscoverEndpoints(t *testing.T) {
	t.Parallel()
	const (
		oauth  = "/.well-known/oauth-authorization-server"
		openID = "/.well-known/openid-configuration"
		needed = `"issuer":"$ISSUER","authorization_endpoint":"$ISSUER/a?x=y","token_endpoint":"https://t.example/t"`
	)
	for name, test := range map[string]struct {
		at    map[string]string
		want  bearer.Endpoints // $ISSUER is the server's address
		error string
	}{
		"all": {
			map[string]string{openID: `{` + needed + `,"end_session_endpoint":"$ISSUER/e","revocation_endpoint":"$ISSUER/r","authorization_response_iss_parameter_supported":true}`},
			bearer.Endpoints{Authorization: "$ISSUER/a?x=y", Token: "https://t.example/t", EndSession: "$ISSUER/e", Revocation: "$ISSUER/r", NamesItself: true}, "",
		},
		"the least": {map[string]string{oauth: `{` + needed + `}`}, bearer.Endpoints{Authorization: "$ISSUER/a?x=y", Token: "https://t.example/t"}, ""},
		"none of use": {
			map[string]string{oauth: `{` + needed + `,"end_session_endpoint":"javascript:alert(1)","revocation_endpoint":"","authorization_response_iss_parameter_supported":"true"}`},
			bearer.Endpoints{Authorization: "$ISSUER/a?x=y", Token: "https://t.example/t"}, "",
		},
		"only in the second": {
			map[string]string{oauth: `{"issuer":"$ISSUER","jwks_uri":"$ISSUER/k","token_endpoint":"$ISSUER/t"}`, openID: `{` + needed + `}`},
			bearer.Endpoints{Authorization: "$ISSUER/a?x=y", Token: "https://t.example/t"}, "",
		},
		"no authorization":    {map[string]string{oauth: `{"issuer":"$ISSUER","token_endpoint":"$ISSUER/t"}`}, bearer.Endpoints{}, "it has no authorization_endpoint"},
		"a script":            {map[string]string{oauth: `{"issuer":"$ISSUER","authorization_endpoint":"javascript:alert(1)"}`}, bearer.Endpoints{}, "its authorization_endpoint cannot be used"},
		"over the network":    {map[string]string{oauth: `{"issuer":"$ISSUER","authorization_endpoint":"http://a.example/a"}`}, bearer.Endpoints{}, "plain HTTP"},
		"the end of a policy": {map[string]string{oauth: `{"issuer":"$ISSUER","authorization_endpoint":"$ISSUER/a","token_endpoint":"https://t.example;script-src/t"}`}, bearer.Endpoints{}, "its token_endpoint cannot be used"},
		"another's":           {map[string]string{oauth: `{` + strings.ReplaceAll(needed, `"issuer":"$ISSUER"`, `"issuer":"https://evil.example"`) + `}`}, bearer.Endpoints{}, "another issuer"},
		"nothing":             {nil, bearer.Endpoints{}, "answered 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var srv *httptest.Server
			here := func(s string) string { return strings.ReplaceAll(s, "$ISSUER", srv.URL) }
			srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				document, ok := test.at[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				_, _ = io.WriteString(w, here(document))
			}))
			t.Cleanup(srv.Close)
			got, err := bearer.DiscoverEndpoints(t.Context(), srv.URL, bearer.KeySource{})
			if test.error != "" {
				if err == nil || !strings.Contains(err.Error(), test.error) || got != (bearer.Endpoints{}) {
					t.Errorf("%+v, %v; want %q", got, err, test.error)
				}
				return
			}
			if err != nil || fmt.Sprint(got) != here(fmt.Sprint(test.want)) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
