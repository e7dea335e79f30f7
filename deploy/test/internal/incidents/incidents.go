// Package incidents generates a week of a Kubernetes cluster: what a busy one reports all the time, and five incidents
// whose answers are known.
//
// # Contract
//
// [Week.Write] writes the lines of an export, which `eventsvc import` reads, in the order of time. The same [Week]
// gives the same lines. [Facts] say what happened, when, and to what: what a person who looks for it has to find.
//
// # What is in it
//
// Deployments with their ReplicaSets and Pods on nodes, cron jobs, autoscaling, volumes, certificates; notes, reasons
// and reporters as Kubernetes has them. Controllers of the old style report with deprecatedSource, first and last
// timestamp and count; the scheduler with eventTime and series. More events are more of the background: the incidents
// stay as they are.
package incidents

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// Week is which week is generated.
type Week struct {
	Seed   uint64
	Events int       // how many; at least those of the incidents, which are about 600
	End    time.Time // just behind the last one

	Healthy bool // without the incidents
	Copies  bool // with the owners that a mirror finds, as labels
}

// Length is that of a week.
const Length = 7 * 24 * time.Hour

// Facts are what happened.
type Facts struct {
	Begin, End time.Time
	Events     int

	// Pulls of images failed on two nodes, whose registry mirror was away.
	Pulls struct {
		Begin, End time.Time // first and last failure
		Nodes      []string
		Registry   string
		Pods       []string
	}
	// NotReady is a node that stopped, and came back.
	NotReady struct {
		Begin, End time.Time
		Node       string
	}
	// OOM is a pod that was killed again and again for its memory.
	OOM struct {
		Begin, End           time.Time
		Namespace, Pod, Node string
		Kills                int
	}
	// Mounts of volumes failed after a node was drained; they fail until the end.
	Mounts struct {
		Begin     time.Time
		Namespace string
		Pods      []string
		Volume    string
	}
	// Rollout is a new version that does not become ready, until the end.
	Rollout struct {
		Begin                             time.Time // of the rollout
		Failing                           time.Time // first failed probe
		Namespace, Deployment, ReplicaSet string
		Image                             string
		Pods                              []string
	}
}

// Write generates the week.
func (w Week) Write(out io.Writer) (*Facts, error) {
	c := newCluster(w.Seed)
	end := w.End.UTC().Truncate(time.Second)
	facts := &Facts{Begin: end.Add(-Length), End: end, Events: w.Events}
	incidents := scenes{c, facts}.all()
	if w.Healthy {
		incidents = nil
	}
	if err := (background{c}).live(facts.Begin, w.Events, incidents); err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.records, func(a, b record) int { return cmp.Compare(a.at, b.at) })
	buffer := bufio.NewWriterSize(out, 1<<20)
	lines := json.NewEncoder(buffer)
	ids := identities{rng: rand.New(rand.NewPCG(w.Seed, 2)), known: map[int]identity{}, copies: w.Copies}
	for i := range c.records {
		if err := lines.Encode(ids.line(&c.records[i], facts.Begin)); err != nil {
			return nil, err
		}
	}
	return facts, buffer.Flush()
}
