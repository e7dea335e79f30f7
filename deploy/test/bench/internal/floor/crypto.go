package floor

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sync/errgroup"
)

// BcryptCost is the cost of the stored secrets in the benchmark.
const BcryptCost = 10

// Sign makes RS256 signatures with a 2048-bit key on all cores: no token
// service on this machine can issue more tokens in Go.
func Sign(d time.Duration) (*Result, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("RSA key: %w", err)
	}
	digest := sha256.Sum256([]byte("a token"))
	return onAllCores(d, func() error {
		_, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])
		return err
	})
}

// Compare compares a secret with its bcrypt hash on all cores.
func Compare(d time.Duration) (*Result, error) {
	secret := []byte("a secret of the usual length")
	hash, err := bcrypt.GenerateFromPassword(secret, BcryptCost)
	if err != nil {
		return nil, fmt.Errorf("bcrypt hash: %w", err)
	}
	return onAllCores(d, func() error { return bcrypt.CompareHashAndPassword(hash, secret) })
}

// onAllCores repeats op on every core for d, and at least once.
func onAllCores(d time.Duration, op func() error) (*Result, error) {
	parts := make([]Result, runtime.GOMAXPROCS(0))
	begun := time.Now()
	var group errgroup.Group
	for i := range parts {
		group.Go(func() error {
			for start := time.Now(); ; {
				if err := op(); err != nil {
					return err
				}
				end := time.Now()
				parts[i].Times.Add(end.Sub(start))
				parts[i].Count++
				if end.Sub(begun) >= d {
					return nil
				}
				start = end
			}
		})
	}
	err := group.Wait()
	r := &Result{Elapsed: time.Since(begun)}
	for i := range parts {
		r.Count += parts[i].Count
		r.Times.Merge(&parts[i].Times)
	}
	return r, err
}
