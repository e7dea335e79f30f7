package security

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// secrets are the forms in which secrets get into repositories by mistake.
var secrets = map[string]*regexp.Regexp{
	"private key":          regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/]{40}`),
	"bcrypt hash":          regexp.MustCompile(`\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}`),
	"signed token":         regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{40,}`),
	"private JWK":          regexp.MustCompile(`"d"\s*:\s*"[A-Za-z0-9_-]{80,}"`),
	"password in a URL":    regexp.MustCompile(`[a-z]+://[A-Za-z0-9_.-]+:[^@\s/"'{}$<>…%]{3,}@[A-Za-z0-9]`),
	"password in a DSN":    regexp.MustCompile(`\bpassword=[^\s"'$%{<…]{3,}`),
	"cloud access key":     regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`),
	"forge or chat token":  regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{50,}|glpat-[A-Za-z0-9_-]{20}|xox[abprs]-[A-Za-z0-9-]{10,})`),
	"SSH or age secret":    regexp.MustCompile(`(AGE-SECRET-KEY-1[0-9A-Z]{20,}|-----BEGIN OPENSSH PRIVATE KEY-----\s+\S{20})`),
	"secret in kubeconfig": regexp.MustCompile(`client-key-data:\s*[A-Za-z0-9+/]{40}`),
}

// public are secrets that are meant to be public, each with the reason.
var public = map[string]map[string]string{
	"deploy/compose/postgres/10-clients.sql":        {"bcrypt hash": "demonstration clients, said to be public in docker-compose.yml"},
	"deploy/compose/secrets/cluster-tokensvc-dsn":   {"password in a URL": "the same in the profile cluster"},
	"deploy/compose/secrets/cluster-eventsvc-dsn":   {"password in a DSN": "the same"},
	"deploy/compose/secrets/cluster-owner-dsn":      {"password in a DSN": "the same"},
	"deploy/compose/secrets/tokensvc-dsn":           {"password in a URL": "the demonstration's database, on its own network"},
	"deploy/docs/how-to/database-password.md":       {"password in a URL": "an example, of the demonstration's database"},
	"deploy/docs/how-to/install.md":                 {"password in a URL": "a placeholder in capital letters"},
	"deploy/local/clients.yaml":                     {"bcrypt hash": "demonstration clients of make run"},
	"tokensvc/internal/client/postgres/postgres.go": {"password in a URL": "an example in an error message"},
}

// ofTests are kinds that tests have examples of.
var ofTests = []string{"bcrypt hash", "password in a URL", "password in a DSN"}

// TestNoSecrets: no tracked file has a secret but those for demonstrations.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, "go.sum") {
			continue
		}
		text := read(t, name)
		for kind, form := range secrets {
			if place := form.FindStringIndex(text); place != nil {
				found[name] = append(found[name], kind)
				test := strings.HasSuffix(name, "test.go") && slices.Contains(ofTests, kind)
				if !test && public[name][kind] == "" {
					t.Errorf("%s:%d: looks like a %s", name, 1+strings.Count(text[:place[0]], "\n"), kind)
				}
			}
		}
	}
	for name, kinds := range public {
		for kind := range kinds {
			if !slices.Contains(found[name], kind) {
				t.Errorf("%s has no %s any more: take it out of the list", name, kind)
			}
		}
	}
}

// TestProjectedTokens: no manifest and no page has a platform make a token that is good for more than a quarter of an
// hour, which is the longest that tokensvc takes unless it is told otherwise.
func TestProjectedTokens(t *testing.T) {
	t.Parallel()
	life := regexp.MustCompile(`expirationSeconds:\s*(\d+)|create token .*--duration[ =](\w+)`)
	found := 0
	for _, name := range tracked(t) {
		if !strings.HasPrefix(name, "deploy/") || strings.HasPrefix(name, "deploy/test/") {
			continue
		}
		for _, m := range life.FindAllStringSubmatch(read(t, name), -1) {
			found++
			if d, err := time.ParseDuration(cmp.Or(m[2], m[1]+"s")); err != nil || d > 15*time.Minute {
				t.Errorf("%s: %s: %s, %v", name, m[0], d, err)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d lives were found", found)
	}
}

// TestSecretsAreFound: each form matches an example of its secret.
func TestSecretsAreFound(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Ab1_", 30)
	for kind, text := range map[string]string{
		"private key":          "-----BEGIN RSA " + "PRIVATE KEY-----\n" + strings.Repeat("Ab1+", 16),
		"bcrypt hash":          "$2a$" + "10$" + strings.Repeat("a", 53),
		"signed token":         "ey" + "JhbGciOiJSUzI1NiJ9.ey" + "JzdWIiOiJkZW1vIn0." + long,
		"private JWK":          `"d" : "` + long + `"`,
		"password in a URL":    "postgres://user:" + "hunter2@db",
		"password in a DSN":    "host=db password=" + "hunter2 user=x",
		"cloud access key":     "AKIA" + "ABCDEFGHIJKLMNOP",
		"forge or chat token":  "ghp_" + strings.Repeat("a", 36),
		"SSH or age secret":    "AGE-SECRET-KEY-" + "1" + strings.Repeat("Q", 30),
		"secret in kubeconfig": "client-key-data: " + strings.Repeat("Ab1+", 16),
	} {
		if !secrets[kind].MatchString(text) {
			t.Errorf("%s is not found in %q", kind, text)
		}
	}
	if len(secrets) != 10 {
		t.Error("a form of secrets has no example here")
	}
}
