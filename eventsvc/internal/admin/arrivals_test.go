package admin

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event/eventtest"
)

// TestArrivalsOnTheirWay: a running service reads arrivals as they were sent, and refuses what no import sends.
func TestArrivalsOnTheirWay(t *testing.T) {
	t.Parallel()
	wide := eventtest.InSeries()
	wide.OwnerReferences, wide.Labels = nil, map[string]string{}
	for i := range 60_000 { // more values than a request may have
		wide.Labels[strconv.Itoa(i)] = "v"
	}
	sent := []Arrival{
		{Event: eventtest.Typical(), Version: 7, Believed: true}, {Event: eventtest.InSeries(), Deleted: true, Replace: true}, {Event: wide, Relabel: true},
	}
	encode := func(arrivals ...Arrival) []byte {
		t.Helper()
		b, err := encodeArrivals(arrivals)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	got, err := decodeArrivals(encode(sent...))
	if diff := cmp.Diff(sent, got); err != nil || diff != "" {
		t.Fatalf("%v (-sent +got):\n%s", err, diff)
	}
	whole := encode(sent[0])
	for n := 1; n < len(whole); n++ {
		if got, err := decodeArrivals(whole[:n]); err == nil {
			t.Fatalf("cut off after %d bytes: %d arrivals", n, len(got))
		}
	}
	for name, change := range map[string]func(*eventsv1.Event){
		"without uid":     func(ev *eventsv1.Event) { ev.UID = "" },
		"without a time":  func(ev *eventsv1.Event) { ev.CreationTimestamp.Reset() },
		"a strange time":  func(ev *eventsv1.Event) { ev.EventTime.Time = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"a name of parts": func(ev *eventsv1.Event) { ev.Name = "web/0" },
	} {
		broken := eventtest.Typical()
		change(broken)
		if got, err := decodeArrivals(encode(Arrival{Event: broken})); err == nil || !strings.HasPrefix(err.Error(), "arrival 0: ") {
			t.Errorf("%s: %d arrivals, %v", name, len(got), err)
		}
	}
	for name, text := range map[string]string{"JSON": `{"version":7}` + "\n{}\n", "a large length": "\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "no protobuf": "\x00\x00\x04\xff\xff\xff\xff"} {
		if got, err := decodeArrivals([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "arrival 0: ") {
			t.Errorf("%s: %d arrivals, %v", name, len(got), err)
		}
	}
}
