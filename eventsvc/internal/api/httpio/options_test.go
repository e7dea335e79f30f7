package httpio_test

import (
	"net/url"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/httpio"
)

// TestDeadline: the timeout of a request shortens the limit, and never makes it longer.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		timeout     string
		limit, want time.Duration // 0: none
		bad         bool
	}{
		{timeout: "", limit: time.Hour, want: time.Hour},
		{timeout: "30m", limit: time.Hour, want: 30 * time.Minute},
		{timeout: "2h", limit: time.Hour, want: time.Hour},
		{timeout: "2h", want: 2 * time.Hour},
		{timeout: "0s", limit: time.Hour, want: time.Hour},
		{timeout: "-5s", limit: time.Hour, want: time.Hour},
		{timeout: ""},
		{timeout: "soon", limit: time.Hour, bad: true},
		{timeout: "30", limit: time.Hour, bad: true}, // of what
	} {
		before := time.Now()
		ctx, cancel, err := httpio.Deadline(t.Context(), url.Values{"timeout": {c.timeout}}, c.limit)
		if c.bad {
			if !apierrors.IsBadRequest(err) {
				t.Errorf("%q: %v, want a 400", c.timeout, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.timeout, err)
			continue
		}
		end, ends := ctx.Deadline()
		if ends != (c.want > 0) || ends && (end.Before(before.Add(c.want)) || end.After(time.Now().Add(c.want))) {
			t.Errorf("%q with a limit of %s: it ends at %s, begun at %s, want %s", c.timeout, c.limit, end, before, c.want)
		}
		cancel()
	}
}

// TestTimesOfListsAndWatches: timeoutSeconds is obeyed up to a limit, and a watch without one runs for 30 to 60
// minutes.
func TestTimesOfListsAndWatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seconds     int64
		list, watch time.Duration // 0: any between 30 and 60 minutes
	}{
		{-1, httpio.MaxRequestTime, 0},
		{0, httpio.MaxRequestTime, 0},
		{7, 7 * time.Second, 7 * time.Second},
		{3600, httpio.MaxRequestTime, time.Hour},
		{1 << 62, httpio.MaxRequestTime, 365 * 24 * time.Hour},
	} {
		o := metav1.ListOptions{TimeoutSeconds: &c.seconds}
		if got := httpio.ListLimit(o); got != c.list {
			t.Errorf("a list with %d s may take %s, want %s", c.seconds, got, c.list)
		}
		got := httpio.WatchTime(o)
		if c.watch > 0 && got != c.watch || c.watch == 0 && (got < 30*time.Minute || got >= time.Hour) {
			t.Errorf("a watch with %d s may run %s, want %s", c.seconds, got, c.watch)
		}
	}
	if list, watch := httpio.ListLimit(metav1.ListOptions{}), httpio.WatchTime(metav1.ListOptions{}); list != httpio.MaxRequestTime || watch < 30*time.Minute || watch >= time.Hour {
		t.Errorf("without any: %s and %s", list, watch)
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"": 0, "0": 0, "1": 1, "18446744073709551615": 1<<64 - 1} {
		if got, err := httpio.ParseVersion(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"-1", "+1", "1.5", "abc", " 1", "18446744073709551616", "0x1"} {
		if got, err := httpio.ParseVersion(text); !apierrors.IsBadRequest(err) {
			t.Errorf("%q: %d, %v, want a 400", text, got, err)
		}
	}
}

// TestPreferred: the clause with the greatest weight decides, then the order of the client.
func TestPreferred(t *testing.T) {
	t.Parallel()
	offers := map[string]string{"text/plain": "text", "application/json": "json", "*/*": "any"}
	for accept, want := range map[string]string{
		"":                                      "",
		"text/plain":                            "text",
		"Application/JSON":                      "json",
		"image/png":                             "",
		"image/png, text/plain":                 "text",
		"text/plain;q=0.5, application/json":    "json",
		"text/plain, application/json":          "text",
		"text/plain;q=0":                        "",
		"text/plain;q=much, application/json":   "json",
		"text/html, */*;q=0.1":                  "any",
		"application/json; charset=utf-8; q=.2": "json",
	} {
		if got := httpio.Preferred(accept, offers); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
}
