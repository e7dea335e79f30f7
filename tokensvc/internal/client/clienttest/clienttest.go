// Package clienttest tests that a client.Store fulfils its contract.
package clienttest

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/clientkey"
)

// Hash is the BCrypt hash of "s3cret"; NextHash that of "s3cret-next".
const (
	Hash     = "$2a$10$M8GJvuTinEpMTEUirGUHU.dBXDE4RfMNIsmVJo6GmI5eN5keZfTMW"
	NextHash = "$2b$10$x4Ahd6sZYBL2KnsA/d.YLup12dQNpwd7y1TLjVKbm/M/llzsQjPe2"
)

// Two public keys of clients: a JWK set with one, and the other in PEM.
const (
	JWKS = `{"keys":[{"kty":"EC","crv":"P-256","kid":"key-1","use":"sig","alg":"ES256","x":"pwcD60OBmFS8f3n4vu2WNCgHVagpkJeoSS7BoXjC25E","y":"iA0-uGaV-_fYZhF23cJFlPvlbvThhNbg9BIDt6yQniE"}]}`
	PEM  = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEATFZWznZF87vs5aCBm9A7O3E+zxXJv4AMrKSJuw/wNLQ=\n-----END PUBLIC KEY-----\n"
)

// Registrations returns the registrations that the store under test must hold. Their ids are chosen by the store.
func Registrations(t testing.TB) []client.Client {
	t.Helper()
	next := Secret(t, NextHash)
	next.Until = time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)
	return []client.Client{
		{ClientID: "plain", Name: "One secret", Scope: "read", Secrets: []client.Secret{Secret(t, Hash)}},
		{ClientID: "prefixed", Name: "Prefix", Scope: "ROLE_USER", Secrets: []client.Secret{Secret(t, "{bcrypt}"+Hash)}},
		{ClientID: "two", Name: "Two secrets", Scope: "read", Secrets: []client.Secret{Secret(t, Hash), next}},
		{ClientID: "Two", Name: "Case matters", Scope: "write", Secrets: []client.Secret{Secret(t, Hash)}},
		{ClientID: `o'dd "id" \ %`, Name: "Ünicode 名", Scope: "a:b/c", Secrets: []client.Secret{Secret(t, Hash)}},
		{ClientID: strings.Repeat("x", client.MaxIDLength), Name: "Longest", Scope: "read", Secrets: []client.Secret{Secret(t, Hash)}},
		{ClientID: "aud", Name: "Audience", Scope: "read", Secrets: []client.Secret{Secret(t, Hash)}, Audience: []string{"https://api.example", "other"}},
		{ClientID: "key", Name: "A key and a secret", Scope: "read", Secrets: []client.Secret{Secret(t, Hash)}, Keys: keys(t, JWKS, "")},
		{ClientID: "bound", Name: "A workload", Scope: "read", Bound: client.Binding{Issuer: "https://cluster.example", Subject: "system:serviceaccount:shop:*"}},
		{ClientID: "system:serviceaccount:shop:job", Name: "An account", Scope: "read", Bound: client.Binding{Issuer: "https://cluster.example"}},
		{ClientID: "keys", Name: "Two keys", Scope: "read", Keys: keys(t, JWKS, PEM)},
	}
}

// Secret parses a stored secret.
func Secret(t testing.TB, stored string) client.Secret {
	t.Helper()
	s, err := client.ParseSecret(stored)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keys(t testing.TB, jwks, publicKeys string) []clientkey.Public {
	t.Helper()
	keys, err := client.ParseKeys([]byte(jwks), []byte(publicKeys))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Test checks a store that holds Registrations.
func Test(t *testing.T, store client.Store) {
	t.Helper()
	t.Run("finds every registration", func(t *testing.T) {
		ids := map[string]string{}
		for _, want := range Registrations(t) {
			got, err := store.ByClientID(t.Context(), want.ClientID)
			if err != nil {
				t.Fatalf("%q: %v", want.ClientID, err)
			}
			if other, twice := ids[got.ID]; got.ID == "" || twice {
				t.Errorf("%q has the id %q, as has %q; want one of its own", want.ClientID, got.ID, other)
			}
			ids[got.ID] = want.ClientID
			want.ID = got.ID
			if diff := cmp.Diff(want, got, compareSecrets(), compareKeys(), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
				t.Errorf("%q (-want +got):\n%s", want.ClientID, diff)
			}
		}
	})
	t.Run("does not find what is not there", func(t *testing.T) {
		for _, id := range []string{
			"", " ", "nobody", "PLAIN", "plain ", " plain", "pl_in", "plai%", "plain\x00", "\x00", "pl\xffain", "ünknown",
			"plain'; DROP TABLE clients; --", strings.Repeat("x", client.MaxIDLength+1), strings.Repeat("y", 100_000),
		} {
			if c, err := store.ByClientID(t.Context(), id); !errors.Is(err, client.ErrNotFound) {
				t.Errorf("%.40q: got %v, error %v; want ErrNotFound", id, c, err)
			}
		}
	})
	t.Run("finds clients by their subject", func(t *testing.T) {
		const cluster, all = "https://cluster.example", "system:serviceaccount:shop:*"
		for _, tc := range []struct {
			issuer   string
			subjects []string
			found    bool
		}{
			{cluster, []string{all}, true},
			{cluster, []string{"system:serviceaccount:shop:batch", all}, true},
			{cluster, []string{"system:serviceaccount:shop:job"}, false}, // it has no assertion_subject
			{cluster, nil, false}, {cluster, []string{""}, false}, {"", []string{all}, false},
			{"https://other.example", []string{all}, false}, {"https://CLUSTER.example", []string{all}, false},
			{cluster, []string{"x\x00", "\xff", "'; DROP TABLE clients; --"}, false},
		} {
			c, err := store.BySubject(t.Context(), tc.issuer, tc.subjects)
			if tc.found && (err != nil || c.ClientID != "bound") || !tc.found && !errors.Is(err, client.ErrNotFound) {
				t.Errorf("%s %q: %v, error %v", tc.issuer, tc.subjects, c, err)
			}
		}
	})
	t.Run("is safe for concurrent use", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if _, err := store.ByClientID(t.Context(), "plain"); err != nil {
					t.Error(err)
				}
				if _, err := store.ByClientID(t.Context(), "nobody"); !errors.Is(err, client.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// compareSecrets compares stored secrets, which the type hides.
func compareSecrets() cmp.Option { return cmp.AllowUnexported(client.Secret{}) }

// compareKeys compares public keys by what they verify.
func compareKeys() cmp.Option {
	return cmp.Comparer(func(a, b clientkey.Public) bool { return a.ID == b.ID && reflect.DeepEqual(a.Public(), b.Public()) })
}
