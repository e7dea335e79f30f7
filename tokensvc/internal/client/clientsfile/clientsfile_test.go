package clientsfile_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/client/clientsfile"
	"tidings.example/tokensvc/internal/client/clienttest"
)

// all is clienttest.Registrations as a file.
const all = `
clients:
- {client_id: plain, client_name: One secret, client_secret: HASH, scope: read}
- {client_id: prefixed, client_name: Prefix, client_secret: "{bcrypt}HASH", scope: ROLE_USER}
- client_id: two
  client_name: Two secrets
  client_secret: HASH
  client_secret_next: NEXT
  client_secret_next_until: 2100-01-02T03:04:05Z
  scope: read
- {client_id: Two, client_name: Case matters, client_secret: HASH, scope: write}
- {client_id: 'o''dd "id" \ %', client_name: Ünicode 名, client_secret: HASH, scope: a:b/c}
- {client_id: LONGEST, client_name: Longest, client_secret: HASH, scope: read}
- {client_id: aud, client_name: Audience, client_secret: HASH, scope: read, audience: ["https://api.example", other]}
- {client_id: key, client_name: A key and a secret, client_secret: HASH, scope: read, jwks: JWKS}
- {client_id: bound, client_name: A workload, scope: read, assertion_issuer: "https://cluster.example", assertion_subject: "system:serviceaccount:shop:*"}
- {client_id: "system:serviceaccount:shop:job", client_name: An account, scope: read, assertion_issuer: "https://cluster.example"}
- client_id: keys
  client_name: Two keys
  scope: read
  jwks: JWKS
  public_keys: |
    -----BEGIN PUBLIC KEY-----
    MCowBQYDK2VwAyEATFZWznZF87vs5aCBm9A7O3E+zxXJv4AMrKSJuw/wNLQ=
    -----END PUBLIC KEY-----
`

