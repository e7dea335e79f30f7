package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRowsAreChosenByNameOrGroup(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{rows: "create, watch/100,floor"}}
	for name, want := range map[string]bool{
		"create/1": true, "watch/100": true, "watch/1000": false, "watch/1": false, "floor/bbolt/64": true, "get/64": false, "secure/create/1": false,
	} {
		if got := b.wants(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	rows := []row{{name: "create/1"}, {name: "create/2", long: true}}
	if got := b.chosen(rows); len(got) != 1 {
		t.Errorf("%d rows in the short form, want 1", len(got))
	}
	b.long = true
	if got := b.chosen(rows); len(got) != 2 {
		t.Errorf("%d rows in the long form, want 2", len(got))
	}
	rows = append(rows, row{name: "create/1/peer", peers: true})
	if got := b.chosen(rows); len(got) != 2 {
		t.Errorf("%d rows without -peers, want 2", len(got))
	}
	b.peers = true
	if got := b.chosen(rows); len(got) != 3 {
		t.Errorf("%d rows with -peers, want 3", len(got))
	}
}

// TestRowsAreComparedWithTheirFloor checks the remark of a row whose floor has
// run, has failed or has not run.
func TestRowsAreComparedWithTheirFloor(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	past := []*result{{name: "floor", rate: 200, p50: 2 * ms, p99: 4 * ms}, {name: "failed", rate: 1, p50: 1, p99: 1, err: errors.New("a fault")}}
	for _, c := range []struct {
		name   string
		beside func(*bench, *result) string
		goal   goal
		want   string
	}{
		{"a share", share("floor"), goal{}, "25 % of floor"},
		{"of a floor that reaches the goal", share("floor"), atLeast(200), "25 % of floor"},
		{"of one that does not", share("floor"), atLeast(201), "25 % of floor, which misses the goal too"},
		{"times", times("floor"), p99Within(4 * ms), "p50 1.5 and p99 2.0 × floor"},
		{"times one that is too slow", times("floor"), p99Within(3 * ms), "p50 1.5 and p99 2.0 × floor, which misses the goal too"},
		{"a share of a floor that failed", share("failed"), goal{}, ""},
		{"times one that has not run", times("other"), goal{}, ""},
		{"alone", nil, goal{}, ""},
	} {
		b := &bench{options: options{tries: 1}, ctx: t.Context(), results: past}
		r := b.runRow(row{beside: c.beside, goal: c.goal, run: func(*bench) (*result, error) {
			return &result{rate: 50, p50: 3 * ms, p99: 8 * ms}, nil
		}}, nil)
		if r.note != c.want {
			t.Errorf("%s: remark %q, want %q", c.name, r.note, c.want)
		}
	}
}

// TestAttacksAreComparedWithTheirFloor: where the floor of an attack was measured too, the remark also has the p99 of
// the floor.
func TestAttacksAreComparedWithTheirFloor(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	b := &bench{results: []*result{
		{name: "none/floor", p50: ms, p99: 2 * ms}, {name: "none", p50: 2 * ms, p99: 4 * ms}, {name: "flood/floor", p50: ms, p99: 5 * ms},
	}}
	for name, want := range map[string]string{
		"flood": "p50 1.0 and p99 3.0 × none, p99 of its floor 2.5 × none/floor",
		"slow":  "p50 1.0 and p99 3.0 × none",
	} {
		r := &result{name: name, p50: 2 * ms, p99: 12 * ms}
		if got := timesAlone("none")(b, r); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestDisturbedRowsAreRepeated(t *testing.T) {
	t.Parallel()
	fault := errors.New("a fault")
	for _, c := range []struct {
		name     string
		once     bool
		foreign  []float64
		fails    int // attempt that fails
		attempts int
		want     float64
	}{
		{name: "a quiet one", foreign: []float64{.1}, attempts: 1, want: .1},
		{name: "until it is quiet", foreign: []float64{.9, .2}, attempts: 2, want: .2},
		{name: "the quietest of noisy ones", foreign: []float64{.9, .5, .7}, attempts: 3, want: .5},
		{name: "only once", once: true, foreign: []float64{.9}, attempts: 1, want: .9},
		{name: "a failure counts", foreign: []float64{.9, .8}, fails: 2, attempts: 2, want: .8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &bench{ctx: t.Context(), options: options{tries: 3}}
				attempts := 0
				r := b.runRow(row{name: "a/b", once: c.once, run: func(b *bench) (*result, error) {
					attempts++
					if want := "ns"; (b.fresh("ns") == want) != (attempts == 1) {
						t.Errorf("attempt %d uses namespace %s", attempts, b.fresh("ns"))
					}
					r := &result{foreign: c.foreign[attempts-1]}
					if attempts == c.fails {
						return r, fault
					}
					return r, nil
				}}, nil)
				if attempts != c.attempts || r.foreign != c.want || (r.err != nil) != (c.fails > 0) {
					t.Errorf("%d attempts, %v, %v", attempts, r.foreign, r.err)
				}
			})
		})
	}
}

