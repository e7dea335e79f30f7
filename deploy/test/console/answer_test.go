package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestVerdict: the first line of the overview, of changes and of an object says what happened and whether it goes on,
// with a link to its events. Where nothing differs it says so, and no list says it instead.
func TestVerdict(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	b.open("/console/#/changes?window=1h&at=" + stamp(facts.OOM.Begin.Add(30*time.Minute)))
	b.signIn(admin)
	b.waitText(".verdict", " since ")
	if text := b.text(".verdict"); regexp.MustCompile(`\d{4}-\d\d-\d\dT`).MatchString(text) {
		t.Errorf("its times are not written as others: %s", text)
	}
	reason := b.text(".verdict-text > a")
	b.click(".verdict-text > a")
	b.waitText(".chip", reason)
	b.wait(`document.querySelector("main [data-row]")`)
	show(b, "changes?window=1h&at="+stamp(facts.OOM.Begin.Add(30*time.Minute))+"&q=reason%3A"+reason)
	b.waitText(".verdict-text", "In what the search finds: "+reason)
	show(b, "overview?from=-1d")
	b.wait(`["Goes on", "Over", "Once", "Irregular"].includes(document.querySelector(".verdict .state-mark")?.innerText)`)
	show(b, fmt.Sprintf("object?kind=Pod&ns=%s&name=%s", facts.OOM.Namespace, facts.OOM.Pod))
	b.waitText(".verdict.over", "over for ")
	b.shot("verdict-object")
	show(b, "changes?window=1h&q=reason%3ANeverHeardOf")
	b.waitText(".verdict.usual", "differs from what is usual")
	for _, view := range []string{"overview?from=-1h&q=reason%3APulled", "changes?window=1h&q=reason%3ANeverHeardOf"} {
		show(b, view)
		b.settled()
		if strings.Contains(b.text("main"), "Nothing differs") {
			t.Errorf("%s says that nothing differs", view)
		}
	}
}

// TestStatesOfSeries: changes, groups, rows and the drawer say whether a series goes on.
func TestStatesOfSeries(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	b.open("/console/#/groups?by=object&from=-8d&q=reason%3AOOMKilling")
	b.signIn(admin)
	b.waitText("[data-group] .state.over", "over for ")
	show(b, "groups?by=reason&from=-1d&q=type%3ANormal") // what is routine always goes on
	b.wait(`document.querySelector("[data-group] .group-last")`)
	b.settled()
	if n := b.count("[data-group] .state"); n > 0 {
		t.Errorf("%d groups of routine events have a state", n)
	}
	show(b, "changes?window=1h&at="+stamp(facts.OOM.Begin.Add(30*time.Minute)))
	b.waitText(".changes .state.ongoing", "goes on")
	b.wait(`document.querySelector(".changes .small-lane")`)
	show(b, "events?from=-8d&q=reason%3ABackOff%20name%3A"+facts.OOM.Pod)
	b.wait(`document.querySelector("[data-row] .series.over")`)
	b.key("j")
	b.key("Enter")
	b.waitText(".drawer .details", "over for ")
}

// TestDifference: who selects bars in the histogram gets to what differs in them by one link.
func TestDifference(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/events?from=-2d")
	b.signIn(admin)
	b.wait(`document.querySelector(".plot svg")`)
	if b.count(".differs") != 0 {
		t.Error("there is a link before anything is selected")
	}
	b.drag(".plot", 0.5, 0.6)
	b.click(".differs")
	b.wait(`location.hash.startsWith("#/changes?") && /at=20.*window=\d/.test(location.hash)`)
	b.wait(`document.querySelector(".verdict:not(.waiting)")`)
}

// TestBelow: the pages of a Deployment, a Node and a Namespace show the lanes of what is below them.
func TestBelow(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	deployment := regexp.MustCompile(`-[^-]+-[^-]+$`).ReplaceAllString(facts.OOM.Pod, "")
	b.open("/console/")
	b.signIn(admin)
	for _, object := range []string{"kind=Deployment&ns=" + facts.OOM.Namespace + "&name=" + deployment, "kind=Node&name=" + facts.OOM.Node, "kind=Namespace&name=" + facts.OOM.Namespace} {
		show(b, "object?"+object)
		b.waitText(".lane-name a", "Pod/"+facts.OOM.Pod)
		b.wait(`document.querySelector(".verdict")`)
		b.settled()
		if rows := b.rows(); strings.HasPrefix(object, "kind=Node") {
			if len(rows) == 0 || evaluate[bool](b, `document.querySelector(".table").getBoundingClientRect().bottom > innerHeight`) {
				t.Errorf("%s has %d rows, or they are not on the screen", object, len(rows))
			}
			own := evaluate[string](b, `document.querySelector(".table").ariaRowCount`)
			b.clickText(".summary .choice button", "All lanes")
			b.wait(`document.querySelector(".table").ariaRowCount > ` + own)
		}
	}
	b.clickText(".lane-name a", "Pod/"+facts.OOM.Pod)
	b.waitText("h1", "Pod/"+facts.OOM.Pod)
	show(b, "object?kind=Pod&ns="+facts.Rollout.Namespace+"&name="+facts.Rollout.Pods[0]) // whose Deployment has events in any week
	b.waitText(".lane-name", "by its name an owner")
}

