package client_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/certtest"
	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/clientkey"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// issuer is the one audience of assertions.
const issuer = "https://tokens.example"

// signer makes assertions by hand, without the library that verifies them.
type signer struct {
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey
}

func newSigner(t testing.TB) signer {
	t.Helper()
	return signer{certtest.RSA(t), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
}

// keys returns the public keys, with the ids "rsa" and "ec".
func (s signer) keys() []clientkey.Public {
	var text []byte
	for _, public := range []crypto.PublicKey{&s.rsa.PublicKey, &s.ec.PublicKey} {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(public))})...)
	}
	keys := must(clientkey.ParsePEM(text))
	keys[0].ID, keys[1].ID = "rsa", "ec"
	return keys
}

func (s signer) client(id string) client.Client {
	return client.Client{ClientID: id, Scope: "read", Keys: s.keys()}
}

// token signs by RS256, or by ES256 if the header says so.
func (s signer) token(header, payload string) string {
	enc := base64.RawURLEncoding
	input := enc.EncodeToString([]byte(header)) + "." + enc.EncodeToString([]byte(payload))
	sum := sha256.Sum256([]byte(input))
	var signature []byte
	if strings.Contains(header, `"ES256"`) {
		r, q, err := ecdsa.Sign(rand.Reader, s.ec, sum[:])
		if err != nil {
			panic(err)
		}
		signature = append(r.FillBytes(make([]byte, 32)), q.FillBytes(make([]byte, 32))...)
	} else {
		signature = must(rsa.SignPKCS1v15(nil, s.rsa, crypto.SHA256, sum[:]))
	}
	return input + "." + enc.EncodeToString(signature)
}

// The details of assertions of clients that are not known.
const (
	noIssuer  = "iss is neither a client nor a trusted issuer"
	noSubject = "no client has this subject, or this client_id"
)

const rs256 = `{"alg":"RS256","kid":"rsa"}`

