package target

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tidings.example/deploy/test/bench/internal/proc"
)

// Mirror starts a mirror that copies the events of these services to others. It has tokens of its own start, so it must
// end within their life.
func (s *Services) Mirror(ctx context.Context, to *Services) (*proc.Process, error) {
	from, err1 := s.FetchToken(ctx, 0)
	token, err2 := to.FetchToken(ctx, 0)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(to.Dir, "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],\n"+
		"clusters: [{name: c, cluster: {server: 'http://%s'}}], users: [{name: u, user: {token: %s}}]}\n", s.EventsAddr, from)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := to.command("eventsvc", []string{"mirror", "--kubeconfig=" + kubeconfig, "--cluster=bench", "--server=http://" + to.EventsAddr.String(), "--listen-admin="})
	cmd.Env = append(os.Environ(), "EVENTSVC_TOKEN="+token)
	return proc.Start(filepath.Join(to.Dir, "mirror.log"), cmd)
}

// AwaitHeld waits until eventsvc holds so many events.
func (s *Services) AwaitHeld(ctx context.Context, events int) error {
	for {
		held, err := s.Held(ctx)
		if err != nil || held >= float64(events) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("eventsvc holds %.0f of %d events: %w", held, events, ctx.Err())
		case <-time.After(time.Second / 2): // each answer takes a millisecond of what is measured
		}
	}
}
