package console_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/incidents"
)

// person counts what a person does: clicks, keys, and texts that are written (one each, with the key that ends it).
type person struct {
	*tab
	acts    int
	slowest time.Duration // from an act until the page shows its answer
	begun   time.Time
}

// does runs one interaction, and waits until the page shows its answer.
func (p *person) does(act func()) {
	p.t.Helper()
	p.acts++
	begun := time.Now()
	act()
	p.settled()
	p.slowest = max(p.slowest, time.Since(begun))
}

func (p *person) clicks(selector, text string) {
	p.t.Helper()
	p.does(func() { p.clickText(selector, text) })
}

func (p *person) presses(key string) {
	p.t.Helper()
	p.does(func() { p.key(key) })
}

// writes replaces the text of the focused field, and presses Enter.
func (p *person) writes(text string) {
	p.t.Helper()
	p.does(func() {
		p.key("a", ctrl)
		p.typing(text)
		p.key("Enter")
	})
}

// searches writes a text into the search box, and ends it by Enter.
func (p *person) searches(text string) {
	p.t.Helper()
	p.presses("/")
	p.writes(text + " ")
}

// mostActs is how many interactions a task may take.
const mostActs = 5

// TestTasks: a person who is called at night finds the answer to each question from the overview in at most mostActs
// interactions. CONSOLE_TASK_EVENTS=1000000 runs it with a million events. The log has the number of interactions of
// each task, their time, the time of the slowest interaction, and the processor time of eventsvc, which other work on
// the machine does not change.
func TestTasks(t *testing.T) {
	t.Parallel()
	s, f := tasksWeek(t)
	doTasks(t, s, f)
}

