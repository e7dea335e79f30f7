package queries

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/search"
)

// reading is the path that says what a text means as a search. It asks nothing about events.
var reading = &endpoint{
	name: "search", summary: "What a text means as a search: its terms, and the tree by which an event matches; or what is wrong with it.", parameters: []string{"text"},
}

type searchAnswer struct {
	Terms   []search.Part `json:"terms"`
	Tree    *search.Tree  `json:"tree,omitempty"`
	Mistake string        `json:"mistake,omitempty"` // why there are no terms
}

// serveSearch answers whoever has a token: it tells nothing of events.
func (s *Service) serveSearch(c echo.Context) error {
	given, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return badRequest("", "the query cannot be read: %v", err)
	}
	if _, err := access.Caller(c.Request().Context()); err != nil {
		return err
	}
	if err := reading.check(given); err != nil {
		return err
	}
	var a searchAnswer
	if a.Terms, a.Tree, err = query.ReadSearch(given.Get("text")); err != nil {
		a.Mistake = err.Error()
	}
	b, err := appendJSON(nil, a)
	if err != nil {
		return err
	}
	return s.IO.Writer(c, http.StatusOK, mediaJSON).Send(append(b, '\n'))
}
