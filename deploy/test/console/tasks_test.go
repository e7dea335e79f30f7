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
	acts  int
	begun time.Time
}

func (p *person) clicks(selector, text string) {
	p.t.Helper()
	p.acts++
	p.clickText(selector, text)
	p.settled()
}

func (p *person) presses(key string) {
	p.t.Helper()
	p.acts++
	p.key(key)
	p.settled()
}

// searches writes a text into the search box, and ends it by Enter.
func (p *person) searches(text string) {
	p.t.Helper()
	p.presses("/")
	p.acts++
	p.typing(text + " ")
	p.key("Enter")
	p.settled()
}

// mostActs is how many interactions a task may take.
const mostActs = 6

// TestTasks: ten questions of a person who is called at night, each answered from the overview by six interactions at most.
// CONSOLE_TASK_EVENTS=1000000 asks them of as many events; the log has the interactions and seconds of each.
func TestTasks(t *testing.T) {
	t.Parallel()
	s, f := tasksWeek(t)
	b := openTab(t, s)
	allowClipboard(b)
	b.open("/console/#/overview?from=-8d")
	b.signIn(admin)
	last := func() string { return fmt.Sprintf("overview?from=%s&to=%s", stamp(f.Begin), stamp(f.End)) }
	near := func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }
	for i, task := range []struct {
		question string
		do       func(p *person)
	}{
		{"When did the image pulls begin to fail, and on which nodes?", func(p *person) {
			p.searches(`"failed to pull image" ` + f.Pulls.Registry)
			p.clicks("nav.views a", "Groups")
			p.waitText("[data-group]", near(f.Pulls.Begin))
			p.clicks("nav.views a", "Events")
			p.clicks("button[aria-label=Columns]", "")
			p.clicks(".panel label", "Host")
			for _, node := range f.Pulls.Nodes {
				p.waitText("main [data-row]", node)
			}
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
			p.clicks(".choice button", "object")
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
			p.clicks(".tools .menu button", "")
			p.waitText(".same code", `{type="Warning"}`)
		}},
	} {
		show(b, last())
		p := &person{tab: b, begun: time.Now()}
		task.do(p)
		t.Logf("task %2d: %d interactions, %.1f s: %s", i+1, p.acts, time.Since(p.begun).Seconds(), task.question)
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
