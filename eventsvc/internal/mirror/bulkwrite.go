package mirror

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/client"
)

// The results of a write, as the metric names them.
const (
	resultCreated   = "created"
	resultReplaced  = "replaced"
	resultUnchanged = "unchanged" // the target has this version or a later one
	resultRefused   = "refused"   // the target will never accept it
	resultKept      = "kept"      // deleted at the source, kept at the target
)

// write stores items in as few requests as possible. It returns when each is stored or refused for good, or with the
// error of ctx. A version that the target accepts behind a later one of its event is not stored: the target keeps the
// later one.
func (c *copier) write(ctx context.Context, items []item) error {
	if c.enricher != nil {
		c.enricher.enrich(ctx, items, c.known)
	}
	var waiting []*item
	for i := range items {
		if c.known.has(&items[i]) {
			c.count(resultUnchanged)
		} else {
			waiting = append(waiting, &items[i])
		}
	}
	var wait client.Backoff
	for most := bulkMost; len(waiting) > 0 && ctx.Err() == nil; {
		var events []corev1.Event
		for size := 0; len(events) < min(len(waiting), most) && size < bulkBytes; {
			ev := waiting[len(events)].whole()
			events, size = append(events, ev), size+ev.Size()
		}
		sent := waiting[:len(events)]
		results, err := c.Target.Bulk(ctx, events)
		switch {
		case refused(err) && len(sent) > 1: // who stands between may take smaller bodies only
			most = len(sent) / 2
			continue
		case refused(err):
			c.leaveOut(ctx, sent[0], err)
			waiting, err = waiting[1:], nil
		case err == nil:
			rest := waiting[len(sent):]
			if waiting, err = c.took(ctx, sent, results); len(waiting) == 0 {
				wait.Reset()
			}
			waiting = append(waiting, rest...)
		}
		if ctx.Err() != nil {
			break
		}
		if c.targetFailed(err); err != nil {
			_ = wait.Wait(ctx, err)
		}
	}
	return ctx.Err()
}

// took notes the results of items. It returns those that the target may accept later, and why it has not accepted the
// last of them.
func (c *copier) took(ctx context.Context, sent []*item, results []client.Result) (again []*item, err error) {
	for i, r := range results {
		switch it := sent[i]; r.Code {
		case http.StatusCreated:
			c.stored(it, resultCreated)
		case http.StatusOK:
			result := resultUnchanged
			if r.Replaced {
				result = resultReplaced
			}
			c.stored(it, result)
		case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
			c.leaveOut(ctx, it, errors.New(r.Reason)) // 404: its namespace is not declared; 409: its name belongs to another event
		default:
			again, err = append(again, it), client.Refusal(r.Code, r.Reason)
		}
	}
	return again, err
}

// stored notes what has become of an item that the target has.
func (c *copier) stored(it *item, result string) {
	c.known.add(it)
	c.count(result)
}

// leaveOut counts and logs an item that the target refuses for good.
func (c *copier) leaveOut(ctx context.Context, it *item, err error) {
	c.count(resultRefused)
	c.Log.WarnContext(ctx, "the target refuses an event, it is left out", "namespace", it.copy.Namespace, "name", it.copy.Name, "error", err)
}

// insist calls write until it succeeds, until the target refuses for good what is written, or until ctx ends. It
// returns that refusal, or the error of ctx.
func (c *copier) insist(ctx context.Context, write func() error) error {
	var wait client.Backoff
	for ctx.Err() == nil {
		err := write()
		switch {
		case err == nil:
			c.targetFailed(nil)
			return nil
		case refused(err):
			return err
		case ctx.Err() == nil:
			c.targetFailed(err)
			_ = wait.Wait(ctx, err)
		}
	}
	return ctx.Err()
}

// eventPath returns the path of one event of the target.
func eventPath(namespace, name string) string {
	return client.EventsPath("", namespace) + "/" + url.PathEscape(name)
}

// refused reports whether the target would refuse this event at any time. A missing right (401, 403) and a target
// without core/v1 (404) concern the whole mirror: it waits until that is corrected.
func refused(err error) bool {
	switch client.Code(err) {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	case http.StatusNotFound: // a namespace that the target requires to be declared
		return missing(err, "namespaces")
	}
	return false
}

// missing reports whether err is a 404 for an object of a kind, and not for an API that is not served.
func missing(err error, kind string) bool {
	var status apierrors.APIStatus
	return client.Code(err) == http.StatusNotFound && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == kind && status.Status().Details.Name != ""
}

const (
	bulkMost  = 500     // events of one request: more would bypass the server's write-ahead log
	bulkBytes = 1 << 20 // of one request, so that no usual limit of a body is met
)