// TestChoicesOfOtherViews: what was chosen in one view does not narrow or spoil another: the order of a column, the
// namespace of an object. A comparison takes the namespace that its form shows.
func TestChoicesOfOtherViews(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	b.open("/console/#/events?order=-note")
	b.signIn(admin)
	b.clickText("nav.views a", "Groups")
	b.wait(`document.querySelector("[data-group]")`)
	show(b, "object?kind=Pod&ns="+facts.OOM.Namespace+"&name="+facts.OOM.Pod)
	b.clickText("nav.views a", "Changes")
	b.wait(`document.querySelector(".changes") && !location.hash.includes("ns=")`)
	show(b, "changes?window=6h&ns="+facts.OOM.Namespace)
	b.wait(`document.querySelector("input[name=ns]").value !== ""`)
	b.fill("input[name=ns]", "")
	b.clickText(".choice button", "a day before")
	b.wait(`location.hash.includes("other=") && !location.hash.includes("ns=")`)
}

// TestDeployments: a deployment is a mark on the plot, a set that grows is none.
func TestDeployments(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	for name, note := range map[string]string{"deployed": "Scaled up replica set web-7d9f8b6c5 from 0 to 3", "older": "Scaled up replica set api-7d9f8b6c5 to 3", "grown": "Scaled up replica set web-7d9f8b6c5 from 3 to 4"} {
		e := event("default", name)
		e.Reason, e.Note, e.Regarding.Kind, e.Regarding.Name = "ScalingReplicaSet", note, "Deployment", "web"
		s.create(t, e)
	}
	b := openTab(t, s)
	b.open("/console/#/overview?from=-1h")
	b.signIn(admin)
	b.wait(`document.querySelectorAll(".edits a").length === 2`)
}

// TestOneMoment: all numbers of a page are of one state and one range, although the range ends now.
func TestOneMoment(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/overview?from=-6h")
	b.signIn(admin)
	b.wait(`document.querySelector(".plot svg") && document.querySelector(".facet")`)
	b.settled()
	moments := map[string]int{}
	for _, address := range evaluate[[]string](b, `performance.getEntriesByType("resource").map((e) => e.name).filter((name) => /query.v1.(overview|events)/.test(name) && /from=/.test(name))`) {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		moments[u.Query().Get("revision")+" "+u.Query().Get("to")]++
	}
	if moments[" now"] != 1 || len(moments) != 2 {
		t.Errorf("revisions and ends that were asked for: %v", moments)
	}
}

// TestCounting: a search that takes long shows what it has counted so far as such, and its first rows. When it fails
// behind that, the page says so.
func TestCounting(t *testing.T) {
	t.Parallel()
	_, b := withEvents(t, 50)
	b.waitText(".readout", "50 occurrences")
	evaluate[bool](b, `{
		const real = fetch;
		window.fetch = async (to, ...rest) => {
			if (!String(to).includes("/query/v1/overview")) return real(to, ...rest);
			const answer = await real(to, ...rest);
			const whole = JSON.parse((await answer.text()).trim().split("\n").pop());
			const { range, revision, historyFrom, ...part } = whole;
			const line = (value) => new TextEncoder().encode(JSON.stringify(value) + "\n");
			return new Response(new ReadableStream({ async start(to) {
				to.enqueue(line({ ...part, total: 3, counting: { since: range.from, progress: "3 of 7 days" } }));
				to.enqueue(line(await new Promise((end) => (window.end = (failure) => end(failure ?? whole)))));
				to.close();
			} }), { headers: answer.headers });
		};
		true;
	}`)
	show := func(q string) {
		t.Helper()
		evaluate[bool](b, fmt.Sprintf(`(window.end = undefined, location.hash = "#/events?from=-1h&q=" + encodeURIComponent(%s), true)`, quoted(q)))
		b.waitText(".readout", "3 occurrences so far: counting, 3 of 7 days")
		b.waitText(".count", "10 events")
		b.wait(`document.querySelectorAll("main [data-row]").length === 10 && window.end`)
	}
	show("reason:Failed")
	evaluate[bool](b, `(window.end(), true)`)
	b.waitText(".readout", "10 occurrences")
	b.wait(`!document.querySelector(".readout").innerText.includes("so far")`)
	show("reason:Failed type:Warning")
	evaluate[bool](b, `(window.end({ error: { code: 503, message: "the disk is away" } }), true)`)
	b.waitText(".histogram [role=alert]", "the disk is away")
	b.waitText(".readout", "3 occurrences so far: counted 3 of 7 days")
}

