package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/shared/waittest"
)

// replaceFile replaces a file at once, because the service may read it at any time.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestIssuersFileReload: the running service follows its issuers file. An issuer is added, changed and removed, between
// them the file has a mistake. Clients of other issuers are never refused, and their keys are fetched once.
func TestIssuersFileReload(t *testing.T) {
	t.Parallel()
	first, second, third := newRotating(t), newRotating(t), newRotating(t)
	entry := func(i *rotating, more string) string {
		return fmt.Sprintf("- {issuer: %q, jwksURL: %q, audiences: [eventsvc]%s}\n", i.URL, i.URL, more)
	}
	stays := entry(second, "")
	issuers := writeFile(t, "issuers.yaml", stays)
	policy := writeFile(t, "policy.yaml", "bindings: [{role: 'events:read', subjects: [{issuer: '*', clientID: demo}]}]")
	p := start(t, t.TempDir(), &issuer{Server: first.Server, key: first.keys["k1"]}, "--jwks-url="+first.URL, "--issuers-file="+issuers, "--policy-file="+policy)

	good := []string{first.token("k1", "demo", ""), second.token("k1", "demo", "")}
	for _, token := range good {
		p.until(http.StatusOK, bearing(token))
	}
	var rounds atomic.Int64
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for _, token := range good {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if code, text, _ := p.get(bearing(token), ""); code != http.StatusOK {
					t.Errorf("a good client is refused: %d %s", code, text)
				}
				rounds.Add(1)
			}
		})
	}
	defer waittest.Join(t, &clients)
	defer close(stop)

	token := third.token("k1", "demo", "")
	p.until(http.StatusUnauthorized, bearing(token))
	replaceFile(t, issuers, stays+entry(third, ""))
	p.until(http.StatusOK, bearing(token))
	watch := p.watching(token)

	replaceFile(t, issuers, stays+entry(third, ", algorithms: [HS256]"))
	waittest.Until(t, "the mistake is counted", func() bool { return p.metric(t, "issuers_file_good") == "0" })
	if got := p.metric(t, `issuers_reloads_total{result="error"}`); got != "1" {
		t.Errorf("%s bad versions are counted", got)
	}
	p.until(http.StatusOK, bearing(token))

	replaceFile(t, issuers, stays+entry(third, ", maxTokenLife: 10s")) // applies to the remembered token too
	p.until(http.StatusUnauthorized, bearing(token))
	if got := p.metric(t, "issuers_file_good"); got != "1" {
		t.Errorf("good is %s with a good file", got)
	}
	replaceFile(t, issuers, stays+entry(third, ", claims: [team]"))
	p.until(http.StatusOK, bearing(token))

	// The policy may ask for claims that have been added.
	teams := third.signed("k1", goodHeader, third.payload("sub", `"other"`, "team", `"a"`))
	p.until(http.StatusForbidden, bearing(teams))
	replaceFile(t, policy, fmt.Sprintf("bindings: [{role: 'events:read', subjects: [{issuer: '*', clientID: demo}, {issuer: %q, claim: team, value: a}]}]", third.URL))
	p.until(http.StatusOK, bearing(teams))
	// As many groups as Entra names make a token of 12 KiB.
	many := []string{"a"}
	for i := range 200 {
		many = append(many, fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
	}
	list, _ := json.Marshal(many)
	large := third.signed("k1", goodHeader, third.payload("sub", `"other"`, "team", string(list)))
	if code, text, _ := p.get(bearing(large), ""); code != http.StatusOK {
		t.Errorf("a token of %d bytes: %d %s", len(large), code, text)
	}
	p.until(http.StatusForbidden, bearing(third.signed("k1", goodHeader, third.payload("sub", `"other"`, "team", "null"))))
	if n := third.fetched(); n != 1 {
		t.Errorf("the keys of the changed issuer were fetched %d times", n)
	}

	replaceFile(t, issuers, stays)
	p.until(http.StatusUnauthorized, bearing(token))
	p.until(http.StatusUnauthorized, bearing(teams))
	ended(t, watch)
	// The policy names an issuer that is gone: it is a mistake, and the rules of others stay.
	waittest.Until(t, "the policy is checked with the issuers", func() bool { return p.metric(t, "eventsvc_policy_file_good") == "0" })
	waittest.Until(t, "the metrics of the issuer are gone", func() bool {
		return p.metric(t, fmt.Sprintf("jwks_last_success_timestamp_seconds{url=%q}", third.URL)) == ""
	})
	seen := rounds.Load()
	waittest.Until(t, "the good clients go on", func() bool { return rounds.Load() > seen+4 })
	replaceFile(t, issuers, stays+entry(third, ", claims: [team]"))
	p.until(http.StatusOK, bearing(teams))
	waittest.Until(t, "the policy is good again", func() bool { return p.metric(t, "eventsvc_policy_file_good") == "1" })
	for name, i := range map[string]*rotating{"the flags": first, "the entry that stays": second} {
		if n := i.fetched(); n != 1 {
			t.Errorf("the keys of the issuer of %s were fetched %d times", name, n)
		}
	}
}

// metric reads a metric of the service.
func (p *process) metric(t *testing.T, name string) string {
	t.Helper()
	return metric(t, p.url("--listen-admin"), name)
}

// fetched returns how often the keys were fetched.
func (r *rotating) fetched() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fetches
}
