package api

import (
	"errors"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/service"
)

// levelOf is the level of a verb's requests.
func levelOf(v policy.Verb) flow.Level {
	if v&(policy.Get|policy.List) != 0 {
		return flow.Reads
	}
	return flow.Writes
}

// enter counts a request in. A read acquires its seat now, other requests when
// their body has been read.
func (s *Server) enter(c echo.Context, l flow.Level) (*flow.Seat, error) {
	req := c.Request()
	seat, err := s.admitted(l, client(req))
	if err != nil {
		return nil, err
	}
	if l == flow.Reads {
		if err := seat.Acquire(req.Context()); err != nil {
			seat.Release()
			return nil, err
		}
	}
	req = service.WithValue(req, flow.Key{}, seat)
	if l == flow.Writes {
		req.Body = flow.NewReader(req.Context(), req.Body)
	}
	c.SetRequest(req)
	return seat, nil
}

// admitted enters a flow, or returns the answer to a request that is one too many.
func (s *Server) admitted(l flow.Level, name string) (*flow.Seat, error) {
	seat, err := s.scheduler.Enter(l, name)
	if err == nil {
		return seat, nil
	}
	limit := "requests"
	if errors.Is(err, flow.ErrTooManyOfFlow) {
		limit = "client-requests"
	}
	return nil, beyond(limit, apierrors.NewTooManyRequests("too many requests are in flight, please try again", 1))
}
