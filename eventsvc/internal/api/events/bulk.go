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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/codec/request"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/httpserver"
)

// BulkPath is the path at which many events are stored by one request.
const BulkPath = "/bulk/v1/events"

const (
	// MaxBulk is how many events one request may have: they fit in one commit.
	MaxBulk = 1000
	// mediaNDJSON is the media type of a line of JSON for each event, and of the answer. A body can be an EventList in
	// protobuf too.
	mediaNDJSON = "application/x-ndjson"
	// maxResult is about what the answer for one event takes.
	maxResult = 1 << 10
)

// NewBulkCounter returns the metric of the lines of bulk requests, for [Config].
func NewBulkCounter() *prometheus.CounterVec {
	lines := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "eventsvc_bulk_events_total",
		Help: "Lines of requests to " + BulkPath + ", by the status code of each: 201 created, 200 a copy that was replaced or is there already, others refused.",
	}, []string{"code"})
	for _, code := range []string{"200", "201"} {
		lines.WithLabelValues(code) // begins at 0
	}
	return lines
}

// RouteBulk serves requests for many events of core/v1. Each event passes the checks of a create, each later version of
// a mirror's copy the checks of a replacement.
func RouteBulk(e *echo.Echo, c Config) {
	r := newResource(c, event.CoreV1)
	e.POST(BulkPath, c.Guard.AllowSome(r.groupResource, policy.Create, r.bulk))
}

