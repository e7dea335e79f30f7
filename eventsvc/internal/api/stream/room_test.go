package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/api/stream"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
)

// told is a store whose changes are what a test tells.
type told struct {
	store.Store
	changes chan store.Batch
	behind  bool // the changes are of this watch alone
	closed  int
}

func (s *told) Revision() uint64 { return 7 }

func (s *told) Watch(context.Context, store.WatchQuery) (store.Watcher, error) { return s, nil }

func (s *told) Next(ctx context.Context) (store.Batch, error) {
	select {
	case b := <-s.changes:
		return b, nil
	case <-ctx.Done():
		return store.Batch{}, ctx.Err()
	}
}

func (s *told) Behind() bool { return s.behind }

func (s *told) Close() { s.closed++ }

// tell makes a change with a value.
func (s *told) tell(value string) {
	s.changes <- store.Batch{Revision: 8, Changes: []store.Delivery{{Object: &store.Version{Record: store.Record{Value: []byte(value)}}}}}
}

// lines is a source of lines.
type lines struct {
	first string // the state at the beginning
	grow  int    // bytes that the frame of a change takes beside its value
}

func (l *lines) Begin(context.Context) (uint64, error) { return 7, nil }

func (l *lines) Initial(ctx context.Context, s *stream.Stream) error {
	if err := s.Reserve(ctx, len(l.first)); err != nil {
		return err
	}
	return s.Append(append(s.Buffer(), l.first+"\n"...), nil)
}

func (l *lines) Deliver(_ context.Context, s *stream.Stream, d store.Delivery) error {
	b := append(s.Buffer(), d.Object.Value...)
	return s.Append(append(append(b, make([]byte, l.grow)...), '\n'), nil)
}

func (l *lines) Bookmark(s *stream.Stream, initialEnd bool) error {
	return s.Append(fmt.Appendf(s.Buffer(), "BOOKMARK %d %v\n", s.Revision, initialEnd), nil)
}

// watched is a watch without a server around it.
type watched struct {
	*direct
	*told
	rec    *httptest.ResponseRecorder
	follow func()
	err    error
}

// newWatched opens a watch of the client a. Full says that the client has no room, until it is given back.
func newWatched(t *testing.T, from *lines, o metav1.ListOptions, full, behind bool, changes ...func(*stream.Config)) (w *watched, giveBack func()) {
	t.Helper()
	w = &watched{told: &told{changes: make(chan store.Batch, 1), behind: behind}}
	w.direct = newDirect(t, append(changes, func(c *stream.Config) { c.Store = w.told })...)
	giveBack = func() {}
	if full {
		giveBack = w.fill("a").Free
	}
	c, rec := asking(t, client("a"))
	may, err := w.Guard.Grant(c, schema.GroupResource{Resource: "events"}, policy.Watch, "", "")
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := codec.New("k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	f := codec.Format{Media: codec.JSON}
	w.rec = rec
	w.follow, w.err = w.Open(c, may, o, store.WatchQuery{}, f, encoder.NewFrames(f, event.CoreV1), from)
	return w, giveBack
}

// withState asks for the state first.
func withState() metav1.ListOptions {
	return metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true}
}

// beyond fails the test unless an answer is the 429 of a client that does not read.
func beyond(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(text, `"type":"ERROR"`) || !strings.Contains(text, `"code":429`) || !strings.Contains(text, "this client has not read the answers to its other requests") {
		t.Errorf("not an ERROR event with a 429: %q", text)
	}
}

