package httpio

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/bearer"
)

// ExpiredList is the text of a list whose version is no longer held. Stock clients
// show it.
const ExpiredList = "The resourceVersion for the provided list is too old."

// Beyond is the answer to a request that breaks a limit. It is counted under the
// limit's word when it is sent.
func Beyond(limit string, answer *apierrors.StatusError) error {
	return &event.LimitError{StatusError: answer, Limit: limit}
}

// Unread turns an error of [flow.Room] into the answer to a request for which there is no
// room, because answers made before are not read. It returns other errors as they are.
func Unread(err error) error {
	switch {
	case errors.Is(err, flow.ErrUnreadOfFlow):
		return Beyond("client-answers", apierrors.NewTooManyRequests("this client has not read the answers to its other requests: read or close them, and try again", 5))
	case errors.Is(err, flow.ErrUnread):
		return Beyond("answers", apierrors.NewTooManyRequests("too many answers to all clients are not read, please try again", 5))
	}
	return err
}

// newRefusals counts refused requests by limit. Each counter exists from the start,
// at 0, so that a rate over the time of the first refusal sees it.
func newRefusals() *prometheus.CounterVec {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "eventsvc_requests_refused_total", Help: "Requests refused because of a limit, by limit.",
	}, []string{"limit"})
	for _, limit := range []string{
		"watches", "client-watches", "client-tails", "requests", "client-requests", "answers", "client-answers", "exports",
		"create-rate", "client-create-rate", "namespace-create-rate",
		"bulk-events", "body", "body-time", "query", "selector", "depth", "values", "patch-operations", "labels", "annotations",
		"audit",         // no limit of requests: the audit log fails, and writes are refused without it
		"impersonation", // no limit either: the client asks to act as another user
		"origin",        // nor this: a page of another origin calls tools
	} {
		refused.WithLabelValues(limit)
	}
	return refused
}

// TooLarge is the 504 for a resourceVersion that was not given out yet. Clients look for the
// cause's reason and try again.
func TooLarge(asked, current uint64, retrySeconds int) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), retrySeconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// StatusOf turns any error of this program into the Status that says so to a
// client. What is not known here is an internal error.
func StatusOf(err error) *metav1.Status {
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
		return new(api.Status())
	case errors.As(err, &future):
		return StatusOf(TooLarge(future.Revision, future.Current, 0))
	case errors.As(err, &expired):
		return StatusOf(apierrors.NewResourceExpired(ExpiredList))
	case errors.As(err, &refused):
		return refusal(refused)
	case errors.As(err, &routing):
		return generic(routing.Code)
	case errors.Is(err, store.ErrBusy):
		// Nothing was written, so that the client may safely try again.
		return StatusOf(apierrors.NewTooManyRequests("too many writes are waiting, please try again", 1))
	case errors.Is(err, store.ErrUnavailable):
		// Nothing was written either.
		unavailable := apierrors.NewServiceUnavailable("the database does not answer, please try again")
		unavailable.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
		return StatusOf(unavailable)
	case errors.Is(err, store.ErrFull):
		return StatusOf(apierrors.NewServiceUnavailable("no space left to store events: reads, watches and deletes go on, " +
			"writes will once retention, deletes or the operator have made room"))
	case errors.Is(err, store.ErrUnwritable):
		return StatusOf(apierrors.NewServiceUnavailable("events cannot be written, because the disk has failed: the server stops; " +
			"once it has started again it has every event that was acknowledged"))
	case errors.Is(err, store.ErrClosed):
		return StatusOf(apierrors.NewServiceUnavailable("the server is shutting down"))
	case errors.Is(err, context.DeadlineExceeded):
		return StatusOf(apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0))
	case errors.As(err, &damaged):
		return StatusOf(apierrors.NewInternalError(fmt.Errorf("the stored version %d of %s is damaged", damaged.Revision, damaged.Key)))
	default:
		// What went wrong inside may name files and the like.
		return StatusOf(apierrors.NewInternalError(errors.New("the reason is in the server's log")))
	}
}

