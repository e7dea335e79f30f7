package httpio_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/event"
)

// TestBody: a body is read up to the limit, whether its length is declared or not, and the answer
// to one that cannot be read tells whether the client, its network or a limit is the reason.
func TestBody(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	whole := strings.Repeat("x", limit)
	for name, c := range map[string]struct {
		body     io.Reader
		declared int64
		want     string
		code     int32
		limit    string
		err      error
	}{
		"none":               {body: strings.NewReader(""), declared: 0},
		"as declared":        {body: strings.NewReader("{}"), declared: 2, want: "{}"},
		"not declared":       {body: strings.NewReader(whole), declared: -1, want: whole},
		"a byte at a time":   {body: iotest.OneByteReader(strings.NewReader(whole)), declared: limit, want: whole},
		"declared too large": {body: iotest.ErrReader(errors.New("it was read")), declared: limit + 1, code: 413, limit: "body"},
		"too large":          {body: strings.NewReader(whole + "x"), declared: -1, code: 413, limit: "body"},
		"late":               {body: iotest.ErrReader(os.ErrDeadlineExceeded), declared: 2, code: 408, limit: "body-time"},
		"broken":             {body: io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)), declared: 2, code: 400},
		"client gone":        {body: iotest.ErrReader(context.Canceled), declared: 2, err: context.Canceled},
		"no seat in time":    {body: iotest.ErrReader(context.DeadlineExceeded), declared: 2, err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httpio.New(slog.New(slog.DiscardHandler), limit, nil)
			for range 2 { // the second time with a buffer that was given back
				r := httptest.NewRequest("POST", "/", nil)
				r.Body, r.ContentLength = io.NopCloser(c.body), c.declared
				body, free, err := s.Body(r)
				if c.code == 0 && c.err == nil {
					if err != nil || string(body) != c.want {
						t.Fatalf("%d bytes, want %d: %v", len(body), len(c.want), err)
					}
					free()
					c.body = bytes.NewReader([]byte(c.want))
					continue
				}
				refused, _ := errors.AsType[*event.LimitError](err)
				var api apierrors.APIStatus
				errors.As(err, &api)
				switch {
				case c.err != nil && !errors.Is(err, c.err):
					t.Errorf("%v, want %v", err, c.err)
				case c.code != 0 && (api == nil || api.Status().Code != c.code):
					t.Errorf("%v, want %d", err, c.code)
				case (refused == nil) != (c.limit == "") || refused != nil && refused.Limit != c.limit:
					t.Errorf("%v, want one of the limit %q", err, c.limit)
				}
				break
			}
		})
	}
}