// TestFace: letters have three sizes and come from fonts that are shipped; the zone says its name.
func TestFace(t *testing.T) {
	t.Parallel()
	s, all := screens(t)
	b := openTab(t, s)
	b.open("/console/")
	b.signIn(admin)
	for name, address := range all {
		visit(b, name, address)
		sizes := evaluate[[]string](b, `[...new Set([...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => getComputedStyle(e).fontSize))].filter((size) => size !== "0px")`)
		if len(sizes) > 3 {
			t.Errorf("%s has the sizes %v", name, sizes)
		}
	}
	if fonts := evaluate[[]string](b, `[...document.fonts].filter((f) => f.status === "loaded").map((f) => f.family.replaceAll('"', "") + " " + f.weight)`); len(fonts) != 3 {
		t.Errorf("fonts: %v", fonts)
	}
	b.waitText("button.zone", "UTC")
}

// TestWarmStart: a page that is loaded again asks for itself, the session and the events, and for nothing that it has.
func TestWarmStart(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/overview?from=-6h")
	b.signIn(admin)
	b.settled()
	b.reload()
	b.wait(`document.querySelector(".plot svg")`)
	b.settled()
	if asked := evaluate[[]string](b, `performance.getEntriesByType("resource").filter((e) => e.transferSize > 0 && !e.name.includes("/query/v1/")).map((e) => e.name)`); len(asked) != 1 || !strings.HasSuffix(asked[0], "/console/session/mine") {
		t.Errorf("asked again for %v", asked)
	}
}

// TestAgain: an outage that also happened days before is told as such, in the verdict and in its row, with the way to
// the time before.
func TestAgain(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	var body strings.Builder
	begin := time.Now().Add(-20 * time.Minute)
	before := begin.Add(-5 * 24 * time.Hour)
	for _, ago := range []time.Duration{5 * 24 * time.Hour, 0} {
		for i := range 23 {
			at := stamp(begin.Add(time.Duration(12*i)*time.Second - ago))
			fmt.Fprintf(&body, `{"metadata":{"namespace":"default","name":"evicted-%d-%d"},"involvedObject":{"kind":"Node","name":"node-g21"},"reason":"EvictionThresholdMet","type":"Warning","message":"Attempting to reclaim ephemeral-storage","firstTimestamp":%q,"lastTimestamp":%q,"count":1,"source":{"component":"kubelet"}}`+"\n", int(ago.Hours()), i, at, at)
		}
	}
	s.send(t, http.MethodPost, s.events+"/bulk/v1/events", "application/x-ndjson", s.token(t, admin), []byte(body.String()), http.StatusOK)
	b := openTab(t, s)
	b.open("/console/#/changes?window=1h")
	b.signIn(admin)
	b.waitText(".verdict.over", "again, as on")
	b.waitText(".change-mark.again", "Again")
	b.shot("again")
	b.clickText(".verdict-links a", "The time before")
	b.waitText(".readout", "23 occurrences")
	if from := evaluate[string](b, `new URLSearchParams(location.hash.split("?")[1]).get("from")`); from != stamp(before) {
		t.Errorf("from %s, want %s", from, stamp(before))
	}
	show(b, "object?kind=Namespace&name=default")
	b.waitText(".verdict", "EvictionThresholdMet of Node/node-g21 46 times") // 46 events
}

// TestSilence: every view says of which cluster nothing comes any more, whatever range it looks at.
func TestSilence(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	end := time.Now().Add(-2 * time.Hour)
	for day := range 4 {
		var body strings.Builder
		for i := range 24 * 30 {
			at := stamp(end.Add(-time.Duration(day)*24*time.Hour - 2*time.Duration(i)*time.Minute))
			fmt.Fprintf(&body, `{"metadata":{"namespace":"shop","name":"e-%d-%d","labels":{"tidings.example/cluster":"edge"}},"involvedObject":{"kind":"Pod","name":"web-%d","namespace":"shop"},"reason":"Pulled","type":"Normal","message":"Pulled","firstTimestamp":%q,"lastTimestamp":%q,"count":1,"source":{"component":"kubelet"}}`+"\n", day, i, i, at, at)
		}
		s.send(t, http.MethodPost, s.events+"/bulk/v1/events", "application/x-ndjson", s.token(t, admin), []byte(body.String()), http.StatusOK)
	}
	s.some(t, 20)
	b := openTab(t, s)
	b.open("/console/")
	b.signIn(admin)
	for _, view := range []string{"overview", "overview?from=-30d", "events?from=-1h", "live", "groups", "changes?window=1h", "object?kind=Pod&ns=shop&name=web-1"} {
		show(b, view)
		b.waitText(".notices", "Nothing comes any more of cluster edge since")
	}
	show(b, "changes?window=1h")
	b.waitText(".changes .change-object", "cluster edge")
}
