package oauth

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// writeDocument sends a published document, or 304 to a client that has it already (RFC 9110 section 13.1.2).
func writeDocument(c echo.Context, body []byte, etag string, maxAge time.Duration) error {
	h := c.Response().Header()
	h.Set("ETag", etag)
	h.Set(echo.HeaderCacheControl, "public, max-age="+strconv.Itoa(int(maxAge/time.Second)))
	h.Set(echo.HeaderAccessControlAllowOrigin, "*") // public by nature
	if matchesETag(c.Request().Header.Values("If-None-Match"), etag) {
		return c.NoContent(http.StatusNotModified)
	}
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(body))) // HEAD has it too
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
}

func matchesETag(given []string, etag string) bool {
	for _, list := range given {
		for candidate := range strings.SplitSeq(list, ",") {
			candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
			if candidate == etag || candidate == "*" {
				return true
			}
		}
	}
	return false
}

// handleJWKS publishes the keys (RFC 7517 section 5).
func (s *Server) handleJWKS(c echo.Context) error {
	set := s.c.Keys.Published()
	return writeDocument(c, set.Body, set.ETag, set.MaxAge)
}

// handleMetadata publishes the authorization server's metadata (RFC 8414 section 3).
func (s *Server) handleMetadata(c echo.Context) error {
	return writeDocument(c, s.metadata.body, s.metadata.etag, metadataMaxAge)
}
