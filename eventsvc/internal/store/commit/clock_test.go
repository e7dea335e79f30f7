package commit_test

import (
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store/commit"
)

// TestJumps: whatever the wall clock has done since the last write, times go on from
// there, and a step that may be wrong makes nothing old until its time is over.
func TestJumps(t *testing.T) {
	t.Parallel()
	const maxStep = time.Hour
	start := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		last            time.Time
		step            time.Duration
		now, old, later time.Time // at start, and the time from which ages are counted maxStep later
	}{
		"no write":   {time.Time{}, 0, start, start, start.Add(maxStep)},
		"just now":   {start.Add(-time.Minute), 0, start, start, start.Add(maxStep)},
		"set back":   {start.Add(time.Minute), -time.Minute, start.Add(time.Minute), start.Add(time.Minute), start.Add(maxStep + time.Minute)},
		"far ahead":  {start.Add(-2 * maxStep), 2 * maxStep, start, start.Add(-2 * maxStep), start.Add(maxStep)},
		"just ahead": {start.Add(-maxStep), 0, start, start, start.Add(maxStep)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wall := start
			k, step := commit.NewClock(func() time.Time { return wall }, c.last, maxStep)
			if step != c.step || !k.Now().Equal(c.now) || !k.Old().Equal(c.old) {
				t.Errorf("step %s, now %s, old %s; want %s, %s, %s", step, k.Now(), k.Old(), c.step, c.now, c.old)
			}
			wall = start.Add(-time.Minute) // while the process runs no time goes back
			if !k.Now().Equal(c.now) {
				t.Errorf("now %s behind %s", k.Now(), c.now)
			}
			if wall = start.Add(maxStep); !k.Old().Equal(c.later) {
				t.Errorf("later, old is %s, want %s", k.Old(), c.later)
			}
		})
	}
}