// line is one event of a bulk request, and its result.
type line struct {
	Index           int    `json:"index"`
	Code            int    `json:"code"`
	Name            string `json:"name,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Replaced        bool   `json:"replaced,omitempty"`
	Reason          string `json:"reason,omitempty"` // of a refusal

	key       store.Key
	event     *eventsv1.Event // as prepareLine has left it
	writer    writer
	generated bool
	counted   bool // at the create rates
	copied    copied
}

// copied says which event of which cluster an event is a copy of, and in which version. uid is empty if it is no copy.
type copied struct{ cluster, uid, version string }

func copiedOf(ev *eventsv1.Event) copied {
	return copied{ev.Labels[event.ClusterLabel], ev.Annotations[event.SourceUID], ev.Annotations[event.SourceVersion]}
}

// compare compares the versions of two copies. same is false if they are not copies of the same event.
func (c copied) compare(other copied) (order int, same bool) {
	if c.uid == "" || c.uid != other.uid || c.cluster != other.cluster {
		return 0, false
	}
	if c.version == other.version {
		return 0, true
	}
	order, err := resourceversion.CompareResourceVersion(c.version, other.version)
	return order, err == nil
}

// bulk stores events, each as create or update does. New events, and one later version of each copy, share one commit.
func (r *Resource) bulk(c echo.Context) error {
	req := c.Request()
	// 1. Format, body, options, deadline.
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	proto := media == request.MediaTypes[request.Protobuf]
	if err != nil || media != mediaNDJSON && !proto {
		return errNoEvents()
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
	texts, err := linesOf(body, proto)
	if err != nil {
		return err
	}
	if n := len(texts) * maxResult; n > flow.FreeAnswer {
		if err := httpio.Unread(flow.FromContext(ctx).Room().Try(n)); err != nil {
			return err
		}
	}
	// 3. The event of each line: what is checked before the store.
	b := &bulk{
		Resource: r, c: c, ctx: ctx, writer: r.writer(c, access.Grant{}, true), options: options, proto: proto, lines: make([]line, len(texts)),
	}
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
func linesOf(body []byte, proto bool) (lines [][]byte, err error) {
	const tooMany = MaxBulk + 1
	if proto {
		lines, err = request.Items(body, tooMany)
	} else if body = bytes.TrimSuffix(body, []byte("\n")); len(body) > 0 {
		lines = bytes.SplitN(body, []byte("\n"), tooMany)
	}
	switch {
	case err != nil:
		return nil, err
	case len(lines) == 0:
		return nil, apierrors.NewBadRequest("the body has no events: send one in each line")
	case len(lines) == tooMany:
		return nil, httpio.Beyond("bulk-events", apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("the body has more than %d events: send them in several requests", MaxBulk)))
	}
	return lines, nil
}

// errNoEvents is the 415 for a body of another format.
func errNoEvents() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnsupportedMediaType, Code: http.StatusUnsupportedMediaType,
		Message: "the body must be " + mediaNDJSON + ": an event of core/v1 in each line, or " + request.MediaTypes[request.Protobuf] + ": an EventList of core/v1",
	}}
}

// bulk is one bulk request.
type bulk struct {
	*Resource
	c       echo.Context
	ctx     context.Context
	writer  writer // but for what it may do, which depends on the line
	options httpio.WriteOptions
	proto   bool // the lines are messages of events, not texts
	lines   []line
}

// read checks the event of a line, or refuses it. It returns errors that concern the whole request.
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
	var ev *eventsv1.Event
	var err error
	if b.proto {
		ev, err = b.Codec.Decoder.DecodeItem(text)
	} else {
		ev, _, err = b.Codec.Decoder.DecodeEvent(b.view, "", text, b.options.Validation)
	}
	if err != nil {
		return nil, err
	}
	event.DropDuplicateOwners(ev, false)
	if ev.Namespace == "" {
		return ev, apierrors.NewBadRequest("metadata.namespace is not set: name the namespace of the event")
	}
	return ev, nil
}

// prepareLine checks an event as create does.
func (b *bulk) prepareLine(l *line, ev *eventsv1.Event) error {
	may, err := b.Guard.Grant(b.c, b.groupResource, policy.Create, ev.Namespace, ev.Name)
	if err != nil {
		return err
	}
	if err := b.prepareNew(b.call(store.Key{Namespace: ev.Namespace}), may, ev, true); err != nil {
		return err
	}
	if l.generated = ev.Name == ""; l.generated {
		if err := b.generate(ev); err != nil {
			return err
		}
	}
	l.Name, l.key.Name, l.copied, l.event = ev.Name, ev.Name, copiedOf(ev), ev
	l.writer = b.writer
	l.writer.may = may
	return nil
}

// call returns the request as a call for one event, for code that is shared with the other verbs.
func (b *bulk) call(key store.Key) *call[httpio.WriteOptions] {
	return &call[httpio.WriteOptions]{ctx: b.ctx, key: key, options: b.options}
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

// settle notes why a line is refused. It returns errors that concern the whole request: such a request may be sent
// again.
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

// store stores the events that were not refused. Events with different keys share a commit. Lines with the same key are
// decided in their order, each in a later commit.
func (b *bulk) store() error {
	var waiting []*line
	for i := range b.lines {
		if b.lines[i].Code == 0 {
			waiting = append(waiting, &b.lines[i])
		}
	}
	for first := true; len(waiting) > 0; first = false {
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
		outcomes := target(b.Store, b.options.DryRun).UpdateMany(b.ctx, keys, func(i int) store.Expect {
			if first && !b.mayBeStored(now[i]) {
				return store.Absent
			}
			return store.Any
		}, func(i int, current *store.Record) (store.Decision, error) { return b.decide(now[i], current) })
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

// mayBeStored reports whether the event of a line is looked up before it is decided: because it is probably a later
// version of a copy, or because there are create rates, at which a stored copy does not count.
func (b *bulk) mayBeStored(l *line) bool {
	return l.copied.uid != "" && (l.event.Series != nil || l.event.DeprecatedCount > 1 || b.Guard.HasRates())
}

// decide creates the event of a line, or replaces an earlier version of the same copy. If the stored copy has this
// version or a later one, nothing changes. If the name belongs to another event, the answer is a 409.
func (b *bulk) decide(l *line, current *store.Record) (store.Decision, error) {
	switch {
	case current == nil:
		return b.decideNew(l)
	case l.generated:
		return store.Decision{}, apierrors.NewGenerateNameConflict(b.groupResource, l.Name, 1)
	case !l.writer.may.Sees(current.Attributes):
		return store.Decision{}, b.taken(l.Name, nil)
	}
	live, err := b.Codec.Event(current.View())
	if err != nil {
		return store.Decision{}, err
	}
	switch order, same := copiedOf(live).compare(l.copied); {
	case !same:
		return store.Decision{}, b.taken(l.Name, live)
	case order < 0:
		return b.replace(l, current)
	default:
		return store.Decision{}, nil
	}
}

// decideNew creates the event of a line, unless the create rates refuse it.
func (b *bulk) decideNew(l *line) (store.Decision, error) {
	if !l.counted {
		if err := b.Guard.CountCreate(b.c, l.key.Namespace); err != nil {
			return store.Decision{}, err
		}
		l.counted = true
	}
	draft, err := b.draft(b.ctx, l.writer, l.event, nil, nil)
	return store.Decision{Op: store.Put, Draft: draft}, err
}

// replace replaces the stored version of a copy, as update does.
func (b *bulk) replace(l *line, current *store.Record) (store.Decision, error) {
	w := l.writer
	var err error
	if w.may, err = b.Guard.Grant(b.c, b.groupResource, policy.Update, l.key.Namespace, l.Name); err != nil {
		return store.Decision{}, err
	}
	if err := w.may.MayStore(l.Name, l.copied.cluster); err != nil { // and so it sees the stored version
		return store.Decision{}, err
	}
	d, _, err := b.Resource.decide(b.ctx, w, l.key, current, func(live *eventsv1.Event) (*eventsv1.Event, error) {
		next := l.next(live)
		return next, b.prepare(b.call(l.key), w.may, live, next, true)
	})
	return d, err
}

// next returns the event of a line as the successor of a stored version of the same copy. Labels of the stored version
// stay, because they describe the object when the event was created, but for those that [event.SourceLabels] of the
// line names. Annotations that the line lacks stay too.
func (l *line) next(live *eventsv1.Event) *eventsv1.Event {
	next := *l.event
	next.UID, next.ManagedFields = "", nil // prepareLine set them for a create
	next.Labels, next.Annotations = labels.Merge(next.Labels, live.Labels), labels.Merge(live.Annotations, next.Annotations)
	for key := range strings.SplitSeq(l.event.Annotations[event.SourceLabels], ",") {
		if value, has := l.event.Labels[key]; has {
			next.Labels[key] = value
		}
	}
	if owner, known := live.Labels[event.OwnerNameLabel]; known && owner != l.event.Labels[event.OwnerNameLabel] {
		delete(next.Annotations, event.OwnerNameLabel) // the whole name of another owner
		if whole, long := live.Annotations[event.OwnerNameLabel]; long {
			next.Annotations[event.OwnerNameLabel] = whole
		}
	}
	return &next
}

// stored notes the outcome of a line.
func (b *bulk) stored(l *line, o *store.Outcome) error {
	l.event = nil
	if o.Err != nil {
		return b.settle(l, o.Err)
	}
	l.Code, l.Replaced = http.StatusOK, o.Op != store.Keep && !o.Created
	if o.Created {
		l.Code = http.StatusCreated
	}
	if o.Op == store.Put && !b.options.DryRun {
		b.Arrivals.note(l.writer, &o.Record)
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
		wrote.Add(l.key.Namespace, l.Code, l.Replaced)
		if l.Code >= http.StatusBadRequest {
			refused++
		}
	}
	ctx := b.c.Request().Context()
	httpserver.Annotate(ctx, slog.Int("events", len(b.lines)), slog.Int("refused_events", refused))
	audit.Stored(ctx, wrote)
}

// answer answers with a line for each line.
func (b *bulk) answer() error {
	var out bytes.Buffer
	results := json.NewEncoder(&out)
	results.SetEscapeHTML(false) // nothing here is a page
	for i := range b.lines {
		l := &b.lines[i]
		l.Name, l.Reason = cut(l.Name), cut(l.Reason) // a name that is refused may be as long as the body
		if err := results.Encode(l); err != nil {
			return err
		}
	}
	return b.IO.Writer(b.c, http.StatusOK, mediaNDJSON).Send(out.Bytes())
}

// cut returns a text, or the beginning of a long one.
func cut(text string) string {
	if len(text) <= maxResult {
		return text
	}
	return strings.ToValidUTF8(text[:maxResult], "") + " …"
}
