package e2e_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
)

// TestWithoutSecrets: a workload records and reads events with nothing but its service-account token. The cluster then
// changes its key, and the kubelet replaces the token, without a restart of anything.
func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const cluster, account = "https://cluster.example", "system:serviceaccount:shop:reporter"
	project := func() (jwks, token string) {
		t.Helper()
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		s := newSigner(t, cluster, key)
		return s.keys(), s.token(t, grant{audiences: []string{"tokensvc"}})
	}
	keys, token := project()
	jwks, assertion := write("jwks.json", keys), write("token", token)
	w := startLocal(t,
		"TOKENSVC_CLIENTS_FILE="+write("clients.yaml", fmt.Sprintf("clients:\n- {client_id: %q, scope: events, assertion_issuer: %q}\n", account, cluster)),
		"TOKENSVC_TRUSTED_ISSUERS_FILE="+write("issuers.yaml", fmt.Sprintf("- {issuer: %q, jwksFile: %q, audiences: [tokensvc]}\n", cluster, jwks)))
	eventsvc := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "eventsvc"), append(args, "-n", "shop", "--server", w.events,
			"--token-url", w.tokens+"/oauth2/token", "--assertion-file", assertion)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := eventsvc("record", "--regarding", "Job/nightly", "--reason", "Started"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	keys, token = project()
	write("jwks.json", keys)
	write("token", token)
	testenv.Eventually(t, "the new key is known", deadline, func() error {
		out, err := eventsvc("record", "--regarding", "Job/nightly", "--reason", "Finished")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	out, err := eventsvc("get")
	if err != nil || !strings.Contains(out, "Started") || !strings.Contains(out, "Finished") {
		t.Errorf("%v %s", err, out)
	}
}

// TestSecretsListed: the page about clients without secrets lists every setting that holds a secret, or names a file
// that does, and no setting that is none.
func TestSecretsListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "deploy/docs/how-to/no-secrets.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## What remains secret\n")
	listed := map[string]bool{}
	for _, flag := range regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(table, -1) {
		listed[flag[1]] = true
	}
	secretive := regexp.MustCompile(`^(.*(secret|assertion|key|dsn|token|password)-file|.*dsn|.*password|token|token-command|signing-key|kubeconfig|cache-dir|tls-self-signed)$`)
	known := map[string]bool{}
	for _, command := range []string{"tokensvc serve", "tokensvc token fetch", "tokensvc credential", "tokensvc keys rotate",
		"eventsvc serve", "eventsvc mirror", "eventsvc get", "eventsvc database migrate"} {
		words := append(strings.Fields(command), "--help")
		if words[1] == "serve" {
			words = append(words, "all")
		}
		help, err := exec.CommandContext(t.Context(), filepath.Join(bin, words[0]), words[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, help)
		}
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--(?:\[no-\])?([a-z-]+)`).FindAllStringSubmatch(string(help), -1) {
			known[flag[1]] = true
			if secretive.MatchString(flag[1]) && !listed[flag[1]] {
				t.Errorf("%s --%s is not in the table", command, flag[1])
			}
		}
	}
	for flag := range listed {
		if !known[flag] {
			t.Errorf("--%s is in the table, and no command has it", flag)
		}
	}
	if len(listed) < 10 {
		t.Errorf("the table has %d settings", len(listed))
	}
}
