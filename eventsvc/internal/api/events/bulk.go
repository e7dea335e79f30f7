package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/httpserver"
)

// BulkPath is the path at which many events are created by one request.
const BulkPath = "/bulk/v1/events"

const (
	// MaxBulk is how many events one request may create: they fit in one commit.
	MaxBulk = 1000
	// mediaNDJSON is the media type of a line of JSON for each event, and of the answer.
	mediaNDJSON = "application/x-ndjson"
	// maxResult is about what the answer for one event takes.
	maxResult = 1 << 10
)

// NewBulkCounter returns the metric of the lines of bulk requests, for [Config].
func NewBulkCounter() *prometheus.CounterVec {
	lines := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "eventsvc_bulk_events_total",
		Help: "Lines of requests to " + BulkPath + ", by the status code of each: 201 created, 200 there already, others refused.",
	}, []string{"code"})
	for _, code := range []string{"200", "201"} {
		lines.WithLabelValues(code) // begins at 0
	}
	return lines
}

// RouteBulk serves the creation of many events of core/v1 in one request: what a create checks is checked for each.
func RouteBulk(e *echo.Echo, c Config) {
	r := newResource(c, event.CoreV1)
	e.POST(BulkPath, c.Guard.AllowSome(r.groupResource, policy.Create, r.bulk))
}

