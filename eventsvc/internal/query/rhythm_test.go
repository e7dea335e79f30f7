package query_test

import (
	"testing"
	"time"

	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/randtest"
)

// flapping has occurrences at distances in minutes, the newest a minute ago.
func flapping(now int64, gaps ...int64) []store.Occurred {
	all := []store.Occurred{{Second: now - 60, Count: 1}}
	for _, gap := range gaps {
		all = append(all, store.Occurred{Second: all[len(all)-1].Second - 60*gap, Count: 1})
	}
	return all
}

// TestRhythm: a series is over once it is missing for longer than its own rhythm explains, in whatever order it is
// read.
func TestRhythm(t *testing.T) {
	t.Parallel()
	const now = 1_000_000 * 60
	times := func(from, every, until int64) (all []store.Occurred) {
		for at := from; at <= until; at += every {
			all = append(all, store.Occurred{Second: at, Count: 1})
		}
		return all
	}
	for _, test := range []struct {
		name  string
		came  []store.Occurred
		every time.Duration
		want  query.State
	}{
		{"once", times(now-300, 1, now-300), 0, query.Once},
		{"every ten seconds until now", times(now-900, 10, now-5), 10 * time.Second, query.Ongoing},
		{"every ten seconds until six minutes ago", times(now-900, 10, now-360), 10 * time.Second, query.Over},
		{"every five minutes, the last four minutes ago", times(now-3840, 300, now-240), 5 * time.Minute, query.Ongoing},
		{"every five minutes, the last 20 minutes ago", times(now-4200, 300, now-1200), 5 * time.Minute, query.Over},
		{"every two hours", times(now-86400, 7200, now-7000), 2 * time.Hour, query.Ongoing},
		{"every ninety minutes", times(now-86400, 5400, now-5000), 2 * time.Hour, query.Ongoing},
		{"every 12 minutes, after it came each three hours", append(times(now-26*3600, 10800, now-6*3600), times(now-5*3600, 720, now-600)...), 12 * time.Minute, query.Ongoing},
		{"two outbreaks in six days", append(times(now-6*86400, 10, now-6*86400+120), times(now-1800, 10, now-1790)...), 0, query.Once},
		{"twice, for half an hour", times(now-3600, 1800, now-1800), 0, query.Once},
		{"three routine changes of two steps in two hours", append(times(now-7000, 70, now-6930), append(times(now-5300, 70, now-5230), times(now-3610, 70, now-3540)...)...), 0, query.Once},
		{"now and then, an hour ago", []store.Occurred{{Second: now - 40000, Count: 1}, {Second: now - 32000, Count: 1}, {Second: now - 11000, Count: 1}, {Second: now - 5200, Count: 1}}, 0, query.Once},
		{"a burst, and one more an hour later", append(times(now-5400, 60, now-5000), times(now-1500, 1, now-1500)...), time.Minute, query.Over},
		{"every 20 minutes, once late", append(times(now-7200, 1200, now-3600), times(now-1200, 1200, now-1200)...), 20 * time.Minute, query.Ongoing},
		{"every 12 minutes, and one more after a late gap", append(times(now-5*720-2280, 720, now-2280), times(now-720, 720, now-720)...), 12 * time.Minute, query.Ongoing},
		{"every three hours, once missed", append(times(now-36*3600, 10800, now-12*3600), times(now-6*3600, 10800, now-7200)...), 3 * time.Hour, query.Ongoing},
		{"every 20 minutes, three times missed", append(times(now-10800, 1200, now-6000), times(now-1200, 1200, now-1200)...), 0, query.Once},
		{"a flapping probe", flapping(now, 2, 9, 1, 7, 3, 10, 1, 8, 2, 1), 0, query.Once},
		{"a back-off", []store.Occurred{{Second: now - 630, Count: 1}, {Second: now - 620, Count: 1}, {Second: now - 600, Count: 1}, {Second: now - 560, Count: 1}, {Second: now - 480, Count: 1}, {Second: now - 320, Count: 1}}, 2 * time.Minute, query.Ongoing},
	} {
		var forth, back query.Rhythm
		for i := range test.came {
			forth.Add(test.came[i])
			back.Add(test.came[len(test.came)-1-i])
		}
		for _, r := range []query.Rhythm{forth, back} {
			if got := r.At(time.Unix(now, 0)); got != test.want {
				t.Errorf("%s: %s, want %s", test.name, got, test.want)
			}
			if got := r.Every(); got < test.every*9/10 || got > test.every*11/10 {
				t.Errorf("%s: every %s, want %s", test.name, got, test.every)
			}
		}
	}
}

// TestRhythmAdd: what is added one by one is what is merged one by one.
func TestRhythmAdd(t *testing.T) {
	t.Parallel()
	random := randtest.New(t)
	for range 500 {
		var added, merged query.Rhythm
		at := int64(1_000_000)
		for range 100 {
			at += random.Int64N([]int64{50, 5000, 500_000}[random.IntN(3)]) - random.Int64N(100)
			o := store.Occurred{Second: at, Count: random.Int64N(4)}
			var one query.Rhythm
			one.Add(o)
			merged.Merge(one)
			if added.Add(o); added != merged {
				t.Fatalf("added %+v, merged %+v", added, merged)
			}
		}
	}
}

// BenchmarkRhythm adds what comes in the order of time.
func BenchmarkRhythm(b *testing.B) {
	var r query.Rhythm
	for at := int64(0); b.Loop(); at += 70 {
		r.Add(store.Occurred{Second: at, Count: 1})
	}
}
