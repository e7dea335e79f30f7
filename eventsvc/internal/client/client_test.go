package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/shared/tokenclient"
)

func open(t *testing.T, handler http.HandlerFunc, tokens *client.Tokens) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Server: server.URL + "/base/", Tokens: tokens, UserAgent: "test/1"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTokenIsReplaced: when the server refuses a token, a new one is fetched once, and the request is sent again.
func TestTokenIsReplaced(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	good := "Bearer t1"
	c := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != good {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = fmt.Fprintf(w, "%q", r.URL.Path+" "+r.Header.Get("User-Agent"))
	}, client.FetchedToken(func(context.Context) (string, time.Time, error) {
		return fmt.Sprintf("t%d", fetched.Add(1)), time.Now().Add(5 * time.Minute), nil
	}))
	for range 3 {
		var answer string
		if err := c.Do(t.Context(), client.Request{Path: "/x"}, &answer); err != nil || answer != "/base/x test/1" {
			t.Fatalf("%s %v", answer, err)
		}
	}
	good = "Bearer t2"
	if err := c.Do(t.Context(), client.Request{Method: "POST", Path: "/x", Body: struct{}{}}, nil); err != nil || fetched.Load() != 2 {
		t.Fatalf("%d tokens, %v", fetched.Load(), err)
	}
	good = "Bearer none"
	if err := c.Do(t.Context(), client.Request{Path: "/x"}, nil); client.Code(err) != 401 || fetched.Load() != 3 {
		t.Fatalf("%d tokens, %v", fetched.Load(), err)
	}
}

// TestNoOtherToken: if a token is refused and no other can be fetched, the error tells why there is none, because the
// request may succeed later.
func TestNoOtherToken(t *testing.T) {
	t.Parallel()
	away := &tokenclient.UnavailableError{Err: errors.New("away"), RetryAfter: 9 * time.Second}
	fetched := 0
	c := open(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		client.FetchedToken(func(context.Context) (string, time.Time, error) {
			if fetched++; fetched > 1 {
				return "", time.Time{}, away
			}
			return "t", time.Now().Add(5 * time.Minute), nil
		}))
	err := c.Do(t.Context(), client.Request{Path: "/x"}, nil)
	if !errors.Is(err, away) || !client.Retryable(err) {
		t.Errorf("%v", err)
	}
	var wait client.Backoff
	if pause := wait.Next(err); pause < 9*time.Second {
		t.Errorf("it waits for %s", pause)
	}
}

