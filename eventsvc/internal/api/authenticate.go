package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/loki"
	"tidings.example/eventsvc/internal/api/resource"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/basic"
	"tidings.example/shared/bearer"
)

// basicChallenge asks for a user and a password (RFC 7617 section 2.1).
const basicChallenge = `Basic realm="eventsvc", charset="UTF-8"`

// takesBasic reports whether a path is for machines that may send a user and a password. Those of Kubernetes are not,
// and nothing can be written below these.
func takesBasic(path string) bool {
	return httpio.Under(path, loki.Folder) || httpio.Under(path, queriesFolder) || path == resource.MCP
}

// authenticate finds the caller of a request by its token, or by a user and a password where they are taken.
func (s *Server) authenticate(c echo.Context) error {
	r := c.Request()
	metadata := s.resource.Metadata(r.URL.Path)
	user, password, ok := r.BasicAuth()
	if !ok || !takesBasic(r.URL.Path) || len(r.Header["Authorization"]) != 1 || s.basic == nil && password == "" {
		return bearer.Authenticate(c, s.verify, metadata)
	}
	audit.Authenticated(r.Context(), "basic")
	if s.basic == nil || isToken(password) {
		caller, err := s.verify(r.Context(), password)
		return bearer.Admit(c, caller, err, metadata)
	}
	caller, err := s.basic(r.Context(), user, password, s.source(r))
	if err = bearer.Admit(c, caller, err, metadata); bearer.Challenge(err, "") != "" {
		c.Response().Header().Add(echo.HeaderWWWAuthenticate, basicChallenge)
	}
	return err
}

// isToken reports whether a password is a signed token (RFC 7515 section 7.1): three parts of base64url, the first of
// which is a JSON object.
func isToken(password string) bool {
	parts := strings.Split(password, ".")
	if len(parts) != 3 {
		return false
	}
	for _, part := range parts {
		if _, err := base64.RawURLEncoding.DecodeString(part); err != nil {
			return false
		}
	}
	header, _ := base64.RawURLEncoding.DecodeString(parts[0])
	var object map[string]json.RawMessage
	return json.Unmarshal(header, &object) == nil && object != nil
}

// busy returns the answer to a request whose password could not be checked now; nil if err is something else.
func busy(err error) error {
	later, ok := errors.AsType[*basic.BusyError](err)
	if !ok {
		return nil
	}
	seconds := max(1, int(later.RetryAfter.Seconds()))
	if later.Status == http.StatusTooManyRequests {
		return httpio.Beyond("basic", apierrors.NewTooManyRequests("the password was not checked: too many wrong ones were tried, or the token service asks to wait", seconds))
	}
	answer := apierrors.NewServiceUnavailable("the password cannot be checked at present: the token service does not answer, or too many ask it, please try again")
	answer.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)} //nolint:gosec // at most an hour
	return httpio.Beyond("basic", answer)
}
