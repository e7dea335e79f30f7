package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Change is one frame of a watch.
type Change struct {
	Type    watch.EventType
	Object  json.RawMessage
	Version string // the object's resourceVersion
}

// Stream is an open watch.
type Stream struct {
	body   io.ReadCloser
	frames *json.Decoder
	server string
}

// watchSeconds is how long a server may hold one watch, somewhat at random: a connection that died in silence is given
// up after that, and watches do not all come back together.
const watchSeconds = 300

// Watch opens a watch of what changes after a version. query holds the selectors.
func (c *Client) Watch(ctx context.Context, path, version string, query url.Values) (*Stream, error) {
	q := url.Values{}
	maps.Copy(q, query)
	q.Set("watch", "true")
	q.Set("resourceVersion", version)
	q.Set("allowWatchBookmarks", "true")
	q.Set("timeoutSeconds", strconv.Itoa(watchSeconds+rand.IntN(watchSeconds)))
	resp, err := c.send(ctx, Request{Path: path, Query: q})
	if err != nil {
		return nil, err
	}
	return &Stream{body: resp.Body, frames: json.NewDecoder(resp.Body), server: c.Server()}, nil
}

// Next is the next frame. io.EOF is the ordinary end of a watch, which is resumed from the last version; any other error
// of the connection is an [UnreachableError], to be resumed likewise. An ERROR frame is the refusal that it carries.
func (s *Stream) Next() (Change, error) {
	var frame struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	err := s.frames.Decode(&frame)
	switch {
	case errors.Is(err, io.EOF):
		return Change{}, io.EOF
	case err != nil: // also half a frame: the server is gone
		return Change{}, &UnreachableError{Server: s.server, Err: err}
	}
	if frame.Type == watch.Error {
		var status metav1.Status
		if err := json.Unmarshal(frame.Object, &status); err != nil {
			return Change{}, fmt.Errorf("%s ended the watch with %s", s.server, frame.Object)
		}
		return Change{}, &apierrors.StatusError{ErrStatus: status}
	}
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(frame.Object, &object); err != nil || object.Metadata.ResourceVersion == "" {
		return Change{}, fmt.Errorf("%s sent a change without a version: %.200s", s.server, frame.Object)
	}
	return Change{Type: frame.Type, Object: frame.Object, Version: object.Metadata.ResourceVersion}, nil
}

// Close ends the watch.
func (s *Stream) Close() { _ = s.body.Close() }

// Gone reports whether the versions that were asked for are no longer kept.
func Gone(err error) bool { return Code(err) == http.StatusGone }

// Newer reports whether version a is later than b. Versions are numbers that grow (KEP-5504); what is no number is
// taken for newer unless it is the same.
func Newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY != nil {
		return a != b
	}
	return x > y
}
