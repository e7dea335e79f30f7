package oauth

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"tidings.example/tokensvc/internal/client"
)

// Limits of a token request.
const (
	maxBody       = 16 << 10
	maxParameters = 32
)

// request is a token request (RFC 6749 section 4.4.2); a parameter that is absent or has no value is empty.
type request struct {
	grantType, clientID, clientSecret, scope string

	rawID, rawSecret string // the other reading of Basic credentials; empty: they have one

	resources []string // RFC 8707 section 2, where the parameter may be repeated
	assertion string   // RFC 7521 section 4.2
	method    string   // of client authentication; empty: none was tried
}

// assertionType is the only client_assertion_type (RFC 7523 section 2.2).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// readRequest reads a token request. An error is the fault of a malformed one. Parameters are read from the body only;
// form values of a framework would include the query.
func (s *Server) readRequest(w http.ResponseWriter, r *http.Request) (request, error) {
	var req request
	if credentialsInQuery(r.URL.RawQuery) {
		return req, faultQuery
	}
	if !isForm(r.Header) {
		return req, faultContentType
	}
	body, err := readBody(w, r)
	if err != nil {
		return req, err
	}
	form, err := parseForm(body, "grant_type", "client_id", "client_secret", "scope", "client_assertion", "client_assertion_type")
	if err != nil {
		return req, err
	}
	req = request{
		grantType: form.Get("grant_type"), clientID: form.Get("client_id"), clientSecret: form.Get("client_secret"),
		scope: form.Get("scope"), resources: valued(form["resource"]), assertion: form.Get("client_assertion"),
	}
	if len(r.Header.Values(echo.HeaderAuthorization)) > 1 {
		return req, faultTwoMethods
	}
	if triedBasic(r) {
		if err := req.readBasic(r.Header.Get(echo.HeaderAuthorization), s.c.Basic); err != nil {
			return req, err
		}
	}
	return req, req.checkCredentials(form.Get("client_assertion_type"), s.c.Assertions)
}

// valued returns the values that are not empty: a parameter without a value counts as absent.
func valued(values []string) []string {
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// checkCredentials returns a fault unless the request has the credentials of exactly one method that is enabled.
func (q *request) checkCredentials(typ string, assertions bool) error {
	switch {
	case q.assertion != "" && q.clientSecret != "":
		return faultTwoMethods
	case !client.ValidID(q.clientID):
		return faultClientID
	case q.assertion != "":
		q.method = client.MethodKey
		if !assertions {
			return faultAssertionOff
		}
		if typ != assertionType {
			return faultAssertionType
		}
	case q.clientID == "" || q.clientSecret == "":
		return faultNoCreds
	case q.method == "":
		q.method = client.MethodPost
	}
	return nil
}

// credentialsInQuery reports whether the query has credentials. It decodes names only, so no value can be logged by
// mistake.
func credentialsInQuery(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if name == "client_secret" || name == "client_id" || name == "client_assertion" {
			return true
		}
	}
	return false
}

func isForm(h http.Header) bool {
	if h.Get(echo.HeaderContentEncoding) != "" {
		return false
	}
	given := h.Get(echo.HeaderContentType)
	if given == echo.MIMEApplicationForm {
		return true
	}
	media, _, err := mime.ParseMediaType(given)
	return err == nil && media == echo.MIMEApplicationForm
}

func readBody(w http.ResponseWriter, r *http.Request) (string, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return "", faultBodySize
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", faultBodyTime // the network was slow, or this service too busy to read on
	}
	if err != nil {
		return "", faultForm
	}
	return string(body), nil
}

// parseForm returns the parameters of a form. Parameters with other names are ignored; those with the given names must
// not be repeated (RFC 6749 section 3.2).
func parseForm(body string, names ...string) (url.Values, error) {
	if strings.Count(body, "&") >= maxParameters {
		return nil, faultParameters
	}
	form, err := url.ParseQuery(strings.ReplaceAll(body, ";", "%3B")) // a semicolon is a character like any other
	if err != nil {
		return nil, faultForm
	}
	for _, name := range names {
		if len(form[name]) > 1 {
			return nil, faultRepeated
		}
	}
	return form, nil
}

// triedBasic reports whether the client tried to authenticate with the Basic scheme.
func triedBasic(r *http.Request) bool {
	scheme, _, _ := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
	return strings.EqualFold(scheme, "basic")
}

// basicOf returns the id and the secret of a header as they were sent. It reports false if one is missing.
func basicOf(header string) (id, secret string, ok bool) {
	_, encoded, _ := strings.Cut(header, " ")
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	id, secret, _ = strings.Cut(string(decoded), ":")
	return id, secret, err == nil && id != "" && secret != ""
}

// unescaped decodes an id and a secret that are form-encoded. It reports false if they cannot be.
func unescaped(rawID, rawSecret string) (id, secret string, ok bool) {
	id, idErr := url.QueryUnescape(rawID)
	secret, secretErr := url.QueryUnescape(rawSecret)
	return id, secret, idErr == nil && secretErr == nil && client.ValidID(id)
}

// readBasic reads client_secret_basic. Its id and secret are form-encoded by RFC 6749 section 2.3.1, but many clients
// send them raw, as in RFC 7617. Nothing tells which, so both readings count where they differ. If the method is not
// allowed, a client that uses it is not authenticated.
func (q *request) readBasic(header string, allowed bool) error {
	q.method = client.MethodBasic
	if q.clientSecret != "" || q.assertion != "" {
		return faultTwoMethods
	}
	rawID, rawSecret, ok := basicOf(header)
	if !ok {
		return faultBasic
	}
	id, secret, ok := unescaped(rawID, rawSecret)
	if !ok || q.clientID != "" && q.clientID != id {
		id, secret = rawID, rawSecret
	}
	if q.clientID != "" && q.clientID != id {
		return faultTwoMethods
	}
	if !allowed {
		return faultBasicOff
	}
	if (secret != rawSecret || id != rawID) && (q.clientID == "" || q.clientID == rawID) {
		q.rawID, q.rawSecret = rawID, rawSecret
	}
	q.clientID, q.clientSecret = id, secret
	return nil
}
