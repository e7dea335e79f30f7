package columns

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of random tests")

func build(t testing.TB, rows []Row) (Pieces, uint64) {
	t.Helper()
	b := NewBuilder(0)
	for i := range rows {
		b.Add(&rows[i])
	}
	m := Pieces{}
	err := b.Pieces(func(key, piece []byte) error {
		_, at, _ := ParseKey(key)
		m[at] = slices.Clone(piece)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, b.Last()
}

func rng(t testing.TB) *rand.Rand {
	t.Logf("-seed %d", *seed)
	return rand.New(rand.NewPCG(*seed, 0))
}

var noteWords = []string{
	"probe", "failed", "Failed", "web-7d9f8", "web-7d9f8-x2x4z", "10.0.0.17", "Back-off", "5m0s", "pulling", "image:2.39.7", "Straße", "STRASSE", "ſ", "K", "K", "k",
	"a\xffb", "\xe2\x82", "x", "", " ", "(", "shop", "日本語", "0007", "b6d2f7a4-7ca3-4b8e-9d11-2c9fbf2a1d55", "node-17", "\x01", "\x02", "é", "É", "a-b-bcdfg",
}

func someText(r *rand.Rand) string {
	var parts []string
	for range r.IntN(7) {
		parts = append(parts, noteWords[r.IntN(len(noteWords))])
	}
	return strings.Join(parts, []string{" ", ":", ", ", ""}[r.IntN(4)])
}

func someRows(r *rand.Rand, n int) []Row {
	rows := make([]Row, 0, n)
	revision := uint64(r.IntN(1000))
	for range n {
		revision += 1 + uint64(r.IntN(3))
		name := []string{"web-7d9f8-x2x4z", "web-7d9f8", "db.prod", "Straße", "n\x00ull", ""}[r.IntN(6)]
		lbls := map[string]string{}
		if r.IntN(3) == 0 {
			lbls["app"] = []string{"web", "db"}[r.IntN(2)]
		}
		if r.IntN(3) == 0 {
			lbls[event.ClusterLabel] = []string{"a", "b"}[r.IntN(2)]
			lbls[event.OwnerNameLabel] = "web"
			lbls[event.OwnerKindLabel] = "Deployment"
		}
		if r.IntN(5) == 0 {
			lbls[event.NodeLabel] = "node-17"
		}
		a := event.NewAttributes([event.NumFields]string{
			event.RegardingKind: []string{"Pod", "Node"}[r.IntN(2)], event.RegardingName: name, event.RegardingNamespace: []string{"shop", "x", ""}[r.IntN(3)],
			event.RegardingUID: []string{"", "b6d2f7a4-7ca3-4b8e-9d11-2c9fbf2a1d55", "B6d2f7a4-7ca3-4b8e-9d11-2c9fbf2a1d55", "7"}[r.IntN(4)],
			event.Reason:       []string{"BackOff", "Failed", strings.Repeat("long", 200)}[r.IntN(3)], event.Type: []string{"Normal", "Warning"}[r.IntN(2)],
			event.ReportingController: []string{"kubelet", ""}[r.IntN(2)], event.Source: []string{"kubelet", "mail", ""}[r.IntN(3)], event.Node: []string{"node-1", "node-17", ""}[r.IntN(3)],
			event.RegardingAPIVersion: "v1", event.RegardingFieldPath: []string{"", "spec.containers{web}"}[r.IntN(2)],
		}, lbls)
		note := someText(r)
		if r.IntN(50) == 0 {
			note = strings.Repeat(note+" ", 100)
		}
		at := time.UnixMicro(r.Int64N(4e12) - 1e10).UTC()
		o := event.Occurrence{Time: at, First: at, Count: int64(1 + r.IntN(5)), New: int64(r.IntN(5))}
		if r.IntN(3) == 0 {
			o.First = at.Add(-time.Duration(r.Int64N(int64(time.Hour)))).Truncate(time.Microsecond)
			o.New = o.Count
		}
		if r.IntN(20) == 0 {
			gap := event.Gap{From: time.Unix(1, 0), To: time.Unix(2, 0), Rule: []string{"", "noise"}[r.IntN(2)], Count: 1}
			a = a.With(o).WithReport(event.Report{Gap: gap})
		}
		rows = append(rows, Row{Revision: revision, Occurrence: o, Namespace: []byte([]string{"shop", "mail", "x"}[r.IntN(3)]), Attributes: a, Note: []byte(note)})
		if r.IntN(10) == 0 {
			row := &rows[len(rows)-1]
			row.Light = new(event.DimensionsOf(string(row.Namespace), a))
		}
	}
	return rows
}

// someFilter returns a filter, and whether light rows can match it.
func someFilter(r *rand.Rand, rows []Row, depth int) (f *event.Filter, light bool) {
	kind := event.FilterKind(r.IntN(10))
	if depth == 0 {
		kind = event.FilterDimension + event.FilterKind(r.IntN(7))
	}
	f = &event.Filter{Kind: kind}
	in := func(list ...string) func(string) bool { return func(t string) bool { return slices.Contains(list, t) } }
	switch kind {
	case event.FilterAll, event.FilterAny, event.FilterNot:
		light = true
		n := 1
		if kind != event.FilterNot {
			n = r.IntN(4)
		}
		for range n {
			part, l := someFilter(r, rows, depth-1)
			f.Parts, light = append(f.Parts, part), light && l
		}
		return f, light
	case event.FilterDimension:
		if r.IntN(4) == 0 {
			f.Dimension, f.Fits = event.PatternDimension, func(text string) bool { return len(text)%3 == 0 }
			return f, false
		}
		f.Dimension = event.DimensionNames[r.IntN(8)]
		f.Fits = in("kubelet", "Warning", "BackOff", "mail", "a", "Deployment/web", "node-17", event.CutDimension(strings.Repeat("long", 200)))
		return f, true
	case event.FilterField:
		f.Field = []event.Field{
			event.RegardingName, event.RegardingUID, event.RegardingNamespace, event.Reason, event.Type, event.RegardingKind,
			event.RegardingAPIVersion, event.RegardingFieldPath, event.FieldNamespace, event.FieldName, event.Source, event.ReportingController,
		}[r.IntN(12)]
		light = slices.Contains([]event.Field{event.Reason, event.Type, event.RegardingKind, event.FieldNamespace}, f.Field)
		row := &rows[r.IntN(len(rows))]
		exact := subjectOf(row).Field(f.Field)
		if r.IntN(2) == 0 && event.CutDimension(exact) == exact { // of a longer one a light row has the beginning
			f.Exact, f.Fits = exact, in(exact)
			return f, light
		}
		f.Fits = in("web-7d9f8", "n\x00ull", "b6d2f7a4-7ca3-4b8e-9d11-2c9fbf2a1d55", "shop", "BackOff", "Warning", "Pod", "v1", "spec.containers{web}", "event", "", "kubelet")
		return f, light
	case event.FilterGap:
		f.Dropped = r.IntN(2) == 0
		return f, false
	case event.FilterLabels:
		f.Labels = func(l labels.Labels) bool { return l.Get("app") == "web" || l.Has(event.OwnerNameLabel) }
		return f, false
	case event.FilterPlace:
		f.Allows = func(namespace, cluster string) bool { return namespace != "mail" && cluster != "b" }
		return f, true
	case event.FilterDimensions:
		f.Wants = func(d event.Dimensions) bool { return (len(d.Reason)+len(d.Node)+len(d.Namespace))%2 == 0 }
		return f, true
	}
	f.Kind, f.Note = event.FilterWord, r.IntN(2) == 0
	text := noteWords[r.IntN(len(noteWords))]
	if r.IntN(3) > 0 {
		text = string(rows[r.IntN(len(rows))].Note)
		if len(text) > 0 {
			from := r.IntN(len(text))
			text = text[from:min(len(text), from+1+r.IntN(20))]
		}
	}
	if text = strings.ToValidUTF8(text, ""); text == "" {
		text = "a"
	}
	f.Word = event.Fold(nil, []byte(text))
	return f, false
}

// want is what a filter says of each row.
func want(q *Query, rows []Row, light bool, f func(r *Row)) {
	for i := range rows {
		r := &rows[i]
		if r.Revision > q.Last || r.Light != nil && !light {
			continue
		}
		if q.Filter == nil || q.Filter.Matches(subjectOf(r)) {
			f(r)
		}
	}
}

func heldOf(rows []Row) func(uint64, *event.Filter) (bool, error) {
	return func(revision uint64, f *event.Filter) (bool, error) {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Revision == revision })
		return f.Matches(subjectOf(&rows[i])), nil
	}
}

