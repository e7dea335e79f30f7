package bearer

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"tidings.example/shared/livefile"
)

// fileKeys are the keys of a JWK set in a file, which Run follows.
type fileKeys struct {
	*livefile.File
	set atomic.Pointer[keysByID]
}

// newFileKeys reads the file.
func newFileKeys(path string, algorithms []string, log *slog.Logger) (k *fileKeys, err error) {
	if len(algorithms) == 0 {
		algorithms = []string{RS256}
	}
	k = &fileKeys{}
	if k.File, err = livefile.Open(livefile.Config{Path: path, MaxBytes: maxDocument, Log: log, Apply: func(data []byte) error {
		keys, err := parseKeys(data, algorithms, log)
		if err != nil {
			return err
		}
		if old := k.set.Load(); old != nil {
			keepUnchanged(keys, *old)
		}
		k.set.Store(&keys)
		log.Info("keys read", "file", path, "keys", keys.count())
		return nil
	}}); err != nil {
		return nil, fmt.Errorf("jwksFile: %w", err)
	}
	return k, nil
}

// Key implements [KeySet].
func (k *fileKeys) Key(_ context.Context, kid, alg string) (Key, error) {
	return k.set.Load().find(kid, alg)
}

// Ready returns nil: the file was read before.
func (k *fileKeys) Ready(context.Context) error { return nil }
