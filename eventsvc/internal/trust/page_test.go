package trust_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/trust"
)

// entries returns the entries of issuers files that the YAML blocks of a page show.
func entries(t *testing.T, page string) (all []trust.Issuer) {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(block, "```")
		if !strings.Contains("\n"+block, "\n- issuer: ") {
			continue // of the policy
		}
		file := filepath.Join(t.TempDir(), "issuers.yaml")
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := trust.ReadIssuers(file)
		if err != nil {
			t.Fatalf("%s: %v\n%s", page, err, block)
		}
		all = append(all, list...)
	}
	return all
}

// TestSignInPages: the entries for providers are good as they stand. Each says whom a token is for, and that people are
// told apart by sub: a token with client_id would make all of them one client.
func TestSignInPages(t *testing.T) {
	t.Parallel()
	for page, most := range map[string]int{"how-to/sign-in.md": 6, "how-to/identity-provider.md": 5, "reference/issuers.md": 5} {
		all := entries(t, page)
		if len(all) < most {
			t.Errorf("%s: only %d entries", page, len(all))
		}
		for _, i := range all {
			switch {
			case i.Console == nil && page == "how-to/sign-in.md":
				t.Errorf("%s: %s has no block console", page, i.Issuer)
			case i.Console != nil && page != "reference/issuers.md" && (i.ClientIDClaim != "sub" || len(i.Audiences) != 1 || len(i.Claims) == 0):
				t.Errorf("%s: %s: clientIDClaim %q, audiences %q, claims %q", page, i.Issuer, i.ClientIDClaim, i.Audiences, i.Claims)
			}
		}
	}
}
