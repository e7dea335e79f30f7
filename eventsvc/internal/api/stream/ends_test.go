package stream_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/bearer"
	"tidings.example/shared/waittest"
)

// TestPolicyEndsWatches: a watch that a new policy does not allow ends at once
// behind a bookmark, others go on.
func TestPolicyEndsWatches(t *testing.T) {
	t.Parallel()
	w, current := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy())
	last := w.As("root", "POST", apitest.EventsPath, apitest.NewEvent("a")).Must(201).At("metadata.resourceVersion").(string)
	srv := w.Serve()
	query := "?watch=1&allowWatchBookmarks=true&resourceVersion=" + last
	mine := w.Watch(srv, apitest.EventsPath+query, "Authorization", "Bearer only-watch")
	namespaces := w.Watch(srv, "/api/v1/namespaces"+query, "Authorization", "Bearer only-watch")
	other := w.Watch(srv, apitest.EventsPath+query, "Authorization", "Bearer x+events:read")
	current.Store(apitest.ParsePolicy(t, "bindings: [{role: 'events:admin', subjects: [{clientID: root}]}]"))
	w.Server.PolicyChanged()
	for _, s := range []*apitest.Stream{mine, namespaces} {
		kind, object := s.Next()
		apitest.Equal(t, kind, "BOOKMARK")
		apitest.Equal(t, apitest.Field(object, "metadata.resourceVersion"), any(last))
		s.Ended()
	}
	w.As("root", "POST", apitest.EventsPath, apitest.NewEvent("b")).Must(201)
	apitest.Equal(t, other.Take(1), []apitest.Change{{"ADDED", "b", "hello"}})
	w.As("only-watch", "GET", apitest.EventsPath+query, "").Must(403)
}

// TestWithdrawnKeysEndWatches: a watch ends at once, too, when the key of its
// token is withdrawn.
func TestWithdrawnKeysEndWatches(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	w, _ := apitest.NewPolicyWorld(t, "{}", func(c *api.Config) {
		c.Withdrawn = func(_ context.Context, caller *bearer.Caller) bool {
			return gone.Load() && caller.KeyID == "k1" && caller.Issuer == apitest.Issuer
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Server.Run(ctx) }()
	s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&allowWatchBookmarks=true", "Authorization", "Bearer x+events:read")
	kind, _ := s.Next() // the end of the initial events
	apitest.Equal(t, kind, "BOOKMARK")
	gone.Store(true)
	kind, _ = s.Next()
	apitest.Equal(t, kind, "BOOKMARK")
	s.Ended()
	stop()
	if err := waittest.Within(t, done); err != nil {
		t.Error(err)
	}
}

// TestWatchesAfterExpiry: a watch runs on after its token for as long as the
// setting says, however long it asked for.
func TestWatchesAfterExpiry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		life, after time.Duration
		ends        bool
	}{
		{-time.Minute, time.Minute + 50*time.Millisecond, true}, // expired, a little is left
		{50 * time.Millisecond, 0, true},                        // with the token
		{-time.Second, 30 * time.Minute, false},
		{30 * time.Minute, 0, false},
	} {
		expires := time.Now().Add(c.life)
		w := apitest.New(t, func(config *api.Config) {
			config.WatchAfterExpiry = c.after
			config.Verify = func(context.Context, string) (*bearer.Caller, error) {
				return &bearer.Caller{Issuer: apitest.Issuer, Subject: "x", Expires: expires}, nil
			}
		})
		last := w.Create("a")
		s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&allowWatchBookmarks=true&resourceVersion="+last)
		if !c.ends {
			w.Create("b") // comes, so it has not ended with the token
			apitest.Equal(t, s.Take(1), []apitest.Change{{"ADDED", "b", "hello"}})
			continue
		}
		kind, object := s.Next()
		apitest.Equal(t, kind, "BOOKMARK")
		apitest.Equal(t, apitest.Field(object, "metadata.resourceVersion"), any(last))
		s.Ended()
	}
}

// TestLokiTailLimits: a tail counts as a watch, and tails of a client have a limit besides,
// which is counted apart and does not matter to other watches.
func TestLokiTailLimits(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.MaxClientWatches = 1 })
	srv := w.Serve()
	w.Tail(t, srv, "good", `{}`)
	apitest.Equal(t, w.RefusedTail(t, srv, `{}`), "429 1")

	w = apitest.New(t, func(c *api.Config) { c.MaxClientWatches, c.Registry = 12, prometheus.NewRegistry() })
	srv = w.Serve()
	var open []*apitest.Tailed
	for range 10 {
		open = append(open, w.Tail(t, srv, "good", `{}`))
	}
	apitest.Equal(t, w.RefusedTail(t, srv, `{}`), "429 1")
	apitest.Equal(t, w.Metric("eventsvc_requests_refused_total", "client-tails"), 1.0)
	w.Watch(srv, apitest.CorePath+"?watch=true") // is no tail
	_ = open[0].Conn.CloseNow()
	waittest.Until(t, "a tail can be opened when another one has ended", func() bool { return w.RefusedTail(t, srv, `{}`) == "opened" })
}