// TestFailureIsShared: callers that wait while a token is fetched in vain do not fetch one after the other.
func TestFailureIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		tokens := client.FetchedToken(func(context.Context) (string, time.Time, error) {
			fetched++
			time.Sleep(30 * time.Second) // of the clock of the bubble
			return "", time.Time{}, errors.New("away")
		})
		began := time.Now()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := tokens.Token(t.Context()); err == nil {
					t.Error("a token")
				}
			})
		}
		all.Wait()
		if fetched != 1 || time.Since(began) != 30*time.Second {
			t.Errorf("%d were fetched in %s", fetched, time.Since(began))
		}
		if _, _ = tokens.Token(t.Context()); fetched != 2 {
			t.Errorf("%d were fetched after a later request", fetched)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	c := open(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}, nil)
	busy := c.Do(t.Context(), client.Request{Path: "/x"}, nil)
	if !client.Retryable(busy) {
		t.Fatal(busy)
	}
	var b client.Backoff
	for range 20 {
		if d := b.Next(busy); d < 7*time.Second || d > 12*time.Second {
			t.Errorf("%s after a Retry-After of 7 s", d)
		}
	}
	b.Reset()
	bound := 200 * time.Millisecond
	for range 20 {
		if d := b.Next(nil); d < bound/2 || d > bound+time.Millisecond {
			t.Errorf("%s, want about %s", d, bound)
		}
		bound = min(2*bound, 15*time.Second)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := b.Wait(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestFollow simulates a server that ends watches in every possible way.
func TestFollow(t *testing.T) {
	t.Parallel()
	const list = `{"kind":"List","metadata":{"resourceVersion":"%d"},"items":[]}`
	frame := func(n int) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"resourceVersion":"%d"}}}`+"\n", n)
	}
	var asked []string
	step := 0
	c := open(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("watch") == "" {
			_, _ = fmt.Fprintf(w, list, 100)
			return
		}
		asked = append(asked, q.Get("resourceVersion"))
		after, _ := strconv.Atoi(q.Get("resourceVersion"))
		step++
		switch step {
		case 1: // a clean end
			_, _ = w.Write([]byte(frame(after+1) + frame(after+2)))
		case 2: // nothing at all
		case 3: // half a frame
			_, _ = w.Write([]byte(frame(after+1) + `{"type":"ADD`))
		case 4:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 5: // only a version
			_, _ = w.Write([]byte(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"50"}}}` + "\n"))
		case 6: // busy in the stream
			_, _ = w.Write([]byte(`{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":429,"details":{"retryAfterSeconds":1}}}`))
		case 7: // the answer breaks off
			_, _ = w.Write([]byte(frame(after + 1)))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			_, _ = w.Write([]byte(`{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}}`))
		}
	}, nil)
	var got []string
	interrupted := 0
	err := c.Follow(t.Context(), "/x", "10", nil, client.Follower{
		Connected: func() {}, Interrupted: func(error) { interrupted++ },
		Change: func(ch client.Change) error {
			if ch.Seen() {
				got = append(got, ch.Version)
			}
			return nil
		},
	})
	if !client.Gone(err) || !strings.Contains(err.Error(), "too old") {
		t.Error(err)
	}
	if want := []string{"11", "12", "13", "51"}; !slices.Equal(got, want) {
		t.Errorf("changes %v, want %v", got, want)
	}
	if want := []string{"10", "12", "12", "13", "13", "50", "50", "51"}; !slices.Equal(asked, want) {
		t.Errorf("asked from %v, want %v", asked, want)
	}
	if interrupted != 4 {
		t.Errorf("interrupted %d times", interrupted)
	}
	if err := c.Follow(t.Context(), "/x", "101", nil, client.Follower{}); !errors.Is(err, client.ErrRewound) {
		t.Errorf("a version to come: %v", err)
	}
}

// TestFollowSilent: a watch that says nothing while the server has a later version is begun again, or ends Follow.
func TestFollowSilent(t *testing.T) {
	t.Parallel()
	var watches atomic.Int64
	c := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, `{"kind":"List","metadata":{"resourceVersion":"11"},"items":[]}`)
			return
		}
		_ = http.NewResponseController(w).Flush()
		if watches.Add(1) > 1 && r.URL.Path == "/base/speaks" {
			_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"}}}`+"\n")
			return
		}
		<-r.Context().Done()
	}, nil)
	got := errors.New("got")
	f := client.Follower{
		Connected: func() {}, Interrupted: func(err error) { t.Errorf("interrupted: %v", err) },
		Change: func(client.Change) error { return got }, Silence: 20 * time.Millisecond,
	}
	if err := c.Follow(t.Context(), "/speaks", "10", nil, f); !errors.Is(err, got) || watches.Load() < 2 {
		t.Errorf("%v after %d watches", err, watches.Load())
	}
	f.EndSilent = true
	if err := c.Follow(t.Context(), "/silent", "10", nil, f); !errors.Is(err, client.ErrSilent) {
		t.Error(err)
	}
}

func TestNewer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{{"10", "9", true}, {"9", "10", false}, {"10", "10", false}, {"10", "", true}, {"x", "10", true}, {"x", "x", false}} {
		if got := client.Newer(c.a, c.b); got != c.want {
			t.Errorf("%q newer than %q: %v", c.a, c.b, got)
		}
	}
}

// TestProgramForTokens: a program that failed may succeed later, as it asks a token endpoint; one that cannot be
// started will not.
func TestProgramForTokens(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]bool{"false": true, "/none/such": false} {
		c := open(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }, client.CommandToken(nil, script))
		if err := c.Do(t.Context(), client.Request{Path: "/x"}, nil); err == nil || client.Retryable(err) != want {
			t.Errorf("%s: may succeed later: %t, want %t: %v", script, !want, want, err)
		}
	}
}