// TestSlowMachine: a row is repeated while the machine is slower than those of
// the goals, and the attempt on the fastest counts, whatever its figures are.
func TestSlowMachine(t *testing.T) {
	t.Parallel()
	type attempt struct{ before, after, foreign float64 }
	for _, c := range []struct {
		name     string
		goal     goal
		attempts []attempt
		want     int // which counts
		grows    bool
	}{
		{"fast", atLeast(1), []attempt{{64_000, 70_000, 0}}, 1, false},
		{"slow at first", atLeast(1), []attempt{{60_000, 60_000, 0}, {90_000, 64_000, 0}}, 2, false},
		{"slower meanwhile", atLeast(1), []attempt{{90_000, 50_000, 0}, {65_000, 65_000, 0}}, 2, false},
		{"slow throughout", atLeast(1), []attempt{{50_000, 50_000, 0}, {60_000, 61_000, 0}, {55_000, 90_000, 0}}, 2, false},
		{"fast, but others were busy", atLeast(1), []attempt{{90_000, 90_000, .9}, {50_000, 50_000, 0}, {60_000, 60_000, .4}}, 2, false},
		{"leaves events behind", atLeast(1), []attempt{{70_000, 50_000, 0}}, 1, true},
		{"a peer's", goal{met: atLeast(1).met, peer: true}, []attempt{{50_000, 50_000, 0}}, 1, false},
		{"nothing asked for", goal{}, []attempt{{50_000, 50_000, 0}}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				b := &bench{ctx: t.Context(), options: options{tries: 3}}
				asked := 0
				b.speed = func() (float64, error) {
					if asked++; asked%2 == 1 {
						return c.attempts[ran].before, nil
					}
					return c.attempts[ran-1].after, nil
				}
				r := b.runRow(row{goal: c.goal, grows: c.grows, run: func(*bench) (*result, error) {
					ran++
					return &result{rate: float64(ran), foreign: c.attempts[ran-1].foreign}, nil
				}}, nil)
				if ran != len(c.attempts) || r.rate != float64(c.want) {
					t.Errorf("%d attempts, number %.0f counts; want %d, %d", ran, r.rate, len(c.attempts), c.want)
				}
			})
		})
	}
}

// TestRowWaitsForTheMachine: a row that must not be repeated begins when the
// machine is fast enough, or after -tries looks.
func TestRowWaitsForTheMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		speeds []float64 // look by look, the last one behind the row
		want   float64
	}{
		{[]float64{70_000, 80_000}, 70_000},
		{[]float64{50_000, 65_000, 66_000}, 65_000},
		{[]float64{50_000, 60_000, 55_000, 90_000}, 55_000},
	} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			b := &bench{ctx: t.Context(), options: options{tries: 3}, speed: func() (float64, error) {
				looks++
				return c.speeds[looks-1], nil
			}}
			r := b.runRow(row{grows: true, goal: atLeast(1), run: func(*bench) (*result, error) { return &result{rate: 1}, nil }}, nil)
			if looks != len(c.speeds) || r.hello != c.want {
				t.Errorf("%v: %d looks, %.0f", c.speeds, looks, r.hello)
			}
		})
	}
}

