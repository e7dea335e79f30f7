package certtest_test

import (
	"crypto/rsa"
	"testing"

	"tidings.example/shared/certtest"
)

// TestRSA: the keys of a test and of its subtests differ.
func TestRSA(t *testing.T) {
	t.Parallel()
	keys := []*rsa.PrivateKey{certtest.RSA(t), certtest.RSA(t)}
	t.Run("part", func(t *testing.T) { keys = append(keys, certtest.RSA(t)) })
	if keys[0].Equal(keys[1]) || keys[0].Equal(keys[2]) || keys[1].Equal(keys[2]) {
		t.Error("a test has a key twice")
	}
}
