package target

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
)

// Profile takes a CPU profile of the service with an admin listener, and writes it to a file.
func Profile(ctx context.Context, admin string, seconds int, file string) error {
	profile, err := download(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", admin, seconds))
	if err != nil {
		return err
	}
	return os.WriteFile(file, profile, 0o644)
}

var keyFetches = regexp.MustCompile(`(?m)^jwks_fetches_total\{.*\} (\S+)$`)

// KeyFetches returns how often eventsvc has fetched the keys so far.
func (s *Services) KeyFetches(ctx context.Context) (float64, error) {
	text, err := download(ctx, s.EventsAdmin+"/metrics")
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, line := range keyFetches.FindAllSubmatch(text, -1) {
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