// payload is a good one of the client "keyed", with some members replaced: name, JSON value, …; an empty value leaves
// the member out. Every jti is new.
func payload(changes ...string) string {
	now := time.Now().Unix()
	members := map[string]string{
		"iss": `"keyed"`, "sub": `"keyed"`, "aud": `"` + issuer + `"`, "jti": `"` + rand.Text() + `"`,
		"iat": fmt.Sprint(now), "exp": fmt.Sprint(now + 60),
	}
	for i := 0; i < len(changes); i += 2 {
		members[changes[i]] = changes[i+1]
	}
	var fields []string
	for name, value := range members {
		if value != "" {
			fields = append(fields, fmt.Sprintf("%q:%s", name, value))
		}
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func withKeys(c client.Config) client.Config {
	c.Assertions = client.Assertions{Audience: issuer, Keys: true, MaxLife: 5 * time.Minute}
	return c
}

// detail returns the outcome of an attempt with the detail of a rejection.
func detail(err error) string {
	var rejected *client.RejectedError
	if errors.As(err, &rejected) && rejected.Detail != "" {
		return rejected.Detail
	}
	return outcome(err)
}

// stopped is a clock that stands, so that assertions do not expire while other tests run.
func stopped() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

// TestAssertions: what is refused beside everything that package bearer refuses in any token.
func TestAssertions(t *testing.T) {
	t.Parallel()
	own, other := newSigner(t), newSigner(t)
	a := newAuthenticator(t, withKeys(client.Config{Store: newStore(t, own.client("keyed"), other.client("other")), Now: stopped()}))
	in := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).Unix()) }
	for _, tc := range []struct{ name, token, want string }{
		{"RS256", own.token(rs256, payload()), "ok"},
		{"ES256", own.token(`{"alg":"ES256","kid":"ec"}`, payload()), "ok"},
		{"no kid", own.token(`{"alg":"RS256"}`, payload()), "ok"},
		{"no kid, second key", own.token(`{"alg":"ES256"}`, payload()), "ok"},
		{"typ of client assertions", own.token(`{"alg":"RS256","typ":"client-authentication+jwt"}`, payload()), "ok"},
		{"audience in a list of one", own.token(rs256, payload("aud", `["`+issuer+`"]`)), "ok"},
		{"nothing known but the signature's owner", own.token(rs256, payload("scope", `"admin"`, "client_id", `"other"`)), "ok"},
		{"jku is never asked", own.token(`{"alg":"RS256","jku":"http://127.0.0.1:1/"}`, payload()), "ok"},

		{"another client's key", other.token(rs256, payload()), "signature wrong"},
		{"another client's key in jwk", other.token(`{"alg":"RS256","jwk":{"kty":"RSA","n":"AQAB","e":"AQAB"}}`, payload()), "signature wrong"},
		{"in the name of another client", own.token(rs256, payload("iss", `"other"`, "sub", `"other"`)), "signature wrong"},
		{"of a client with a secret only", own.token(rs256, payload("iss", `"plain"`, "sub", `"plain"`)), "signature wrong"},
		{"unknown client", own.token(rs256, payload("iss", `"nobody"`, "sub", `"nobody"`)), noIssuer},
		{"unknown kid", own.token(`{"alg":"RS256","kid":"other"}`, payload()), "signature wrong"},
		{"the kid of another kind of key", own.token(`{"alg":"RS256","kid":"ec"}`, payload()), "signature wrong"},
		{"alg none", strings.TrimRight(own.token(`{"alg":"none"}`, payload()), "-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), "alg not allowed"},
		{"HS256", own.token(`{"alg":"HS256"}`, payload()), "alg not allowed"},
		{"crit", own.token(`{"alg":"RS256","crit":["exp"]}`, payload()), "header extension"},
		{"b64", own.token(`{"alg":"RS256","b64":false}`, payload()), "header extension"},
		{"nested", own.token(`{"alg":"RS256","cty":"JWT"}`, payload()), "header extension"},
		{"an access token by its typ", own.token(`{"alg":"RS256","typ":"at+jwt"}`, payload()), "typ of another token"},
		{"an ID token by its typ", own.token(`{"alg":"RS256","typ":"id+jwt"}`, payload()), "typ of another token"},
		{"a token about itself: our issuer, the client as subject", own.token(rs256, payload("iss", `"`+issuer+`"`)), noIssuer},
		{"sub of another client", own.token(rs256, payload("sub", `"other"`)), "sub is not iss"},
		{"no sub", own.token(rs256, payload("sub", "")), "sub missing or malformed"},
		{"no iss", own.token(rs256, payload("iss", "")), noIssuer},
		{"iss a list", own.token(rs256, payload("iss", `["keyed"]`)), noIssuer},
		{"the token endpoint as audience", own.token(rs256, payload("aud", `"`+issuer+`/oauth2/token"`)), "other audience"},
		{"two audiences", own.token(rs256, payload("aud", `["`+issuer+`","https://other.example"]`)), "several audiences"},
		{"audience with a slash", own.token(rs256, payload("aud", `"`+issuer+`/"`)), "other audience"},
		{"no audience", own.token(rs256, payload("aud", "")), "other audience"},
		{"no jti", own.token(rs256, payload("jti", "")), "no jti"},
		{"jti a number", own.token(rs256, payload("jti", "1")), "claim malformed"},
		{"no exp", own.token(rs256, payload("exp", "")), "time missing or malformed"},
		{"no iat", own.token(rs256, payload("iat", "")), "time missing or malformed"},
		{"expired", own.token(rs256, payload("iat", in(-2*time.Minute), "exp", in(-time.Minute))), "expired"},
		{"issued in the future", own.token(rs256, payload("iat", in(time.Minute), "exp", in(2*time.Minute))), "not valid yet"},
		{"not before", own.token(rs256, payload("nbf", in(30*time.Second))), "not valid yet"},
		{"too long", own.token(rs256, payload("exp", in(301*time.Second+time.Second))), "lives too long"},
		{"bound to another key", own.token(rs256, payload("cnf", `{"jkt":"x"}`)), "sender-constrained"},
		{"claims twice", own.token(rs256, strings.Replace(payload(), "{", `{"sub":"keyed",`, 1)), "payload damaged"},
		{"not a token", "x", "not three parts"},
		{"8 KiB and more", strings.Repeat("x", 8<<10+1), "too long"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: tc.token})
			if got := detail(err); got != tc.want {
				t.Fatalf("%s, want %s", got, tc.want)
			}
			if (err == nil) != (c.Scope != "") {
				t.Errorf("client %+v with error %v", c, err)
			}
		})
	}
}