// line is one event of a bulk request, and what the answer says of it.
type line struct {
	Index           int    `json:"index"`
	Code            int    `json:"code"`
	Name            string `json:"name,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Reason          string `json:"reason,omitempty"` // of a refusal

	key       store.Key
	draft     store.Draft
	writer    writer
	generated bool
	copied    copied
}

// copied tells the copy of a mirror from other events: what it is a copy of, and in which version.
type copied struct{ cluster, uid, version string }

func copiedOf(ev *eventsv1.Event) copied {
	return copied{ev.Labels[event.ClusterLabel], ev.Annotations[event.SourceUID], ev.Annotations[event.SourceVersion]}
}

// shows reports whether a stored copy is of the same event as other, in the same version or a later one.
func (c copied) shows(other copied) bool {
	if c.uid == "" || c.uid != other.uid || c.cluster != other.cluster {
		return false
	}
	if c.version == other.version {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(c.version, other.version)
	return err == nil && order > 0
}

// bulk stores new events, each as create does, in one commit.
func (r *Resource) bulk(c echo.Context) error {
	req := c.Request()
	// 1. Format, body, options, deadline.
	if media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || media != mediaNDJSON {
		return errNoNDJSON()
	}
	body, free, err := r.IO.Body(req)
	if err != nil {
		return err
	}
	defer free()
	q := httpio.QueryOf(req)
	options, err := httpio.ParseWrite(httpio.CreateOptions, "")(req, q, nil)
	if err != nil {
		return err
	}
	ctx, cancel, err := httpio.Deadline(req.Context(), q, httpio.MaxWriteTime)
	if err != nil {
		return err
	}
	defer cancel()
	// 2. The lines, and room for their answers.
	texts, err := linesOf(body)
	if err != nil {
		return err
	}
	if n := len(texts) * maxResult; n > flow.FreeAnswer {
		if err := httpio.Unread(flow.FromContext(ctx).Room().Try(n)); err != nil {
			return err
		}
	}
	// 3. The event of each line: what is checked before the store.
	b := &bulk{Resource: r, c: c, ctx: ctx, writer: r.writer(c, access.Grant{}, true), options: options, lines: make([]line, len(texts))}
	for i, text := range texts {
		if err := b.read(i, text); err != nil {
			return err
		}
	}
	// 4. The store.
	err = b.store()
	b.tell()
	if err != nil {
		return err
	}
	// 5. The answer.
	return b.answer()
}

// linesOf splits a body. The last line may end without a newline.
func linesOf(body []byte) ([][]byte, error) {
	body = bytes.TrimSuffix(body, []byte("\n"))
	n := bytes.Count(body, []byte("\n")) + 1
	switch {
	case len(body) == 0:
		return nil, apierrors.NewBadRequest("the body has no events: send one in each line")
	case n > MaxBulk:
		return nil, httpio.Beyond("bulk-events", apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("the body has %d events, the limit is %d: send them in several requests", n, MaxBulk)))
	}
	return bytes.Split(body, []byte("\n")), nil
}

// errNoNDJSON is the 415 for a body of another format.
func errNoNDJSON() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnsupportedMediaType, Code: http.StatusUnsupportedMediaType,
		Message: "the body must be " + mediaNDJSON + ": an event of core/v1 in each line",
	}}
}

// bulk is one bulk request.
type bulk struct {
	*Resource
	c       echo.Context
	ctx     context.Context
	writer  writer // but for what it may do, which depends on the line
	options httpio.WriteOptions
	lines   []line
}

// read makes the draft of a line, or refuses it. It returns errors that concern the whole request.
func (b *bulk) read(i int, text []byte) error {
	if err := flow.FromContext(b.ctx).Acquire(b.ctx); err != nil { // others go first after a while
		return err
	}
	l := &b.lines[i]
	l.Index = i
	ev, err := b.decodeLine(text)
	if ev != nil {
		l.Name, l.key.Namespace = ev.Name, ev.Namespace
	}
	if err == nil {
		err = b.prepareLine(l, ev)
	}
	return b.settle(l, err)
}

// decodeLine reads the event of a line.
func (b *bulk) decodeLine(text []byte) (*eventsv1.Event, error) {
	ev, _, err := b.Codec.Decoder.DecodeEvent(b.view, "", text, b.options.Validation)
	if err != nil {
		return nil, err
	}
	event.DropDuplicateOwners(ev, false)
	if ev.Namespace == "" {
		return ev, apierrors.NewBadRequest("metadata.namespace is not set: name the namespace of the event")
	}
	return ev, nil
}

// prepareLine checks an event as create does, and makes its draft.
func (b *bulk) prepareLine(l *line, ev *eventsv1.Event) error {
	may, err := b.Guard.CreateIn(b.c, b.groupResource, ev.Namespace, ev.Name)
	if err != nil {
		return err
	}
	in := &call[httpio.WriteOptions]{ctx: b.ctx, key: store.Key{Namespace: ev.Namespace}, options: b.options}
	if err := b.prepareNew(in, may, ev, true); err != nil {
		return err
	}
	if l.generated = ev.Name == ""; l.generated {
		if err := b.generate(ev); err != nil {
			return err
		}
	}
	l.Name, l.key.Name, l.copied = ev.Name, ev.Name, copiedOf(ev)
	l.writer = b.writer
	l.writer.may = may
	l.draft, err = b.draft(b.ctx, l.writer, ev, nil, nil)
	return err
}

// generate gives an event a name that no other has.
func (b *bulk) generate(ev *eventsv1.Event) error {
	for range nameAttempts {
		ev.Name = event.GenerateName(ev.GenerateName)
		err := b.Store.Get(b.ctx, store.Key{Namespace: ev.Namespace, Name: ev.Name}, func(*store.View) error { return nil })
		if errors.Is(err, store.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return apierrors.NewGenerateNameConflict(b.groupResource, ev.Name, 1)
}

// settle notes why a line is refused. It returns errors that concern the whole request: such a request may be sent again.
func (b *bulk) settle(l *line, err error) error {
	switch {
	case err == nil:
		return nil
	case b.ctx.Err() != nil, errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrFull), errors.Is(err, store.ErrUnavailable),
		errors.Is(err, store.ErrUnwritable), errors.Is(err, store.ErrClosed):
		return err
	}
	st := b.IO.Refusal(b.c, err)
	l.Code, l.Reason = int(st.Code), cmp.Or(st.Message, string(st.Reason))
	return nil
}

// store creates the events that were not refused, all in one commit. Lines with the same key are decided
// in their order.
func (b *bulk) store() error {
	var waiting []*line
	for i := range b.lines {
		if b.lines[i].Code == 0 {
			waiting = append(waiting, &b.lines[i])
		}
	}
	for expect := store.Absent; len(waiting) > 0; expect = store.Any {
		var now, later []*line
		var keys []store.Key
		taken := map[store.Key]bool{}
		for _, l := range waiting {
			if taken[l.key] {
				later = append(later, l)
				continue
			}
			taken[l.key] = true
			now, keys = append(now, l), append(keys, l.key)
		}
		outcomes := target(b.Store, b.options.DryRun).UpdateMany(b.ctx, keys, func(int) store.Expect { return expect },
			func(i int, current *store.Record) (store.Decision, error) { return b.decide(now[i], current) })
		var failed error
		for i := range outcomes {
			failed = cmp.Or(failed, b.stored(now[i], &outcomes[i]))
		}
		if failed != nil {
			return failed
		}
		waiting = later
	}
	return nil
}

// decide creates the event of a line. If the same copy has the name already, nothing changes; any other event there is a 409.
func (b *bulk) decide(l *line, current *store.Record) (store.Decision, error) {
	if current == nil {
		return store.Decision{Op: store.Put, Draft: l.draft}, nil
	}
	if l.generated {
		return store.Decision{}, apierrors.NewGenerateNameConflict(b.groupResource, l.Name, 1)
	}
	if !l.writer.may.Sees(current.Attributes) {
		return store.Decision{}, b.taken(l.Name, nil)
	}
	live, err := b.Codec.Event(current.View())
	if err != nil || copiedOf(live).shows(l.copied) {
		return store.Decision{}, err
	}
	return store.Decision{}, b.taken(l.Name, live)
}

// stored notes what the store has made of a line.
func (b *bulk) stored(l *line, o *store.Outcome) error {
	l.draft = store.Draft{}
	if o.Err != nil {
		return b.settle(l, o.Err)
	}
	l.Code = http.StatusOK
	if o.Op == store.Put {
		l.Code = http.StatusCreated
		if !b.options.DryRun {
			b.Arrivals.note(l.writer, &o.Record)
		}
	}
	l.ResourceVersion = httpio.FormatVersion(o.Record.Revision)
	return nil
}

// tell counts the lines that are decided, and tells the logs of them: all, unless the request fails.
func (b *bulk) tell() {
	refused, wrote := 0, audit.Wrote{}
	for i := range b.lines {
		l := &b.lines[i]
		if l.Code == 0 {
			continue
		}
		b.Bulk.WithLabelValues(strconv.Itoa(l.Code)).Inc()
		wrote.Add(l.key.Namespace, l.Code)
		if l.Code >= http.StatusBadRequest {
			refused++
		}
	}
	ctx := b.c.Request().Context()
	httpserver.Annotate(ctx, slog.Int("events", len(b.lines)), slog.Int("refused_events", refused))
	audit.Created(ctx, wrote)
}

// answer answers with a line for each line.
func (b *bulk) answer() error {
	var out bytes.Buffer
	results := json.NewEncoder(&out)
	results.SetEscapeHTML(false) // nothing here is a page
	for i := range b.lines {
		l := &b.lines[i]
		if len(l.Reason) > maxResult {
			l.Reason = strings.ToValidUTF8(l.Reason[:maxResult], "") + " …"
		}
		if err := results.Encode(l); err != nil {
			return err
		}
	}
	return b.IO.Writer(b.c, http.StatusOK, mediaNDJSON).Send(out.Bytes())
}
