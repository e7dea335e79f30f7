package mirror

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
)

// The results of a write, as the metric names them.
const (
	resultCreated   = "created"
	resultReplaced  = "replaced"
	resultUnchanged = "unchanged" // the target has this version or a later one
	resultRefused   = "refused"   // the target will never accept it
	resultKept      = "kept"      // deleted at the source, kept at the target
)

// write stores items: as many as possible in bulk requests, and the rest one by one, in their order. It returns when
// each item is stored or refused for good, or with the error of ctx.
func (c *copier) write(ctx context.Context, items []item) error {
	if c.enricher != nil {
		c.enricher.enrich(ctx, items, c.known)
	}
	settled := c.writeMany(ctx, items)
	for i := range items {
		if !settled[i] {
			c.store(ctx, items[i])
		}
	}
	return ctx.Err()
}

// store stores one item, unless the target refuses it for good or ctx ends.
func (c *copier) store(ctx context.Context, it item) {
	if c.known.has(it.uid, it.version) {
		c.count(resultUnchanged)
		return
	}
	var result string
	err := c.insist(ctx, func() (err error) {
		result, err = c.attempt(ctx, it)
		return err
	})
	switch {
	case err == nil:
		c.stored(&it, result)
	case refused(err):
		c.leaveOut(ctx, &it, err)
	}
}

// stored notes what has become of an item that the target has.
func (c *copier) stored(it *item, result string) {
	c.known.add(it, result != resultUnchanged)
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
		case ctx.Err() == nil && !errors.Is(err, errRaced):
			c.targetFailed(err)
			_ = wait.Wait(ctx, err)
		}
	}
	return ctx.Err()
}

var (
	errRaced = errors.New("another client has written it at the same time")
	errTaken = errors.New("its name is taken by an event that is not its copy")
)

// eventPath returns the path of one event of the target.
func eventPath(namespace, name string) string {
	return client.EventsPath("", namespace) + "/" + url.PathEscape(name)
}

// attempt creates the copy, or replaces it if the target has an earlier version.
func (c *copier) attempt(ctx context.Context, it item) (result string, err error) {
	path := eventPath(it.copy.Namespace, it.copy.Name)
	var stored corev1.Event
	err = c.Target.Do(ctx, client.Request{Path: path}, &stored)
	switch {
	case client.Code(err) == http.StatusNotFound:
		create := client.Request{Method: http.MethodPost, Path: client.EventsPath("", it.copy.Namespace), Body: it.first()}
		return resultCreated, raced(c.Target.Do(ctx, create, nil))
	case err != nil:
		return "", err
	case stored.Annotations[event.SourceUID] != it.uid:
		return "", errTaken
	case !client.Newer(it.version, stored.Annotations[event.SourceVersion]):
		return resultUnchanged, nil
	}
	next := it.copy.DeepCopy()
	next.ResourceVersion = stored.ResourceVersion
	next.Labels, next.Annotations = it.metadata(stored.Labels, stored.Annotations)
	return resultReplaced, raced(c.Target.Do(ctx, client.Request{Method: http.MethodPut, Path: path, Body: next}, nil))
}

// first returns the copy as it is where there was none.
func (it *item) first() *corev1.Event {
	first := *it.copy
	first.Labels, first.Annotations = it.metadata(nil, nil)
	return &first
}

// raced returns errRaced for a conflict, and err for anything else.
func raced(err error) error {
	if client.Code(err) == http.StatusConflict {
		return errRaced
	}
	return err
}

// refused reports whether the target would refuse this event at any time. A missing right (401, 403) and a target
// without core/v1 (404) concern the whole mirror: it waits until that is corrected.
func refused(err error) bool {
	switch client.Code(err) {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	case http.StatusNotFound: // a namespace that the target requires to be declared
		return missing(err, "namespaces")
	default:
		return errors.Is(err, errTaken)
	}
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

// writeMany writes items in as few requests as possible. It returns which are settled. Others have to be written one by
// one: their name is taken, their labels have changed, or the target may accept them later.
func (c *copier) writeMany(ctx context.Context, items []item) (settled map[int]bool) {
	settled = map[int]bool{}
	for places := c.together(items); len(places) > 0 && ctx.Err() == nil; {
		var events []corev1.Event
		for size := 0; len(events) < min(len(places), bulkMost) && size < bulkBytes; {
			ev := items[places[len(events)]].first()
			events, size = append(events, *ev), size+ev.Size()
		}
		var results []client.Result
		err := c.insist(ctx, func() (err error) {
			results, err = c.Target.Bulk(ctx, events)
			return err
		})
		if err != nil {
			break // what is left is written one by one
		}
		for n, result := range results {
			i := places[n]
			settled[i] = c.took(ctx, &items[i], result)
		}
		places = places[len(events):]
	}
	return settled
}

// together returns the indexes of the items that can be written in bulk requests. Items that the target has are left
// out. Where the labels of an event have changed, so is that item and each later one of the event: a bulk request
// cannot change labels.
func (c *copier) together(items []item) (places []int) {
	alone := map[string]bool{}
	for i := range items {
		it := &items[i]
		if c.known.has(it.uid, it.version) {
			continue
		}
		if (it.modified || it.relisted) && !c.known.sameLabels(it) {
			alone[it.uid] = true
		}
		if !alone[it.uid] {
			places = append(places, i)
		}
	}
	return places
}

// took notes the result of an item in a bulk request, and reports whether it is final. The result is not final if the
// name is taken, or if the target may accept the item later.
func (c *copier) took(ctx context.Context, it *item, r client.Result) bool {
	switch {
	case r.Code == http.StatusCreated:
		c.stored(it, resultCreated)
	case r.Code == http.StatusOK && r.Replaced:
		c.stored(it, resultReplaced)
	case r.Code == http.StatusOK:
		c.stored(it, resultUnchanged)
	case r.Code == http.StatusBadRequest, r.Code == http.StatusRequestEntityTooLarge, r.Code == http.StatusUnprocessableEntity, r.Code == http.StatusNotFound:
		c.leaveOut(ctx, it, errors.New(r.Reason))
	default:
		return false
	}
	return true
}
