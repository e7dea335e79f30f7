package access

import (
	"strconv"
	"testing"
	"time"
)

// TestCreateRatesAreBounded: ever new names get no more than one bucket
// together once there is no room, and full buckets make room.
func TestCreateRatesAreBounded(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	// flood creates events, each in a namespace of its own, at one a second for each.
	flood := func(at func(i int) time.Time) (kept, passed int) {
		rates := newCreateRates(Rates{Namespace: Rate{PerSecond: 1, Burst: 1}})
		for i := range 30000 {
			if rates.take(at(i), "client", strconv.Itoa(i)) == nil {
				passed++
			}
		}
		return len(rates[0].byKey), passed
	}
	kept, passed := flood(func(int) time.Time { return start })
	if kept != 16384 || passed != 16384+1 {
		t.Errorf("%d buckets are kept, %d events passed", kept, passed)
	}
	kept, passed = flood(func(i int) time.Time { return start.Add(time.Duration(i) * time.Millisecond) })
	if kept > 16384 || passed != 30000 {
		t.Errorf("in half a minute: %d buckets are kept, %d events passed", kept, passed)
	}
}