func subjectOf(r *Row) *event.Subject {
	return &event.Subject{Namespace: string(r.Namespace), Name: "event", Attributes: r.Attributes, Text: event.AppendText(nil, r.Note, r.Attributes)}
}

func opened(t *testing.T, pieces Pieces, last uint64) *Table {
	t.Helper()
	table, err := Open(last, pieces)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// growingTable returns the table of the first rows of a builder, which then takes the others.
func growingTable(rows []Row, n int) (table *Table) {
	b := NewBuilder(0)
	for i := range rows {
		b.Add(&rows[i])
		if i+1 == n {
			table = b.Growing()
		}
	}
	return table
}

// TestRandomScans compares what scans find and count with what each filter says of each row.
func TestRandomScans(t *testing.T) {
	r := rng(t)
	for range 12 {
		rows := someRows(r, 1+r.IntN(1300))
		pieces, last := build(t, rows)
		grown := growingTable(rows, 1+r.IntN(len(rows)))
		for range 25 {
			q := &Query{From: -1e5, To: 1e10, Last: last, Held: heldOf(rows), Spans: r.IntN(2) == 0}
			light := true
			q.Whole = r.IntN(5) == 0
			if r.IntN(10) > 0 {
				q.Filter, light = someFilter(r, rows, 3)
			}
			if r.IntN(2) == 0 {
				q.From = r.Int64N(4e6) - 1e4
				q.To = q.From + r.Int64N(1e6)
				q.Late, q.Early = r.Int64N(1e6), r.Int64N(1e6)
			}
			if r.IntN(3) == 0 {
				q.Last = rows[r.IntN(len(rows))].Revision
			}
			table, of := opened(t, pieces, last), rows
			if r.IntN(3) == 0 {
				table, of = grown, rows[:grown.rows]
			}
			compare(t, r, q, of, table, light && !q.Whole)
			compareAmong(t, r, q, of, table)
			if t.Failed() {
				return
			}
		}
	}
}

// wanted is what a scan has to find and to count.
type wanted struct {
	*store.Count
	found  []Found
	counts map[string]int64
}

// key names what was observed of a group at one time, as exactly as counts are asked for.
func (w *wanted) key(group string, second, span int64) string {
	if w.Step > 0 && span == 0 {
		second = floor(second, w.Step)
	}
	return fmt.Sprint(group, " ", second, " ", span)
}

// add adds what a row that matches reports.
func (w *wanted) add(q *Query, r *Row) {
	if at, ok := r.LastIn(time.Unix(q.From, q.Late*1e3), time.Unix(q.To, -q.Early*1e3)); ok && (q.Spans || at.Equal(r.Time)) {
		w.found = append(w.found, Found{at.UnixMicro(), r.Revision})
	}
	d := event.DimensionsOf(string(r.Namespace), r.Attributes)
	for _, name := range event.DimensionNames {
		if !w.Counts(name) {
			*d.Text(name) = ""
		}
	}
	if w.Patterns() {
		d.Pattern = event.Pattern(r.Note, r.Attributes.Field(event.RegardingName), r.Namespace)
	}
	var o event.Regarding
	if w.Objects {
		o = event.Regarding{Kind: string(r.Attributes.Field(event.RegardingKind))}
		if r.Light == nil {
			o.Name, o.UID = string(r.Attributes.Field(event.RegardingName)), string(r.Attributes.Field(event.RegardingUID))
			o.Namespace = string(r.Attributes.Field(event.RegardingNamespace))
		}
	}
	r.Spread(func(second, span, n int64) {
		if n > 0 && second >= q.From && second < q.To {
			w.counts[w.key(fmt.Sprint(d, o), second, span)] += n
		}
	})
}

// compareAmong compares which of some versions a scan finds with what the filter says of them.
func compareAmong(t *testing.T, r *rand.Rand, q *Query, rows []Row, table *Table) {
	s, err := table.Scan(q)
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		return
	}
	some, wanted := []uint64{1}, map[uint64]bool{}
	share := 1 + r.IntN(40)
	for i := range rows {
		if rows[i].Light == nil && r.IntN(share) == 0 {
			some = append(some, rows[i].Revision)
		}
	}
	some = append(some, math.MaxUint64)
	of := *q
	of.Last = math.MaxUint64
	want(&of, rows, false, func(row *Row) { wanted[row.Revision] = true })
	var found []uint64
	for chunk := range s.Chunks() {
		if found, err = s.Among(chunk, some, found); err != nil {
			t.Fatal(err)
		}
	}
	expected := slices.DeleteFunc(some, func(revision uint64) bool { return !wanted[revision] })
	if !slices.Equal(found, expected) {
		t.Errorf("%s: among are %v, want %v", describe(q.Filter), found, expected)
	}
}

