package api

import (
	"slices"

	"tidings.example/eventsvc/internal/flow"
)

// Room is the room of an answer to a client, see [access.Client].
func (s *Server) Room(client string) *flow.Room { return s.guard.Room(client) }

// Routes returns method and path of everything that is served, with parameters as :name.
func (s *Server) Routes() (all []string) {
	for _, r := range slices.Concat(s.echo.Routes(), s.loki.Routes()) {
		all = append(all, r.Method+" "+r.Path)
	}
	return all
}
