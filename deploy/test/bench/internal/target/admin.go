package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"
)

// Profile takes a CPU profile of the service with an admin listener, and writes it to a file.
func Profile(ctx context.Context, admin string, seconds int, file string) error {
	profile, err := download(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", admin, seconds))
	if err != nil {
		return err
	}
	return os.WriteFile(file, profile, 0o644)
}

// BeginProfile is Profile in the background, of at least a second; the returned function waits for it.
func BeginProfile(ctx context.Context, admin string, d time.Duration, file string) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- Profile(ctx, admin, max(int(d/time.Second), 1), file) }()
	return func() error { return <-done }
}

// KeyFetches returns how often eventsvc has fetched the keys so far.
func (s *Services) KeyFetches(ctx context.Context) (float64, error) {
	return s.metric(ctx, `jwks_fetches_total\{.*\}`)
}

// Held returns how many events eventsvc holds.
func (s *Services) Held(ctx context.Context) (float64, error) {
	return s.metric(ctx, "store_events")
}

// Transactions returns how many transactions of writes eventsvc has begun so far, and how many writes they had.
func (s *Services) Transactions(ctx context.Context) (n, writes float64, err error) {
	n, err1 := s.metric(ctx, "store_database_commit_writes_count")
	writes, err2 := s.metric(ctx, "store_database_commit_writes_sum")
	return n, writes, errors.Join(err1, err2)
}

// metric returns the sum of the series of eventsvc that an expression matches.
func (s *Services) metric(ctx context.Context, series string) (total float64, err error) {
	text, err := download(ctx, s.EventsAdmin+"/metrics")
	if err != nil {
		return 0, err
	}
	for _, line := range regexp.MustCompile("(?m)^"+series+` (\S+)$`).FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(line[1]), 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// download returns what a URL answers.
func download(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}
