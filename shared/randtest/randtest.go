// Package randtest has the seeds of random tests. Each run of a test has another one, which the test prints, so that
// TEST_SEED=12345 go test -run TestName repeats it.
package randtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// variable is the environment variable with the seed of the run that is repeated.
const variable = "TEST_SEED"

// Seed returns the seed of the test, which the log of the test shows if it fails. A test with several rounds counts up
// from it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64() >> 1 // a round of a test is a sum without overflow
	if given := os.Getenv(variable); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("%s: %v: give an unsigned number", variable, err)
		}
	}
	t.Logf("%s=%d repeats this run", variable, seed)
	return seed
}

// New returns the random numbers of the test. They are for one goroutine.
func New(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}
