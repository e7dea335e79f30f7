package e2e_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"tidings.example/deploy/test/internal/testenv"
)

// TestGitHubActions runs the job of the page about clients without secrets as GitHub does, with the issuer and the
// client of the same page. What stands in for GitHub signs a token for a job that asks for one.
func TestGitHubActions(t *testing.T) {
	t.Parallel()
	testenv.Tool(t, "curl")
	testenv.Tool(t, "jq")
	issuers, clients, step := githubPage(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	const issuer, allowed = "https://token.actions.githubusercontent.com", "may ask for tokens"
	s := newSigner(t, issuer, key)
	github := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+allowed {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"count": 100, "value": %q}`, s.token(t, grant{
			subject: "repo:my-org/shop:" + r.FormValue("ref"), audiences: []string{r.FormValue("audience")},
		}))
	}))
	t.Cleanup(github.Close)
	w := startLocal(t, "TOKENSVC_CLIENTS_FILE="+textFile(t, "clients.yaml", "clients:\n"+clients),
		"TOKENSVC_TRUSTED_ISSUERS_FILE="+textFile(t, "issuers.yaml", fmt.Sprintf("%s  jwksFile: %q\n", issuers, textFile(t, "jwks.json", s.keys()))),
		"EVENTSVC_AUDIENCE=eventsvc", "EVENTSVC_POLICY_FILE="+textFile(t, "policy.yaml", "bindings: []\n"))
	step = strings.NewReplacer("https://tokens.example.com", w.tokens, "https://events.example.com", w.events).Replace(step)
	run := func(ref string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step)
		cmd.Env = append(os.Environ(), "GITHUB_RUN_ID=12", "GITHUB_SHA=abc", "ACTIONS_ID_TOKEN_REQUEST_TOKEN="+allowed,
			"ACTIONS_ID_TOKEN_REQUEST_URL="+github.URL+"/?ref="+ref)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("ref:refs/heads/main"); err != nil || !strings.Contains(out, `"run 12 of abc"`) {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run("ref:refs/heads/other"); err == nil || !strings.Contains(out, "401") {
		t.Errorf("another branch is not refused: %v: %s", err, out)
	}
}

// githubPage returns what the page says about GitHub: the trusted issuer, the client, and the commands of the job.
func githubPage(t *testing.T) (issuers, clients, step string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "deploy/docs/how-to/no-secrets.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### GitHub Actions\n")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, 3)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string `json:"run"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	if err := yaml.Unmarshal([]byte(blocks[2][1]), &workflow); err != nil || len(workflow.Jobs["deploy"].Steps) != 1 {
		t.Fatalf("%v: %+v", err, workflow)
	}
	return blocks[0][1], blocks[1][1], workflow.Jobs["deploy"].Steps[0].Run
}
