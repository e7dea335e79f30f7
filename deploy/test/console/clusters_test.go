package console_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
)

// mirrored writes the cursor of the mirror of a cluster, which was complete some time ago, and an event of the cluster.
func (s *services) mirrored(t *testing.T, cluster string, ago time.Duration) {
	t.Helper()
	labels := map[string]string{"tidings.example/cluster": cluster}
	cursor := event("kube-system", "eventsvc-mirror."+cluster)
	cursor.Reason, cursor.ReportingController, cursor.Labels = "Mirrored", "tidings.example/mirror", labels
	cursor.Regarding.Namespace = "kube-system"
	cursor.Annotations = map[string]string{
		"mirror.tidings.example/cursor": "1", "mirror.tidings.example/cursor-time": stamp(time.Now().Add(-ago)),
		"mirror.tidings.example/last-event": stamp(time.Now().Add(-ago)), "mirror.tidings.example/mirror-version": "1.2.3",
	}
	copied := event("shop", "web."+cluster)
	copied.Labels = labels
	s.create(t, cursor, copied)
}

// TestClusters: a server that nothing is mirrored to shows no clusters. Otherwise the overview says when each was heard
// from, those that are late first, and a click shows the events of one. Every view says which are late.
func TestClusters(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.create(t, event("default", "first"))
	b := openTab(t, s)
	b.open("/console/#/overview?from=-1h")
	b.signIn(admin)
	b.waitText(".readout", "1 occurrence")
	b.settled()
	if n := b.count(".clusters"); n > 0 {
		t.Error("there is a list of clusters")
	}

	long := "edge-" + strings.Repeat("0123456789", 5) + "-a" // as long as names may be, nearly
	for cluster, ago := range map[string]time.Duration{"east": 20 * time.Second, "north": 6 * time.Minute, "south": 12 * time.Minute, "west": 0, long: 3 * time.Hour, "a": 0, "b": 0, "c": 0} {
		s.mirrored(t, cluster, ago)
	}
	eventually(b, "all clusters are there", func() bool {
		b.key("r")
		b.settled()
		return b.count(".clusters") > 0 && strings.Contains(b.text(".clusters h2"), "3 of 8 late")
	})
	names := func() []string { return b.texts(".clusters .name") }
	b.waitText(`[data-facet="cluster:"]`, "without a name")
	if want := []string{long, "south", "north", "a", "b", "c"}; !slices.Equal(names(), want) {
		t.Errorf("%q, want %q", names(), want)
	}
	for _, view := range []string{"events", "live", "groups", "changes", "overview?from=-1h"} {
		show(b, view)
		b.waitText(".notices", "the mirror of "+long+" is 3h behind (complete until ")
	}
	b.clickText(".clusters button", "2 more")
	b.waitText(".clusters", "Show fewer")
	if got := names(); len(got) != 8 {
		t.Errorf("%q", got)
	}
	for _, li := range b.texts(".clusters li") {
		late := strings.HasPrefix(li, "south") || strings.HasPrefix(li, "north") || strings.HasPrefix(li, long)
		if strings.Contains(li, "Late") != late || strings.Contains(li, "complete until ") != late {
			t.Errorf("%q", li)
		}
	}
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		for size, width := range map[string]int64{"wide": 1440, "middle": 1024, "narrow": 390} {
			b.size(width, 900)
			where := fmt.Sprintf("clusters-%s-%v", size, dark)
			b.settled()
			named(b, where)
			contrast(b, where)
			fits(b, where, width)
			evaluate[bool](b, `(document.querySelector(".clusters").scrollIntoView({ block: "center" }), true)`)
			b.shot(where)
		}
	}
	b.dark(false)
	b.size(1440, 900)
	b.click(`[data-cluster="south"]`)
	b.waitText(".chip", "south")
	b.waitText(".readout", "1 occurrence") // of the event, and none of the cursor
	b.wait(`document.querySelector('[data-cluster="south"]').ariaPressed === "true"`)
	b.click(`[data-cluster="south"]`)
	b.wait(`!document.querySelector(".chip")`)
}

// TestHostileClusters: whatever a server calls its clusters is text. A server of ours has no such names.
func TestHostileClusters(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.create(t, event("default", "first"))
	var rows []map[string]any
	for i, text := range hostile {
		rows = append(rows, map[string]any{"name": text, "completeUntil": text, "lag": i * 100, "late": i > 1, "lastEvent": text, "gaps": i % 2, "mirror": text})
	}
	answer, err := json.Marshal(map[string]any{"items": rows})
	if err != nil {
		t.Fatal(err)
	}
	b := openTab(t, s)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `{ const real = fetch; window.fetch = (to, ...rest) => String(to).includes("/query/v1/clusters") ? Promise.resolve(new Response(` + quoted(string(answer)) + `)) : real(to, ...rest); }`,
	})
	b.open("/console/#/overview")
	b.signIn(admin)
	b.waitText(".clusters", "more")
	b.clickText(".clusters button", fmt.Sprintf("%d more", len(hostile)-6))
	b.waitText(".clusters", "Show fewer")
	if n := b.count(".clusters li"); n != len(hostile) {
		t.Errorf("%d of %d clusters", n, len(hostile))
	}
	unharmed(b, "the list of clusters")
	for i := range hostile {
		evaluate[bool](b, fmt.Sprintf(`(document.querySelectorAll(".clusters .name")[%d].click(), true)`, i))
		b.settled()
		unharmed(b, hostile[i])
	}
}