func write(t *testing.T, path, content string) {
	t.Helper()
	content = strings.NewReplacer("HASH", clienttest.Hash, "NEXT", clienttest.NextHash, "LONGEST", strings.Repeat("x", client.MaxIDLength), "JWKS", clienttest.JWKS).Replace(content)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, content string) (*clientsfile.Store, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clients.yaml")
	write(t, path, content)
	return clientsfile.Open(path, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	store, err := open(t, all)
	if err != nil {
		t.Fatal(err)
	}
	clienttest.Test(t, store)
}

// TestSubjectTwice: clients with the same subject are told apart by their ids only.
func TestSubjectTwice(t *testing.T) {
	t.Parallel()
	const one = "- {client_id: %s, scope: s, assertion_issuer: i, assertion_subject: x}\n"
	store, err := open(t, "clients:\n"+fmt.Sprintf(one, "a")+fmt.Sprintf(one, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := store.BySubject(t.Context(), "i", []string{"x"}); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("%v, %v", c, err)
	}
	if c, err := store.ByClientID(t.Context(), "b"); err != nil || c.ClientID != "b" {
		t.Errorf("%v, %v", c, err)
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	one := func(rest string) string { return "clients:\n- {client_id: a, scope: s, " + rest + "}" }
	for name, tc := range map[string]struct{ content, want string }{
		"empty":                   {"", "at least one client"},
		"no YAML":                 {"clients: [", "YAML or JSON"},
		"list at the top":         {"- client_id: a", "the file: array stands where a map belongs"},
		"text":                    {"hello", "the file: string stands where a map belongs"},
		"list of scopes":          {"clients: [{client_id: a, client_secret: HASH, scope: [s]}]", "clients.scope: array stands where text belongs"},
		"map for a list":          {"clients: {client_id: a}", "clients: object stands where a list belongs"},
		"unknown field":           {one("client_secret: HASH, secret: x"), `"secret"`},
		"duplicate field":         {one("client_secret: HASH, client_secret: HASH"), "client_secret"},
		"no id":                   {"clients:\n- {client_secret: HASH, scope: s}", "clients[0].client_id"},
		"id with a line feed":     {"clients:\n- {client_id: \"a\\nb\", client_secret: HASH, scope: s}", "clients[0].client_id"},
		"id too long":             {"clients:\n- {client_id: xLONGEST, client_secret: HASH, scope: s}", "clients[0].client_id"},
		"id twice":                {"clients:\n- {client_id: a, client_secret: HASH, scope: s}\n- {client_id: a, client_secret: HASH, scope: s}", "clients[1].client_id"},
		"no scope":                {"clients:\n- {client_id: a, client_secret: HASH}", "clients[0].scope"},
		"two scopes":              {"clients:\n- {client_id: a, client_secret: HASH, scope: r w}", "clients[0].scope"},
		"no secret":               {one("client_name: n"), "clients[0].client_secret"},
		"secret not encoded":      {one("client_secret: plain-text"), "clients[0].client_secret"},
		"empty noop":              {one("client_secret: '{noop}'"), "clients[0].client_secret"},
		"cost too high":           {one("client_secret: $2a$31$M8GJvuTinEpMTEUirGUHU.dBXDE4RfMNIsmVJo6GmI5eN5keZfTMW"), "cost 31"},
		"bad next secret":         {one("client_secret: HASH, client_secret_next: x"), "clients[0].client_secret_next"},
		"subject, no issuer":      {one("assertion_subject: x, client_secret: HASH"), "clients[0].assertion_subject: needs assertion_issuer"},
		"id with a * for subject": {"clients:\n" + `- {client_id: "system:serviceaccount:shop:*", scope: s, assertion_issuer: y}` + "\n", `clients[0].client_id: "system:serviceaccount:shop:*" has a *`},
		"subject with a *":        {one(`assertion_subject: "x*", assertion_issuer: y`), "clients[0].assertion_subject"},
		"next without first":      {one("client_secret_next: NEXT, jwks: JWKS"), "clients[0].client_secret_next"},
		"jwks without keys":       {one("jwks: {keys: []}"), "clients[0].jwks: not a JWK set"},
		"jwks of text":            {one("jwks: x"), "clients[0].jwks: not a JWK set"},
		"private key":             {one(`jwks: {keys: [{kty: RSA, n: AQAB, e: AQAB, d: plain-text}]}`), "clients[0].jwks: key 1 of the set: a private key"},
		"keys without PEM":        {one("public_keys: x"), "clients[0].public_keys"},
		"end without next":        {one("client_secret: HASH, client_secret_next_until: 2100-01-01T00:00:00Z"), "client_secret_next_until"},
		"end is no time":          {one("client_secret: HASH, client_secret_next: NEXT, client_secret_next_until: soon"), "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := open(t, tc.content)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v; want one that names %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "plain-text") {
				t.Errorf("the error repeats the secret: %v", err)
			}
		})
	}
	if _, err := clientsfile.Open(filepath.Join(t.TempDir(), "none.yaml"), slog.New(slog.NewTextHandler(t.Output(), nil))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// TestReload changes the file of a running store.
func TestReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clients.yaml")
	file := func(ids ...string) string {
		s := "clients:\n"
		for _, id := range ids {
			s += fmt.Sprintf("- {client_id: %s, client_secret: HASH, scope: s}\n", id)
		}
		return s
	}
	write(t, path, file("a", "b"))
	store, err := clientsfile.Open(path, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	before, err := store.ByClientID(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		content string
		want    []string
	}{
		{file("b", "c"), []string{"b", "c"}},
		{"clients: [{client_id: a}]", []string{"b", "c"}}, // bad: stays as it was
		{file("c", "b", "a"), []string{"a", "b", "c"}},
		{file("a", "b"), []string{"a", "b"}},
	} {
		write(t, path, step.content)
		store.Reload()
		var known []string
		for _, id := range []string{"a", "b", "c"} {
			if _, err := store.ByClientID(t.Context(), id); err == nil {
				known = append(known, id)
			}
		}
		if diff := cmp.Diff(step.want, known); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", step.content, diff)
		}
	}
	after, err := store.ByClientID(t.Context(), "b")
	if err != nil || after.ID != before.ID {
		t.Errorf("id of a client that stayed is %q, was %q (%v)", after.ID, before.ID, err)
	}
}

// FuzzFile: every file is either refused or has valid registrations only.
func FuzzFile(f *testing.F) {
	f.Add(all)
	f.Add("clients: [{client_id: a, client_secret: '{noop}x', scope: s}]")
	f.Add(`{"clients":[{"client_id":"a"}]}`)
	f.Fuzz(func(t *testing.T, content string) {
		store, err := open(t, content)
		if err != nil {
			return
		}
		if _, err := store.ByClientID(t.Context(), ""); !errors.Is(err, client.ErrNotFound) {
			t.Error("there is a client without an id")
		}
	})
}
