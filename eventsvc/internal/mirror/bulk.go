package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"tidings.example/eventsvc/internal/client"
)

const (
	bulkMost  = 500              // events of one request: more would bypass the server's write-ahead log
	bulkBytes = 1 << 20          // of one request, so that no usual limit of a body is met
	bulkAgain = 10 * time.Minute // until a target that has no bulk requests is asked again
)

// errNoBulk says that the target, or a proxy before it, serves no bulk requests.
var errNoBulk = errors.New("the target serves no bulk requests")

// createMany creates the new events in as few requests as possible. It returns the items that are left to write one by
// one: further versions, events whose name is taken, events that the target may accept later, and all if it has no bulk requests.
func (c *copier) createMany(ctx context.Context, items []item) (rest []item) {
	fresh := c.fresh(items)
	if len(fresh) < 2 || time.Now().Before(c.noBulk) {
		return items
	}
	settled := map[int]bool{}
	for len(fresh) > 0 && ctx.Err() == nil {
		var lines [][]byte
		for size := 0; len(lines) < min(len(fresh), bulkMost) && size < bulkBytes; {
			line, err := json.Marshal(items[fresh[len(lines)]].first())
			if err != nil { // a struct of texts, numbers and times
				return items
			}
			lines, size = append(lines, line), size+len(line)
		}
		results, err := c.bulk(ctx, lines)
		if err != nil {
			break // what is left is written one by one
		}
		for n, result := range results {
			i := fresh[n]
			settled[i] = c.created(ctx, &items[i], result)
		}
		fresh = fresh[len(lines):]
	}
	for i := range items {
		if !settled[i] {
			rest = append(rest, items[i])
		}
	}
	return rest
}

// fresh returns the places of the items that the target has probably never seen, one for each event.
func (c *copier) fresh(items []item) (places []int) {
	seen := make(map[string]bool, len(items))
	for i := range items {
		it := &items[i]
		if !seen[it.uid] && !it.modified && !c.known.has(it.uid, it.version) {
			places = append(places, i)
		}
		seen[it.uid] = true
	}
	return places
}

// bulk sends lines until they are answered, or refused as a whole.
func (c *copier) bulk(ctx context.Context, lines [][]byte) (results []client.Result, err error) {
	err = c.insist(ctx, func() (err error) {
		results, err = c.Target.Bulk(ctx, lines)
		switch client.Code(err) {
		case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
			return errNoBulk
		}
		return err
	})
	if errors.Is(err, errNoBulk) {
		c.noBulk = time.Now().Add(bulkAgain)
		c.Log.InfoContext(ctx, "the target serves no bulk requests, events are written one by one", "namespace", c.label())
	}
	return results, err
}

// created notes the result of an item in a bulk request, and reports whether it is final. It is not if the name is taken, or if the
// target may accept the item later.
func (c *copier) created(ctx context.Context, it *item, r client.Result) bool {
	switch r.Code {
	case http.StatusCreated, http.StatusOK:
		c.known.add(it.uid, it.version)
		c.count(map[int]string{http.StatusCreated: resultCreated, http.StatusOK: resultUnchanged}[r.Code])
	case http.StatusConflict:
		it.modified = true
		return false
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusNotFound:
		c.leaveOut(ctx, it, errors.New(r.Reason))
	default:
		return false
	}
	return true
}
