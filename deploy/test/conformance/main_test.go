package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tidings.example/shared/pgtest"
)

// tools are the programs under test, each built once, when first needed.
type tools struct {
	eventsvc, kubectl func() (string, error)
	issuer            *issuer
}

// run is what all tests of one run share. It is set once, before any test.
var run tools

// engine is the store of every server: with postgres, each has a database of its own.
var engine = flag.String("store", "bolt", "the engine of the servers: bolt or postgres")

// replicas is how many servers share a database. The requests of a test go to them in turn.
var replicas = flag.Int("replicas", 1, "with -store=postgres: 1, or 2 replicas that answer requests in turn")

func TestMain(m *testing.M) {
	flag.Parse()
	if *replicas > 1 && *engine != "postgres" {
		fmt.Fprintln(os.Stderr, "-replicas=2 needs -store=postgres")
		os.Exit(2)
	}
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		// These tests wait more than they work.
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	iss, err := newIssuer()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer iss.Close()
	run.issuer = iss
	run.eventsvc = sync.OnceValues(func() (string, error) { return build(dir, "eventsvc", "../../../eventsvc") })
	run.kubectl = sync.OnceValues(func() (string, error) { return build(dir, "kubectl", "../e2e/kubectl", kubectlVersion) })
	if *engine == "postgres" {
		return pgtest.Run(m.Run)
	}
	return m.Run()
}

// kubectlVersion is what releases of kubectl are linked with; without it
// "kubectl version" fails at parsing its own.
const kubectlVersion = "-X k8s.io/component-base/version.gitVersion=v1.37.2"

// build compiles the program of a folder, in that folder's own module.
func build(dir, name, source string, linkerFlags ...string) (string, error) {
	out := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-ldflags", strings.Join(linkerFlags, " "), "-o", out, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, text)
	}
	return out, nil
}

// missing ends a test for which this machine lacks a program. A skip that
// nobody sees is a hole, so CI fails instead.
func missing(t *testing.T, what, remedy string) {
	t.Helper()
	text := fmt.Sprintf("%s is not installed: %s", what, remedy)
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Skip(text)
}
