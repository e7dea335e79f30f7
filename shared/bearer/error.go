package bearer

import (
	"errors"
	"net/http"
	"strings"
)

// Error is the refusal of a request. Reason is one of a few fixed texts and contains nothing of the token. It is for
// logs and metrics. The caller learns it only with the code invalid_request, for which no token was examined: with any
// other code it would help an attacker to probe.
type Error struct {
	Reason string
	Status int    // the HTTP status to answer with
	Code   string // the error code of RFC 6750 section 3.1; empty if the RFC asks for none
	Scope  string // the scope that is missing, with code insufficient_scope
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

// InsufficientScope returns the refusal of a caller whose valid token lacks a required scope. An empty one is not
// named.
func InsufficientScope(scope string) *Error {
	return &Error{Reason: "scope missing", Status: http.StatusForbidden, Code: "insufficient_scope", Scope: scope}
}

func invalidToken(reason string) *Error {
	return &Error{Reason: reason, Status: http.StatusUnauthorized, Code: "invalid_token"}
}

// codeInvalidRequest is the error code of a request that does not send its token as RFC 6750 section 2 requires.
const codeInvalidRequest = "invalid_request"

// invalidRequest refuses a malformed request. RFC 6750 section 3.1 says that the status should be 400. It is 401 here,
// as in kube-apiserver, because Kubernetes clients fetch another token only after a 401.
func invalidRequest(reason string) *Error {
	return &Error{Reason: reason, Status: http.StatusUnauthorized, Code: codeInvalidRequest}
}

// noToken refuses a request without a token. Its challenge has no error code (RFC 6750 section 3.1).
func noToken(reason string) *Error {
	return &Error{Reason: reason, Status: http.StatusUnauthorized}
}

// ReasonUnavailable is the reason of a refusal that says nothing about the token: its key cannot be had at present.
const ReasonUnavailable = "keys unavailable"

// unavailable reports that the keys cannot be fetched at present. This says nothing about the token; the client may
// retry.
func unavailable(reason string) *Error {
	return &Error{Reason: reason, Status: http.StatusServiceUnavailable}
}

// Challenge returns the value of WWW-Authenticate for a refusal (RFC 6750 section 3). It is empty if the status asks
// for none, and the same for every refused token. Metadata is the URL of the document that says where clients get
// tokens (RFC 9728 section 5.1); empty: there is none.
func Challenge(err error, metadata string) string {
	refusal, ok := errors.AsType[*Error](err)
	if !ok || refusal.Code == "" && refusal.Status != http.StatusUnauthorized {
		return ""
	}
	var parameters []string
	add := func(name, value string) {
		if value != "" {
			parameters = append(parameters, name+`="`+quotable(value)+`"`)
		}
	}
	add("error", refusal.Code)
	if refusal.Code == codeInvalidRequest {
		add("error_description", refusal.Reason)
	}
	add("scope", refusal.Scope)
	add("resource_metadata", metadata)
	if len(parameters) == 0 {
		return "Bearer"
	}
	return "Bearer " + strings.Join(parameters, ", ")
}

// quotable drops characters that are not allowed in a quoted attribute (RFC 6750 section 3).
func quotable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, text)
}
