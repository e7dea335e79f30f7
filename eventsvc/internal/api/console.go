package api

import (
	"net/http"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/console"
)

// serveConsole serves the console, which needs no token, and leads browsers there from /. It
// reports whether it has answered.
func (s *Server) serveConsole(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case httpio.Under(r.URL.Path, console.Folder):
		prepare(w.Header())
		s.console.ServeHTTP(w, r)
		return true
	case r.URL.Path == "/" && r.Method == http.MethodGet:
		w.Header().Set("Vary", "Accept")
		if prefersPage(r) {
			prepare(w.Header())
			w.Header().Set("Location", console.Folder+"/")
			w.WriteHeader(http.StatusFound)
			return true
		}
	}
	return false
}

// prefersPage reports whether a client would rather have a page than the index of paths,
// as browsers do. Clients of the API accept anything, or JSON.
func prefersPage(r *http.Request) bool {
	const page, index = "page", "index"
	return httpio.Preferred(r.Header.Get("Accept"), map[string]string{
		"text/html": page, "application/json": index, "application/*": index, "*/*": index,
	}) == page
}
