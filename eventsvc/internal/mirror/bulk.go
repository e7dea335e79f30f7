package mirror

import (
	"context"
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/client"
)

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
