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
	scene bool // it is never left out
	do    func(at time.Duration)
}

// background is what happens in a cluster all the time.
type background struct{ *cluster }

// live has a week that begins at a time pass with a number of events: what happens all the time, and incidents at their
// times.
func (bg background) live(begin time.Time, events int, incidents []activity) error {
	usual, left := bg.usual(), 0.0
	for hour := range hours {
		left += rhythm(begin, hour)
	}
	for hour := range hours {
		share := rhythm(begin, hour) / left
		left -= rhythm(begin, hour)
		from := time.Duration(hour) * time.Hour
		var plan []activity
		room := events - bg.series
		for _, s := range incidents {
			if s.at >= from {
				room -= eventsPerScene
				if s.at < from+time.Hour {
					plan = append(plan, s)
				}
			}
		}
		for range int(float64(room) * share / eventsPerActivity) {
			plan = append(plan, activity{from + time.Duration(bg.rng.Int64N(int64(time.Hour))), false, usual[bg.rng.IntN(len(usual))]})
		}
		slices.SortStableFunc(plan, func(a, b activity) int { return cmp.Compare(a.at, b.at) })
		for _, a := range plan {
			if a.scene || bg.series+maxEventsOfActivity < events {
				a.do(a.at)
			}
		}
	}
	for bg.series < events {
		bg.probe(Length - time.Duration(bg.rng.Int64N(int64(time.Hour))))
	}
	if bg.series > events {
		return fmt.Errorf("incidents: a week has at least %d events, more than %d", bg.series, events)
	}
	return nil
}

