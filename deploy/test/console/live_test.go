package console_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
)

// TestLiveUnderLoad: what arrives while a person scrolls is counted, and all of it is there once and in order when they
// go on; a restart of the service in between loses and doubles nothing.
func TestLiveUnderLoad(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	b := openTab(t, s)
	b.expect("net::ERR_") // while the service is away
	s.some(t, 30)
	b.open("/console/#/live")
	b.signIn(admin)
	b.waitText(".phase", "Live")
	b.waitText("main [data-row]", "Number 29 has happened")
	want := 30
	burst := func(n int) {
		t.Helper()
		for range n {
			ev := event("default", fmt.Sprintf("live-%04d", want))
			ev.Note = fmt.Sprintf("Live number %d", want)
			s.create(t, ev)
			want++
		}
	}
	burst(200)
	b.waitText("main [data-row]", fmt.Sprintf("Live number %d", want-1))
	if rate := b.text(".rate"); rate == "0.0 a second" {
		t.Errorf("the rate is %s under load", rate)
	}
	evaluate[bool](b, `(document.querySelector(".table").scrollTop = 400, true)`)
	b.waitText(".phase", "Paused")
	still := b.rows()
	burst(50)
	b.waitText(".pill", "50 new")
	if now := b.rows(); !slices.Equal(now, still) {
		t.Error("rows have moved while it was paused")
	}
	b.shot("live-paused")
	s.restart(t, "eventsvc")
	burst(25)
	b.waitText("main", "resumed at revision")
	b.waitText(".pill", "75 new")
	b.click(".pill")
	b.waitText(".phase", "Live")
	b.wait(fmt.Sprintf(`document.querySelector(".table").ariaRowCount === "%d"`, want+1))
	b.shot("live-resumed")
	seen := map[string]bool{}
	for range want/15 + 2 {
		for _, id := range b.rows() {
			seen[id] = true
		}
		b.key("PageDown")
		b.settled()
	}
	if len(seen) != want { // in as many rows, so none is there twice
		t.Errorf("%d different events are shown in %d rows", len(seen), want)
	}
	b.key("n")
	b.waitText(".phase", "Live")
	b.key("p")
	b.waitText(".phase", "Paused")
	b.key("p")
	b.waitText(".phase", "Live")
}

// TestLiveSeries: an event that is counted up takes the place of what was shown of it.
func TestLiveSeries(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	ev, other := event("default", "series"), event("default", "other")
	s.create(t, ev, other)
	b := openTab(t, s)
	b.open("/console/#/live?q=-reason%3AHidden")
	b.signIn(admin)
	b.waitText(".phase", "Live")
	patch := fmt.Sprintf(`{"series":{"count":7,"lastObservedTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	s.send(t, "PATCH", s.events+eventsPath("default")+"/series", "application/merge-patch+json", s.token(t, admin), []byte(patch), 200)
	b.waitText(`[data-row="default/series"]`, "7×")
	if rows := b.rows(); !slices.Equal(rows, []string{"default/series", "default/other"}) {
		t.Errorf("the rows are %v", rows)
	}
	hidden := event("default", "hidden")
	hidden.Reason = "Hidden"
	last := event("default", "last")
	s.create(t, hidden, last)
	b.wait(`document.querySelector('[data-row="default/last"]')`)
	if slices.Contains(b.rows(), "default/hidden") {
		t.Error("what the search leaves out is shown")
	}
}

// TestLiveSearch: what arrives is matched as the server matches: by OR, NOT, parentheses, labels and names with a
// slash.
func TestLiveSearch(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	b := openTab(t, s)
	b.open("/console/#/live?q=" + url.QueryEscape(`(reason:wanted OR pod/web-9 OR label:app=shop) NOT note:secret`))
	b.signIn(admin)
	b.waitText(".phase", "Live")
	if n := b.count(".note"); n != 0 {
		t.Errorf("it says %s", b.texts(".note"))
	}
	all := map[string]*eventsv1.Event{}
	for _, name := range []string{"wanted", "secret", "named", "labelled", "other", "last"} {
		all[name] = event("default", name)
	}
	all["wanted"].Reason, all["secret"].Reason, all["last"].Reason = "Wanted", "Wanted", "Wanted"
	all["secret"].Note = "This is a Secret."
	all["named"].Regarding.Name, all["labelled"].Labels = "web-9", map[string]string{"app": "shop"}
	s.create(t, all["wanted"], all["secret"], all["named"], all["labelled"], all["other"], all["last"])
	b.wait(`document.querySelector('[data-row="default/last"]')`)
	if rows := b.rows(); !slices.Equal(rows, []string{"default/last", "default/labelled", "default/named", "default/wanted"}) {
		t.Errorf("the rows are %v", rows)
	}
}

// TestLiveBeginsWhileAway: a page of live events that is opened while the service is away begins by itself once it is
// back.
func TestLiveBeginsWhileAway(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	b := openTab(t, s)
	b.expect("net::ERR_") // while the service is away
	s.some(t, 3)
	b.open("/console/#/events?from=-8d")
	b.signIn(admin)
	b.waitText("main [data-row]", "Number 2 has happened")
	s.stop(t, "eventsvc")
	evaluate[bool](b, `(location.hash = "#/live", true)`)
	b.waitText(".phase", "Disconnected")
	s.start(t, "eventsvc")
	b.waitText(".phase", "Live")
	ev := event("default", "begun")
	ev.Note = "Live has begun"
	s.create(t, ev)
	b.waitText("main [data-row]", "Live has begun")
}
