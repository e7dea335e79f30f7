package loki

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/stream"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/logql"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/bearer"
)

// maxDelay is how many seconds a client may have its lines delayed, which Loki allows so
// that late ones are in order. Nothing comes late here.
const maxDelay = 5

// messageBytes is about how many bytes of lines and labels one message has, before they are escaped.
const messageBytes = 1 << 20

// tailing is an open tail.
type tailing struct {
	api         *API
	request     *request
	caller      *bearer.Caller
	log         *logql.Log
	socket      *stream.Socket
	seat        *flow.Seat
	watcher     store.Watcher
	query       store.WatchQuery
	known       *streams
	categorized bool
	last        time.Time // of the newest line that was sent
	sent        uint64    // revision up to which everything was sent
}

// tail serves /tail, a WebSocket: the newest lines since start, and those that follow. An
// event that is observed again is a line again.
func (a *API) tail(c echo.Context) error {
	r, err := a.begin(c, policy.Watch)
	if err != nil {
		return err
	}
	t := &tailing{api: a, request: r, categorized: r.categorized(), last: r.now}
	t.caller, _ = bearer.FromContext(r.ctx) // begin refuses a request without one
	return a.Guard.Seated(policy.Watch, func(c echo.Context) error {
		r.ctx, r.Context = c.Request().Context(), c
		return t.serve()
	})(c)
}

// serve answers the request. It holds the seat while it reads and matches, but not while it
// waits for changes or for the client.
func (t *tailing) serve() error {
	reason := ""
	first, err := t.begin()
	if t.socket != nil {
		defer func() { t.socket.Close(reason) }()
	}
	if t.watcher != nil {
		defer func() { t.watcher.Close() }()
	}
	if err != nil {
		return explain(err)
	}
	t.seat.Yield()
	if err := t.socket.Accept(); err != nil {
		return nil // and answered
	}
	ctx := t.socket.Context()
	t.request.turns = flow.NewTurns(ctx)
	if t.send(first) != nil {
		return nil // the client has gone
	}
	reason = t.follow(ctx)
	return nil
}

// parameters reads the query, the range of lines that come first, and how many of them.
func (t *tailing) parameters() (in period, limit int, err error) {
	r := t.request
	if t.log, err = logql.ParseLog(r.values.Get("query")); err != nil {
		return in, 0, err
	}
	if in, err = r.times(); err != nil {
		return in, 0, err
	}
	if text := r.values.Get("delay_for"); text != "" && text != "0" {
		if _, err := r.number("delay_for", 0, maxDelay); err != nil {
			return in, 0, badRequest("delay_for can't be greater than %d", maxDelay)
		}
	}
	limit, err = r.number("limit", lineLimit, maxLines)
	return in, limit, err
}

// begin opens the watch, and reads the lines since start.
func (t *tailing) begin() (first []*entry, err error) {
	r := t.request
	in, limit, err := t.parameters()
	if err != nil {
		return nil, err
	}
	if t.socket, err = t.api.Streams.Socket(r.Context, t.readable); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.socket.Context(), maxTime) // for what there is
	defer cancel()
	r.ctx, r.turns, t.seat = ctx, flow.NewTurns(ctx), flow.FromContext(ctx)
	room, kept := t.socket.Room(), 0
	if err := room.Take(r.ctx, roomOfLines(limit)); err != nil {
		return nil, httpio.Unread(err)
	}
	t.sent = t.api.Store.Revision()
	t.known = t.api.selected(r, t.log)
	for _, m := range t.log.Matchers {
		if m.Name == "namespace" && m.Op == "=" {
			t.query.Namespace = m.Value
		}
	}
	if err := t.watch(r.ctx); err != nil {
		return nil, err
	}
	var found []*entry
	var full error
	err = t.api.scan(r, t.log, in.lines(false), true, func(e *entry) bool {
		if e.at.Revision <= t.sent { // what is newer comes with the watch
			found = append(found, e)
			kept += e.size() + entryBytes
			full = room.Grow(kept)
		}
		return len(found) < limit && full == nil
	})
	if err := cmp.Or(err, full); err != nil {
		return nil, httpio.Unread(err)
	}
	slices.Reverse(found)
	return found, nil
}