func compare(t *testing.T, r *rand.Rand, q *Query, rows []Row, table *Table, light bool) {
	c := &store.Count{Objects: r.IntN(2) == 0, By: [][]string{nil, {}, {"reason"}, {"node", "owner"}, {"pattern"}, {"type", "pattern"}}[r.IntN(6)], Step: []int64{0, 1000, 1e9}[r.IntN(3)]}
	if c.Patterns() { // light rows have no note
		q.Whole, light = true, false
	}
	w := &wanted{Count: c, counts: map[string]int64{}}
	want(q, rows, light, func(r *Row) { w.add(q, r) })
	counts := map[string]int64{}
	var found []Found
	var groups []string
	c.Group = func(d event.Dimensions, o event.Regarding) int {
		groups = append(groups, fmt.Sprint(d, o))
		return len(groups) - 1
	}
	s, err := table.Scan(q)
	if err != nil {
		t.Fatal(err)
	}
	if s != nil {
		n, err := s.Counter(c, func(o store.Occurred) { counts[w.key(groups[o.Group], o.Second, o.Span)] += o.Count })
		if err != nil {
			t.Fatal(err)
		}
		for chunk := range s.Chunks() {
			if found, err = s.Find(chunk, found); err != nil {
				t.Fatal(err)
			}
			if err := n.Chunk(chunk); err != nil {
				t.Fatal(err)
			}
		}
		n.Flush()
	}
	if !slices.Equal(found, w.found) {
		t.Errorf("%s: found %d, want %d", describe(q.Filter), len(found), len(w.found))
	}
	for k, n := range w.counts {
		if counts[k] != n {
			t.Fatalf("%s\n%.200s: %d, want %d", describe(q.Filter), k, counts[k], n)
		}
	}
	if len(counts) != len(w.counts) && !t.Failed() {
		t.Errorf("%s\n%d counts, want %d", describe(q.Filter), len(counts), len(w.counts))
	}
}

