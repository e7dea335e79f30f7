package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
)

const (
	resource = "/apis/events.k8s.io/v1/namespaces/"
	// shardLabel splits the events into a hundred equal parts, so that a
	// selector on it matches 1 %.
	shardLabel = "bench.tidings.example/shard"
	jsonType   = "application/json"
	protoType  = "application/vnd.kubernetes.protobuf"
	tableType  = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// note makes the event 1 kB long, like those that the peers were measured with.
var note = strings.Repeat("the quick brown fox jumps over the lazy dog; ", 9) + "done"

// events makes requests for the events of one namespace.
type events struct {
	namespace string
	host      string // the Host and Authorization header fields
	create    form
	get       form
}

// form is a request whose only difference from the next is an event's number.
type form struct {
	text    []byte
	numbers []int // where the number of the event goes
	shards  []int // where its last two digits go
}

const (
	numberHole = "##########"
	shardHole  = "@@"
)

func newEvents(host, token, namespace string) *events {
	e := &events{namespace: namespace, host: "Host: " + host + "\r\nAuthorization: Bearer " + token + "\r\n"}
	e.create = newForm(e.request("POST", e.path(), "Content-Type: "+jsonType+"\r\n", eventBody(namespace, time.Now())))
	e.get = newForm(e.request("GET", e.path()+"/"+load.NamePrefix+numberHole, "", ""))
	return e
}

// eventBody is an Event as a controller would report it.
func eventBody(namespace string, at time.Time) string {
	return `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"` + load.NamePrefix + numberHole +
		`","namespace":"` + namespace + `","labels":{"` + shardLabel + `":"` + shardHole + `","app":"checkout"}},` +
		`"eventTime":"` + at.UTC().Format("2006-01-02T15:04:05.000000Z07:00") +
		`","reportingController":"bench.tidings.example/controller","reportingInstance":"controller-7c9f4b6d8-x2x7p",` +
		`"action":"Scheduling","reason":"Scheduled","type":"Normal",` +
		`"regarding":{"apiVersion":"v1","kind":"Pod","namespace":"` + namespace + `","name":"checkout-` + numberHole +
		`","uid":"6f1c2a34-9d0b-4c55-8a77-` + numberHole + `00"},"note":"` + note + `"}`
}

// path is that of the collection.
func (e *events) path() string { return resource + e.namespace + "/events" }

// request formats a request of HTTP/1.1.
func (e *events) request(method, path, fields, body string) []byte {
	head := method + " " + path + " HTTP/1.1\r\n" + e.host + fields
	if body != "" {
		head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return []byte(head + "\r\n" + body)
}

func newForm(text []byte) form {
	return form{text, holes(text, numberHole), holes(text, shardHole)}
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

// fill appends the request for event i.
func (f *form) fill(dst []byte, i int) []byte {
	at := len(dst)
	dst = append(dst, f.text...)
	for _, hole := range f.numbers {
		digits(dst[at+hole:][:len(numberHole)], i)
	}
	for _, hole := range f.shards {
		digits(dst[at+hole:][:len(shardHole)], i)
	}
	return dst
}

// patch appends a patch of event i.
func (e *events) patch(dst []byte, i int, mediaType, body string) []byte {
	return append(dst, e.request("PATCH", e.path()+"/"+eventName(i), "Content-Type: "+mediaType+"\r\n", body)...)
}

// all is a request for the collection.
func (e *events) all(method, query, accept string) []byte {
	return e.request(method, e.path()+query, "Accept: "+accept+"\r\n", "")
}

// watch appends a watch from a revision.
func (e *events) watch(dst []byte, revision uint64) []byte {
	return append(dst, e.all("GET", "?watch=true&resourceVersion="+strconv.FormatUint(revision, 10), jsonType)...)
}

func eventName(i int) string {
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

// checkEvent expects the status in every answer and event number(i) in a sample.
func (e *events) checkEvent(status int, number func(i int) int) func(int, *load.Answer) error {
	expected := load.Status(status)
	return func(i int, a *load.Answer) error {
		if err := expected(i, a); err != nil || i%sampleEvery != 0 {
			return err
		}
		return e.decode(a.Body, number(i))
	}
}

// decode checks the JSON of event i.
func (e *events) decode(body []byte, i int) error {
	var got answered
	if err := json.Unmarshal(body, &got); err != nil {
		return fmt.Errorf("body: %w: %.300s", err, body)
	}
	m := got.Metadata
	if got.Kind != "Event" || m.Name != eventName(i) || m.Namespace != e.namespace || m.UID == "" || m.ResourceVersion == "" || got.Note != note {
		return fmt.Errorf("body is not event %d of %s: %.300s", i, e.namespace, body)
	}
	return nil
}

// checkFrame checks one line of a watch.
func (e *events) checkFrame(line []byte) error {
	var frame struct{ Object answered }
	if err := json.Unmarshal(line, &frame); err != nil {
		return fmt.Errorf("watch event: %w: %.300s", err, line)
	}
	if o := frame.Object; o.Kind != "Event" || o.Metadata.Namespace != e.namespace || o.Note != note {
		return fmt.Errorf("watch event is not one of %s: %.300s", e.namespace, line)
	}
	return nil
}

func same(i int) int { return i }
