package ctl

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
)

// record creates events.
type record struct {
	access              `embed:""`
	Namespace           string            `env:"-" short:"n" placeholder:"NAME" help:"The namespace. Default: the namespace of the kubeconfig's context, or default."`
	Regarding           string            `env:"-" placeholder:"KIND/NAME" help:"The object that the event is about."`
	RegardingAPIVersion string            `env:"-" name:"regarding-api-version" placeholder:"VERSION" help:"API version of that object, such as apps/v1."`
	Type                string            `env:"-" default:"Normal" placeholder:"TYPE" help:"Normal or Warning."`
	Reason              string            `env:"-" placeholder:"REASON" help:"Why, in one word for machines, such as BackupFailed."`
	Action              string            `env:"-" placeholder:"ACTION" help:"What was done, in one word for machines. Default: the reason."`
	Note                string            `env:"-" placeholder:"TEXT" help:"A sentence for people."`
	Label               map[string]string `env:"-" short:"l" placeholder:"NAME=VALUE;..." help:"Labels."`
	ReportingController string            `env:"-" default:"tidings.example/record" placeholder:"NAME" help:"The controller that reports the event."`
	ReportingInstance   string            `env:"-" placeholder:"NAME" help:"The instance of that controller. Default: the name of this machine."`
	Name                string            `env:"-" placeholder:"NAME" help:"Name of the event. Default: made of the object's name and a hash of the event."`
	File                string            `env:"-" short:"f" placeholder:"FILE" help:"Record many: one event of events.k8s.io/v1 or core/v1 in JSON per line; - is standard input. The other settings fill in what a line leaves out."`
	Parallel            int               `env:"-" default:"8" help:"Events that are sent at the same time."`
	Timeout             time.Duration     `env:"-" default:"1m" help:"How long an event is retried while the server, or the token service, is away or busy."`
	Output              string            `env:"-" short:"o" default:"table" enum:"table,json,ndjson" help:"What to print for each event: table is NAMESPACE/NAME; json or ndjson is the stored event."`
}

// Help is shown below the settings.
func (*record) Help() string {
	return `Examples:

    eventsvc record --regarding Job/nightly --reason BackupFailed --type Warning --note "no space left on /backup"
    eventsvc record -n shop --regarding Deployment/web --reason Deployed --label version=1.4.2
    eventsvc record -f - < events.ndjson

A line without an apiVersion is an event of events.k8s.io/v1. A line is refused with its number if it is of another kind or has
an unknown field; the other lines are recorded.

If an answer is lost, the event is sent again under the same name, so that it is never stored twice. The name of a line is
made of its content. So a file whose lines have an eventTime can be recorded again after a failure: events that are stored
already stay as they are.

Exit codes: 0 everything is recorded, 1 something is not recorded (standard error says what), 2 usage.`
}

// maxLine is the longest line of a file: the largest body that the server accepts.
const maxLine = 3 << 20

// recording is a running record command.
type recording struct {
	*record
	client    *client.Client
	group     event.Group
	namespace string // if an event names none
	bar       *terminal.Progress
	screen    bool // standard output and the progress are on the same terminal

	mu             sync.Mutex // guards the following fields and the output
	waitsForServer bool       // and has printed that
	waitsForToken  bool       // and has printed that
	stdout, stderr io.Writer
	stored, failed int
}

