package incidents

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Reporters.
const (
	kubelet     = "kubelet"
	scheduler   = "default-scheduler"
	deployments = "deployment-controller"
	replicaSets = "replicaset-controller"
	nodes       = "node-controller"
)

// Reasons that several activities have.
var (
	scheduled = reason{normal, "Scheduled", "Binding", scheduler}
	pulling   = reason{normal, "Pulling", "", kubelet}
	pulled    = reason{normal, "Pulled", "", kubelet}
	created   = reason{normal, "Created", "", kubelet}
	started   = reason{normal, "Started", "", kubelet}
	killing   = reason{normal, "Killing", "", kubelet}
	unhealthy = reason{warning, "Unhealthy", "", kubelet}
	backOff   = reason{warning, "BackOff", "", kubelet}
	failed    = reason{warning, "Failed", "", kubelet}
	scaling   = reason{normal, "ScalingReplicaSet", "", deployments}
	podMade   = reason{normal, "SuccessfulCreate", "", replicaSets}
	podGone   = reason{normal, "SuccessfulDelete", "", replicaSets}
	noMount   = reason{warning, "FailedMount", "", kubelet}
)

// activity is something that happens at a time.
type activity struct {
	at    time.Duration
	scene bool // that is never left out
	do    func(at time.Duration)
}

// live has a week that begins at a time pass with a number of events: what happens all the time, and scenes at their times.
func (c *cluster) live(begin time.Time, events int, scenes []activity) error {
	usual, left := c.usual(), 0.0
	for hour := range hours {
		left += rhythm(begin, hour)
	}
	for hour := range hours {
		share := rhythm(begin, hour) / left
		left -= rhythm(begin, hour)
		from := time.Duration(hour) * time.Hour
		var plan []activity
		room := events - c.series
		for _, s := range scenes {
			if s.at >= from {
				room -= eventsPerScene
				if s.at < from+time.Hour {
					plan = append(plan, s)
				}
			}
		}
		for range int(float64(room) * share / eventsPerActivity) {
			plan = append(plan, activity{from + time.Duration(c.rng.Int64N(int64(time.Hour))), false, usual[c.rng.IntN(len(usual))]})
		}
		slices.SortStableFunc(plan, func(a, b activity) int { return cmp.Compare(a.at, b.at) })
		for _, a := range plan {
			if a.scene || c.series+maxEventsOfActivity < events {
				a.do(a.at)
			}
		}
	}
	for c.series < events {
		c.probe(Length - time.Duration(c.rng.Int64N(int64(time.Hour))))
	}
	if c.series > events {
		return fmt.Errorf("incidents: a week has at least %d events, more than %d", c.series, events)
	}
	return nil
}

// usual is what happens all the time, each as often as it does.
func (c *cluster) usual() (all []func(at time.Duration)) {
	for _, u := range []struct {
		weight int
		do     func(at time.Duration)
	}{
		{40, c.cronJob}, {60, c.probe}, {6, c.rollout}, {12, c.autoscale}, {14, c.crash}, {4, c.crowded}, {1, c.newNode}, {10, c.volume}, {6, c.certificate}, {1, c.flakyPull},
	} {
		all = append(all, slices.Repeat([]func(time.Duration){u.do}, u.weight)...)
	}
	return all
}

const (
	hours = 7 * 24
	// How many events an activity has on average, and a scene, and an activity at most.
	eventsPerActivity, eventsPerScene, maxEventsOfActivity = 5, 200, 60
)