// TestLights: the light rows of a table are those that were added, and a table of them alone has all that is left of
// them.
func TestLights(t *testing.T) {
	r := rng(t)
	rows := someRows(r, 1300)
	of := func(pieces Pieces, last uint64) (lines []string, lights []Row) {
		table, err := Open(last, pieces)
		if err != nil {
			t.Fatal(err)
		}
		err = table.Lights(func(r *Row) error {
			var spread []int64
			r.Spread(func(second, span, n int64) { spread = append(spread, second, span, n) })
			lines, lights = append(lines, fmt.Sprint(r.Revision, *r.Light, spread)), append(lights, *r)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return lines, lights
	}
	var want []string
	first, held := int64(1<<60), int64(1<<60)
	for i := range rows {
		var spread []int64
		rows[i].Spread(func(second, span, n int64) { spread = append(spread, second, span, n) })
		first = min(first, spread[0])
		if rows[i].Light == nil {
			held = min(held, spread[0])
			continue
		}
		want = append(want, fmt.Sprint(rows[i].Revision, *rows[i].Light, spread))
	}
	pieces, last := build(t, rows)
	got, lights := of(pieces, last)
	if !slices.Equal(got, want) {
		t.Errorf("%d light rows, want %d", len(got), len(want))
	}
	table, err := Open(last, pieces)
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[int64]int64{-1e9: first, 1e9: held} {
		if begin, ok := table.Begin(since); !ok || begin != want {
			t.Errorf("since %d it begins at %d, %t, want %d", since, begin, ok, want)
		}
	}
	alone, last := build(t, lights)
	if again, _ := of(alone, last); !slices.Equal(again, want) {
		t.Errorf("alone: %d light rows, want %d", len(again), len(want))
	}
	if table, err = Open(last, alone); err != nil {
		t.Fatal(err)
	}
	if _, ok := table.Begin(1e9); ok {
		t.Error("versions that are not held begin, though nothing is kept of them")
	}
}

func describe(f *event.Filter) string {
	if f == nil {
		return "all"
	}
	s := fmt.Sprintf("(%d %s %d %q", f.Kind, f.Dimension, f.Field, f.Word)
	for _, p := range f.Parts {
		s += describe(p)
	}
	return s + ")"
}

// TestFlips changes each byte of a table. Each answer is the same as before, or names damage.
func TestFlips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rows := someRows(r, 600)
	pieces, last := build(t, rows)
	word := &event.Filter{Kind: event.FilterWord, Word: event.Fold(nil, []byte("failed"))}
	uid := &event.Filter{Kind: event.FilterField, Field: event.RegardingUID, Fits: func(u string) bool { return u == "7" }}
	answer := func() (string, error) {
		var found []Found
		var all strings.Builder
		for _, f := range []*event.Filter{nil, word, uid} {
			table, err := Open(last, pieces)
			if err != nil {
				return "", err
			}
			s, err := table.Scan(&Query{From: -1e6, To: 1e10, Last: last, Filter: f})
			if err != nil || s == nil {
				return "", err
			}
			c := &store.Count{Objects: true, Group: func(d event.Dimensions, o event.Regarding) int {
				fmt.Fprint(&all, d, o)
				return 0
			}}
			n, err := s.Counter(c, func(o store.Occurred) { fmt.Fprint(&all, o.Second, o.Span, o.Count) })
			for chunk := 0; chunk < s.Chunks() && err == nil; chunk++ {
				if found, err = s.Find(chunk, found); err == nil {
					err = n.Chunk(chunk)
				}
			}
			if err != nil {
				return "", err
			}
			n.Flush()
		}
		return all.String() + fmt.Sprint(found), nil
	}
	before, err := answer()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(pieces)) {
		piece := pieces[key]
		for at := 0; at < len(piece); at += 1 + r.IntN(len(piece)/4+1) {
			was := piece[at]
			piece[at] ^= 1 << r.IntN(8)
			after, err := answer()
			if err != nil && !errors.Is(err, boltfile.ErrChecksum) || err == nil && after != before {
				t.Fatalf("piece %x, byte %d: %v", key, at, err)
			}
			if column := key >> 16; err != nil && (column == columnOfMeta || column == columnOfPlaces || column >= columnOfDicts) {
				t.Fatalf("piece %x, byte %d: %v, but there is a copy", key, at, err)
			}
			piece[at] = was
		}
		whole := pieces[key]
		delete(pieces, key)
		if after, err := answer(); err != nil && !errors.Is(err, boltfile.ErrChecksum) || err == nil && after != before {
			t.Fatalf("without piece %x: %v", key, err)
		}
		pieces[key] = whole
	}
}

