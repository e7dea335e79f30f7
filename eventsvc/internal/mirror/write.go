package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/client"
)

// The results of a write, as the metric names them.
const (
	resultCreated   = "created"
	resultReplaced  = "replaced"
	resultUnchanged = "unchanged" // this version, or a later one, is there
	resultRefused   = "refused"   // the target will never take it
	resultKept      = "kept"      // deleted at the source, and kept here
)

// write stores items. Those of one event are written in their order, others at the same time. It returns when all of
// them are stored, or refused for good, or ctx has ended.
func (c *copier) write(ctx context.Context, items []item) error {
	var order []string
	groups := map[string][]item{}
	for _, it := range items {
		if groups[it.uid] == nil {
			order = append(order, it.uid)
		}
		groups[it.uid] = append(groups[it.uid], it)
	}
	next := make(chan []item)
	var workers sync.WaitGroup
	for range min(c.Parallel, len(order)) {
		workers.Go(func() {
			for group := range next {
				for _, it := range group {
					c.one(ctx, it)
				}
			}
		})
	}
	for _, uid := range order {
		next <- groups[uid]
	}
	close(next)
	workers.Wait()
	return ctx.Err()
}

// one stores one item, however long that takes.
func (c *copier) one(ctx context.Context, it item) {
	if c.known.has(it.uid, it.version) {
		c.count(resultUnchanged)
		return
	}
	var wait client.Backoff
	for ctx.Err() == nil {
		result, err := c.attempt(ctx, it)
		switch {
		case err == nil:
			c.known.add(it.uid, it.version)
			c.count(result)
			c.targetFailed(nil)
			return
		case errors.Is(err, errRaced):
			continue
		case refused(err):
			c.count(resultRefused)
			c.Log.WarnContext(ctx, "the target does not take an event, it is left out", "namespace", it.copy.Namespace,
				"name", it.copy.Name, "error", err)
			return
		case ctx.Err() == nil:
			c.targetFailed(err)
			_ = wait.Wait(ctx, err)
		}
	}
}

var (
	errRaced = errors.New("somebody else has written it meanwhile")
	errTaken = errors.New("its name is taken by an event that is no copy of it")
)

// attempt creates the copy or brings it up to its version.
func (c *copier) attempt(ctx context.Context, it item) (string, error) {
	if !it.modified {
		err := c.create(ctx, it)
		if client.Code(err) != http.StatusConflict {
			return resultCreated, err
		}
	}
	path := client.EventsPath("", it.copy.Namespace) + "/" + url.PathEscape(it.copy.Name)
	body, err := c.Target.Do(ctx, client.Request{Path: path})
	if client.Code(err) == http.StatusNotFound {
		if err = c.create(ctx, it); client.Code(err) == http.StatusConflict {
			err = errRaced
		}
		return resultCreated, err
	}
	if err != nil {
		return "", err
	}
	var stored corev1.Event
	if err := json.Unmarshal(body, &stored); err != nil {
		return "", err
	}
	switch {
	case stored.Annotations[annotationUID] != it.uid:
		return "", errTaken
	case !client.Newer(it.version, stored.Annotations[annotationVersion]):
		return resultUnchanged, nil
	}
	next := it.copy.DeepCopy()
	next.ResourceVersion = stored.ResourceVersion
	next.Labels = with(stored.Labels, next.Labels) // somebody may have marked it here
	next.Annotations = with(stored.Annotations, next.Annotations)
	if body, err = json.Marshal(next); err != nil {
		return "", err
	}
	_, err = c.Target.Do(ctx, client.Request{Method: http.MethodPut, Path: path, Body: body})
	if client.Code(err) == http.StatusConflict {
		err = errRaced
	}
	return resultReplaced, err
}

func (c *copier) create(ctx context.Context, it item) error {
	body, err := json.Marshal(it.copy)
	if err != nil {
		return err
	}
	_, err = c.Target.Do(ctx, client.Request{Method: http.MethodPost, Path: client.EventsPath("", it.copy.Namespace), Body: body})
	return err
}

// refused reports whether the target would say the same about this event at any time. That somebody has no right (401,
// 403), or that the target serves no core/v1 (404), is about the mirror: it waits until that is mended.
func refused(err error) bool {
	switch client.Code(err) {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	case http.StatusNotFound: // a namespace that has to be declared first
		return aboutKind(err, "namespaces")
	default:
		return errors.Is(err, errTaken)
	}
}

// aboutKind reports whether err is a 404 about an object of a kind, and not about an API that is not served.
func aboutKind(err error, kind string) bool {
	var status apierrors.APIStatus
	return client.Code(err) == http.StatusNotFound && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == kind && status.Status().Details.Name != ""
}

// cursorName is the name of the event that holds the cursor.
func (c *copier) cursorName() string {
	name := "eventsvc-mirror." + c.Cluster
	if c.namespace != "" {
		name += "." + c.namespace
	}
	return name
}

const annotationCursor = "mirror.tidings.example/cursor"

// loadCursor is the source's version up to which everything has been written, "" at first.
func (c *copier) loadCursor(ctx context.Context) (string, error) {
	path := client.EventsPath("", c.CursorNamespace) + "/" + url.PathEscape(c.cursorName())
	body, err := c.Target.Do(ctx, client.Request{Path: path})
	if aboutKind(err, "events") {
		return "", nil
	}
	var ev corev1.Event
	if err == nil {
		err = json.Unmarshal(body, &ev)
	}
	return ev.Annotations[annotationCursor], err
}

// saveCursor writes the cursor whatever is there: every value that it ever had is true for good.
func (c *copier) saveCursor(ctx context.Context, version string) error {
	what := "all events"
	if c.namespace != "" {
		what = "the events of namespace " + c.namespace
	}
	now := c.now()
	ev := corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Cluster", Name: c.Cluster, Namespace: c.CursorNamespace},
		Type:           corev1.EventTypeNormal, Reason: "Mirrored", Source: corev1.EventSource{Component: "eventsvc-mirror"},
		Message:        fmt.Sprintf("%s of cluster %s up to resourceVersion %s are here", what, c.Cluster, version),
		FirstTimestamp: now, LastTimestamp: now,
	}
	ev.APIVersion, ev.Kind = "v1", "Event"
	ev.Name, ev.Namespace, ev.Labels = c.cursorName(), c.CursorNamespace, c.labels()
	ev.Annotations = map[string]string{annotationCursor: version}
	body, err := json.Marshal(&ev)
	if err != nil {
		return err
	}
	path := client.EventsPath("", c.CursorNamespace) + "/" + url.PathEscape(c.cursorName())
	_, err = c.Target.Do(ctx, client.Request{Method: http.MethodPut, Path: path, Body: body})
	return err
}