// usual is what happens all the time, each as often as it does.
func (bg background) usual() (all []func(at time.Duration)) {
	for _, u := range []struct {
		weight int
		do     func(at time.Duration)
	}{
		{40, bg.cronJob}, {60, bg.probe}, {6, bg.rollout}, {12, bg.autoscale}, {14, bg.crash}, {4, bg.crowded}, {1, bg.newNode}, {10, bg.volume}, {6, bg.certificate}, {1, bg.flakyPull},
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

// cronJob runs a job to its end.
func (bg background) cronJob(at time.Duration) {
	a := bg.app()
	namespace := a.deployment.namespace
	owner := a.cronJob
	job := bg.object("batch/v1", "Job", namespace, fmt.Sprintf("%s-%d", owner.name, 29_000_000+int(at.Minutes())))
	p := &pod{bg.object("v1", "Pod", namespace, job.name+"-"+bg.suffix(5)), bg.node().name}
	job.owner, p.owner = owner, owner
	bg.say(at, reason{normal, "SuccessfulCreate", "", "cronjob-controller"}, owner, "", "Created job %s", job.name)
	bg.say(at, reason{normal, "SuccessfulCreate", "", "job-controller"}, job, "", "Created pod: %s", p.name)
	bg.runs(at+time.Second, p, a.image())
	at += 10*time.Second + time.Duration(bg.rng.ExpFloat64()*float64(30*time.Second))
	if bg.rng.IntN(60) == 0 {
		bg.again(at, at+time.Minute, 2+bg.rng.IntN(4), backOff, p.object, p.node, "Back-off restarting failed container app in pod %s_%s(%s)", p.name, namespace, p.uid)
		bg.say(at+2*time.Minute, reason{warning, "BackoffLimitExceeded", "", "job-controller"}, job, "", "Job has reached the specified backoff limit")
		return
	}
	bg.say(at, reason{normal, "Completed", "", "job-controller"}, job, "", "Job completed")
	bg.say(at, reason{normal, "SawCompletedJob", "", "cronjob-controller"}, owner, "", "Saw completed job: %s, condition: Complete", job.name)
}

// probe has a probe fail for a short time.
func (bg background) probe(at time.Duration) {
	a := bg.app()
	p := a.pods[bg.rng.IntN(len(a.pods))]
	kind := []string{"Readiness", "Liveness"}[bg.rng.IntN(2)]
	n := 1 + bg.rng.IntN(4)
	bg.again(at, at+time.Duration(n-1)*10*time.Second, n, unhealthy, p.object, p.node,
		`%s probe failed: Get "http://10.%d.%d.%d:8080/healthz": context deadline exceeded`, kind, bg.rng.IntN(64), bg.rng.IntN(256), bg.rng.IntN(256))
}

// rollout replaces all pods of an app.
func (bg background) rollout(at time.Duration) {
	bg.replace(at, bg.app(), true)
}

// autoscale adds a pod for a while.
func (bg background) autoscale(at time.Duration) {
	a := bg.app()
	n := len(a.pods)
	p := bg.pod(a)
	bg.say(at, reason{normal, "SuccessfulRescale", "", "horizontal-pod-autoscaler"}, a.scaler, "", "New size: %d; reason: cpu resource utilization (percentage of request) above target", n+1)
	bg.say(at+time.Second, scaling, a.deployment, "", "Scaled up replica set %s from %d to %d", a.replicaSet.name, n, n+1)
	bg.say(at+time.Second, podMade, a.replicaSet, "", "Created pod: %s", p.name)
	bg.runs(at+2*time.Second, p, a.image())
	bg.say(at+20*time.Minute, killing, p.object, p.node, "Stopping container app")
}

// crash restarts a container once.
func (bg background) crash(at time.Duration) {
	a := bg.app()
	p := a.pods[bg.rng.IntN(len(a.pods))]
	bg.again(at, at+30*time.Second, 1+bg.rng.IntN(3), backOff, p.object, p.node, "Back-off restarting failed container app in pod %s_%s(%s)", p.name, p.namespace, p.uid)
	bg.say(at+40*time.Second, pulled, p.object, p.node, "Container image %q already present on machine", a.image())
	bg.say(at+40*time.Second, created, p.object, p.node, "Created container: app")
	bg.say(at+41*time.Second, started, p.object, p.node, "Started container app")
}

// crowded has a pod wait for a place.
func (bg background) crowded(at time.Duration) {
	a := bg.app()
	p := bg.pod(a)
	bg.again(at, at+time.Minute, 1+bg.rng.IntN(5), reason{warning, "FailedScheduling", "Scheduling", scheduler}, p.object, "",
		"0/%d nodes are available: %d Insufficient cpu. preemption: 0/%d nodes are available.", len(bg.nodes), len(bg.nodes), len(bg.nodes))
	bg.say(at+10*time.Second, reason{normal, "TriggeredScaleUp", "", "cluster-autoscaler"}, p.object, "", "pod triggered scale-up: [{pool-a %d->%d (max: 60)}]", len(bg.nodes), len(bg.nodes)+1)
	bg.runs(at+90*time.Second, p, a.image())
}

// newNode is one that the autoscaler adds.
func (bg background) newNode(at time.Duration) {
	n := bg.object("v1", "Node", "", "pool-a-"+bg.suffix(5))
	n.uid = n.name
	bg.say(at, reason{normal, "Starting", "", kubelet}, n, n.name, "Starting kubelet.")
	for _, condition := range []string{"NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"} {
		bg.say(at+time.Second, reason{normal, condition, "", kubelet}, n, n.name, "Node %s status is now: %s", n.name, condition)
	}
	bg.say(at+2*time.Second, reason{normal, "RegisteredNode", "", nodes}, n, "", "Node %s event: Registered Node %s in Controller", n.name, n.name)
	bg.say(at+20*time.Second, reason{normal, "NodeReady", "", kubelet}, n, n.name, "Node %s status is now: NodeReady", n.name)
}

// volume is attached, and sometimes mounted only at the second try.
func (bg background) volume(at time.Duration) {
	a := bg.app()
	p := bg.pod(a)
	bg.say(at, reason{normal, "SuccessfulAttachVolume", "", "attachdetach-controller"}, p.object, "", "AttachVolume.Attach succeeded for volume %q", "pvc-"+bg.suffix(8))
	if bg.rng.IntN(8) == 0 {
		bg.say(at+5*time.Second, noMount, p.object, p.node, `MountVolume.SetUp failed for volume "config": failed to sync configmap cache: timed out waiting for the condition`)
	}
}

// certificate is renewed.
func (bg background) certificate(at time.Duration) {
	a := bg.app()
	for i, step := range []string{"Issuing", "Generated", "Requested", "Reused"} {
		bg.say(at+time.Duration(i)*time.Second, reason{normal, step, "", "cert-manager-certificates-issuing"}, a.certificate, "", "The certificate has been %s", step)
	}
}

// flakyPull is an image that comes at the second try, on any node.
func (bg background) flakyPull(at time.Duration) {
	a := bg.app()
	p := bg.pod(a)
	bg.say(at, failed, p.object, p.node, "Failed to pull image %q: dial tcp 203.0.113.%d:443: i/o timeout", a.image(), bg.rng.IntN(256))
	bg.say(at+20*time.Second, pulled, p.object, p.node, "Successfully pulled image %q in 3.1s", a.image())
}
