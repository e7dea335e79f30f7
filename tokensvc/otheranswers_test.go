package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tidings.example/shared/waittest"
)

// TestAssertionsAnsweredOtherwise: requests that are refused for their form are answered by that form alone. Whose
// assertion it is, and whether it is good, changes no byte.
func TestAssertionsAnsweredOtherwise(t *testing.T) {
	t.Parallel()
	w := newHostileWorld(t)
	const typ = "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
	with := func(more string) func(string) string {
		return func(assertion string) string { return assertionForm(assertion) + more }
	}
	padded := func(size int) func(string) string {
		return func(assertion string) string { return assertionForm(assertion + strings.Repeat("A", size)) }
	}
	for _, row := range []struct {
		name   string
		form   func(assertion string) string
		change func(*http.Request)
		status int
		audit  string
	}{
		{"N1 nothing", func(string) string { return "grant_type=client_credentials" }, nil, 401, "no_credentials"},
		{"N1 the type alone", func(string) string { return "grant_type=client_credentials" + typ }, nil, 401, "no_credentials"},
		{"N2 an empty assertion", func(string) string { return assertionForm("") }, nil, 401, "no_credentials"},
		{"N2 no type", func(a string) string { return strings.Replace(assertionForm(a), typ, "", 1) }, nil, 401, "assertion_type"},
		{"N2 the type of SAML", func(a string) string { return strings.Replace(assertionForm(a), "jwt-bearer", "saml2-bearer", 1) }, nil, 401, "assertion_type"},
		{"N3 two assertions", with("&client_assertion=x"), nil, 400, "repeated_parameter"},
		{"N3 two types", with(typ), nil, 400, "repeated_parameter"},
		{"N3 a secret too", with("&client_id=demo&client_secret=wrong"), nil, 400, "two_authentication_methods"},
		{"N3 Basic too", with(""), func(r *http.Request) { r.SetBasicAuth("demo", "wrong") }, 400, "two_authentication_methods"},
		{"N3 in the query", with(""), func(r *http.Request) { r.URL.RawQuery = "client_assertion=x" }, 400, "credentials_in_query"},
		{"N57 16 KiB", padded(16 << 10), nil, 413, "body_too_large"},
		{"N57 1 MiB", padded(1 << 20), nil, 413, "body_too_large"},
		{"N54 a million dots", with(strings.Repeat(".", 1_000_000)), nil, 413, "body_too_large"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.change == nil {
				row.change = func(*http.Request) {}
			}
			first := ""
			for name, assertion := range map[string]string{
				byOwnKey: w.parties[byOwnKey].saying(), byIssuer: w.parties[byIssuer].saying(),
				"a stranger": w.stranger.saying(), "another key": w.stranger.token(good, w.parties[byOwnKey].claims()),
			} {
				got, audit := w.send(t, row.form(assertion), row.change)
				if first == "" {
					first = got.text
				}
				if got.status != row.status || audit != row.audit || got.text != first {
					t.Errorf("%s: %s, %s; want %d, %s, and an answer as before:\n%s", name, got.text, audit, row.status, row.audit, first)
				}
			}
		})
	}
}

// TestBusyAssertions: while an id may not try again, further attempts are answered 429, the same for a client that
// exists and one that does not. The client's good assertions pass.
func TestBusyAssertions(t *testing.T) {
	t.Parallel()
	w := newHostileWorld(t, "--failure-burst", "1", "--failure-refill", "1h", "--failure-queue", "1")
	retry := regexp.MustCompile(`Retry-After: \d+\r\n`)
	answers := map[string]bool{}
	for _, id := range []string{"keyed", "unknown"} {
		wrong := func() string {
			return assertionForm(w.stranger.saying("iss", fmt.Sprintf("%q", id), "sub", fmt.Sprintf("%q", id)))
		}
		if got, _ := w.send(t, wrong()); got.status != http.StatusUnauthorized {
			t.Errorf("%s, first: %d", id, got.status)
		}
		ctx, leave := context.WithCancel(t.Context())
		answered := make(chan answer, 2)
		var attempts sync.WaitGroup
		for range cap(answered) { // one of them waits, so that there is no room for the other
			attempts.Go(func() {
				if got, err := w.post(ctx, wrong()); err == nil {
					answered <- got
				}
			})
		}
		got := waittest.Within(t, answered)
		audit := w.audit(t, got)
		if got.status != http.StatusTooManyRequests || audit != "busy: too many attempts are waiting: throttle_full" || !retry.MatchString(got.text) {
			t.Errorf("%s: %s\n%s", id, audit, got.text)
		}
		answers[retry.ReplaceAllString(got.text, "")] = true
		w.check(t, []hostileRow{{"good beside " + id, w.parties[byOwnKey].saying(), ""}})
		leave()
		waittest.Join(t, &attempts)
	}
	if len(answers) != 1 {
		t.Errorf("the answers tell who is registered: %v", answers)
	}
}

// TestOutagesOfAssertions: without the keys of the issuer, or without registrations, nobody can say whether an
// assertion is good. It is answered 503, whatever else is wrong with it.
func TestOutagesOfAssertions(t *testing.T) {
	t.Parallel()
	away := tempFile(t, "away.yaml", "- {issuer: 'https://cluster.example', jwksURL: 'http://127.0.0.1:1/jwks'}\n") // where nobody listens
	for name, tc := range map[string]struct {
		args    []string
		methods []string
		audit   string
	}{
		"N62 the issuer's keys": {[]string{"--trusted-issuers-file", away}, []string{byIssuer}, "issuer_unavailable: "},
		"the registrations": {
			[]string{"--clients-file", "", "--database-dsn", "postgres://u:p@127.0.0.1:1/d", "--database-timeout", "500ms"},
			[]string{byOwnKey, byIssuer}, "store_unavailable: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHostileWorld(t, tc.args...)
			first := ""
			for _, method := range tc.methods {
				p := w.parties[method]
				for what, assertion := range map[string]string{
					"good": p.saying(), "of nobody": p.saying("sub", `"nobody"`), "wrong signature": w.stranger.token(good, p.claims()),
					"unknown kid": p.token(`{"alg":"RS256","kid":"new"}`, p.claims()),
				} {
					got, audit := w.send(t, assertionForm(assertion))
					if first == "" {
						first = got.text
					}
					if got.status != http.StatusServiceUnavailable || !strings.HasPrefix(audit, tc.audit) || got.text != first || !strings.Contains(got.text, "\r\nRetry-After: 5\r\n") {
						t.Errorf("%s, %s: %s\n%s", method, what, audit, got.text)
					}
				}
			}
			if len(tc.methods) == 1 {
				w.check(t, []hostileRow{{"others go on", w.parties[byOwnKey].saying(), ""}})
			}
		})
	}
}