// TestWatchWithoutRoom: while a client does not read its other answers, a watch does not send what it alone has, and
// ends. Where it can wait for room, it does so for a time, and a 429 says why it ends.
func TestWatchWithoutRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behind bool
		value  string // of the change
		grow   int
	}{
		"changes that others do not share":       {behind: true, value: "small"},
		"a large change":                         {value: strings.Repeat("x", 100<<10)},
		"a change that is large when it is sent": {value: "small", grow: 100 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, given := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					w, giveBack := newWatched(t, &lines{grow: c.grow}, metav1.ListOptions{}, true, c.behind)
					if w.err != nil {
						t.Fatal(w.err)
					}
					if given && c.grow > 0 {
						giveBack() // that does not wait
					}
					w.tell(c.value)
					ended := make(chan struct{})
					go func() { w.follow(); close(ended) }()
					synctest.Wait()
					if given {
						giveBack()
						synctest.Wait()
						if want := c.value + string(make([]byte, c.grow)) + "\n"; w.rec.Body.String() != want {
							t.Errorf("%d bytes came, want %d", w.rec.Body.Len(), len(want))
						}
						w.Drain(t.Context())
					}
					<-ended
					if text := w.rec.Body.String(); !given {
						beyond(t, text)
						if strings.Contains(text, c.value) {
							t.Error("a change came for which there is no room")
						}
					}
					giveBack()
					apitest.Equal(t, []float64{w.open(t), w.unread(t), float64(w.closed)}, []float64{0, 0, 1})
				})
			}
		})
	}
}

// TestStateWithoutRoom: a watch that begins with the state is refused with a 429 before its first byte, and takes
// nothing.
func TestStateWithoutRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, giveBack := newWatched(t, &lines{first: "state"}, withState(), true, false)
		limit, ok := errors.AsType[*event.LimitError](w.err)
		if !ok || limit.Limit != "client-answers" || !apierrors.IsTooManyRequests(w.err) || w.follow != nil || w.rec.Body.Len() > 0 {
			t.Errorf("%v after %q", w.err, w.rec.Body)
		}
		giveBack()
		apitest.Equal(t, []float64{w.open(t), w.unread(t)}, []float64{0, 0})
	})
}

// TestLargeState: the state comes before its bookmark, however large it is, and bookmarks come in time.
func TestLargeState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		state := strings.Repeat("x", 1<<20)
		w, _ := newWatched(t, &lines{first: state}, withState(), false, false, func(c *stream.Config) { c.Bookmarks = time.Minute })
		if w.err != nil {
			t.Fatal(w.err)
		}
		ended := make(chan struct{})
		go func() { w.follow(); close(ended) }()
		synctest.Wait()
		if got, want := w.rec.Body.String(), state+"\nBOOKMARK 7 true\n"; got != want {
			t.Errorf("%d bytes came, want %d", len(got), len(want))
		}
		apitest.Equal(t, w.unread(t), 0.0) // all is read
		w.rec.Body = &bytes.Buffer{}
		w.tell("small")
		synctest.Wait()
		<-time.After(time.Minute + time.Minute/10) // no bookmark is later
		synctest.Wait()
		apitest.Equal(t, w.rec.Body.String(), "small\nBOOKMARK 8 false\n")
		w.Drain(t.Context())
		<-ended
		apitest.Equal(t, w.rec.Body.String(), "small\nBOOKMARK 8 false\nBOOKMARK 8 false\n")
	})
}

// TestWatchThatIsNoLongerAllowed: what was allowed when the request came, and is not when the watch is counted, ends
// before any change.
func TestWatchThatIsNoLongerAllowed(t *testing.T) {
	t.Parallel()
	d := newDirect(t, func(c *stream.Config) { c.Store = &told{} })
	f := codec.Format{Media: codec.JSON}
	open := func(may access.Grant, options metav1.ListOptions, who string) (follow func(), body string, err error) {
		caller := client(who)
		if who == "" {
			caller = nil
		}
		c, rec := asking(t, caller)
		follow, err = d.Open(c, may, options, store.WatchQuery{}, f, nil, &lines{})
		if follow != nil {
			follow()
		}
		return follow, rec.Body.String(), err
	}
	_, body, err := open(access.Grant{}, metav1.ListOptions{AllowWatchBookmarks: true}, "a")
	if err != nil || body != "BOOKMARK 7 false\n" {
		t.Errorf("%q, %v", body, err)
	}
	if follow, body, err := open(access.Grant{}, metav1.ListOptions{}, ""); follow != nil || body != "" || !apierrors.IsUnauthorized(err) {
		t.Errorf("without a caller: %q, %v", body, err)
	}
	apitest.Equal(t, d.open(t), 0.0)
}
