package keyring

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tidings.example/shared/safefile"
)

// State is a state of a key, as in the package comment.
type State string

// The states of a key.
const (
	Pending    State = "pending"     // published, signs later
	Signing    State = "signing"     // published, signs
	Retiring   State = "retiring"    // published, has signed
	Gone       State = "gone"        // no longer published: its file can be deleted
	PublicOnly State = "public only" // published; its private key is elsewhere
)

// Status describes a key in a file.
type Status struct {
	File  string
	KeyID string
	Bits  int
	State State
	From  time.Time // when it begins to sign; zero: at any time
	Until time.Time // end of its publication; zero: not known yet
}

// Inspect describes the keys under path, in the order in which they sign.
func Inspect(path string, c Config) ([]Status, error) {
	files, _, err := readFiles(path)
	if err != nil {
		return nil, err
	}
	keys, err := parseFiles(files, c.Format)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(keys, func(a, b *key) int { return a.from.Compare(b.from) })
	now, tail := time.Now(), c.Lifetime+ClockSkew
	signing, published := schedule(keys, now, tail)
	list := make([]Status, len(keys))
	for i, k := range keys {
		s := Status{File: k.file, KeyID: k.id, Bits: k.bits, From: k.from, State: Retiring}
		switch {
		case k.private == nil:
			s.State = PublicOnly
		case k == signing:
			s.State = Signing
		case k.from.After(now):
			s.State = Pending
		case !slices.Contains(published, k):
			s.State = Gone
		}
		if next := i + 1; k.private != nil && next < len(keys) {
			s.Until = keys[next].from.Add(tail)
		}
		list[i] = s
	}
	return list, nil
}

// arrival is the time in which all replicas see a new file: they look every second, or later if they are busy.
const arrival = 5 * time.Second

// AddFile makes a key and writes it into the directory. Its file name is the time at which it begins to sign: now for
// the first key, otherwise when all replicas have seen the file and all cached key sets have expired (lead). All
// replicas that see the directory use it.
func AddFile(dir string, c Config) error {
	files, _, err := readFiles(dir)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		if _, err := parseFiles(files, c.Format); err != nil {
			return err // another key would not make the directory usable
		}
	}
	private, err := rsa.GenerateKey(rand.Reader, minBits) // can take seconds on a busy machine
	if err != nil {
		return fmt.Errorf("make RSA key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("encode RSA key: %w", err)
	}
	from := time.Now().UTC()
	if len(files) > 0 {
		from = from.Add(arrival + c.lead() + time.Second - 1) // a name has whole seconds
	}
	path := filepath.Join(dir, from.Format(TimeLayout)+".pem")
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%s exists already; try again in a second", path)
	}
	if err := safefile.Write(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
		return fmt.Errorf("write signing key: %w", err)
	}
	return nil
}
