package target

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
)

// Media types of answers.
const (
	JSONType  = "application/json"
	ProtoType = "application/vnd.kubernetes.protobuf"
	TableType = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

const (
	group    = "/apis/events.k8s.io/v1"
	resource = group + "/namespaces/"
	// ShardLabel splits the events into a hundred equal parts, so that a
	// selector on it matches 1 %.
	ShardLabel = "bench.tidings.example/shard"
)

// note makes the event 1 kB long, like those that the peers were measured with.
var note = strings.Repeat("the quick brown fox jumps over the lazy dog; ", 9) + "done"

// Events makes requests for the events of one namespace, or of all if its name is empty.
type Events struct {
	namespace string
	host      string // the Host and Authorization header fields
	Create    Form
	Get       Form
	line      Form // of a bulk request
}

// Form is a request whose only difference from the next is an event's number.
type Form struct {
	text    []byte
	numbers []int // where the number of the event goes
	shards  []int // where its last two digits go
}

// NumberHole is where a Form has the number of an event, in as many digits.
// shardHole is where it has the last two of them.
const (
	NumberHole = "##########"
	shardHole  = "@@"
)

// NewEvents makes requests for a namespace, with a token, to a host with its port.
func NewEvents(host, token, namespace string) *Events {
	return newEvents(host, "Bearer "+token, namespace)
}

// WithPassword makes requests for a namespace, with the id and the secret of client i, which eventsvc trades for a
// token.
func (s *Services) WithPassword(i int, namespace string) *Events {
	return newEvents(s.EventsAddr.String(), "Basic "+base64.StdEncoding.EncodeToString([]byte(ClientID(i)+":"+ClientSecret)), namespace)
}

func newEvents(host, authorization, namespace string) *Events {
	e := &Events{namespace: namespace, host: "Host: " + host + "\r\nAuthorization: " + authorization + "\r\n"}
	e.Create = NewForm(e.Request("POST", e.Path(), "Content-Type: "+JSONType+"\r\n", eventBody(namespace, "Scheduled", "Normal", time.Now())))
	e.line = NewForm([]byte(coreBody(namespace, "Scheduled", "Normal", time.Now()) + "\n"))
	e.Get = NewForm(e.Request("GET", e.Path()+"/"+load.NamePrefix+NumberHole, "", ""))
	return e
}

// eventBody is an Event as a controller would report it.
func eventBody(namespace, reason, kind string, at time.Time) string {
	return `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"` + load.NamePrefix + NumberHole +
		`","namespace":"` + namespace + `","labels":{"` + ShardLabel + `":"` + shardHole + `","app":"checkout"}},` +
		`"eventTime":"` + at.UTC().Format("2006-01-02T15:04:05.000000Z07:00") +
		`","reportingController":"bench.tidings.example/controller","reportingInstance":"controller-7c9f4b6d8-x2x7p",` +
		`"action":"Scheduling","reason":"` + reason + `","type":"` + kind + `",` +
		`"regarding":{"apiVersion":"v1","kind":"Pod","namespace":"` + namespace + `","name":"checkout-` + NumberHole +
		`","uid":"6f1c2a34-9d0b-4c55-8a77-` + NumberHole + `00"},"note":"` + note + `"}`
}

// coreBody is the same Event of core/v1.
func coreBody(namespace, reason, kind string, at time.Time) string {
	return strings.NewReplacer(`"apiVersion":"events.k8s.io/v1"`, `"apiVersion":"v1"`, `"regarding":`, `"involvedObject":`, `"note":`, `"message":`,
		`"reportingController":`, `"reportingComponent":`).Replace(eventBody(namespace, reason, kind, at))
}

// Path is the path of the collection.
func (e *Events) Path() string {
	if e.namespace == "" {
		return group + "/events"
	}
	return resource + e.namespace + "/events"
}

// Request formats a request of HTTP/1.1.
func (e *Events) Request(method, path, fields, body string) []byte {
	head := method + " " + path + " HTTP/1.1\r\n" + e.host + fields
	if body != "" {
		head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return []byte(head + "\r\n" + body)
}

// NewForm makes a form of the bytes of a request with holes.
func NewForm(text []byte) Form {
	return Form{text, holes(text, NumberHole), holes(text, shardHole)}
}

func holes(text []byte, hole string) (at []int) {
	for from := 0; ; from++ {
		i := bytes.Index(text[from:], []byte(hole))
		if i < 0 {
			return at
		}
		from += i
		at = append(at, from)
	}
}

// digits writes n in exactly the width of dst.
func digits(dst []byte, n int) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

// Fill appends the request for event i.
func (f *Form) Fill(dst []byte, i int) []byte {
	at := len(dst)
	dst = append(dst, f.text...)
	for _, hole := range f.numbers {
		digits(dst[at+hole:][:len(NumberHole)], i)
	}
	for _, hole := range f.shards {
		digits(dst[at+hole:][:len(shardHole)], i)
	}
	return dst
}

// Bulk appends a request that creates the events from i*n to i*n+n-1.
func (e *Events) Bulk(dst []byte, i, n int) []byte {
	head := "POST /bulk/v1/events HTTP/1.1\r\n" + e.host + "Content-Type: application/x-ndjson\r\nContent-Length: " + strconv.Itoa(n*len(e.line.text)) + "\r\n\r\n"
	dst = append(dst, head...)
	for event := range n {
		dst = e.line.Fill(dst, i*n+event)
	}
	return dst
}

// CheckBulk checks that all n events of a request were created.
func CheckBulk(n int) func(int, *load.Answer) error {
	return func(i int, a *load.Answer) error {
		if err := load.Status(http.StatusOK)(i, a); err != nil {
			return err
		}
		if created := bytes.Count(a.Body, []byte(`"code":201,`)); created != n {
			return fmt.Errorf("%d of %d events are created: %.300s", created, n, a.Body)
		}
		return nil
	}
}

// Patch appends a patch of event i.
func (e *Events) Patch(dst []byte, i int, mediaType, body string) []byte {
	return append(dst, e.Request("PATCH", e.Path()+"/"+EventName(i), "Content-Type: "+mediaType+"\r\n", body)...)
}

// All is a request for the collection.
func (e *Events) All(method, query, accept string) []byte {
	return e.Request(method, e.Path()+query, "Accept: "+accept+"\r\n", "")
}

// Watch appends a watch from a revision.
func (e *Events) Watch(dst []byte, revision uint64) []byte {
	return append(dst, e.All("GET", "?watch=true&resourceVersion="+strconv.FormatUint(revision, 10), JSONType)...)
}

// EventName is the name of event i.
func EventName(i int) string {
	return fmt.Sprintf("%s%010d", load.NamePrefix, i)
}

// answered is what is looked at in an answer that holds an event.
type answered struct {
	Kind     string
	Metadata struct {
		Name, Namespace, UID, ResourceVersion string
	}
	Note   string
	Series struct{ Count int }
}

// sampleEvery is how many answers pass between two whose body is decoded.
const sampleEvery = 499

// CheckEvent expects the status in every answer and event number(i) in a sample.
func (e *Events) CheckEvent(status int, number func(i int) int) func(int, *load.Answer) error {
	expected := load.Status(status)
	return func(i int, a *load.Answer) error {
		if err := expected(i, a); err != nil || i%sampleEvery != 0 {
			return err
		}
		return e.decode(a.Body, number(i))
	}
}

// decode checks the JSON of event i.
func (e *Events) decode(body []byte, i int) error {
	var got answered
	if err := json.Unmarshal(body, &got); err != nil {
		return fmt.Errorf("body: %w: %.300s", err, body)
	}
	m := got.Metadata
	if got.Kind != "Event" || m.Name != EventName(i) || m.Namespace != e.namespace || m.UID == "" || m.ResourceVersion == "" || got.Note != note {
		return fmt.Errorf("body is not event %d of %s: %.300s", i, e.namespace, body)
	}
	return nil
}

// CheckFrame checks one line of a watch.
func (e *Events) CheckFrame(line []byte) error {
	var frame struct{ Object answered }
	if err := json.Unmarshal(line, &frame); err != nil {
		return fmt.Errorf("watch event: %w: %.300s", err, line)
	}
	if o := frame.Object; o.Kind != "Event" || o.Metadata.Namespace != e.namespace || o.Note != note {
		return fmt.Errorf("watch event is not one of %s: %.300s", e.namespace, line)
	}
	return nil
}

// Same numbers an event as its request.
func Same(i int) int { return i }