// refusal is the Status for a caller who could not be authenticated. As in
// kube-apiserver every reason is the same 401, because the check that failed would help
// to guess tokens. WWW-Authenticate names a mistake in the form of the request.
func refusal(err *bearer.Error) *metav1.Status {
	if err.Status == http.StatusServiceUnavailable {
		return StatusOf(apierrors.NewServiceUnavailable("the keys of the token issuer are not known yet, please try again"))
	}
	return StatusOf(apierrors.NewUnauthorized("Unauthorized"))
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

// Fail answers a request with an error as a Status, in the format that the client accepts;
// where it accepts none, in indented JSON. An unknown path outside of the folders of [New]
// is answered as any web server does. It is the error handler of echo.
func (s *IO) Fail(err error, c echo.Context) {
	s.fail(err, c, func(st *metav1.Status) error {
		if s.plain(err, c.Request()) {
			http.Error(c.Response().Writer, "404 page not found", http.StatusNotFound)
			return nil
		}
		f, negotiation := codec.Negotiate(c.Request(), codec.ScopeOther)
		if negotiation != nil {
			f = codec.Format{Media: codec.JSON, Pretty: true}
		}
		return s.Status(c, int(st.Code), f, st)
	})
}

// FailInText is Fail for clients that show the text of an error: it has the message alone.
func (s *IO) FailInText(err error, c echo.Context) {
	s.fail(err, c, func(st *metav1.Status) error {
		return s.Writer(c, int(st.Code), "text/plain; charset=utf-8").Send([]byte(st.Message + "\n"))
	})
}

// FailAs is Fail for clients that know another form of error: answer writes that form.
func (s *IO) FailAs(answer func(c echo.Context, err error, st *metav1.Status) error) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		s.fail(err, c, func(st *metav1.Status) error { return answer(c, err, st) })
	}
}

// fail answers a request with the Status of an error, written by answer.
func (s *IO) fail(err error, c echo.Context, answer func(*metav1.Status) error) {
	req := c.Request()
	if c.Response().Committed {
		// Part of an answer is out. Cutting the connection is the only way
		// to tell the client that this was not all of it.
		panic(http.ErrAbortHandler)
	}
	if errors.Is(err, ErrClientGone) || (errors.Is(err, context.Canceled) && req.Context().Err() != nil) {
		return
	}
	st := s.Refusal(c, err)
	h := c.Response().Header()
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(st.Details.RetryAfterSeconds)))
	}
	if challenge := (interface{ Challenge() string })(nil); errors.As(err, &challenge) {
		h.Set(echo.HeaderWWWAuthenticate, challenge.Challenge())
	}
	if err := answer(st); err != nil {
		s.log.ErrorContext(req.Context(), "answer with an error", "error", err)
	}
}

// Refusal counts and logs an error as far as that is due, and returns its Status.
func (s *IO) Refusal(c echo.Context, err error) *metav1.Status {
	s.Count(err)
	st := StatusOf(err)
	if req := c.Request(); st.Code == http.StatusInternalServerError {
		s.log.ErrorContext(req.Context(), "request failed", "method", req.Method, "path", req.URL.Path, "error", err)
	}
	return st
}

// Refused counts a refusal because of a limit.
func (s *IO) Refused(limit string) { s.refused.WithLabelValues(limit).Inc() }

// Count counts an error that is such a refusal.
func (s *IO) Count(err error) {
	if limit, ok := errors.AsType[*event.LimitError](err); ok {
		s.Refused(limit.Limit)
	}
}

// plain reports whether a 404 is about a path outside the API groups served here, which is answered as plain text like
// any web server would.
func (s *IO) plain(err error, r *http.Request) bool {
	if routing, ok := errors.AsType[*echo.HTTPError](err); !ok || routing.Code != http.StatusNotFound {
		return false
	}
	return !slices.ContainsFunc(s.folders, func(folder string) bool { return Under(r.URL.Path, folder) })
}

// Under reports whether a path is a folder or something in it.
func Under(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == '/')
}