// TestAssertionClientID: a client_id beside the assertion must be the same client (RFC 7521 section 4.2).
func TestAssertionClientID(t *testing.T) {
	t.Parallel()
	own := newSigner(t)
	a := newAuthenticator(t, withKeys(client.Config{Store: newStore(t, own.client("keyed"))}))
	for id, want := range map[string]string{"": "ok", "keyed": "ok", "plain": "client_id is not iss", "Keyed": "client_id is not iss"} {
		_, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{ClientID: id, Token: own.token(rs256, payload())})
		if got := detail(err); got != want {
			t.Errorf("client_id %q: %s, want %s", id, got, want)
		}
	}
	off := newAuthenticator(t, client.Config{Store: newStore(t, own.client("keyed"))})
	_, _, err := off.AuthenticateAssertion(t.Context(), client.Assertion{Token: own.token(rs256, payload())})
	if got := detail(err); got != "other issuer" {
		t.Errorf("not enabled: %s", got)
	}
}

// TestClientWithKeys: a client that has keys only has no secret that could be guessed, and takes the time of one that
// has.
func TestClientWithKeys(t *testing.T) {
	t.Parallel()
	own := newSigner(t)
	a := newAuthenticator(t, withKeys(client.Config{Store: newStore(t, own.client("keyed"))}))
	for _, secret := range []string{"", "-", "s3cret"} {
		_, err := a.Authenticate(t.Context(), client.Attempt{ClientID: "keyed", Secret: secret})
		if got := outcome(err); got != "wrong_secret" {
			t.Errorf("secret %q: %s", secret, got)
		}
	}
}

// TestKeyRotation: while a key is being replaced, both are good; afterwards only the new one is.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	first, second := newSigner(t), newSigner(t)
	s := newStore(t)
	a := newAuthenticator(t, withKeys(client.Config{Store: s}))
	try := func(by signer) string {
		_, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: by.token(`{"alg":"RS256"}`, payload())})
		return detail(err)
	}
	var got []string
	old, fresh := first.keys()[0], second.keys()[0]
	fresh.ID = "rsa-2"
	for _, keys := range [][]clientkey.Public{{old}, {old, fresh}, {fresh}} {
		s.put(client.Client{ClientID: "keyed", Scope: "read", Keys: keys})
		got = append(got, try(first), try(second))
	}
	if diff := cmp.Diff([]string{"ok", "signature wrong", "ok", "ok", "signature wrong", "ok"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReplay: an assertion is good once while it is valid, and its jti may come back afterwards.
func TestReplay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		own, other := newSigner(t), newSigner(t)
		a := newAuthenticator(t, withKeys(client.Config{Store: newStore(t, own.client("keyed"), other.client("other"))}))
		try := func(token string) string {
			_, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: token})
			return detail(err)
		}
		same := own.token(rs256, payload("jti", `"one"`))
		got := []string{try(same), try(same)}
		time.Sleep(30 * time.Second)
		got = append(got, try(same), try(own.token(rs256, payload("jti", `"one"`))))
		got = append(got, try(other.token(rs256, payload("jti", `"one"`, "iss", `"other"`, "sub", `"other"`))))
		time.Sleep(3 * time.Minute)
		got = append(got, try(same), try(own.token(rs256, payload("jti", `"one"`))))
		if diff := cmp.Diff([]string{"ok", "replayed", "replayed", "replayed", "ok", "expired", "ok"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestReplayAfterRestart: a process refuses assertions from before its start, as it does not know whether they were
// used. Those of other issuers are used again by design.
func TestReplayAfterRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		own, platform := newSigner(t), newSigner(t)
		assertions := trusting(t, fmt.Sprintf("{issuer: %q, jwksFile: %q}", cluster, platform.jwksFile(t)))
		start := func() func(token string) string {
			assertions.Since = time.Now()
			a := newAuthenticator(t, client.Config{
				Store: newStore(t, own.client("keyed"), bound("system:serviceaccount:shop:reporter", cluster, "")), Assertions: assertions,
			})
			return func(token string) string {
				_, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: token})
				return detail(err)
			}
		}
		at := func(seconds int) string {
			return own.token(rs256, payload("iat", fmt.Sprint(time.Now().Add(time.Duration(seconds)*time.Second).Unix())))
		}
		try := start()
		used, account := at(0), platform.token(rs256, account("shop:reporter"))
		got := []string{try(used), try(account), try(used)}
		time.Sleep(time.Second)
		try = start()
		got = append(got, try(used), try(account), try(at(-1)), try(at(0)), try(at(5)))
		time.Sleep(9 * time.Second)
		got = append(got, try(used), try(at(-9)), try(at(-10))) // clients whose clocks are behind
		want := []string{"ok", "ok", "replayed", "older than this process", "ok", "older than this process", "ok", "ok", "older than this process", "ok", "older than this process"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestReplayTableIsBounded: a client that sends too many assertions has to wait, nothing is forgotten, and others go
// on.
func TestReplayTableIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	table := client.NewReplays(10)
	add := func(id, jti string, life time.Duration) string { return table.Add(id, jti, now.Add(life), now) }
	var got []string
	for i := range 6 {
		got = append(got, add("a", fmt.Sprint(i), time.Minute))
	}
	got = append(got, add("a", "0", time.Minute), add("b", "0", time.Minute))
	if diff := cmp.Diff([]string{"first", "first", "first", "first", "first", "no room", "replayed", "first"}, got); diff != "" {
		t.Errorf("one client (-want +got):\n%s", diff)
	}
	for i := range 20 {
		add(fmt.Sprint("client", i), "x", 5*time.Minute)
	}
	if n := table.Length(); n != 10 {
		t.Errorf("%d assertions remembered, want 10", n)
	}
	now = now.Add(3 * time.Minute)
	if got := add("a", "0", time.Minute); got != "first" || table.Length() != 5 {
		t.Errorf("after three minutes: %s, %d remembered, want 5", got, table.Length())
	}
	now = now.Add(time.Hour)
	if add("a", "1", time.Minute); table.Length() != 1 {
		t.Errorf("%d remembered after an hour, want 1", table.Length())
	}
}

