package workload

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"tidings.example/deploy/test/bench/internal/target"
)

// ReplayedChanges is how many changes a replay reads.
const ReplayedChanges = 100_000

// Replay returns a function that watches all events from the first revision on, and reads the first changes.
func Replay(ctx context.Context, s *target.Services) (replay func() error, err error) {
	token, err := s.FetchToken(ctx, 0)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.EventsAddr.String()+"/apis/events.k8s.io/v1/events?watch=1&resourceVersion=1", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return func() error {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		lines := bufio.NewReaderSize(resp.Body, 1<<20)
		for n := 0; n < ReplayedChanges && err == nil; n++ {
			var line []byte
			if line, err = lines.ReadSlice('\n'); err == nil && !bytes.Contains(line, []byte(`"ADDED"`)) {
				err = fmt.Errorf("no change: %.300s", line)
			}
		}
		return errors.Join(err, resp.Body.Close())
	}, nil
}
