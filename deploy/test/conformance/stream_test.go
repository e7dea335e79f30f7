package conformance_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// change is one event of a watch.
type change struct {
	kind   string
	object object
}

// String is short: "ADDED a".
func (c change) String() string {
	if name := c.object.text("metadata.name"); name != "" {
		return c.kind + " " + name
	}
	return c.kind
}

// stream is an open watch in JSON.
type stream struct {
	res     *http.Response
	changes chan change
	ended   chan error
}

// watch opens a watch; it is closed with the test.
func (s *server) watch(t *testing.T, path string) *stream {
	t.Helper()
	return s.watchAs(t, path, "")
}

func (s *server) watchAs(t *testing.T, path, accept string) *stream {
	t.Helper()
	return s.watchBy(t, call{method: "GET", path: path, accept: accept})
}

func (s *server) watchBy(t *testing.T, c call) *stream {
	t.Helper()
	res, err := s.plain.Do(s.request(t, c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("watch %s: %s: %s", c.path, res.Status, body)
	}
	w := &stream{res: res, changes: make(chan change), ended: make(chan error, 1)}
	go w.read(t.Context().Done())
	return w
}

func (w *stream) read(stop <-chan struct{}) {
	lines := bufio.NewReader(w.res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) && len(line) == 0 {
				err = nil
			}
			w.ended <- err
			return
		}
		var c struct {
			Type   string
			Object object
		}
		if err := json.Unmarshal(line, &c); err != nil {
			w.ended <- fmt.Errorf("%w: %s", err, line)
			return
		}
		select {
		case w.changes <- change{c.Type, c.Object}:
		case <-stop:
			return
		}
	}
}

// next waits for the next change.
func (w *stream) next(t *testing.T) change {
	t.Helper()
	select {
	case c := <-w.changes:
		return c
	case err := <-w.ended:
		t.Fatalf("the watch ended: %v", err)
	case <-time.After(patience):
		t.Fatal("waited in vain for a change")
	}
	return change{}
}

// want checks the next changes, as "ADDED a".
func (w *stream) want(t *testing.T, changes ...string) []change {
	t.Helper()
	var got []change
	for _, want := range changes {
		c := w.next(t)
		if c.String() != want {
			t.Fatalf("got %s, want %s: %v", c, want, c.object)
		}
		got = append(got, c)
	}
	return got
}

// end waits until the server ends the watch, which must be a clean end.
func (w *stream) end(t *testing.T) {
	t.Helper()
	select {
	case c := <-w.changes:
		t.Fatalf("got %s, want the end", c)
	case err := <-w.ended:
		if err != nil {
			t.Fatalf("the watch broke: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("waited in vain for the end")
	}
}

const bookmark = "BOOKMARK"

// initialEnd tells whether a change is the bookmark behind the initial state.
func (c change) initialEnd() bool {
	return c.kind == bookmark && annotation(c.object, metav1.InitialEventsAnnotationKey) == "true"
}

func annotation(o object, key string) string {
	all, _ := o.at("metadata.annotations").(map[string]any)
	v, _ := all[key].(string)
	return v
}
