package aggregate

import (
	"log/slog"
	"sync/atomic"

	"tidings.example/eventsvc/internal/client"
)

// side is a server that this one asks. Its failures are logged when they begin and when they end.
type side struct {
	name    string
	log     *slog.Logger
	failing atomic.Bool
}

// failed notes the outcome of a request; nil is a success.
func (s *side) failed(err error) {
	switch {
	case err == nil && s.failing.Swap(false):
		s.log.Info("answers again", "server", s.name)
	case err != nil && !s.failing.Swap(true):
		s.log.Error("does not answer, requests that need it are refused", "server", s.name, "error", err, "hint", client.Hint(err))
	}
}
