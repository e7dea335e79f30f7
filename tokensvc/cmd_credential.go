package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tidings.example/shared/tokenclient"
)

type credential struct {
	tokenSource `embed:""`
	CacheDir    string `help:"Directory that keeps tokens between calls (default: tokensvc in the user's cache directory)." placeholder:"DIR"`
}

// Help is shown below the settings.
func (*credential) Help() string {
	return `For the "exec" section of a kubeconfig user:

    exec:
      apiVersion: client.authentication.k8s.io/v1
      interactiveMode: Never
      command: tokensvc
      args: [credential, --token-url, "http://127.0.0.1:9000/oauth2/token", --client-id, demo, --client-secret-file, secret.txt]

Instead of --client-secret-file, it takes --client-key-file or --assertion-file.`
}

// credentialMargin is how long before its end a token is replaced, so that it does not expire while kubectl sends it.
const credentialMargin = 10 * time.Second

// execCredential is what kubectl reads (client.authentication.k8s.io/v1).
type execCredential struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Status     execCredentialStatus `json:"status"`
}

type execCredentialStatus struct {
	Token      string    `json:"token"`
	Expiration time.Time `json:"expirationTimestamp"`
}

// Run prints a credential for kubectl.
func (c *credential) Run(ctx context.Context, std stdio) error {
	if err := c.check(); err != nil {
		return err
	}
	f, err := c.cached(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(std.out).Encode(execCredential{
		APIVersion: "client.authentication.k8s.io/v1", Kind: "ExecCredential",
		Status: execCredentialStatus{Token: f.AccessToken, Expiration: f.Expires.Add(-credentialMargin).UTC().Truncate(time.Second)},
	})
}

// cached returns the token of an earlier call while it is usable, and a new one otherwise. A file lock makes concurrent
// calls share one request. If the cache cannot be written, every call fetches a token.
func (c *credential) cached(ctx context.Context) (*tokenclient.Token, error) {
	file, err := c.openCache(ctx)
	if errors.Is(err, errBusy) {
		return nil, err
	}
	if err != nil {
		return c.fetch(ctx)
	}
	defer file.Close() // and unlock
	var f tokenclient.Token
	if err := json.NewDecoder(file).Decode(&f); err == nil && c.usable(ctx, f) {
		return &f, nil
	}
	fresh, err := c.fetch(ctx)
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(fresh)
	if err != nil {
		return nil, fmt.Errorf("encode token: %w", err)
	}
	if _, err := file.WriteAt(content, 0); err != nil || file.Truncate(int64(len(content))) != nil {
		_ = os.Remove(file.Name()) // do not keep half a token; the next call creates the file again
	}
	return fresh, nil
}

// errBusy reports that a call has waited for the token of another one for all of --timeout.
var errBusy = errors.New("other calls for the same token are waiting for the endpoint too; --timeout waits longer")

// lockEvery is how often a call tries to take the lock.
const lockEvery = 20 * time.Millisecond

// openCache opens the cache file of this token source, which only its owner can read, and waits for its lock.
func (c *credential) openCache(ctx context.Context) (*os.File, error) {
	dir := c.CacheDir
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(base, "tokensvc")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	name := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", c.TokenURL, c.ClientID, c.ClientSecretFile+c.ClientKeyFile+c.AssertionFile))
	file, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%x.json", name[:12])), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := c.lock(ctx, file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (c *credential) lock(ctx context.Context, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return errBusy
		case <-time.After(lockEvery):
		}
	}
}

// usable reports whether a cached token has time left and its key is still published: after a restart, tokensvc may
// have a new key, and tokens of the old one are refused. If the key set cannot be fetched in time, the token counts as
// usable.
func (c *credential) usable(ctx context.Context, f tokenclient.Token) bool {
	if time.Until(f.Expires) <= 2*credentialMargin {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout/4)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.TokenURL, "/token")+"/jwks", nil)
	if err != nil {
		return false
	}
	hc, err := c.httpClient()
	if err != nil {
		return false
	}
	resp, err := hc.Do(req)
	if err != nil {
		return true
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 512<<10))
	if err != nil {
		return true
	}
	header, _, err := decodeToken(f.AccessToken)
	kid, _ := header["kid"].(string)
	return resp.StatusCode == http.StatusOK && err == nil && strings.Contains(string(body), `"`+kid+`"`)
}
