package randtest_test

import (
	"fmt"
	"testing"

	"tidings.example/shared/randtest"
)

// logged is a test whose log is looked at.
type logged struct {
	testing.TB
	log, failure string
}

func (*logged) Helper() {}

func (l *logged) Logf(format string, args ...any) { l.log += fmt.Sprintf(format, args...) }

func (l *logged) Fatalf(format string, args ...any) { l.failure += fmt.Sprintf(format, args...) }

// TestSeed: a run prints its seed and can be given it; others have another one.
func TestSeed(t *testing.T) {
	t.Setenv("TEST_SEED", "")
	first, second := &logged{TB: t}, &logged{TB: t}
	seed := randtest.Seed(first)
	if other := randtest.Seed(second); seed == other || first.log != fmt.Sprintf("TEST_SEED=%d repeats this run", seed) {
		t.Errorf("seeds %d and %d, log %q", seed, other, first.log)
	}
	t.Setenv("TEST_SEED", fmt.Sprint(seed))
	if again, a, b := randtest.Seed(t), randtest.New(t), randtest.New(t); again != seed || a.Uint64() != b.Uint64() {
		t.Errorf("seed %d was given, and %d is used", seed, again)
	}
	t.Setenv("TEST_SEED", "one")
	if randtest.Seed(second); second.failure == "" {
		t.Error(`"one" is taken as a seed`)
	}
}
