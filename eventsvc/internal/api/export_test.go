package api

import "tidings.example/eventsvc/internal/api/events"

// ReadNothingAhead takes all room that lists have to be read ahead in, beyond a
// buffer each, and returns what gives it back.
func (s *Server) ReadNothingAhead() (undo func()) {
	s.prefetch.Extra.Store(events.MaxExtra)
	return func() { s.prefetch.Extra.Store(0) }
}

// Ahead is how many buffers lists have, beyond one each.
func (s *Server) Ahead() int { return int(s.prefetch.Extra.Load()) }

// Routes returns method and path of everything that is served, with parameters as :name.
func (s *Server) Routes() (all []string) {
	for _, r := range s.echo.Routes() {
		all = append(all, r.Method+" "+r.Path)
	}
	return all
}
