package incidents

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// cluster is what runs at present, and what was reported about it so far.
type cluster struct {
	rng     *rand.Rand
	nodes   []*object
	apps    []*app
	records []record
	series  int // events so far
}

// object is what events are about.
type object struct {
	apiVersion, kind, namespace, name, uid string
	owner                                  *object // at the top; nil: itself
}

// app is a Deployment with its present pods, and what belongs to it.
type app struct {
	deployment, replicaSet       *object
	cronJob, scaler, certificate *object
	version                      int
	pods                         []*pod
}

// pod runs on a node.
type pod struct {
	*object
	node string
}

// record is what was observed of an event at one time.
type record struct {
	series int           // which event
	more   bool          // there are several records of it
	at     time.Duration // since the week began
	first  time.Duration
	count  int
	reason
	about *object
	path  string // fieldPath
	host  string
	note  string
}

// reason is a kind of event.
type reason struct {
	typ, name, action, reporter string
}

const (
	normal  = "Normal"
	warning = "Warning"
)

func newCluster(seed uint64) *cluster {
	c := &cluster{rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range 40 {
		c.nodes = append(c.nodes, c.object("v1", "Node", "", fmt.Sprintf("node-%02d", i+1)))
		c.nodes[i].uid = c.nodes[i].name // as the kubelet reports it
	}
	words := []string{"api", "web", "worker", "cache", "gateway", "sync", "index", "export"}
	for _, team := range []string{"shop", "payments", "search", "accounts", "orders", "media", "reports", "mail"} {
		for _, stage := range []string{"", "-test", "-dev"} {
			for _, word := range words[:4+c.rng.IntN(5)] {
				c.apps = append(c.apps, c.newApp(team+stage, word))
			}
		}
	}
	return c
}

func (c *cluster) newApp(namespace, name string) *app {
	a := &app{
		deployment: c.object("apps/v1", "Deployment", namespace, name), cronJob: c.object("batch/v1", "CronJob", namespace, name+"-report"),
		scaler:      c.object("autoscaling/v2", "HorizontalPodAutoscaler", namespace, name),
		certificate: c.object("cert-manager.io/v1", "Certificate", namespace, name+"-tls"), version: 10 + c.rng.IntN(30),
	}
	c.renew(a)
	for range 3 + c.rng.IntN(3) {
		a.pods = append(a.pods, c.pod(a))
	}
	return a
}

func (c *cluster) object(apiVersion, kind, namespace, name string) *object {
	return &object{apiVersion, kind, namespace, name, uid(c.rng), nil}
}

// uid is a random UUID (RFC 9562 section 5.4).
func uid(rng *rand.Rand) string {
	a, b := rng.Uint64(), rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", uint32(a>>32), uint16(a>>16), a&0xfff, b>>48&0x3fff|0x8000, b&0xffff_ffff_ffff)
}

// suffix is the end of a name as Kubernetes generates it.
func (c *cluster) suffix(n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[c.rng.IntN(len(letters))]
	}
	return string(b)
}

// renew gives an app a new version, and a ReplicaSet for it.
func (c *cluster) renew(a *app) {
	a.version++
	a.replicaSet = c.object("apps/v1", "ReplicaSet", a.deployment.namespace, a.deployment.name+"-"+c.suffix(9))
	a.replicaSet.owner = a.deployment
}

// pod makes a pod of an app.
func (c *cluster) pod(a *app) *pod {
	p := &pod{c.object("v1", "Pod", a.deployment.namespace, a.replicaSet.name+"-"+c.suffix(5)), c.node().name}
	p.owner = a.deployment
	return p
}

func (c *cluster) node() *object { return c.nodes[c.rng.IntN(len(c.nodes))] }

func (c *cluster) app() *app { return c.apps[c.rng.IntN(len(c.apps))] }

func (a *app) image() string {
	return fmt.Sprintf("registry.example/%s/%s:2.%d.0", a.deployment.namespace, a.deployment.name, a.version)
}

// say reports something that is observed once.
func (c *cluster) say(at time.Duration, r reason, about *object, host, note string, args ...any) {
	c.again(at, at, 1, r, about, host, note, args...)
}

// again reports something that was observed several times, as one event that only its last state is left of.
func (c *cluster) again(first, at time.Duration, count int, r reason, about *object, host, note string, args ...any) {
	c.series++
	if count == 1 {
		at = first
	}
	at = min(at, Length-time.Second)
	if len(args) > 0 {
		note = fmt.Sprintf(note, args...)
	}
	path := ""
	if about.kind == "Pod" && r.reporter == kubelet && r.name != "FailedMount" {
		path = "spec.containers{app}"
	}
	c.records = append(c.records, record{c.series, false, at, min(first, at), count, r, about, path, host, note})
}

// repeat reports something that is observed every so often until a time, with every state of its event. It returns how
// often that was.
func (c *cluster) repeat(first, until, every time.Duration, r reason, about *object, host, note string, args ...any) (count int) {
	c.again(first, first, 1, r, about, host, note, args...)
	c.records[len(c.records)-1].more = true
	last := c.records[len(c.records)-1]
	for at := first + every; at < min(until, Length); at += every {
		last.at = at
		last.count++
		c.records = append(c.records, last)
	}
	return last.count
}

// runs has a pod scheduled and started.
func (c *cluster) runs(at time.Duration, p *pod, image string) {
	c.say(at, scheduled, p.object, "", "Successfully assigned %s/%s to %s", p.namespace, p.name, p.node)
	if c.rng.IntN(3) == 0 {
		c.say(at+time.Second, pulling, p.object, p.node, "Pulling image %q", image)
		c.say(at+3*time.Second, pulled, p.object, p.node, "Successfully pulled image %q in %d.%ds", image, 1+c.rng.IntN(4), c.rng.IntN(10))
	} else {
		c.say(at+3*time.Second, pulled, p.object, p.node, "Container image %q already present on machine", image)
	}
	c.say(at+4*time.Second, created, p.object, p.node, "Created container: app")
	c.say(at+4*time.Second, started, p.object, p.node, "Started container app")
}

// replace replaces the pods of an app by those of a new version. If the first is not ready, the old ones stay.
func (c *cluster) replace(at time.Duration, a *app, ready bool) {
	before, old := a.replicaSet, a.pods
	c.renew(a)
	a.pods = nil
	for i, gone := range old {
		p := c.pod(a)
		a.pods = append(a.pods, p)
		c.say(at, scaling, a.deployment, "", "Scaled up replica set %s from %d to %d", a.replicaSet.name, i, i+1)
		c.say(at, podMade, a.replicaSet, "", "Created pod: %s", p.name)
		c.runs(at+time.Second, p, a.image())
		if !ready {
			break
		}
		at += 15*time.Second + time.Duration(c.rng.Int64N(int64(20*time.Second)))
		c.say(at, scaling, a.deployment, "", "Scaled down replica set %s from %d to %d", before.name, len(old)-i, len(old)-i-1)
		c.say(at, podGone, before, "", "Deleted pod: %s", gone.name)
		c.say(at+time.Second, killing, gone.object, gone.node, "Stopping container app")
	}
	if !ready {
		a.pods = append(a.pods, old[1:]...)
	}
}