// TestGroupsAreAskedForOnce: what a group leaves out is not asked for again, over an array of groups and a map.
func TestGroupsAreAskedForOnce(t *testing.T) {
	b, row := NewBuilder(0), week(5000)
	last := uint64(0)
	for i := range 5000 {
		r := row(i)
		b.Add(&r)
		last = r.Revision
	}
	table, err := b.Table()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []int64{0, 1 << 40} {
		for _, c := range []store.Count{{By: []string{"reason"}}, {By: []string{}, Objects: true}, {By: []string{"reason", "node", "namespace"}, Objects: true}} {
			asked := map[string]int{}
			c.Step = step
			c.Group = func(d event.Dimensions, o event.Regarding) int {
				asked[fmt.Sprint(d, o)]++
				return -1
			}
			s, err := table.Scan(&Query{From: 0, To: 1 << 39, Last: last})
			if err != nil {
				t.Fatal(err)
			}
			n, err := s.Counter(&c, func(store.Occurred) { t.Error("what is left out was counted") })
			for chunk := 0; err == nil && chunk < s.Chunks(); chunk++ {
				err = n.Chunk(chunk)
			}
			if n.Flush(); err != nil || len(asked) < 2 {
				t.Fatal(len(asked), err)
			}
			for group, times := range asked {
				if times != 1 {
					t.Fatalf("by %s, step %d: %s was asked for %d times", c.By, step, group, times)
				}
			}
		}
	}
}

