package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/shared/service"
)

// Remote is the [Store] of a running service.
type Remote struct {
	address string // of its admin listener
	token   string
}

var _ Store = (*Remote)(nil)

// NewRemote returns the store of the service with this data directory and admin
// listener.
func NewRemote(dataDir, address string) (*Remote, error) {
	path := filepath.Join(dataDir, tokenName)
	token, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the service that has the files open accepts only callers that can read %s: %w; run this command as its user", path, err)
	}
	at, err := service.LocalAddress(address)
	if err != nil {
		return nil, fmt.Errorf("the service has the files open, and --listen-admin %q is no address to ask it at: %w", address, err)
	}
	return &Remote{at, string(token)}, nil
}

// ask sends a request. If it returns no error, the status is 200 and the caller must
// close the body.
func (r *Remote) ask(ctx context.Context, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.address+Path+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no service answers at --listen-admin %s: %w; name the listener of the service that has the files open, or stop it",
			r.address, errors.Unwrap(err))
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the service at %s: %s", r.address, strings.TrimSpace(string(text)))
	}
	return resp, nil
}

// CheckToken asks the service which of its rules refuses a token.
func (r *Remote) CheckToken(ctx context.Context, request TokenRequest) (*TokenReport, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	resp, err := r.ask(ctx, "token", body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	report := new(TokenReport)
	if err := json.NewDecoder(resp.Body).Decode(report); err != nil {
		return nil, fmt.Errorf("the service at %s: %w", r.address, err)
	}
	return report, nil
}

// Config writes the settings that the service was started with.
func (r *Remote) Config(ctx context.Context, out io.Writer) error {
	resp, err := r.ask(ctx, "config", nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(out, resp.Body)
	return err
}

// copy writes a long answer to the writer that begin returns. The total is in a header.
func (r *Remote) copy(ctx context.Context, path, totalHeader string, open Open) error {
	resp, err := r.ask(ctx, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	revision, err := strconv.ParseUint(resp.Header.Get(headerRevision), 10, 64)
	if err != nil {
		return fmt.Errorf("the service at %s does not say of which revision its answer is", r.address)
	}
	total, _ := strconv.ParseInt(resp.Header.Get(totalHeader), 10, 64) // used for the progress only
	if _, err := io.Copy(open(revision, total), resp.Body); err != nil {
		return fmt.Errorf("the service at %s broke off, its log says why: %w", r.address, err)
	}
	return nil
}

// Backup implements [Store].
func (r *Remote) Backup(ctx context.Context, open Open) error {
	return r.copy(ctx, "backup", headerBytes, open)
}

// Export implements [Store].
func (r *Remote) Export(ctx context.Context, after uint64, open Open) error {
	return r.copy(ctx, "export?after="+strconv.FormatUint(after, 10), headerLines, open)
}

// Check implements [Store].
func (r *Remote) Check(ctx context.Context, progress store.Progress) (*store.Report, error) {
	report := new(store.Report)
	return report, r.follow(ctx, "check", nil, progress, report)
}

// Compact implements [Store].
func (r *Remote) Compact(ctx context.Context, compress bool, progress store.Progress) (*Compaction, error) {
	c := new(Compaction)
	return c, r.follow(ctx, "compact?compress="+strconv.FormatBool(compress), nil, progress, c)
}

// Usage implements [Store].
func (r *Remote) Usage(ctx context.Context, maxBytes int64, rulesFile []byte) (*usage.Breakdown, error) {
	b := new(usage.Breakdown)
	return b, r.follow(ctx, "usage?maxBytes="+strconv.FormatInt(maxBytes, 10), rulesFile, nil, b)
}

// Import implements [Store].
func (r *Remote) Import(ctx context.Context, arrivals []Arrival) (sum Imported, err error) {
	body, err := encodeArrivals(arrivals)
	if err == nil {
		err = r.follow(ctx, "import", body, nil, &sum)
	}
	return sum, err
}

// follow reads an answer in lines, reports its progress, and decodes its result.
func (r *Remote) follow(ctx context.Context, path string, body []byte, progress store.Progress, result any) error {
	resp, err := r.ask(ctx, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	for in := bufio.NewReader(resp.Body); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("the service at %s broke off, its log says why: %w", r.address, err)
		}
		var t told
		if err := json.Unmarshal(line, &t); err != nil {
			return fmt.Errorf("the service at %s: %w", r.address, err)
		}
		if len(t.Result) > 0 {
			_, _ = io.Copy(io.Discard, in) // ends when the service accepts other work
			err = json.Unmarshal(t.Result, result)
		}
		switch {
		case t.Error != "":
			return fmt.Errorf("the service at %s: %s", r.address, t.Error)
		case err != nil || len(t.Result) > 0:
			return err
		case progress != nil:
			progress(t.Done, t.Total)
		}
	}
}
