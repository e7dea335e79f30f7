package api

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
)

// A watch outlives the request's decision, so it is decided on again: when the
// policy changes, and all the time for keys. What is no longer allowed ends as
// any watch ends, cleanly and behind a bookmark; the client's next request is
// told why.

// lookAgain is how often the keys of open watches are looked up.
const lookAgain = time.Second

// admit counts a watch in. Its context ends when the watch has to: after a
// time, some time after its token, when it is no longer allowed, or with the
// request.
func (s *stream) admit(c echo.Context, limit time.Duration) error {
	req := c.Request()
	caller, ok := bearer.FromContext(req.Context())
	if !ok {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	if !caller.Expires.IsZero() {
		limit = min(limit, caller.Expires.Add(s.WatchAfterExpiry).Sub(s.Now()))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), limit)
	o := &openWatch{caller: caller, namespace: c.Param("namespace"), end: cancel}
	done, err := s.watches.add(client(req), o)
	if err != nil {
		cancel()
		return err
	}
	if !s.allowed(o) { // the policy has changed between the decision and the count
		cancel()
	}
	attached := context.AfterFunc(req.Context(), cancel)
	s.ctx, s.cancel, s.attached = ctx, cancel, attached
	s.atEnd = append(s.atEnd, func() { attached(); done(); cancel() })
	return nil
}

func (s *Server) allowed(w *openWatch) bool {
	return s.Policy().Decide(w.caller, policy.Watch, w.namespace).Allowed
}

// PolicyChanged ends the watches that are no longer allowed.
func (s *Server) PolicyChanged() {
	ended := 0
	for _, w := range s.watches.all() {
		if !s.allowed(w) {
			w.end()
			ended++
		}
	}
	if ended > 0 {
		s.log.Info("watches ended that the policy no longer allows", "watches", ended)
	}
}

// Run ends the watches whose token was signed with a key that has since been
// withdrawn, until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.endWithdrawn(ctx)
		}
	}
}

// endWithdrawn looks each key up once, however many watches depend on it.
func (s *Server) endWithdrawn(ctx context.Context) {
	if s.Withdrawn == nil {
		return
	}
	type key struct{ issuer, id string }
	gone, ended := map[key]bool{}, 0
	for _, w := range s.watches.all() {
		k := key{w.caller.Issuer, w.caller.KeyID}
		if _, known := gone[k]; !known {
			gone[k] = s.Withdrawn(ctx, w.caller)
		}
		if gone[k] {
			w.end()
			ended++
		}
	}
	if ended > 0 {
		s.log.Info("watches ended whose tokens were signed with a withdrawn key", "watches", ended)
	}
}
