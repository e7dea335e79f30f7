//go:build linux

package powercut

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Every version of an event has two annotations: the request that has written
// it, and data whose checksum the model remembers.
const (
	requestAnnotation = "powercut/request"
	dataAnnotation    = "powercut/data"
)

// A requestID names a request. It is the time at which the request was sent, in
// nanoseconds, moved on where two are equal.
type requestID int64

var lastRequest atomic.Int64

func newRequestID() requestID {
	for {
		last := lastRequest.Load()
		if id := max(time.Now().UnixNano(), last+1); lastRequest.CompareAndSwap(last, id) {
			return requestID(id)
		}
	}
}

func (id requestID) age() time.Duration { return time.Since(time.Unix(0, int64(id))) }

// A change is a version of an event or its deletion, as lists and watches show it.
type change struct {
	revision uint64
	key      string // namespace/name
	deleted  bool
	request  requestID // of a version
	sum      uint64    // of its data
}

func (c change) String() string {
	if c.deleted {
		return fmt.Sprintf("the deletion of %s at %d", c.key, c.revision)
	}
	return fmt.Sprintf("%s at %d by request %d of %s", c.key, c.revision, c.request, time.Unix(0, int64(c.request)).Format("15:04:05.000"))
}

var table = crc64.MakeTable(crc64.ECMA)

func sum(data string) uint64 { return crc64.Checksum([]byte(data), table) }

// buckets is how many labels there are, by which parts of a collection are deleted.
const buckets = 3

func bucket(name string) int { return int(crc32.ChecksumIEEE([]byte(name)) % buckets) }

// event is an event in JSON.
func event(namespace, name string, id requestID, data string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":%q,"namespace":%q,"labels":{"bucket":"%d"},`+
		`"annotations":{%q:"%d",%q:%q}},"eventTime":"2026-01-02T03:04:05.000000Z","type":"Normal","reason":"Cut","action":"Cutting",`+
		`"regarding":{"kind":"Pod","name":"pod","namespace":%q},"reportingController":"example.com/powercut","reportingInstance":"powercut"}`,
		name, namespace, bucket(name), requestAnnotation, id, dataAnnotation, data, namespace)
}

// patch is a merge patch that changes the annotations of an event.
func patch(id requestID, data string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d",%q:%q}}}`, requestAnnotation, id, dataAnnotation, data)
}

// send makes a request and returns the answer, or an error where there was none.
func (s *service) send(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.api+"/apis/events.k8s.io/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", contentType)
	return s.client.Do(req)
}

// call makes a request and reads the answer.
func (s *service) call(ctx context.Context, method, path, contentType string, body []byte) (status int, answer []byte, err error) {
	resp, err := s.send(ctx, method, path, contentType, body)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// revisionIn finds the resourceVersion in an answer: it comes before everything
// that the writer of an event chooses, except names, which have no quotes.
func revisionIn(answer []byte) uint64 {
	_, after, _ := bytes.Cut(answer, []byte(`"resourceVersion":"`))
	digits, _, _ := strings.Cut(string(after[:min(len(after), 24)]), `"`)
	revision, _ := strconv.ParseUint(digits, 10, 64)
	return revision
}

// An object is an event, or a Status, in a list or a watch.
type object struct {
	Code     int
	Message  string
	Metadata struct {
		Name, Namespace string
		ResourceVersion uint64 `json:",string"`
		Annotations     struct {
			Request requestID `json:"powercut/request,string"`
			Data    string    `json:"powercut/data"`
		}
	}
}

func (o *object) change(deleted bool) change {
	m := &o.Metadata
	c := change{revision: m.ResourceVersion, key: m.Namespace + "/" + m.Name, deleted: deleted}
	if !deleted {
		c.request, c.sum = m.Annotations.Request, sum(m.Annotations.Data)
	}
	return c
}

// list returns all events, page by page, and the revision that they are of.
func (s *service) list(ctx context.Context) (all []change, revision uint64, err error) {
	for next := ""; ; {
		status, answer, err := s.call(ctx, http.MethodGet, "events?limit=500&continue="+url.QueryEscape(next), "", nil)
		if err != nil {
			return nil, 0, fmt.Errorf("list: %w", err)
		}
		if status != http.StatusOK {
			return nil, 0, fmt.Errorf("list: %d %.300s", status, answer)
		}
		var list struct {
			Metadata struct {
				ResourceVersion uint64 `json:",string"`
				Continue        string
			}
			Items []object
		}
		if err := json.Unmarshal(answer, &list); err != nil {
			return nil, 0, fmt.Errorf("list: %w", err)
		}
		for i := range list.Items {
			all = append(all, list.Items[i].change(false))
		}
		if revision, next = list.Metadata.ResourceVersion, list.Metadata.Continue; next == "" {
			return all, revision, nil
		}
	}
}

// errGone says that the revision to watch from is no longer kept.
var errGone = errors.New("410 Gone")

// watch calls each for all changes after a revision until it returns false.
func (s *service) watch(ctx context.Context, from uint64, each func(change) bool) error {
	resp, err := s.send(ctx, http.MethodGet, fmt.Sprintf("events?watch=true&resourceVersion=%d", from), "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for lines := json.NewDecoder(resp.Body); ; {
		var line struct {
			Type   string
			Object object
			Code   int
		}
		if err := lines.Decode(&line); err != nil {
			return err
		}
		switch {
		case line.Code == http.StatusGone || line.Object.Code == http.StatusGone:
			return errGone
		case line.Type != "ADDED" && line.Type != "MODIFIED" && line.Type != "DELETED":
			return fmt.Errorf("watch: %s %+v", resp.Status, line)
		case !each(line.Object.change(line.Type == "DELETED")):
			return nil
		}
	}
}
