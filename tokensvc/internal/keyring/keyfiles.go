package keyring

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// TimeLayout is the layout of the time in the name of a key file, from which its key signs, for example
// 20261121T090000Z.pem. A key in a file without such a name may sign at any time.
const TimeLayout = "20060102T150405Z"

// fileTime ignores the rest of the name, so that operators can add a remark.
var fileTime = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z`)

// Reload reads the key files again. If they cannot be used, it returns an error and the keys stay as they were.
func (r *Keyring) Reload() error {
	if r.c.Path == "" {
		return nil
	}
	return r.reload(true)
}

func (r *Keyring) reload(force bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	files, seen, err := readFiles(r.c.Path)
	if err != nil {
		return err
	}
	if seen != r.seen || force {
		r.seen = seen // report a bad set of files once, not every second
		keys, err := parseFiles(files, r.c.Format)
		if err != nil {
			return err
		}
		r.keys = succeed(r.keys, keys, r.c.Now().Add(r.c.lead()))
	}
	return r.advance()
}

// succeed applies the states of the package comment to a key file without a time in its name that was replaced: the new
// key is pending first, and the old key is kept in memory as long as it is needed. A key whose file name has a time is
// removed together with its file.
func succeed(before, found []*key, next time.Time) []*key {
	keys := found
	for _, k := range found {
		if !k.untimed || k.private == nil || len(before) == 0 {
			continue
		}
		k.from = next
		if i := indexOf(before, k.id); i >= 0 {
			k.from = before[i].from
		}
	}
	for _, old := range before {
		if old.untimed && old.private != nil && indexOf(found, old.id) < 0 {
			keys = append(keys, old)
		}
	}
	return keys
}

func indexOf(keys []*key, id string) int {
	return slices.IndexFunc(keys, func(k *key) bool { return k.id == id })
}

// file is one PEM file as read.
type file struct {
	path string
	data []byte
}

// readFiles returns the *.pem files of a directory, or the one file, and a fingerprint of their names and contents.
func readFiles(path string) ([]file, string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", fmt.Errorf("read signing keys: %w", err)
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(path, "*.pem")); err != nil {
			return nil, "", fmt.Errorf("read signing keys: %w", err)
		}
	}
	sum := sha256.New()
	var files []file
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, "", fmt.Errorf("read signing keys: %w", err)
		}
		files = append(files, file{path: p, data: data})
		fmt.Fprintf(sum, "%q %d ", p, len(data))
		sum.Write(data)
	}
	return files, string(sum.Sum(nil)), nil
}

// parseFiles parses the keys of the files. It refuses a set of files that does not determine which key signs.
func parseFiles(files []file, f TokenForm) ([]*key, error) {
	var keys []*key
	byID := map[string]string{}
	starts := map[time.Time]string{}
	for _, in := range files {
		found, err := parseFile(in, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.path, err)
		}
		for _, k := range found {
			if other, twice := byID[k.id]; twice {
				return nil, fmt.Errorf("%s and %s hold the same key; remove one", other, in.path)
			}
			byID[k.id] = in.path
			if k.private == nil {
				continue
			}
			if other, twice := starts[k.from]; twice {
				return nil, fmt.Errorf("%s and %s begin to sign at the same time; name them by their times, as in %s.pem", other, in.path, TimeLayout)
			}
			starts[k.from] = in.path
		}
		keys = append(keys, found...)
	}
	if len(starts) == 0 {
		return nil, errors.New("no private RSA key found in the *.pem files; make one with `tokensvc keys rotate`")
	}
	return keys, nil
}

func parseFile(in file, f TokenForm) ([]*key, error) {
	var from time.Time
	if stamp := fileTime.FindString(filepath.Base(in.path)); stamp != "" {
		var err error
		if from, err = time.Parse(TimeLayout, stamp); err != nil {
			return nil, fmt.Errorf("the name does not begin with a time: %w", err)
		}
	}
	var keys []*key
	for rest := in.data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		private, public, err := parseBlock(block)
		if err != nil {
			return nil, err
		}
		k, err := newKey(private, public, from, f)
		if err != nil {
			return nil, err
		}
		k.file, k.untimed = in.path, from.IsZero()
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.New("holds no PEM block")
	}
	return keys, nil
}

// parseBlock reads PKCS #8, PKCS #1 and public keys; private is nil for the latter.
func parseBlock(block *pem.Block) (private *rsa.PrivateKey, public *rsa.PublicKey, err error) {
	var parsed any
	switch block.Type {
	case "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		if strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return nil, nil, errors.New("the key is encrypted; store it without a passphrase, readable by this service only")
		}
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PUBLIC KEY":
		parsed, err = x509.ParsePKIXPublicKey(block.Bytes)
	default:
		return nil, nil, fmt.Errorf("PEM block %q is not a key that can be used; give PRIVATE KEY, RSA PRIVATE KEY or PUBLIC KEY", block.Type)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("PEM block %q: %w", block.Type, err)
	}
	switch k := parsed.(type) {
	case *rsa.PrivateKey:
		return k, &k.PublicKey, nil
	case *rsa.PublicKey:
		return nil, k, nil
	}
	return nil, nil, fmt.Errorf("PEM block %q holds no RSA key; RS256 needs one", block.Type)
}
