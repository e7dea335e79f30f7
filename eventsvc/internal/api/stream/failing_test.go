package stream_test

import (
	"testing"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
)

// TestWatchThatFails: the stream has begun, so an ERROR event says why it ends.
func TestWatchThatFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string // type and reason of the only event; "" for a clean end
	}{
		{&store.ExpiredError{Revision: 1, Oldest: 5}, "ERROR Expired"},
		{&store.CorruptError{}, "ERROR InternalError"},
		{store.ErrClosed, ""},
	} {
		w := apitest.New(t)
		w.Config.Store = &apitest.Broken{Err: c.err}
		var err error
		if w.Server, err = api.New(w.Config); err != nil {
			t.Fatal(err)
		}
		s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&resourceVersion=5")
		apitest.Equal(t, s.Resp.StatusCode, 200)
		if c.want != "" {
			kind, object := s.Next()
			apitest.Equal(t, kind+" "+object["reason"].(string), c.want)
		}
		s.Ended()
	}
}