// readable reports whether the caller may still watch any namespace. It is called beside
// the handler.
func (t *tailing) readable() bool {
	return slices.ContainsFunc(t.api.Guard.Policy().Rules(t.caller), func(rule policy.Rule) bool { return rule.Verbs&policy.Watch != 0 })
}

// watch opens the watch behind what was sent, in place of the one that is open.
func (t *tailing) watch(ctx context.Context) error {
	t.query.After = t.sent
	w, err := t.api.Store.Watch(ctx, t.query)
	if err != nil {
		return err // t.watcher is not a nil interface, which Close would panic on
	}
	if t.watcher != nil {
		t.watcher.Close()
	}
	t.watcher = w
	return nil
}

// follow sends lines until the socket has to end. It returns a reason for the client if something failed here.
func (t *tailing) follow(ctx context.Context) (reason string) {
	for {
		t.seat.Yield()
		if err := stream.CatchUp(ctx, t.watcher, t.socket.Room()); err != nil {
			return "" // the client does not read its other answers
		}
		batch, err := t.watcher.Next(ctx)
		if _, lost := errors.AsType[*store.ExpiredError](err); lost && ctx.Err() == nil {
			t.sent = t.api.Store.Revision()
			if t.watch(ctx) != nil && ctx.Err() == nil {
				return "lines were lost and changes cannot be followed at present: please open another tail"
			}
			if t.dropped() != nil {
				return ""
			}
			continue
		}
		if err != nil {
			return ""
		}
		found, err := t.lines(batch.Changes)
		if err != nil && ctx.Err() == nil {
			return "an event cannot be read"
		}
		if err != nil || t.send(found) != nil {
			return ""
		}
		t.sent = batch.Revision
	}
}

// dropped tells the client that lines are missing.
func (t *tailing) dropped() error {
	t.seat.Yield()
	b := strconv.AppendInt([]byte(`{"streams":[],"dropped_entries":[{"timestamp":"`), t.last.UnixNano(), 10)
	return t.socket.Send(append(b, `","labels":{}}]}`...))
}

// lines returns the lines of changes.
func (t *tailing) lines(changes []store.Delivery) (found []*entry, err error) {
	turns := t.request.turns
	reads, rights := t.api.reader(turns, t.log, true), t.api.Guard.Policy()
	for _, change := range changes {
		if !turns.Next() {
			return nil, turns.Err()
		}
		v := change.Object.View()
		occurrence, ok := v.Attributes.Occurrence()
		if change.Type == store.Removed || ok && occurrence.New == 0 || !rights.Decide(t.caller, policy.Watch, v.Namespace).Clusters.Match(v.Attributes.Get(event.ClusterLabel)) {
			continue
		}
		if wanted, err := t.known.wants(event.DimensionsOf(v.Namespace, v.Attributes)); err != nil {
			return nil, err
		} else if !wanted {
			continue
		}
		if e := reads.entry(v); e != nil {
			e.at = store.Moment{Time: e.Time, Revision: v.Revision}
			found = append(found, e)
		}
		if reads.ended() {
			return nil, reads.err
		}
	}
	return found, nil
}

// send sends lines, in several messages if they are long.
func (t *tailing) send(found []*entry) error {
	for n, size := 0, 0; len(found) > 0; found, n, size = found[n:], 0, 0 {
		if !t.request.turns.Next() {
			return t.request.turns.Err()
		}
		for ; n < len(found) && size < messageBytes; n++ {
			size += found[n].size()
		}
		message := t.message(found[:n])
		t.seat.Yield()
		if err := t.socket.Send(message); err != nil {
			return err
		}
	}
	t.seat.Yield()
	return nil
}

// message is one of entries.
func (t *tailing) message(found []*entry) []byte {
	t.last = found[len(found)-1].at.Time
	b := appendStreams([]byte(`{"streams":`), found, t.categorized)
	if t.categorized {
		b = append(b, `,"encodingFlags":["categorize-labels"]`...)
	}
	return append(b, '}')
}
