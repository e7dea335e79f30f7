package usage_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/usage"
)

// listed is a source of pages of two.
type listed []store.View

func (l listed) Stats() usage.Stats {
	return usage.Stats{Events: 6, LiveBytes: 600, FileBytes: 600, MaxBytes: 6000}
}

func (l listed) List(_ context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	page := store.Page{Revision: 7}
	for n := range l {
		if l[n].Key.String() <= q.After.String() {
			continue
		}
		if page.Last.Name != "" && q.Revision == 0 && n == 2 {
			page.More = true
			return page, nil
		}
		visit(&l[n])
		page.Last = l[n].Key
	}
	return page, nil
}

// TestOf: rates count what was written in the last hour, and the first part is the one that writes most.
func TestOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(namespace, name string, ago time.Duration) store.View {
		by, kind := "reporter-"+namespace, []string{"Normal", "Warning"}[len(name)%2]
		a := event.NewAttributes([event.NumFields]string{event.Source: by, event.ReportingController: by, event.Type: kind}, nil)
		return store.View{Key: store.Key{Namespace: namespace, Name: name}, Time: now.Add(-ago), Bytes: 100, Attributes: a}
	}
	set, err := rules.Parse([]byte("[{name: old, namespaces: [a], keep: 150m}, {name: b, where: namespace=b, drop: true}, {name: none, keep: 0}]"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := usage.BreakdownOf(t.Context(), listed{
		at("a", "1", 10*time.Hour), at("a", "2", 2*time.Hour), at("a", "3", 3*time.Hour),
		at("b", "1", time.Minute), at("b", "2", time.Minute), at("c", "1", time.Second),
	}, 0, set, now)
	if err != nil {
		t.Fatal(err)
	}
	want := []usage.Part{
		{Name: "b", Events: 2, Bytes: 200, PerSecond: 2. / 3600}, {Name: "c", Events: 1, Bytes: 100, PerSecond: 1. / 3600}, {Name: "a", Events: 3, Bytes: 300},
	}
	if diff := cmp.Diff(want, got.Namespaces, cmpopts.IgnoreUnexported(usage.Part{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
	for i := range want {
		want[i].Name = "reporter-" + want[i].Name
	}
	if diff := cmp.Diff(want, got.Reporters, cmpopts.IgnoreUnexported(usage.Part{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("reporters: %s", diff)
	}
	all := []usage.Part{{Name: "Warning", Events: 6, Bytes: 600, PerSecond: 3. / 3600}}
	if diff := cmp.Diff(all, got.Types, cmpopts.IgnoreUnexported(usage.Part{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("types: %s", diff)
	}
	// 600 bytes in ten hours; 86 % of the limit is for events, and packing is bytes of records for each byte of the
	// files.
	if hours := got.Projected / 3600; hours < 85 || hours > 87 {
		t.Errorf("projected: %.1f h", hours)
	}
	if fits := got.Stats.Fits(); fits < 50 || fits > 52 {
		t.Errorf("%d events fit", fits)
	}
	// 51 events at three in an hour.
	if hours := got.FitsFor().Hours(); hours < 16.6 || hours > 17.3 || got.OldestAge != (10*time.Hour).Seconds() {
		t.Errorf("those of %.1f h, the oldest is %.0f s old", hours, got.OldestAge)
	}
	saved := []usage.RulePart{
		{Name: "old", Does: "keep 2h30m0s", Events: 3, Bytes: 300, SavedEvents: 2, SavedBytes: 200},
		{Name: "b", Does: "drop", Events: 2, Bytes: 200, SavedEvents: 2, SavedBytes: 200},
		{Name: "none", Does: "keep for ever", Events: 1, Bytes: 100},
	}
	if diff := cmp.Diff(saved, got.Rules); diff != "" {
		t.Error(diff)
	}
	if !got.Oldest.Equal(now.Add(-10 * time.Hour)) {
		t.Error(got.Oldest)
	}
}

// TestReporters: the breakdown names the reporter that rules and questions name, so that a rule which is written by it
// fits.
func TestReporters(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var all listed
	for name, ev := range map[string]eventsv1.Event{
		"both":       {ReportingController: "example.com/ctl", DeprecatedSource: corev1.EventSource{Component: "old-name"}},
		"controller": {ReportingController: "example.com/ctl"}, "component": {DeprecatedSource: corev1.EventSource{Component: "kubelet"}}, "none": {},
	} {
		all = append(all, store.View{Key: store.Key{Namespace: "a", Name: name}, Time: now, Bytes: 100, Attributes: event.AttributesOf(&ev)})
	}
	slices.SortFunc(all, func(a, b store.View) int { return strings.Compare(a.Name, b.Name) })
	got, err := usage.BreakdownOf(t.Context(), all, 0, new(rules.Set), now)
	if err != nil {
		t.Fatal(err)
	}
	reporters, asked := map[string]int64{}, map[string]int64{}
	for _, p := range got.Reporters {
		reporters[p.Name] = p.Events
	}
	if diff := cmp.Diff(map[string]int64{"example.com/ctl": 2, "kubelet": 1, "": 1}, reporters); diff != "" {
		t.Error(diff)
	}
	for i := range all {
		facts := rules.FactsOf([]byte("a"), all[i].Attributes)
		asked[string(facts[rules.Reporter])]++
		if d := event.DimensionsOf("a", all[i].Attributes); d.Reporter != string(facts[rules.Reporter]) {
			t.Errorf("%s: questions name the reporter %q and rules %q", all[i].Name, d.Reporter, facts[rules.Reporter])
		}
	}
	if diff := cmp.Diff(asked, reporters); diff != "" {
		t.Errorf("rules and the breakdown differ: %s", diff)
	}
}
