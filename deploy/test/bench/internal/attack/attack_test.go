package attack

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"tidings.example/deploy/test/bench/internal/target"
)

// TestAttacksAreRequests: what eventsvc has to refuse is what a request asks for, not how
// the request is written.
func TestAttacksAreRequests(t *testing.T) {
	t.Parallel()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"access_token":"a-token"}`))
	}))
	t.Cleanup(tokens.Close)
	addr := netip.MustParseAddrPort(tokens.Listener.Addr().String())
	s := &Source{Services: &target.Services{TokenAddr: addr, EventsAddr: addr}, Client: 4, Namespace: "all", Own: "own"}
	for name, makes := range map[string]Make{"keys": UnknownKeys, "flood": Flood, "bodies": LargeBodies, "bombs": Bombs, "backdated": Backdated} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := makes(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(spec.Next(nil, i))))
				if err != nil {
					t.Fatal(err)
				}
				good := r.Header.Get("Authorization") == "Bearer a-token"
				if good == (name == "keys") || !strings.HasPrefix(r.URL.Path, "/apis/") && !strings.HasPrefix(r.URL.Path, "/query/v1/") {
					t.Errorf("%d: %s %s with %s", i, r.Method, r.URL.Path, r.Header.Get("Authorization"))
				}
				n, err := new(bytes.Buffer).ReadFrom(r.Body)
				if err != nil || n != max(r.ContentLength, 0) {
					t.Errorf("%d: a body of %d bytes, %v, want %d", i, n, err, r.ContentLength)
				}
			}
		})
	}
}
