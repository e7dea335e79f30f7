package bearer

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Error is why a request is refused. Reason is one of few fixed texts and holds nothing of the token. It is for logs and
// metrics. Only with code invalid_request, where no token was looked at, is it told to the caller: with any other code it
// would help to probe.
type Error struct {
	Reason string
	Status int    // the HTTP status to answer with
	Code   string // the error code of RFC 6750 section 3.1; empty where the RFC wants none
	Scope  string // the scope that is missing, with code insufficient_scope
}

// Error is the reason.
func (e *Error) Error() string { return e.Reason }

// InsufficientScope is the refusal of a caller whose good token does not have a scope that is needed.
func InsufficientScope(scope string) *Error {
	return &Error{Reason: "scope missing", Status: http.StatusForbidden, Code: "insufficient_scope", Scope: scope}
}

func invalidToken(reason string) *Error {
	return &Error{Reason: reason, Status: http.StatusUnauthorized, Code: "invalid_token"}
}

// codeInvalidRequest is the error code of a request that does not present a token as RFC 6750 section 2 has it.
const codeInvalidRequest = "invalid_request"

// invalidRequest refuses a malformed request. RFC 6750 section 3.1 proposes status 400 for it, but kube-apiserver answers
// 401 to every request that it cannot authenticate, and its clients fetch another token on a 401 only.
func invalidRequest(reason string) *Error {
	return &Error{Reason: reason, Status: http.StatusUnauthorized, Code: codeInvalidRequest}
}

// noToken is the refusal of a request without a token: it gets the bare challenge (RFC 6750 section 3.1).
func noToken(reason string) *Error {
	return &Error{Reason: reason, Status: http.StatusUnauthorized}
}

// unavailable says that the keys cannot be had now: nobody's fault, nothing to do with this token, worth another try.
func unavailable(reason string) *Error {
	return &Error{Reason: reason, Status: http.StatusServiceUnavailable}
}

// Challenge is the value of WWW-Authenticate for a refusal (RFC 6750 section 3). It is empty where the status asks for
// none. It is the same for every token that is refused.
func Challenge(err error) string {
	var refusal *Error
	switch {
	case !errors.As(err, &refusal):
		return ""
	case refusal.Scope != "":
		return fmt.Sprintf(`Bearer error="%s", scope="%s"`, refusal.Code, quotable(refusal.Scope))
	case refusal.Code == codeInvalidRequest:
		return fmt.Sprintf(`Bearer error="%s", error_description="%s"`, refusal.Code, quotable(refusal.Reason))
	case refusal.Code != "":
		return fmt.Sprintf(`Bearer error="%s"`, refusal.Code)
	case refusal.Status == http.StatusUnauthorized:
		return "Bearer"
	default:
		return ""
	}
}

// quotable drops what may not stand in a quoted attribute (RFC 6750 section 3).
func quotable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, text)
}