func TestRowNamesAreDistinct(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, s := range (&options{events: millionEvents}).stages() {
		for _, r := range s.rows {
			if seen[r.name] {
				t.Errorf("two rows are called %s", r.name)
			}
			seen[r.name] = true
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for _, name := range []string{"tokensvc", "eventsvc"} {
		if err := os.WriteFile(bin+"/"+name, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args    string
		want    string // part of the error
		command string
	}{
		{"", "", "make bench"},
		{"-rows create,watch/1 -duration 5s", "", `make bench BENCH_FLAGS="-duration=5s -rows=create,watch/1"`},
		{"-long -dir /a/path", "", `make bench BENCH_FLAGS="-long=true"`},
		{"-rows=get -profile=" + bin, "", `make bench BENCH_FLAGS="-rows=get"`},
		{"-rows nothing", "no row of that name", ""},
		{"-rows select/1000000", "no row of that name in this form", ""},
		{"-rows logs -peers -events 5000", "", `make bench BENCH_FLAGS="-events=5000 -peers=true -rows=logs"`},
		{"-rows logs/word/peer", "no row of that name in this form", ""},
		{"-events 10", "1,000 to 100 million", ""},
		{"-duration 2h", "at most 1m", ""},
		{"create", "unexpected argument", ""},
	} {
		b := new(bench)
		args := append(strings.Fields(c.args), "-bin", bin)
		if strings.HasPrefix(c.args, "create") {
			args = strings.Fields(c.args)
		}
		err := b.parse(args, new(bytes.Buffer))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
		if got := b.command(); err == nil && got != c.command {
			t.Errorf("%q: command %s, want %s", c.args, got, c.command)
		}
	}
	b := new(bench)
	if err := b.parse([]string{"-bin", "/nonexistent"}, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("without binaries: %v", err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	b := &bench{results: []*result{
		{name: "floor/sync", rate: 4577, unit: "appends/s", p50: 201 * time.Microsecond, p95: time.Millisecond, p99: 3 * time.Second},
		{name: "create/1", rate: 99.9, unit: "creates/s", p50: 702 * time.Microsecond, serverCPU: 96 * time.Microsecond, disk: 1 << 20, goal: syncGoal(), foreign: .4, hello: 60_800},
		{name: "create/64", rate: 12_000, unit: "creates/s", goal: atLeast(12_000), note: "a|b"},
		{name: "watch/1", goal: atLeast(0), err: os.ErrInvalid},
	}}
	want := `
| row          | rate            | p50    | p95  | p99 | server CPU | client CPU | RssAnon | RssFile | disk    | machine | goal                         | reached | remarks |
| ------------ | --------------- | ------ | ---- | --- | ---------- | ---------- | ------- | ------- | ------- | ------- | ---------------------------- | ------- | --- |
| floor/sync   | 4577 appends/s  | 201 µs | 1 ms | 3 s |            |            |         |         |         |         |                              |         |  |
| create/1 (n) | 99.9 creates/s  | 702 µs |      |     | 96 µs      |            |         |         | 1.0 MiB | 95 %    | p50 ≤ 2 × floor/sync + 0.3ms | yes     |  |
| create/64    | 12000 creates/s |        |      |     |            |            |         |         |         |         | ≥ 12000/s                    | yes     | a/b |
| watch/1      |                 |        |      |     |            |            |         |         |         |         | ≥ 0/s                        | **no**  |  |
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), b.table()); diff != "" {
		t.Error(diff)
	}
	b.results[1].p50 = 703 * time.Microsecond
	if syncGoal().met(b, b.results[1]) {
		t.Error("703 µs is within 2 × 201 µs + 300 µs")
	}
}
