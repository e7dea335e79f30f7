// Package outputtest searches the output of the tests of a package, and of the code under test, for secrets, tokens,
// stored hashes and private keys. It fails the tests if it finds one.
package outputtest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// forbidden matches the secrets of the tests, right ones and wrong ones, and every token, hash and private key.
var forbidden = regexp.MustCompile(`s3cret|demo-secret|passw0rd|pa55|qu3ry|eyJ[\w-]+\.[\w-]+\.[\w-]+|\$2[aby]\$\d\d\$[./\w]{20}|PRIVATE KEY-----`)

// inner is set in the process that runs the tests.
const inner = "OUTPUT_IS_LOOKED_THROUGH"

// Main must be called by TestMain. It runs the tests in a second process, whose whole output it reads, and with -v, so
// that the output has the logs of tests that pass. Tests send logs to [testing.T.Output].
func Main(m *testing.M) {
	if os.Getenv(inner) != "" || !testsOnly() {
		os.Exit(m.Run())
	}
	os.Exit(outer())
}

// testsOnly reports whether only tests are run. The output of fuzzing and benchmarks must not be held back.
func testsOnly() bool {
	for _, arg := range os.Args[1:] {
		for _, flag := range []string{"-test.fuzz=", "-test.fuzzworker", "-test.bench=", "-test.list="} {
			if strings.HasPrefix(arg, flag) {
				return false
			}
		}
	}
	return true
}

func outer() int {
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0], append([]string{"-test.v=true"}, os.Args[1:]...)...) // a -test.v of the caller wins
	cmd.Env = append(os.Environ(), inner+"=1")
	cmd.Stdout = &out
	verbose := strings.Contains(strings.Join(os.Args[1:], " "), "-test.v")
	if verbose {
		cmd.Stdout = io.MultiWriter(&out, os.Stdout)
	}
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	for line := range strings.Lines(out.String()) {
		if !verbose && (err != nil || strings.HasPrefix(line, "coverage:")) {
			fmt.Print(line)
		}
	}
	if err != nil {
		return 1
	}
	if found := forbidden.FindIndex(out.Bytes()); found != nil {
		around := out.Bytes()[max(0, found[0]-300):min(out.Len(), found[1]+100)]
		fmt.Printf("FAIL: a secret, a token, a hash or a key has been written:\n%s\n", around)
		return 1
	}
	fmt.Println("PASS")
	return 0
}
