package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/wire"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/bearer"
)

// Texts that stock clients show or look for.
const (
	textExpiredWatch    = "The resourceVersion for the provided watch is too old."
	textExpiredList     = "The resourceVersion for the provided list is too old."
	textExpiredContinue = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - " +
		"objects that were created, modified, or deleted between the time the first chunk was returned and now may " +
		"show up in the list."
	textContinueVersion = "specifying resource version is not allowed when using continue"
	textModified        = "the object has been modified; please apply your changes to the latest version and try again"
	textDeadline        = "request did not complete within the allotted timeout"
)

// errClientGone ends a request whose client has hung up: nobody reads an answer.
var errClientGone = errors.New("the client has gone")

// statusOf turns any error of this program into the Status that says so to a
// client. What is not known here is an internal error.
func statusOf(err error) *metav1.Status {
	var (
		api     apierrors.APIStatus
		future  *store.FutureError
		expired *store.ExpiredError
		refused *bearer.Error
		routing *echo.HTTPError
		damaged *store.CorruptError
	)
	switch {
	case errors.As(err, &api):
		st := api.Status()
		return &st
	case errors.As(err, &future):
		return statusOf(tooLarge(future.Revision, future.Current, 0))
	case errors.As(err, &expired):
		return statusOf(apierrors.NewResourceExpired(textExpiredList))
	case errors.As(err, &refused):
		return refusal(refused)
	case errors.As(err, &routing):
		return generic(routing.Code)
	case errors.Is(err, store.ErrBusy):
		// Nothing was written, so that the client may safely try again.
		return statusOf(apierrors.NewTooManyRequests("too many writes are waiting, please try again", 1))
	case errors.Is(err, store.ErrFull):
		return statusOf(apierrors.NewServiceUnavailable("no space left to store events: reads, watches and deletes go on, " +
			"writes will once retention, deletes or the operator have made room"))
	case errors.Is(err, store.ErrUnwritable):
		return statusOf(apierrors.NewServiceUnavailable("events cannot be written to the disk at present: reads and watches go on, " +
			"writes will once the server has moved to new files, which it keeps trying"))
	case errors.Is(err, store.ErrClosed):
		return statusOf(apierrors.NewServiceUnavailable("the server is shutting down"))
	case errors.Is(err, context.DeadlineExceeded):
		return statusOf(apierrors.NewTimeoutError(textDeadline, 0))
	case errors.As(err, &damaged):
		return statusOf(apierrors.NewInternalError(fmt.Errorf("the stored version %d of %s is damaged", damaged.Revision, damaged.Key)))
	default:
		// What went wrong inside may name files and the like.
		return statusOf(apierrors.NewInternalError(errors.New("the reason is in the server's log")))
	}
}

// refusal is the Status for a caller who could not be authenticated: as in the
// original one 401 for every reason, because which check failed would help to
// guess tokens. What is wrong with the form of a request is in WWW-Authenticate.
func refusal(err *bearer.Error) *metav1.Status {
	if err.Status == http.StatusServiceUnavailable {
		return statusOf(apierrors.NewServiceUnavailable("the keys of the token issuer are not known yet, please try again"))
	}
	return statusOf(apierrors.NewUnauthorized("Unauthorized"))
}

// generic is the Status for what routing alone decides. Its details are there,
// and empty.
func generic(code int) *metav1.Status {
	st := metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Details: &metav1.StatusDetails{}}
	switch code {
	case http.StatusNotFound:
		st.Reason, st.Message = metav1.StatusReasonNotFound, "the server could not find the requested resource"
	case http.StatusMethodNotAllowed:
		st.Reason, st.Message = metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource"
	default:
		st.Reason, st.Message = metav1.StatusReasonUnknown, http.StatusText(code)
	}
	return &st
}

// errorFor gives an error of the store the resource's name.
func (r *resource) errorFor(err error, name string) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return apierrors.NewNotFound(r.groupResource, name)
	case errors.Is(err, store.ErrExists):
		return apierrors.NewAlreadyExists(r.groupResource, name)
	default:
		return err
	}
}

// wrongKind is the 400 for a body of another kind than the path's.
func wrongKind(sent, want schema.GroupVersionKind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the body is a %s of %s, this path takes a %s of %s",
		sent.Kind, sent.GroupVersion(), want.Kind, want.GroupVersion()))
}

// modified is the 409 for a write that was based on another version.
func (r *resource) modified(name string) error {
	return apierrors.NewConflict(r.groupResource, name, errors.New(textModified))
}

// fail answers a request with an error, in the format that the client accepts;
// where it accepts none, in indented JSON. It is echo's only error handler.
func (s *Server) fail(err error, c echo.Context) {
	w, req := c.Response().Writer, c.Request()
	if c.Response().Committed {
		// Part of an answer is out. Cutting the connection is the only way
		// to tell the client that this was not all of it.
		panic(http.ErrAbortHandler)
	}
	if errors.Is(err, errClientGone) || (errors.Is(err, context.Canceled) && req.Context().Err() != nil) {
		return
	}
	if s.plainNotFound(err, req) {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if limit := (*event.LimitError)(nil); errors.As(err, &limit) {
		s.refused.WithLabelValues(limit.Limit).Inc()
	}
	st := statusOf(err)
	f, negotiation := s.codec.Negotiate(req, codec.ScopeOther)
	if negotiation != nil {
		f = codec.Format{Media: wire.JSON, Pretty: true}
	}
	if st.Code == http.StatusInternalServerError {
		s.log.ErrorContext(req.Context(), "request failed", "method", req.Method, "path", req.URL.Path, "error", err)
	}
	h := w.Header()
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(st.Details.RetryAfterSeconds)))
	}
	if st.Code == http.StatusForbidden {
		if missing := challenge(err); missing != "" {
			h.Set(echo.HeaderWWWAuthenticate, missing)
		}
	}
	if err := s.status(c, int(st.Code), f, st); err != nil {
		s.log.ErrorContext(req.Context(), "answer with an error", "error", err)
	}
}

// plainNotFound tells whether a 404 is about a path outside the API groups
// served here, which is answered as plain text like any web server would.
func (s *Server) plainNotFound(err error, r *http.Request) bool {
	var routing *echo.HTTPError
	if !errors.As(err, &routing) || routing.Code != http.StatusNotFound {
		return false
	}
	for _, g := range s.groups {
		if under(r.URL.Path, path.Dir(g.path())) {
			return false
		}
	}
	return true
}
