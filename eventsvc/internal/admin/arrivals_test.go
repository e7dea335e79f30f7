package admin

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/event/eventtest"
)

// TestArrivalsOnTheirWay: a running service reads arrivals as they were sent, and refuses what no import sends.
func TestArrivalsOnTheirWay(t *testing.T) {
	t.Parallel()
	l := Local{Codec: codectest.New(t, "example.com")}
	wide := eventtest.InSeries()
	wide.OwnerReferences, wide.Labels = nil, map[string]string{}
	for i := range 60_000 { // more values than a request may have
		wide.Labels[strconv.Itoa(i)] = "v"
	}
	sent := []Arrival{
		{Event: eventtest.Typical(), Version: 7, Believed: true}, {Event: eventtest.InSeries(), Deleted: true, Replace: true}, {Event: wide},
	}
	lines, err := encodeArrivals(sent)
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.decodeArrivals(lines)
	if diff := cmp.Diff(sent, got); err != nil || diff != "" {
		t.Fatalf("%v (-sent +got):\n%s", err, diff)
	}
	whole, err := encodeArrivals(sent[:1])
	if err != nil {
		t.Fatal(err)
	}
	text := string(whole)
	for name, broken := range map[string]string{
		"cut off":         text[:len(text)-20],
		"without event":   text[:strings.IndexByte(text, '\n')+1],
		"a number":        "7\n" + text,
		"without uid":     strings.Replace(text, `"uid":"6f6c`, `"other":"6f6c`, 1),
		"a wrong type":    strings.Replace(text, `"reason":"Started"`, `"reason":1`, 1),
		"a strange time":  strings.Replace(text, `"time":"2026`, `"time":"today 2026`, 1),
		"a name of parts": strings.Replace(text, `"name":"web-0.`, `"name":"web/0.`, 1),
	} {
		if broken == text {
			t.Fatalf("%s: nothing is changed", name)
		}
		if got, err := l.decodeArrivals([]byte(broken)); err == nil || !strings.HasPrefix(err.Error(), "arrival 0: ") {
			t.Errorf("%s: %d arrivals, %v", name, len(got), err)
		}
	}
}
