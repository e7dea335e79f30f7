package event_test

import (
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/event"
)

// TestPattern: what differs from note to note is folded, whatever it is.
func TestPattern(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ object, note, want string }{
		{"web-7d9f8-x2x4z", "Back-off 5m0s restarting failed container=app pod=web-7d9f8-x2x4z_shop(b6d2f7a4-7ca3-4b8e-9d11-2c9fbf2a1d55)",
			"Back-off <num> restarting failed container=app pod=<name>(<uuid>)"},
		{"web", "Scaled up replica set web-7d9f8c6b5d from 0 to 3", "Scaled up replica set <name> from <num> to <num>"},
		{"web", `Failed to pull image "registry.example/shop/api:2.39.7": 429 Too Many Requests`, `Failed to pull image "<image>": <num> Too Many Requests`},
		{"web", `Pulling image "docker.io/library/nginx:latest"`, `Pulling image "<image>"`},
		{"web", `Pulled image "nginx:1.25" in 1.5s (1.5s including waiting)`, `Pulled image "<image>" in <num> (<num> including waiting)`},
		{"web", "Liveness probe failed: Get \"http://10.0.0.17:8080/healthz\": dial tcp 10.0.0.17:8080: connect: connection refused",
			"Liveness probe failed: Get \"<url>\": dial tcp <ip>: connect: connection refused"},
		{"node-17", "0/3 nodes are available: 3 Insufficient cpu.", "<num> nodes are available: <num> Insufficient cpu."},
		{"web", "MountVolume failed for volume \"pvc-1\" : /var/lib/kubelet/pods/7/volumes", "MountVolume failed for volume \"<name>\" : <path>"},
		{"web", "commit 9cbe65af1 at 2026-03-04T12:00:00Z of localhost:8080", "commit <hash> at <time> of <address>"},
		{"web", "plain words, no more", "plain words, no more"},
		{"web", "", ""},
	} {
		if got := event.Pattern([]byte(c.note), []byte(c.object), []byte("shop")); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.note, got, c.want)
		}
	}
	long := strings.Repeat("ä", 3000)
	if got := event.Pattern([]byte("a\x01b\x02"+long), nil, nil); len(got) > event.MaxDimension || !strings.HasPrefix(got, "a b") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// FuzzPattern takes any note: its pattern is short, and the same for the same note.
func FuzzPattern(f *testing.F) {
	f.Add("Back-off 5m0s restarting web-7d9f8-x2x4z", "web-7d9f8-x2x4z", "shop")
	f.Add("http://10.0.0.17:8080/ a/b:1@sha256:00 \x01<num>", "a", "b")
	f.Fuzz(func(t *testing.T, note, object, namespace string) {
		got := event.Pattern([]byte(note), []byte(object), []byte(namespace))
		if len(got) > event.MaxDimension || got != event.Pattern([]byte(note), []byte(object), []byte(namespace)) {
			t.Errorf("%q: %q", note, got)
		}
	})
}