// TestFloodOfAssertions: clients fill the table in use with good assertions of five minutes. Each gets half of what the
// others have left, so sixteen of them leave places for everybody else, and the whole table takes less than 32 MiB.
func TestFloodOfAssertions(t *testing.T) { // not parallel: what others allocate would be counted
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	now := time.Unix(1_800_000_000, 0)
	table := client.NewReplays(client.MaxReplays)
	left := client.MaxReplays
	for flooder := range 16 {
		id, sent := fmt.Sprint("flooder", flooder), 0
		for ; table.Add(id, fmt.Sprint(sent), now.Add(time.Duration(sent%300)*time.Second), now) == "first"; sent++ {
		}
		if sent != (left+1)/2 {
			t.Errorf("client %d got %d places of %d, want half", flooder, sent, left)
		}
		left -= sent
	}
	for i := range 8 {
		if got := table.Add(fmt.Sprint("other", i), "x", now.Add(time.Minute), now); got != "first" {
			t.Errorf("another client's assertion: %s", got)
		}
	}
	if got := table.Add("flooder0", "7", now.Add(time.Minute), now); got != "replayed" {
		t.Errorf("a used one of the first client: %s", got)
	}
	full := heap() - before
	t.Logf("%d assertions take %.1f MiB", table.Length(), float64(full)/(1<<20))
	if full > 32<<20 {
		t.Errorf("%d assertions take %d bytes", table.Length(), full)
	}
	now = now.Add(time.Hour)
	if table.Add("flooder0", "7", now.Add(time.Minute), now); table.Length() != 1 {
		t.Errorf("%d remembered after an hour", table.Length())
	}
}

