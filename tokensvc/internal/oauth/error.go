package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"tidings.example/tokensvc/internal/client"
)

// The error codes of RFC 6749 section 5.2, two of section 4.1.2.1 for errors of the server, and one of RFC 8707.
const (
	invalidRequest       = "invalid_request"
	invalidClient        = "invalid_client"
	invalidScope         = "invalid_scope"
	invalidTarget        = "invalid_target" // RFC 8707 section 2
	unsupportedGrantType = "unsupported_grant_type"
	unavailable          = "temporarily_unavailable"
	serverError          = "server_error"
)

// fault is one way in which a token request fails.
type fault struct {
	reason string // for the audit line and the metrics, never for the client
	status int
	body   []byte
}

// Error returns a text with the reason.
func (f *fault) Error() string { return f.reason }

// newFault returns a fault with its answer. Without a description, the body has only the code: a client that has failed
// to authenticate learns nothing else.
func newFault(reason string, status int, code, description string) *fault {
	body, err := json.Marshal(struct {
		Error       string `json:"error"`
		Description string `json:"error_description,omitempty"`
	}{code, description})
	if err != nil {
		panic(err) // cannot happen: two strings always encode
	}
	return &fault{reason: reason, status: status, body: body}
}

// All ways in which a token request can fail, in the order of the checks.
var (
	faultMethod        = newFault("method_not_allowed", http.StatusMethodNotAllowed, invalidRequest, "the token endpoint takes POST only")                                               // RFC 6749 section 3.2
	faultQuery         = newFault("credentials_in_query", http.StatusBadRequest, invalidRequest, "client credentials must be in the body, never in the URL")                             // section 2.3.1
	faultContentType   = newFault("content_type", http.StatusBadRequest, invalidRequest, "the body must be application/x-www-form-urlencoded, as Content-Type says, and not compressed") // section 4.4.2
	faultBodySize      = newFault("body_too_large", http.StatusRequestEntityTooLarge, invalidRequest, "the body is larger than 16 KiB")                                                  // our limit
	faultBodyTime      = newFault("body_time", http.StatusRequestTimeout, unavailable, "the body did not come in time; try again")                                                       // our limit
	faultForm          = newFault("malformed_form", http.StatusBadRequest, invalidRequest, "the body is not a well-formed form")                                                         // appendix B
	faultParameters    = newFault("too_many_parameters", http.StatusBadRequest, invalidRequest, "the form has more than 32 parameters")                                                  // our limit
	faultRepeated      = newFault("repeated_parameter", http.StatusBadRequest, invalidRequest, "a parameter is given more than once")                                                    // section 3.2
	faultTwoMethods    = newFault("two_authentication_methods", http.StatusBadRequest, invalidRequest, "client credentials are given in more than one place")                            // section 2.3
	faultBasic         = newFault("malformed_basic", http.StatusBadRequest, invalidRequest, "the Basic credentials are malformed")                                                       // section 2.3.1
	faultClientID      = newFault("client_id_characters", http.StatusBadRequest, invalidRequest, "client_id has characters that are not printable ASCII")                                // appendix A.1
	faultNoCreds       = newFault("no_credentials", http.StatusUnauthorized, invalidClient, "")                                                                                          // section 5.2
	faultBasicOff      = newFault("basic_not_enabled", http.StatusUnauthorized, invalidClient, "")                                                                                       // section 5.2
	faultAssertionOff  = newFault("assertion_not_enabled", http.StatusUnauthorized, invalidClient, "")                                                                                   // section 5.2
	faultAssertionType = newFault("assertion_type", http.StatusUnauthorized, invalidClient, "")                                                                                          // RFC 7521 section 4.2.1
	faultUnknown       = newFault("unknown_client", http.StatusUnauthorized, invalidClient, "")                                                                                          // section 5.2
	faultSecret        = newFault("wrong_secret", http.StatusUnauthorized, invalidClient, "")                                                                                            // section 5.2
	faultAssertion     = newFault("wrong_assertion", http.StatusUnauthorized, invalidClient, "")                                                                                         // RFC 7521 section 4.2.1
	faultBusy          = newFault("busy", http.StatusTooManyRequests, unavailable, "too many attempts are waiting; try again later")                                                     // section 2.3.1, RFC 6585 section 4
	faultStore         = newFault("store_unavailable", http.StatusServiceUnavailable, unavailable, "client registrations cannot be read at the moment; try again later")                 // an outage is no invalid_client
	faultIssuer        = newFault("issuer_unavailable", http.StatusServiceUnavailable, unavailable, "the keys of the assertion's issuer cannot be read at the moment; try again later")  // an outage is no invalid_client
	faultGone          = newFault("client_gone", http.StatusServiceUnavailable, unavailable, "")                                                                                         // the client has left
	faultNoGrant       = newFault("grant_type_missing", http.StatusBadRequest, invalidRequest, "grant_type is missing")                                                                  // section 5.2
	faultGrant         = newFault("unsupported_grant_type", http.StatusBadRequest, unsupportedGrantType, "grant_type must be client_credentials")                                        // section 5.2
	faultScope         = newFault("invalid_scope", http.StatusBadRequest, invalidScope, "the scope is not the one this client is registered with")                                       // section 5.2
	faultTarget        = newFault("invalid_target", http.StatusBadRequest, invalidTarget, "the resource is none that this client is registered for")                                     // RFC 8707 section 2
	faultServer        = newFault("server_error", http.StatusInternalServerError, serverError, "the token could not be made; the service's log says why")
)

// basicChallenge answers a client that tried the Authorization header (RFC 6749 section 5.2).
const basicChallenge = `Basic realm="tokensvc"`

// faultOf returns the fault for the error of any step.
func faultOf(err error) *fault {
	var f *fault
	var rejected *client.RejectedError
	var busy *client.BusyError
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled):
		return faultGone
	case errors.As(err, &rejected) && rejected.Reason == client.ReasonUnknown:
		return faultUnknown
	case errors.As(err, &rejected) && rejected.Reason == client.ReasonAssertion:
		return faultAssertion
	case errors.As(err, &rejected):
		return faultSecret
	case errors.As(err, &busy):
		return faultBusy
	case errors.Is(err, client.ErrUnavailable):
		return faultStore
	case errors.Is(err, client.ErrIssuerUnavailable):
		return faultIssuer
	}
	return faultServer
}

// outageRetry is the Retry-After while registrations, or the keys of an issuer, cannot be read.
const outageRetry = 5 * time.Second

// retryAfter returns how long a client should wait, or 0 if it should not retry.
func retryAfter(err error) time.Duration {
	var busy *client.BusyError
	switch {
	case errors.As(err, &busy):
		return busy.RetryAfter
	case errors.Is(err, client.ErrUnavailable), errors.Is(err, client.ErrIssuerUnavailable):
		return outageRetry
	}
	return 0
}

// writeFault sends the answer to a token request that failed.
func writeFault(c echo.Context, err error) error {
	f := faultOf(err)
	h := c.Response().Header()
	if wait := retryAfter(err); wait > 0 {
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
	if f.status == http.StatusUnauthorized && triedBasic(c.Request()) {
		h.Set(echo.HeaderWWWAuthenticate, basicChallenge)
	}
	if f == faultMethod {
		h.Set(echo.HeaderAllow, http.MethodPost)
	}
	return c.Blob(f.status, echo.MIMEApplicationJSON, f.body)
}
