package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/deploy/test/internal/testenv"
)

// previous builds the eventsvc of the commit before this one.
func previous(t *testing.T) string {
	t.Helper()
	git := func(args ...string) ([]byte, error) {
		return exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
	}
	before, err := git("rev-list", "--max-count=1", "--skip=1", "HEAD", "--", "eventsvc", "shared")
	commit := strings.TrimSpace(string(before))
	if err != nil || commit == "" {
		testenv.Unable(t, "there is no commit before this one here: %v %s", err, before)
	}
	source := t.TempDir()
	archive := filepath.Join(t.TempDir(), "source.tar")
	if out, err := git("archive", "--output", archive, commit, "eventsvc", "shared"); err != nil {
		t.Fatalf("git archive: %v %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-x", "-f", archive, "-C", source).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v %s", err, out)
	}
	program := filepath.Join(t.TempDir(), "eventsvc")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = filepath.Join(source, "eventsvc"), append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", commit, err, out)
	}
	return program
}

// TestUpgrade opens the data of the commit before with this one, and goes back: events, their versions and watches
// that resume are the same throughout.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	old, err := filepath.Rel(bin, previous(t))
	if err != nil {
		t.Fatal(err)
	}
	tokens := &process{name: "tokensvc"}
	token, addr := testenv.FreeAddr(t), testenv.FreeAddr(t)
	tokens.env = []string{"TOKENSVC_LISTEN_HTTP=" + token, "TOKENSVC_LISTEN_ADMIN=" + testenv.FreeAddr(t),
		"TOKENSVC_CLIENTS_FILE=" + filepath.Join(root, "deploy/local/clients.yaml")}
	tokens.launch(t)
	tokens.waitReady(t)
	base := &world{tokens: "http://" + token, events: "http://" + addr}
	collection := eventsIn(base.events, "default")
	env := []string{"EVENTSVC_ISSUER=" + base.tokens, "EVENTSVC_LISTEN_HTTP=" + addr, "EVENTSVC_LISTEN_ADMIN=" + testenv.FreeAddr(t), "EVENTSVC_DATA_DIR=" + t.TempDir()}

	var first string // the version before everything
	var before []eventsv1.Event
	for round, program := range []string{old, "eventsvc", old, "eventsvc"} {
		p := &process{name: program, env: env}
		p.start(t)
		p.waitReady(t)
		var list eventsv1.EventList
		if code, err := call(t.Context(), http.DefaultClient, request{"GET", collection, base.token(t), "", nil}, &list); err != nil || code != http.StatusOK {
			t.Fatalf("list: %d %v\n%s", code, err, p.log.String())
		}
		if round == 0 {
			first = list.ResourceVersion
		}
		if diff := cmp.Diff(before, list.Items); round > 0 && diff != "" {
			t.Errorf("round %d: the events have changed (-before +after):\n%s", round, diff)
		}
		var created eventsv1.Event
		if code, err := call(t.Context(), http.DefaultClient, request{"POST", collection, base.token(t), "application/json", encode(newEvent(fmt.Sprintf("round-%d", round), "Upgraded"))}, &created); err != nil || code != http.StatusCreated {
			t.Fatalf("create: %d %v", code, err)
		}
		before = append(list.Items, created)
		for i := range before { // lists leave out what they say once
			before[i].APIVersion, before[i].Kind = "", ""
		}
		changes := watchFrom(t, http.DefaultClient, collection, first, base.token(t))
		for n := range round + 1 {
			if got, want := <-changes, fmt.Sprintf("ADDED round-%d", n); !strings.HasPrefix(got, want) {
				t.Errorf("round %d: the watch from the beginning has %q, want %q", round, got, want)
			}
		}
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Fatalf("%v\n%s", err, p.log.String())
		}
	}
}
