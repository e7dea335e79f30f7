package session

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidings.example/shared/safefile"
)

// maxEnded is how many ended sessions are known at a time. Only people who are signed in can end one.
const maxEnded = 100_000

// Files is the [Keeper] of a server without a database: a folder with the secret, and with the sessions that have
// ended.
type Files struct {
	dir string

	mu    sync.Mutex
	ended map[string]time.Time // until when each must be known
}

var _ Keeper = (*Files)(nil)

// NewFiles returns the keeper of a folder, which it makes.
func NewFiles(dir string) (*Files, error) {
	if err := safefile.MkdirAll(dir); err != nil {
		return nil, err
	}
	f := &Files{dir: dir, ended: map[string]time.Time{}}
	file, err := os.Open(f.endedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		id, until, _ := strings.Cut(lines.Text(), " ")
		if seconds, err := strconv.ParseInt(until, 10, 64); err == nil {
			f.ended[id] = time.Unix(seconds, 0)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	f.forget()
	return f, safefile.Write(f.endedFile(), f.text())
}

func (f *Files) endedFile() string { return filepath.Join(f.dir, "ended") }

// Secret returns the secret of the folder, and makes it when it is first asked for.
func (f *Files) Secret(context.Context) ([]byte, error) {
	name := filepath.Join(f.dir, "secret")
	secret, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		secret = make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
		err = safefile.Write(name, secret)
	}
	if err == nil && len(secret) < 32 {
		err = fmt.Errorf("%s has %d bytes, and at least 32 are needed: remove it, and everybody signs in again", name, len(secret))
	}
	return secret, err
}

// EndSession notes that a session has ended. The note is on the disk when it returns.
func (f *Files) EndSession(_ context.Context, id string, until time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ended) >= maxEnded {
		if f.forget(); len(f.ended) >= maxEnded {
			return fmt.Errorf("%d sessions have ended within %v, and no more can be noted", maxEnded, Life)
		}
	}
	f.ended[id] = until
	file, err := os.OpenFile(f.endedFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %d\n", id, until.Unix())
	return errors.Join(err, file.Close(), safefile.Sync(f.endedFile()))
}

// SessionEnded reports whether a session has ended.
func (f *Files) SessionEnded(_ context.Context, id string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ended := f.ended[id]
	return ended, nil
}

// forget forgets sessions that can no longer be resumed anyway.
func (f *Files) forget() {
	for id, until := range f.ended {
		if time.Now().After(until) {
			delete(f.ended, id)
		}
	}
}

func (f *Files) text() []byte {
	var b strings.Builder
	for id, until := range f.ended {
		fmt.Fprintf(&b, "%s %d\n", id, until.Unix())
	}
	return []byte(b.String())
}
