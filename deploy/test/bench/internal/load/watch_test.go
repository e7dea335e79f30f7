package load_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
)

// line is a delivery of event i with a revision.
func line(i, revision int) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"name":"%s%010d","resourceVersion":"%d"}}}`+"\n", load.NamePrefix, i, revision)
}

// cut ends a stream; without it a stream stays open.
const cut = "cut"

func TestAudienceVerifiesEveryWatcher(t *testing.T) {
	t.Parallel()
	const watchers = 3
	for _, c := range []struct {
		name   string
		script map[int]string // what a watch from a revision is sent
		events int
		want   string // part of the error
		cuts   int    // of each watcher
	}{
		{name: "complete", script: map[int]string{0: line(0, 1) + line(1, 2) + line(2, 7)}, events: 3},
		{name: "committed in another order than asked", script: map[int]string{0: line(1, 1) + line(0, 2)}, events: 2},
		{name: "one missing", script: map[int]string{0: line(0, 1) + line(2, 3)}, events: 3, want: "3 of 3 watchers miss 3 deliveries of 9"},
		{name: "twice", script: map[int]string{0: line(0, 1) + line(0, 2)}, events: 1, want: "event 0 came twice"},
		{name: "out of order", script: map[int]string{0: line(0, 2) + line(1, 1)}, events: 2, want: "revision 1 after revision 2"},
		{name: "cut and resumed", script: map[int]string{0: line(0, 1) + cut, 1: line(1, 2)}, events: 2, cuts: 1},
		{name: "cut within a line", script: map[int]string{0: line(0, 1) + line(1, 2)[:30] + cut, 1: line(1, 2)}, events: 2, cuts: 1},
		{name: "resumed with a repeat", script: map[int]string{0: line(0, 1) + cut, 1: line(0, 1)}, events: 2, want: "revision 1 after revision 1"},
		{name: "told to resume", script: map[int]string{0: line(0, 1) + `{"type":"ERROR","object":{"code":500}}` + "\n" + cut, 1: line(1, 2)}, events: 2, cuts: 1},
		{name: "out of the history", script: map[int]string{0: `{"type":"ERROR","object":{"code":410}}` + "\n"}, events: 1, want: "fell out of the history"},
		{name: "another kind of change", script: map[int]string{0: `{"type":"DELETED","object":{}}` + "\n"}, events: 1, want: "unexpected watch event"},
		{name: "no name", script: map[int]string{0: `{"type":"ADDED","object":{}}` + "\n"}, events: 1, want: "watch event without"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			transports(t, scripted(c.script), func(t *testing.T, addr netip.AddrPort, secure *tls.Config) {
				au, err := watch(newLoop(t), addr, secure, watchers, c.events, c.want)
				if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
					t.Errorf("got error %v, want %q", err, c.want)
				}
				if err == nil && (au.Cuts != watchers*c.cuts || au.Deliveries != watchers*c.events || int(au.Latency.Count()) != au.Deliveries) {
					t.Errorf("%d cuts, %d deliveries, %d measured", au.Cuts, au.Deliveries, au.Latency.Count())
				}
			})
		})
	}
}

// scripted sends each watch what the script has for its revision.
func scripted(script map[int]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var from int
		_, _ = fmt.Sscanf(r.URL.RawQuery, "from=%d", &from)
		text, ends := strings.CutSuffix(script[from], cut)
		for half := range 2 { // a line may arrive in two parts
			fmt.Fprint(w, text[half*(len(text)/2):max(half*len(text), len(text)/2)])
			_ = http.NewResponseController(w).Flush()
		}
		if !ends {
			<-r.Context().Done()
		}
	}
}

// watch opens an audience and waits until it is complete, or for the error that is wanted: for longer and longer, for
// what has not arrived on a busy machine is missing at first.
func watch(l *load.Loop, addr netip.AddrPort, secure *tls.Config, watchers, events int, want string) (*load.Audience, error) {
	au, err := l.NewAudience(load.WatchSpec{
		Addr: addr, Secure: secure, Watchers: watchers,
		Request: func(dst []byte, revision uint64) []byte {
			return append(dst, get(fmt.Sprintf("/?from=%d", revision))...)
		},
		Began:  func(int) time.Duration { return 0 },
		Sample: func([]byte) error { return nil },
	})
	if err != nil {
		return nil, err
	}
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		err := au.Verify(events, wait)
		if err == nil || want != "" && strings.Contains(err.Error(), want) || wait > time.Minute {
			return au, err
		}
	}
}

func TestWatchThatIsRefused(t *testing.T) {
	t.Parallel()
	transports(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such user", http.StatusForbidden)
	}, func(t *testing.T, addr netip.AddrPort, secure *tls.Config) {
		if _, err := watch(newLoop(t), addr, secure, 1, 1, "status 403"); err == nil || !strings.Contains(err.Error(), "status 403") {
			t.Errorf("got %v, want the status", err)
		}
	})
}