// TestValues: of a table that is asked for as a whole, the values are those that something observed has.
func TestValues(t *testing.T) {
	r := rng(t)
	for round := range 20 {
		rows := someRows(r, 1+r.IntN(2*ChunkRows))
		want := map[string]bool{}
		for i := range rows {
			row := &rows[i]
			if row.New += int64(round % 2); row.New == 0 {
				continue
			}
			d := event.DimensionsOf(string(row.Namespace), row.Attributes)
			for _, name := range dimensionNames {
				want[name+" "+*d.Text(name)] = true
			}
		}
		pieces, last := build(t, rows)
		table, err := Open(last, pieces)
		if err != nil {
			t.Fatal(err)
		}
		s, err := table.Scan(&Query{From: math.MinInt32, To: 1 << 39, Last: last})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		v, err := s.Values(&store.Count{}, func(dimension, value string) { got[dimension+" "+value] = true })
		if err == nil && v.More() && round%2 == 1 {
			t.Error("goes over chunks, though all rows were observed")
		}
		for chunk := 0; err == nil && v.More() && chunk < s.Chunks(); chunk++ {
			err = v.Chunk(chunk)
		}
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
	}
}

// TestTally: rows of one step are counted as those that are counted one by one, whether all of a chunk match or some.
func TestTally(t *testing.T) {
	r := rng(t)
	rows := make([]Row, 2500)
	for i, row := 0, week(len(rows)); i < len(rows); i++ {
		rows[i] = row(i)
		if added := int64(i / ChunkRows % 3); i/ChunkRows < 4 || r.IntN(2) == 0 { // of the last chunk they differ
			rows[i].New, rows[i].Count = added, 10
		}
	}
	pieces, last := build(t, rows)
	table, err := Open(last, pieces)
	if err != nil {
		t.Fatal(err)
	}
	warnings := &event.Filter{Kind: event.FilterDimension, Dimension: "type", Fits: func(t string) bool { return t == "Warning" }}
	for _, filter := range []*event.Filter{nil, warnings} {
		for _, by := range [][]string{{}, {"type"}, {"node"}, {"reason", "node"}} {
			count := func(step int64) map[event.Dimensions]int64 {
				var groups []event.Dimensions
				counts := map[event.Dimensions]int64{}
				s, err := table.Scan(&Query{From: 0, To: 1 << 39, Last: last, Filter: filter})
				if err != nil {
					t.Fatal(err)
				}
				c := store.Count{By: by, Step: step, Group: func(d event.Dimensions, _ event.Regarding) int {
					groups = append(groups, d)
					return len(groups) - 1
				}}
				n, err := s.Counter(&c, func(o store.Occurred) { counts[groups[o.Group]] += o.Count })
				for chunk := 0; err == nil && chunk < s.Chunks(); chunk++ {
					err = n.Chunk(chunk)
				}
				if n.Flush(); err != nil {
					t.Fatal(err)
				}
				return counts
			}
			if got, want := count(1<<40), count(0); !maps.Equal(got, want) || len(want) == 0 {
				t.Errorf("by %s, of all %t: %v, want %v", by, filter == nil, got, want)
			}
		}
	}
}
