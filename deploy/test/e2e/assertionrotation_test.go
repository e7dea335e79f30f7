package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
)

// tokensvc runs a command of the program and returns what it prints.
func tokensvc(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "tokensvc"), args...).Output()
	if err != nil {
		t.Fatalf("tokensvc %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// newClientKey makes a key by the command of that name, and returns its file and the key.
func newClientKey(t *testing.T) (file string, key *ecdsa.PrivateKey) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key.pem")
	tokensvc(t, "client-key", "new", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return file, parsed.(*ecdsa.PrivateKey)
}

// ownAssertion is a new assertion of a client for the service with that issuer (RFC 7523 section 3).
func ownAssertion(key *ecdsa.PrivateKey, clientID, issuer string) (string, error) {
	enc, now := base64.RawURLEncoding, time.Now().Unix()
	input := enc.EncodeToString([]byte(`{"alg":"ES256"}`)) + "." + enc.EncodeToString(fmt.Appendf(nil,
		`{"iss":%[1]q,"sub":%[1]q,"aud":%[2]q,"jti":%[3]q,"iat":%[4]d,"exp":%[5]d}`, clientID, issuer, rand.Text(), now, now+60))
	sum := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	return input + "." + enc.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)), nil
}

// caller authenticates to the replicas in turn with a key that is replaced, by as many goroutines as it has counters.
type caller struct {
	name   string
	sign   atomic.Pointer[func() (string, error)]
	rounds [2]atomic.Int64 // assertions that have been answered
}

// use replaces the key, and waits until no assertion that another one has signed is under way.
func (c *caller) use(t *testing.T, sign func() (string, error)) {
	t.Helper()
	c.sign.Store(&sign)
	for i := range c.rounds {
		before := c.rounds[i].Load()
		testenv.Eventually(t, c.name+" signs with the new key", deadline, func() error {
			if c.rounds[i].Load() < before+2 && !t.Failed() {
				return fmt.Errorf("%d assertions since", c.rounds[i].Load()-before)
			}
			return nil
		})
	}
}

// run authenticates until ctx ends. Every assertion must be accepted.
func (c *caller) run(ctx context.Context, t *testing.T, i int, client *http.Client, replicas []string) {
	for ctx.Err() == nil {
		assertion, err := (*c.sign.Load())()
		if err != nil {
			t.Error(err)
			return
		}
		n := c.rounds[i].Load()
		status, err := trade(ctx, client, replicas[int(n)%len(replicas)], assertion)
		if ctx.Err() != nil {
			return
		}
		if err != nil || status != http.StatusOK {
			t.Errorf("%s: assertion %d is answered %d %v", c.name, n, status, err)
			return
		}
		c.rounds[i].Add(1)
	}
}

// replace replaces a file at once, because it may be read at any time.
func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestRotationOfAssertionKeys: a client and a trusted issuer replace their keys, twice each, while both are used with
// two replicas of tokensvc and others send assertions with unknown keys. No good assertion is refused, and the old keys
// are not good any more in the end.
func TestRotationOfAssertionKeys(t *testing.T) {
	t.Parallel()
	const account, public = "system:serviceaccount:shop:reporter", "https://tokens.example"
	var published atomic.Pointer[string]
	issuerKey := func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	p := publish(t, "cluster", issuerKey(), func(w http.ResponseWriter, _ *http.Request, _ string) { fmt.Fprint(w, *published.Load()) })
	issuer := "https://" + p.server.Listener.Addr().String()
	current, set := p.signer, p.keys()
	published.Store(&set)

	file, key := newClientKey(t)
	clients := textFile(t, "clients.yaml", "")
	register := func(files ...string) {
		t.Helper()
		jwks := tokensvc(t, append([]string{"client-key", "show"}, files...)...)
		replace(t, clients, fmt.Sprintf("clients:\n- {client_id: keyed, scope: events, jwks: %s}\n- {client_id: %q, scope: events, assertion_issuer: %q}\n", jwks, account, issuer))
	}
	register(file)
	trusted := textFile(t, "issuers.yaml", p.trust)
	var replicas []string
	for range 2 {
		_, api, _ := tokenService(t, "TOKENSVC_PUBLIC_URL="+public, "TOKENSVC_PRIVATE_KEY_JWT=true", "TOKENSVC_FAILURE_REFILL=0s",
			"TOKENSVC_CLIENTS_FILE="+clients, "TOKENSVC_TRUSTED_ISSUERS_FILE="+trusted)
		replicas = append(replicas, api)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20}}
	byKey := func(key *ecdsa.PrivateKey) func() (string, error) {
		return func() (string, error) { return ownAssertion(key, "keyed", public) }
	}
	byAccount := func(s signer) func() (string, error) {
		token := s.token(t, grant{audiences: []string{"tokensvc"}})
		return func() (string, error) { return token, nil }
	}
	// all waits until every replica answers an assertion with the status.
	all := func(what string, sign func() (string, error), want int) {
		t.Helper()
		for i, api := range replicas {
			testenv.Eventually(t, fmt.Sprintf("replica %d: %s", i, what), deadline, func() error {
				assertion, err := sign()
				if err != nil {
					return err
				}
				if status, err := trade(t.Context(), client, api, assertion); err != nil || status != want && !t.Failed() {
					return fmt.Errorf("%d %w", status, err)
				}
				return nil
			})
		}
	}
	own, workload := &caller{name: "client"}, &caller{name: "workload"}
	sign := byAccount(p.signer)
	all("the issuer's keys are there", sign, http.StatusOK)

	ctx, leave := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer leave()
	first := byKey(key)
	own.sign.Store(&first)
	workload.sign.Store(&sign)
	for _, c := range []*caller{own, workload} {
		for i := range c.rounds {
			load.Go(func() { c.run(ctx, t, i, client, replicas) })
		}
	}
	var forged atomic.Int64
	forgery := p.token(t, grant{audiences: []string{"tokensvc"}})
	load.Go(func() { // an attacker, whose key ids make the replicas fetch the keys
		for ctx.Err() == nil {
			n := forged.Add(1)
			status, err := trade(ctx, client, replicas[int(n)%len(replicas)], withKeyID(forgery, fmt.Sprint("unknown-", n)))
			if ctx.Err() == nil && (err != nil || status != http.StatusUnauthorized) {
				t.Errorf("a forged assertion: %d %v", status, err)
				return
			}
		}
	})
	for range 2 {
		oldSign, oldFile := byKey(key), file
		file, key = newClientKey(t)
		register(oldFile, file)
		all("the client's new key is registered", byKey(key), http.StatusOK)
		own.use(t, byKey(key))
		register(file)
		all("the client's old key is not good any more", oldSign, http.StatusUnauthorized)

		oldSigner, old := current, *published.Load()
		current = newSigner(t, issuer, issuerKey())
		fresh := current.keys()
		both := strings.TrimSuffix(old, "]}") + "," + strings.TrimPrefix(fresh, `{"keys":[`)
		published.Store(&both)
		all("the issuer's new key is known", byAccount(current), http.StatusOK)
		workload.use(t, byAccount(current))
		published.Store(&fresh)
		all("the issuer's old key is not good any more", byAccount(oldSigner), http.StatusUnauthorized)
	}
	for _, c := range []*caller{own, workload} {
		t.Logf("%s: %d assertions accepted over two rotations", c.name, c.rounds[0].Load()+c.rounds[1].Load())
	}
	t.Logf("%d forged assertions refused", forged.Load())
}