// TestFullReplayTable: a client with a stolen key has used up its places in the table in use. Its further assertions
// have to wait until others expire. Those of other clients are accepted, each once.
func TestFullReplayTable(t *testing.T) {
	t.Parallel()
	flooder, other := newSigner(t), newSigner(t)
	now := time.Now()
	a := newAuthenticator(t, withKeys(client.Config{
		Store: newStore(t, flooder.client("keyed"), other.client("other")), Now: func() time.Time { return now },
	}))
	table := a.Replays()
	for i := 0; table.Add("keyed", fmt.Sprint(i), now.Add(5*time.Minute), now) == "first"; i++ {
	}
	if table.Length() != client.MaxReplays/2 {
		t.Errorf("the client got %d places, want half of %d", table.Length(), client.MaxReplays)
	}
	try := func(token string) string {
		_, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: token})
		var busy *client.BusyError
		if errors.As(err, &busy) {
			return busy.Reason
		}
		return detail(err)
	}
	by := func(s signer, id string) string {
		return s.token(rs256, payload("iss", `"`+id+`"`, "sub", `"`+id+`"`, "iat", fmt.Sprint(now.Unix()), "exp", fmt.Sprint(now.Add(time.Minute).Unix())))
	}
	same := by(other, "other")
	got := []string{try(by(flooder, "keyed")), try(same), try(same), try(by(other, "other")), try(by(other, "keyed"))}
	now = now.Add(7 * time.Minute)
	got = append(got, try(by(flooder, "keyed")))
	if diff := cmp.Diff([]string{"replays_full", "ok", "replayed", "ok", "signature wrong", "ok"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if table.Length() != 1 {
		t.Errorf("%d assertions remembered in the end, want 1", table.Length())
	}
}

// TestAssertionThrottle: failures count like wrong secrets, for known and unknown ids alike, and do not delay a client
// whose assertion is good.
func TestAssertionThrottle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		own, other := newSigner(t), newSigner(t)
		a := newAuthenticator(t, withKeys(client.Config{
			Store: newStore(t, own.client("keyed")), FailureBurst: 3, FailureRefill: time.Second, FailureQueue: 2,
		}))
		for _, id := range []string{"keyed", "nobody"} {
			claims := payload("iss", `"`+id+`"`, "sub", `"`+id+`"`)
			began := time.Now()
			for range 5 {
				if _, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: other.token(rs256, claims)}); err == nil {
					t.Fatal("accepted")
				}
			}
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("%s: 5 failures with a burst of 3 took %s, want 2s", id, took)
			}
		}
		began := time.Now()
		if _, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: own.token(rs256, payload())}); err != nil || time.Since(began) != 0 {
			t.Errorf("a good assertion: %v after %s", err, time.Since(began))
		}
	})
}

// TestAssertionStoreTrouble: an outage neither rejects nor accepts an assertion, and does not use it up.
func TestAssertionStoreTrouble(t *testing.T) {
	t.Parallel()
	own := newSigner(t)
	s := newStore(t, own.client("keyed"))
	a := newAuthenticator(t, withKeys(client.Config{Store: s}))
	token := own.token(rs256, payload())
	var got []string
	for _, err := range []error{errors.New("connection refused"), nil, nil} {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		_, _, err := a.AuthenticateAssertion(t.Context(), client.Assertion{Token: token})
		got = append(got, detail(err))
	}
	if diff := cmp.Diff([]string{"unavailable", "ok", "replayed"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEqualWork: a failed assertion costs the same verifications for every client, known or not.
func TestEqualWork(t *testing.T) { // not parallel: it counts allocations, of which a verification has many
	own := newSigner(t)
	var kinds clientkey.Kinds
	kinds.Set(own.keys())
	want := -1.0
	for name, keys := range map[string][]clientkey.Public{"unknown": nil, "one key": own.keys()[:1], "another kind": own.keys()[1:], "two keys": own.keys()} {
		key := must(kinds.Set(keys).Key(t.Context(), "", ""))
		signature := make([]byte, 256)
		got := testing.AllocsPerRun(100, func() { key.Verify("RS256", []byte("input"), signature) })
		if want < 0 {
			want = got
		}
		if math.Abs(got-want) > 3 { // one verification has a dozen
			t.Errorf("%s: %v allocations, others %v: another number of verifications", name, got, want)
		}
	}
}

// BenchmarkAssertion authenticates a client by an assertion that it has signed by ES256, and compares it with the
// verification of that signature alone.
func BenchmarkAssertion(b *testing.B) {
	s := newSigner(b)
	a := newAuthenticator(b, withKeys(client.Config{Store: newStore(b, s.client("keyed"))}))
	tokens := make([]string, 1000)
	b.Run("whole", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if i%len(tokens) == 0 {
				b.StopTimer()
				for n := range tokens {
					tokens[n] = s.token(`{"alg":"ES256","typ":"JWT","kid":"ec"}`, payload())
				}
				b.StartTimer()
			}
			if _, _, err := a.AuthenticateAssertion(b.Context(), client.Assertion{Token: tokens[i%len(tokens)]}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("signature", func(b *testing.B) {
		sum := sha256.Sum256([]byte("input"))
		r, q, err := ecdsa.Sign(rand.Reader, s.ec, sum[:])
		for b.Loop() {
			if err != nil || !ecdsa.Verify(&s.ec.PublicKey, sum[:], r, q) {
				b.Fatal(err)
			}
		}
	})
}
