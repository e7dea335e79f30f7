package bearer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// fileEvery is how often a file of keys is read. Its content is compared, because the modification time of a file that
// is mounted from a Kubernetes ConfigMap does not tell.
const fileEvery = 2 * time.Second

// fileKeys are the keys of a JWK set in a file.
type fileKeys struct {
	path       string
	algorithms []string
	log        *slog.Logger
	set        atomic.Pointer[keysByID]
	data       []byte // what was read last, good or not; of newFileKeys and then of Run
}

// newFileKeys reads the file.
func newFileKeys(path string, algorithms []string, log *slog.Logger) (*fileKeys, error) {
	if len(algorithms) == 0 {
		algorithms = []string{RS256}
	}
	k := &fileKeys{path: path, algorithms: algorithms, log: log}
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("jwksFile: %w", err)
	}
	return k, nil
}

func (k *fileKeys) load() error {
	f, err := os.Open(k.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	switch {
	case err != nil:
		return err
	case bytes.Equal(data, k.data):
		return nil // a bad file is reported once
	case len(data) > maxDocument:
		return fmt.Errorf("%s has more than %d bytes", k.path, maxDocument)
	}
	k.data = data
	keys, err := parseKeys(data, k.algorithms, k.log)
	if err != nil {
		return fmt.Errorf("%s: %w", k.path, err)
	}
	if old := k.set.Load(); old != nil {
		keepUnchanged(keys, *old)
	}
	k.set.Store(&keys)
	k.log.Info("keys read", "file", k.path, "keys", keys.count())
	return nil
}

// Run reads the file when it changes, until ctx ends. While the file cannot be used, the last keys stay in use. It
// returns nil.
func (k *fileKeys) Run(ctx context.Context) error {
	tick := time.NewTicker(fileEvery)
	defer tick.Stop()
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := k.load()
		if err != nil && err.Error() != failed {
			k.log.Error("keys not read, the last ones stay in use", "error", err)
			failed = err.Error()
		}
		if err == nil {
			failed = ""
		}
	}
}

// Key implements [KeySet].
func (k *fileKeys) Key(_ context.Context, kid, alg string) (Key, error) {
	return k.set.Load().find(kid, alg)
}

// Ready returns nil: the file was read before.
func (k *fileKeys) Ready(context.Context) error { return nil }