// rhythm is how much happens in an hour of the week. What people cause follows the day.
func rhythm(begin time.Time, hour int) float64 {
	return 0.4 + 0.6*max(0, math.Sin((float64((begin.Hour()+hour)%24)-6)/15*math.Pi))
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

// cronJob runs a job to its end.
func (c *cluster) cronJob(at time.Duration) {
	a := c.app()
	namespace := a.deployment.namespace
	owner := a.cronJob
	job := c.object("batch/v1", "Job", namespace, fmt.Sprintf("%s-%d", owner.name, 29_000_000+int(at.Minutes())))
	p := &pod{c.object("v1", "Pod", namespace, job.name+"-"+c.suffix(5)), c.node().name}
	c.say(at, reason{normal, "SuccessfulCreate", "", "cronjob-controller"}, owner, "", "Created job %s", job.name)
	c.say(at, reason{normal, "SuccessfulCreate", "", "job-controller"}, job, "", "Created pod: %s", p.name)
	c.runs(at+time.Second, p, a.image())
	at += 10*time.Second + time.Duration(c.rng.ExpFloat64()*float64(30*time.Second))
	if c.rng.IntN(60) == 0 {
		c.again(at, at+time.Minute, 2+c.rng.IntN(4), backOff, p.object, p.node, "Back-off restarting failed container app in pod %s_%s(%s)", p.name, namespace, p.uid)
		c.say(at+2*time.Minute, reason{warning, "BackoffLimitExceeded", "", "job-controller"}, job, "", "Job has reached the specified backoff limit")
		return
	}
	c.say(at, reason{normal, "Completed", "", "job-controller"}, job, "", "Job completed")
	c.say(at, reason{normal, "SawCompletedJob", "", "cronjob-controller"}, owner, "", "Saw completed job: %s, condition: Complete", job.name)
}

// probe has a probe fail for a short time.
func (c *cluster) probe(at time.Duration) {
	a := c.app()
	p := a.pods[c.rng.IntN(len(a.pods))]
	kind := []string{"Readiness", "Liveness"}[c.rng.IntN(2)]
	n := 1 + c.rng.IntN(4)
	c.again(at, at+time.Duration(n-1)*10*time.Second, n, unhealthy, p.object, p.node,
		`%s probe failed: Get "http://10.%d.%d.%d:8080/healthz": context deadline exceeded`, kind, c.rng.IntN(64), c.rng.IntN(256), c.rng.IntN(256))
}

// rollout replaces all pods of an app.
func (c *cluster) rollout(at time.Duration) {
	c.replace(at, c.app(), true)
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

// autoscale adds a pod for a while.
func (c *cluster) autoscale(at time.Duration) {
	a := c.app()
	n := len(a.pods)
	p := c.pod(a)
	c.say(at, reason{normal, "SuccessfulRescale", "", "horizontal-pod-autoscaler"}, a.scaler, "", "New size: %d; reason: cpu resource utilization (percentage of request) above target", n+1)
	c.say(at+time.Second, scaling, a.deployment, "", "Scaled up replica set %s from %d to %d", a.replicaSet.name, n, n+1)
	c.say(at+time.Second, podMade, a.replicaSet, "", "Created pod: %s", p.name)
	c.runs(at+2*time.Second, p, a.image())
	c.say(at+20*time.Minute, killing, p.object, p.node, "Stopping container app")
}

// crash restarts a container once.
func (c *cluster) crash(at time.Duration) {
	a := c.app()
	p := a.pods[c.rng.IntN(len(a.pods))]
	c.again(at, at+30*time.Second, 1+c.rng.IntN(3), backOff, p.object, p.node, "Back-off restarting failed container app in pod %s_%s(%s)", p.name, p.namespace, p.uid)
	c.say(at+40*time.Second, pulled, p.object, p.node, "Container image %q already present on machine", a.image())
	c.say(at+40*time.Second, created, p.object, p.node, "Created container: app")
	c.say(at+41*time.Second, started, p.object, p.node, "Started container app")
}

// crowded has a pod wait for a place.
func (c *cluster) crowded(at time.Duration) {
	a := c.app()
	p := c.pod(a)
	c.again(at, at+time.Minute, 1+c.rng.IntN(5), reason{warning, "FailedScheduling", "Scheduling", scheduler}, p.object, "",
		"0/%d nodes are available: %d Insufficient cpu. preemption: 0/%d nodes are available.", len(c.nodes), len(c.nodes), len(c.nodes))
	c.say(at+10*time.Second, reason{normal, "TriggeredScaleUp", "", "cluster-autoscaler"}, p.object, "", "pod triggered scale-up: [{pool-a %d->%d (max: 60)}]", len(c.nodes), len(c.nodes)+1)
	c.runs(at+90*time.Second, p, a.image())
}

// newNode is one that the autoscaler adds.
func (c *cluster) newNode(at time.Duration) {
	n := c.object("v1", "Node", "", "pool-a-"+c.suffix(5))
	n.uid = n.name
	c.say(at, reason{normal, "Starting", "", kubelet}, n, n.name, "Starting kubelet.")
	for _, condition := range []string{"NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"} {
		c.say(at+time.Second, reason{normal, condition, "", kubelet}, n, n.name, "Node %s status is now: %s", n.name, condition)
	}
	c.say(at+2*time.Second, reason{normal, "RegisteredNode", "", nodes}, n, "", "Node %s event: Registered Node %s in Controller", n.name, n.name)
	c.say(at+20*time.Second, reason{normal, "NodeReady", "", kubelet}, n, n.name, "Node %s status is now: NodeReady", n.name)
}

// volume is attached, and sometimes mounted only at the second try.
func (c *cluster) volume(at time.Duration) {
	a := c.app()
	p := c.pod(a)
	c.say(at, reason{normal, "SuccessfulAttachVolume", "", "attachdetach-controller"}, p.object, "", "AttachVolume.Attach succeeded for volume %q", "pvc-"+c.suffix(8))
	if c.rng.IntN(8) == 0 {
		c.say(at+5*time.Second, noMount, p.object, p.node, `MountVolume.SetUp failed for volume "config": failed to sync configmap cache: timed out waiting for the condition`)
	}
}

// certificate is renewed.
func (c *cluster) certificate(at time.Duration) {
	a := c.app()
	for i, step := range []string{"Issuing", "Generated", "Requested", "Reused"} {
		c.say(at+time.Duration(i)*time.Second, reason{normal, step, "", "cert-manager-certificates-issuing"}, a.certificate, "", "The certificate has been %s", step)
	}
}

// flakyPull is an image that comes at the second try, on any node.
func (c *cluster) flakyPull(at time.Duration) {
	a := c.app()
	p := c.pod(a)
	c.say(at, failed, p.object, p.node, "Failed to pull image %q: dial tcp 203.0.113.%d:443: i/o timeout", a.image(), c.rng.IntN(256))
	c.say(at+20*time.Second, pulled, p.object, p.node, "Successfully pulled image %q in 3.1s", a.image())
}