func doTasks(t *testing.T, s *services, f *incidents.Facts) {
	t.Helper()
	b := openTab(t, s)
	allowClipboard(b)
	b.open("/console/#/overview?from=-8d")
	b.signIn(admin)
	last := func() string { return fmt.Sprintf("overview?from=%s&to=%s", stamp(f.Begin), stamp(f.End)) }
	near := func(at time.Time) string { return at.UTC().Format("01-02 15:04") }
	for i, task := range []struct {
		question string
		do       func(p *person)
	}{
		{"When did the image pulls begin to fail, and on which nodes?", func(p *person) {
			p.searches(`"failed to pull image" ` + f.Pulls.Registry)
			for _, node := range f.Pulls.Nodes {
				p.waitText(".facets", node)
			}
			p.clicks("nav.views a", "Groups")
			p.waitText("[data-group]", near(f.Pulls.Begin))
		}},
		{"What is new today?", func(p *person) {
			p.waitText(".changes", "BackOff")
		}},
		{"Which node went away, when, and when did it come back?", func(p *person) {
			p.searches("kind:Node reason:NodeNotReady")
			p.clicks("nav.views a", "Events")
			p.clicks("main [data-row]", near(f.NotReady.Begin))
			p.clicks(".asks a", "Life of the object")
			p.waitText("main h1", f.NotReady.Node)
			p.waitText("main [data-row]", "NodeReady")
			p.waitText("main [data-row]", near(f.NotReady.End))
		}},
		{"Which pod is killed for its memory, and how often?", func(p *person) {
			p.clicks("nav.views a", "Groups")
			p.searches("reason:OOMKilling")
			p.clicks(".choice button", "Object")
			p.waitText("[data-group]", f.OOM.Node)
			p.waitText("[data-group] .group-note", f.OOM.Pod)
			p.waitText("[data-group] .number", strconv.Itoa(f.OOM.Kills))
		}},
		{"Which volume cannot be mounted, since when, and by which pods?", func(p *person) {
			p.searches("reason:FailedAttachVolume")
			p.clicks("nav.views a", "Events")
			p.waitText("main [data-row]", f.Mounts.Volume[:8])
			for _, pod := range f.Mounts.Pods {
				p.waitText("main [data-row]", pod)
			}
		}},
		{"Who owns the pod that does not become ready, and what was rolled out?", func(p *person) {
			p.searches("name:" + f.Rollout.Pods[0])
			p.clicks("nav.views a", "Events")
			p.presses("j")
			p.presses("o")
			p.waitText(".lane-name", "Deployment/"+f.Rollout.Deployment)
			p.waitText(".lane-name", "ReplicaSet/"+f.Rollout.ReplicaSet)
			p.wait(`[...document.querySelectorAll(".mark")].some((e) => e.title.includes("ScalingReplicaSet"))`)
		}},
		{"What changed before the node went away?", func(p *person) {
			p.searches("kind:Node reason:NodeNotReady")
			p.clicks("nav.views a", "Events")
			p.clicks("main [data-row]", near(f.NotReady.Begin))
			p.clicks(".asks a", "What changed before this")
			p.waitText("main", "against all history before")
			p.waitText(".changes", "Node")
			p.wait(`!location.hash.includes("ns=")`) // a node has no namespace, though its events lie in one
		}},
		{"How do this hour and the same a day before differ?", func(p *person) {
			p.clicks("nav.views a", "Changes")
			p.clicks(".choice button", "a day before")
			p.waitText("main", "in the other window")
		}},
		{"Show a colleague exactly these warnings", func(p *person) {
			p.clicks(".panel-box .all", "All of them")
			p.presses("c")
			p.waitText(".said", "Link copied")
			link := evaluate[string](p.tab, `navigator.clipboard.readText()`)
			if !strings.Contains(link, "revision=") {
				p.t.Errorf("the link has no revision: %s", link)
			}
		}},
		{"What is the same as a query for Grafana?", func(p *person) {
			p.clicks(`[data-facet="type:Warning"]`, "")
			p.clicks(`[aria-label="Link to this, and the same elsewhere"]`, "")
			p.waitText(".same code", `{type="Warning"}`)
		}},
		{"On which nodes did image pulls fail?", func(p *person) {
			p.searches(`reason:Failed ` + f.Pulls.Registry)
			for _, node := range f.Pulls.Nodes {
				p.waitText(".facets", node)
			}
		}},
		{"Which warnings has a namespace in the last six hours, but FailedScheduling?", func(p *person) {
			p.searches("type:warning ns:" + f.OOM.Namespace + " -reason:FailedScheduling")
			p.clicks(".range-text", "")
			p.clicks(".presets button", "6 hours")
			p.waitText(".range-text", "Last 6 hours")
			p.waitText(".readout", "occurrence")
			if texts := strings.Join(p.texts(".facets [data-facet]"), " "); strings.Contains(texts, "FailedScheduling") || strings.Contains(texts, "Normal") {
				p.t.Errorf("left out, and there: %s", texts)
			}
		}},
		{"What happened in the same hour yesterday?", func(p *person) {
			p.clicks(".range-text", "")
			p.writes("yesterday 02:00-03:00")
			p.waitText(".range-text", "02:00 – 03:00")
			p.waitText(".readout", "occurrence")
		}},
		{"What do I see, as CSV?", func(p *person) {
			p.clicks("nav.views a", "Events")
			p.clicks(`[data-facet="type:Warning"]`, "")
			keepFiles(p.tab)
			p.clicks(`[aria-label="Link to this, and the same elsewhere"]`, "")
			p.clicks(".take button", "CSV")
			p.waitText(".said", "events.csv")
			p.wait(`window.saved?.startsWith("observed,type,reason")`)
		}},
		{"What is this event in kubectl?", func(p *person) {
			p.clicks("nav.views a", "Events")
			p.clicks("main [data-row]", "")
			p.clicks(`.elsewhere [aria-label="Copy kubectl"]`, "")
			p.waitText(".said", "copied")
			if line := evaluate[string](p.tab, `navigator.clipboard.readText()`); !strings.HasPrefix(line, "kubectl get events.events.k8s.io -n ") {
				p.t.Errorf("copied: %s", line)
			}
		}},
		{"What did I mistype?", func(p *person) {
			p.searches("reason:OOMKiling")
			p.waitText(".message", "probably OOMKilling was meant")
		}},
	} {
		show(b, last())
		b.settled()
		p := &person{tab: b, begun: time.Now()}
		spent := s.programs["eventsvc"].spent(t)
		task.do(p)
		t.Logf("task %2d: %d interactions, %.1f s, the slowest %.2f s, eventsvc %d ms: %s", i+1, p.acts, time.Since(p.begun).Seconds(),
			p.slowest.Seconds(), (s.programs["eventsvc"].spent(t) - spent).Milliseconds(), task.question)
		if p.acts > mostActs {
			t.Errorf("%q takes %d interactions", task.question, p.acts)
		}
		b.shot(fmt.Sprintf("task-%02d", i+1))
	}
}

// tasksWeek is the week of the other tests, or one of as many events as CONSOLE_TASK_EVENTS says.
func tasksWeek(t *testing.T) (*services, *incidents.Facts) {
	t.Helper()
	setting := os.Getenv("CONSOLE_TASK_EVENTS")
	if setting == "" {
		return week(t)
	}
	n, err := strconv.Atoi(setting)
	if err != nil {
		t.Fatalf("CONSOLE_TASK_EVENTS: %v", err)
	}
	s := newServices(t, t.TempDir())
	t.Cleanup(s.stopAll)
	facts := s.record(t, incidents.Week{Seed: 1, Events: n, End: time.Now()})
	s.startAll(t)
	return s, facts
}