// Run records one event, or the events of a file.
func (r *record) Run(ctx context.Context, std IO) error {
	if r.Parallel < 1 || r.Timeout < 0 {
		return cli.Usagef("--parallel %d must be positive, --timeout %s not negative", r.Parallel, r.Timeout)
	}
	if r.File == "" && r.Reason == "" {
		return cli.Usagef("--reason is not set: say in one word why, or give events with --file")
	}
	if r.File != "" && r.Name != "" {
		return cli.Usagef("--name and --file exclude each other: many events cannot have one name")
	}
	group, err := event.NewGroup(r.GroupDomain)
	if err != nil {
		return cli.Usagef("--group-domain: %w", err)
	}
	c, namespace, err := r.open()
	if err != nil {
		return err
	}
	run := &recording{
		record: r, client: c, group: group, namespace: cmp.Or(r.Namespace, namespace), bar: terminal.NewProgress(std.Err), stdout: std.Out, stderr: std.Err,
		screen: terminal.Width(std.Out) > 0,
	}
	if r.File == "" {
		ev := &eventsv1.Event{}
		run.complete(event.EventsV1, ev, rand.Text())
		return at(c, run.store(ctx, event.EventsV1, ev))
	}
	in := std.In
	if r.File != "-" {
		file, err := os.Open(r.File)
		if err != nil {
			return cli.Usagef("--file: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	return run.many(ctx, in)
}

// many records one event per line. It continues after a line that cannot be recorded.
func (r *recording) many(ctx context.Context, in io.Reader) error {
	var lines sync.WaitGroup
	places := make(chan struct{}, r.Parallel)
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 64<<10), maxLine)
	number, begun := 0, false
	for ctx.Err() == nil && scanner.Scan() {
		number++
		n, text := number, bytes.Clone(bytes.TrimSpace(scanner.Bytes()))
		if len(text) == 0 {
			continue
		}
		if !begun && isDump(text) {
			return errDump
		}
		begun = true
		places <- struct{}{}
		lines.Go(func() {
			r.line(ctx, n, text)
			<-places
		})
	}
	lines.Wait()
	r.bar.Clear()
	switch err := scanner.Err(); {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %d recorded, %d failed; the same input can be recorded again", r.stored, r.failed)
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d is longer than %d bytes, and nothing behind it was read: %d recorded", number+1, maxLine, r.stored)
	case err != nil:
		return fmt.Errorf("reading line %d: %w", number+1, err)
	case r.failed > 0:
		return fmt.Errorf("%d of %d events are not recorded", r.failed, r.failed+r.stored)
	}
	return nil
}

// errDump is the error of a file that has events in another form than one a line.
var errDump = errors.New("this is a dump, such as a list, a watch or YAML, and not one event a line: eventsvc import reads it, and keeps its uids and times")

// isDump reports whether a file begins like a list, a watch, YAML or a packed file. Of a pretty-printed object, it
// is a bracket.
func isDump(line []byte) bool {
	var head struct {
		Kind          string
		Items, Object json.RawMessage
	}
	for _, begin := range []string{"[{", "---", "apiVersion:", "items:", "kind:", "\x1f\x8b", "PK\x03\x04"} {
		if bytes.HasPrefix(line, []byte(begin)) {
			return true
		}
	}
	if len(line) == 1 && (line[0] == '{' || line[0] == '[') {
		return true
	}
	if json.Unmarshal(line, &head) != nil {
		return false
	}
	return strings.HasSuffix(head.Kind, "List") || head.Items != nil || head.Object != nil
}

// line records the event of one line and prints why it cannot be recorded.
func (r *recording) line(ctx context.Context, number int, text []byte) {
	view, ev, err := r.decode(text)
	if err == nil {
		r.complete(view, ev, fmt.Sprint(number))
		err = r.store(ctx, view, ev)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && ctx.Err() == nil { // after an interruption the event may be stored
		r.failed++
		r.bar.Clear()
		fmt.Fprintf(r.stderr, "eventsvc: line %d: %s\n", number, printable.OneLine(err.Error()))
	}
	r.bar.Show("%d recorded, %d failed", r.stored, r.failed)
}

// decode reads the event of a line, and returns the view through which it can be created. A server drops fields that it
// does not know, so that they are refused here.
func (r *recording) decode(text []byte) (event.View, *eventsv1.Event, error) {
	if text[0] != '{' {
		return 0, nil, errors.New("no event in JSON: a line is one object")
	}
	ev := &eventsv1.Event{}
	unknown, err := event.Decode(text, ev, true)
	view, known := r.group.ViewOf(cmp.Or(ev.APIVersion, r.group.APIVersion(event.EventsV1)))
	if !known || ev.Kind != "" && ev.Kind != event.Kind {
		return 0, nil, fmt.Errorf("it is a %.100q of %.100q: write an Event of %s or v1, and the items of a list one a line",
			cmp.Or(ev.Kind, event.Kind), cmp.Or(ev.APIVersion, "no apiVersion"), r.group.APIVersion(event.EventsV1))
	}
	if view == event.CoreV1 {
		core := &corev1.Event{}
		unknown, err = event.Decode(text, core, true)
		ev = event.FromCore(core)
	}
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("no event in JSON: %w", err)
	case len(unknown) > 0 && ev.APIVersion == "":
		return 0, nil, fmt.Errorf(`%.200w; correct it or leave it out, and if the event is one of core/v1, write "apiVersion":"v1"`, unknown[0])
	case len(unknown) > 0:
		return 0, nil, fmt.Errorf("%.200w: correct it or leave it out", unknown[0])
	case ev.DeprecatedCount != 0 || ev.DeprecatedSource != (corev1.EventSource{}) || !ev.DeprecatedFirstTimestamp.IsZero() || !ev.DeprecatedLastTimestamp.IsZero():
		view = event.CoreV1 // the other view shows these fields, but refuses them in a new event
	}
	return view, ev, nil
}

// complete sets fields that an event lacks, and clears those that only the server sets. If the event has no time,
// unique makes its name different from all others.
func (r *recording) complete(view event.View, ev *eventsv1.Event, unique string) {
	ev.Kind, ev.APIVersion = event.Kind, r.group.APIVersion(view)
	ev.UID, ev.ResourceVersion, ev.CreationTimestamp, ev.ManagedFields = "", "", metav1.Time{}, nil
	switch {
	case !ev.EventTime.IsZero(), view == event.CoreV1 && !event.LastSeen(ev).IsZero():
		unique = ""
	default:
		ev.EventTime = metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	}
	ev.Namespace = cmp.Or(ev.Namespace, r.namespace)
	ev.Type = cmp.Or(ev.Type, r.Type)
	ev.Reason = cmp.Or(ev.Reason, r.Reason)
	ev.Note = cmp.Or(ev.Note, r.Note)
	if source := ev.DeprecatedSource; !ev.EventTime.IsZero() || source == (corev1.EventSource{}) { // others are reported by their source
		ev.Action = cmp.Or(ev.Action, r.Action, ev.Reason)
		ev.ReportingController = cmp.Or(ev.ReportingController, source.Component, r.ReportingController)
		host, _ := os.Hostname()
		ev.ReportingInstance = cmp.Or(ev.ReportingInstance, source.Host, r.ReportingInstance, host, "unknown")
	}
	if ev.Regarding == (corev1.ObjectReference{}) && r.Regarding != "" {
		kind, name, _ := strings.Cut(r.Regarding, "/")
		ev.Regarding = corev1.ObjectReference{Kind: kind, Name: name, Namespace: ev.Namespace, APIVersion: r.RegardingAPIVersion}
	}
	if view == event.EventsV1 || ev.Namespace != metav1.NamespaceDefault { // objects of no namespace have core/v1 events in default
		ev.Regarding.Namespace = cmp.Or(ev.Regarding.Namespace, ev.Namespace)
	}
	if len(r.Label) > 0 {
		all := maps.Clone(r.Label)
		maps.Copy(all, ev.Labels)
		ev.Labels = all
	}
	ev.GenerateName = "" // an event with a generated name cannot be sent again safely
	if ev.Name = cmp.Or(ev.Name, r.Name); ev.Name == "" {
		ev.Name = madeName(ev, unique)
	}
}

// madeName returns a name for an event: the same one for the same event, so that it can be sent again.
func madeName(ev *eventsv1.Event, unique string) string {
	content, _ := json.Marshal(ev) // cannot fail: every member can be encoded
	sum := sha256.Sum256(append(content, unique...))
	base := "event"
	if name := strings.ToLower(ev.Regarding.Name); len(name) <= 200 && len(validation.IsDNS1123Subdomain(name)) == 0 {
		base = name
	}
	return fmt.Sprintf("%s.%x", base, sum[:8])
}

// store creates an event through a view, once, and prints it.
func (r *recording) store(ctx context.Context, view event.View, ev *eventsv1.Event) error {
	deadline := time.Now().Add(r.Timeout)
	var wait client.Backoff
	again := func(err error) error {
		pause := wait.Next(err)
		if !client.Retryable(err) || time.Now().Add(pause).After(deadline) || client.Sleep(ctx, pause) != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		said := &r.waitsForServer
		if _, ok := errors.AsType[*client.TokenError](err); ok {
			said = &r.waitsForToken
		}
		if !*said && client.Code(err) != http.StatusTooManyRequests { // print once why nothing happens
			*said = true
			r.bar.Clear()
			fmt.Fprintf(r.stderr, "eventsvc: trying again for %s: %s\n", r.Timeout, printable.OneLine(err.Error()))
		}
		return nil
	}
	same := func(stored json.RawMessage) bool {
		there := event.NewObject(view)
		return json.Unmarshal(stored, there) == nil && sameEvent(event.Hub(there), ev)
	}
	path := client.EventsPath(r.group.GroupVersion(view).Group, ev.Namespace)
	stored, err := r.client.Create(ctx, path, ev.Name, r.group.Show(view, ev), same, again)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored++
	if r.screen {
		r.bar.Clear()
	}
	return r.print(ev, stored)
}

// sameEvent compares the fields that the author sets. The server sets others, and labels may have been added since.
func sameEvent(there, sent *eventsv1.Event) bool {
	a, b := there.DeepCopy(), sent.DeepCopy()
	a.TypeMeta, b.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	a.ObjectMeta, b.ObjectMeta = metav1.ObjectMeta{}, metav1.ObjectMeta{}
	a.EventTime, b.EventTime = metav1.NewMicroTime(a.EventTime.UTC()), metav1.NewMicroTime(b.EventTime.UTC())
	a.Series, b.Series = nil, nil // the series may have continued
	return equality.Semantic.DeepEqual(a, b)
}

func (r *recording) print(ev *eventsv1.Event, stored json.RawMessage) error {
	if r.Output == "table" {
		_, err := fmt.Fprintln(r.stdout, printable.OneLine(ev.Namespace+"/"+ev.Name))
		return err
	}
	var out bytes.Buffer
	if err := writeJSON(&out, r.Output, stored); err != nil {
		return err
	}
	_, err := r.stdout.Write(out.Bytes())
	return err
}
