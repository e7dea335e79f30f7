package e2e_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
)

// projected is a directory with a service-account token, as the kubelet mounts it into a pod.
type projected struct {
	dir      string
	versions int
}

// write replaces the token as the kubelet does: a new directory, which the link ..data then leads to. The directory
// before is removed, so a command must not keep it.
func (p *projected) write(t *testing.T, token string) {
	t.Helper()
	p.versions++
	name := fmt.Sprintf("..2026_11_25_%d", p.versions)
	data := filepath.Join(p.dir, "..data")
	before, _ := os.Readlink(data) // empty: there was none
	steps := []func() error{
		func() error { return os.Mkdir(filepath.Join(p.dir, name), 0o755) },
		func() error { return os.WriteFile(filepath.Join(p.dir, name, "token"), []byte(token), 0o600) },
		func() error { return os.Symlink(name, data+"_tmp") },
		func() error { return os.Rename(data+"_tmp", data) },
	}
	if before == "" {
		steps = append(steps, func() error { return os.Symlink("..data/token", p.file()) })
	} else {
		steps = append(steps, func() error { return os.RemoveAll(filepath.Join(p.dir, before)) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *projected) file() string { return filepath.Join(p.dir, "token") }

// TestKubeletRotation: commands get their tokens with the service-account token of their pod, while the kubelet
// replaces it and the issuer withdraws the key of the one before. eventsvc mirror, the plugin that it runs and eventsvc
// tail go on for all the time. tokensvc token fetch and eventsvc record are run again and again. Nothing fails, and no
// assertion is refused.
func TestKubeletRotation(t *testing.T) {
	t.Parallel()
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

	accounts, clients := map[string]*projected{}, "clients:\n"
	const prober = "prober" // finds out whether a key is known
	for _, account := range []string{"tail", "mirror", "plugin", "script", prober} {
		accounts[account] = &projected{dir: t.TempDir()}
		accounts[account].write(t, current.token(t, grant{account: account, audiences: []string{"tokensvc"}}))
		clients += fmt.Sprintf("- {client_id: %q, scope: events, assertion_issuer: %q}\n", "system:serviceaccount:shop:"+account, issuer)
	}
	// Tokens are short, so that each command needs a new one in every round.
	w := startLocal(t, "TOKENSVC_TOKEN_LIFETIME=4s", "EVENTSVC_WATCH_AFTER_EXPIRY=0s", "EVENTSVC_CLOCK_SKEW=0s",
		"TOKENSVC_CLIENTS_FILE="+textFile(t, "clients.yaml", clients), "TOKENSVC_TRUSTED_ISSUERS_FILE="+textFile(t, "issuers.yaml", p.trust))
	known := func(s signer) {
		t.Helper()
		token := s.token(t, grant{account: prober, audiences: []string{"tokensvc"}})
		testenv.Eventually(t, "the issuer's key is known", deadline, func() error {
			if _, status := tradeAssertion(t, w, "", token); status != http.StatusOK {
				return fmt.Errorf("%d", status)
			}
			return nil
		})
	}
	known(current)
	source := startEvents(t, "EVENTSVC_ISSUER="+w.tokens, "EVENTSVC_WATCH_AFTER_EXPIRY=0s", "EVENTSVC_CLOCK_SKEW=0s")
	as := func(account string, args ...string) []string {
		return append(args, "--token-url", w.tokens+"/oauth2/token", "--assertion-file", accounts[account].file())
	}
	kubeconfig := textFile(t, "kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q}}]
users:
- name: u
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: %q, args: [credential, --token-url, %q, --assertion-file, %q, --cache-dir, %q]}
`, source, filepath.Join(bin, "tokensvc"), w.tokens+"/oauth2/token", accounts["plugin"].file(), t.TempDir()))
	mirror := &process{name: "eventsvc", args: as("mirror", "mirror", "--kubeconfig", kubeconfig, "--cluster", "source", "--server", w.events, "--listen-admin", "")}
	mirror.launch(t)
	tail := &process{name: "eventsvc", args: as("tail", "tail", "-n", "shop", "--server", w.events)}
	tail.launch(t)

	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, args[0], err, out)
		}
	}
	recorded := 0
	// script is what a workload does that starts commands.
	script := func() {
		t.Helper()
		run("tokensvc", as("script", "token", "fetch")...)
		recorded++
		run("eventsvc", as("script", "record", "-n", "shop", "--server", source, "--regarding", "Job/nightly", "--reason", fmt.Sprintf("Step%d.", recorded))...)
	}
	decisions := func(account, outcome string) (n int) {
		for line := range strings.Lines(w.log("tokensvc")) {
			if strings.Contains(line, `"client_id":"system:serviceaccount:shop:`+account+`"`) && strings.Contains(line, `"outcome":"`+outcome+`"`) {
				n++
			}
		}
		return n
	}
	for round := range 3 {
		script()
		old := *published.Load()
		current = newSigner(t, issuer, issuerKey())
		fresh := current.keys()
		both := strings.TrimSuffix(old, "]}") + "," + strings.TrimPrefix(fresh, `{"keys":[`)
		published.Store(&both)
		known(current)
		for account, volume := range accounts {
			volume.write(t, current.token(t, grant{account: account, audiences: []string{"tokensvc"}}))
			script()
		}
		published.Store(&fresh)
		withdrawn := map[string]int{}
		for account := range accounts {
			withdrawn[account] = decisions(account, "issued")
		}
		testenv.Eventually(t, fmt.Sprintf("round %d: the commands have new tokens and work", round), deadline, func() error {
			script()
			for _, account := range []string{"mirror", "plugin", "tail", "script"} {
				if decisions(account, "issued") < withdrawn[account]+2 { // one may have been logged late
					return fmt.Errorf("%s has no new token\nmirror says:\n%s\ntail says:\n%s", account, mirror.log.String(), tail.log.String())
				}
			}
			return nil
		})
		last := fmt.Sprintf("Step%d.", recorded)
		testenv.Eventually(t, "the last event has been copied and shown", deadline, func() error {
			if said := tail.log.String(); !strings.Contains(said, last) {
				return fmt.Errorf("no %s in:\n%s\nmirror says:\n%s", last, said, mirror.log.String())
			}
			return nil
		})
	}
	for account := range accounts {
		if n := decisions(account, "wrong_assertion"); n > 0 && account != prober {
			t.Errorf("%d assertions of %s were refused", n, account)
		}
		t.Logf("%-6s got %d tokens", account, decisions(account, "issued"))
	}
	for n := range recorded {
		if name := fmt.Sprintf("Step%d.", n+1); !strings.Contains(tail.log.String(), name) {
			t.Errorf("the event %s was not shown", name)
		}
	}
}
