package changes_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// Backgrounds begin on a Monday, and most cover a week.
const (
	hour = 3600.0
	day  = 24 * hour
	week = 7 * day
)

var monday = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

// cluster is a busy one that nothing bad happens to: cron jobs, rollouts, autoscaling,
// pods that have been crashing for weeks, probes that fail now and then, and rare warnings.
type cluster struct {
	*memory
	rng        *rand.Rand
	namespaces []string // of teams
	apps       []app
	nodes      int
	end        float64 // of what it covers
}

// app is a Deployment.
type app struct {
	namespace, name string
	replicas        int
}

const (
	normal  = "Normal"
	warning = "Warning"
)

// newCluster makes a cluster of which a share of the full traffic was recorded for some time.
func newCluster(seed uint64, share, long float64) *cluster {
	c := &cluster{memory: newMemory(monday), rng: rand.New(rand.NewPCG(seed, 1)), nodes: 60, end: long}
	c.byName = make(map[memoryKey]int32, int(400_000*share*long/week))
	for _, team := range []string{"shop", "payments", "search", "accounts", "orders", "media", "reports", "mail", "maps", "chat", "fraud", "stock"} {
		for _, stage := range []string{"", "-dev", "-test", "-stage"} {
			c.namespaces = append(c.namespaces, team+stage)
		}
	}
	words := []string{"api", "web", "worker", "cache", "gateway", "sync", "index", "export"}
	for _, ns := range c.namespaces {
		for _, word := range words[:3+c.rng.IntN(6)] {
			c.apps = append(c.apps, app{ns, word, 2 + c.rng.IntN(4)})
		}
	}
	for _, part := range []func(float64){
		c.cronJobs, c.rollouts, c.autoscaling, c.nodePool, c.crashing, c.probes, c.images, c.volumes, c.operators, c.rare,
	} {
		part(share)
	}
	c.sort()
	return c
}

// backgrounds are the clusters that tests share, by their seed, share and length.
var backgrounds sync.Map

// background returns a cluster that nothing bad has happened to.
func background(seed uint64, share, long float64) *cluster {
	make := sync.OnceValue(func() *cluster { return newCluster(seed, share, long) })
	once, _ := backgrounds.LoadOrStore([3]float64{float64(seed), share, long}, make)
	return once.(func() *cluster)()
}

// played returns a cluster in which something else happens, too.
func (c *cluster) played(play func(*cluster)) *cluster {
	more := *c
	more.memory, more.rng = c.fork(), rand.New(rand.NewPCG(uint64(len(c.seen)), 2))
	play(&more)
	more.sort()
	return &more
}

// rhythm is the share of the daily peak, for what people cause.
func rhythm(at float64) float64 {
	share := 0.3 + 0.7*max(0, math.Sin((math.Mod(at, day)/hour-6)/15*math.Pi))
	if math.Mod(at, week) > 5*day { // weekend
		share *= 0.5
	}
	return share
}

// every calls do at random times of a Poisson process.
func (c *cluster) every(perDay float64, rate func(at float64) float64, do func(at float64)) {
	for at := c.rng.ExpFloat64() * day / perDay; at < c.end-600; at += c.rng.ExpFloat64() * day / perDay {
		if rate == nil || c.rng.Float64() < rate(at) {
			do(at)
		}
	}
}

const safe = "bcdfghjklmnpqrstvwxz2456789"

func (c *cluster) suffix(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = safe[c.rng.IntN(len(safe))]
	}
	return string(b)
}

func (c *cluster) node() string { return fmt.Sprintf("node-%02d", c.rng.IntN(c.nodes)) }

func (c *cluster) app() app { return c.apps[c.rng.IntN(len(c.apps))] }

func (c *cluster) team() string { return c.namespaces[c.rng.IntN(len(c.namespaces))] }

// replicaSet returns a name as the deployment controller makes it.
func (c *cluster) replicaSet(a app) string {
	return a.name + "-" + c.suffix(7) + "246789"[c.rng.IntN(6):][:1] + c.suffix(1)
}

func (c *cluster) pod(a app) string { return c.replicaSet(a) + "-" + c.suffix(5) }

// runs has a pod scheduled and started.
func (c *cluster) runs(at float64, ns, pod string) {
	c.say(at, ns, "Pod", pod, normal, "Scheduled", "default-scheduler", "Successfully assigned")
	if c.rng.IntN(3) == 0 {
		c.say(at+1, ns, "Pod", pod, normal, "Pulling", "kubelet", "Pulling image")
	}
	c.say(at+2, ns, "Pod", pod, normal, "Pulled", "kubelet", "Successfully pulled image")
	c.say(at+2, ns, "Pod", pod, normal, "Created", "kubelet", "Created container")
	c.say(at+3, ns, "Pod", pod, normal, "Started", "kubelet", "Started container")
}

func (c *cluster) cronJobs(share float64) {
	periods := []float64{300, 600, 900, 1800, 3600}
	for i := range int(96 * share) {
		ns, name := c.namespaces[i%len(c.namespaces)], fmt.Sprintf("cron%d", i)
		period, flaky := periods[i%len(periods)], i%24 == 0
		for at := period * c.rng.Float64() / 60; at < c.end-600; at += period {
			job := fmt.Sprintf("%s-%d", name, 29630000+int(at/60))
			pod := job + "-" + c.suffix(5)
			c.say(at, ns, "CronJob", name, normal, "SuccessfulCreate", "cronjob-controller", "Created job")
			c.say(at, ns, "Job", job, normal, "SuccessfulCreate", "job-controller", "Created pod")
			c.runs(at, ns, pod)
			took := 5 + c.rng.ExpFloat64()*30
			if flaky && c.rng.IntN(20) == 0 {
				for n := range 1 + c.rng.IntN(4) {
					c.say(at+took+float64(10*n), ns, "Pod", pod, warning, "BackOff", "kubelet", "Back-off restarting failed container")
				}
				c.say(at+took+60, ns, "Job", job, warning, "BackoffLimitExceeded", "job-controller", "Job has reached the specified backoff limit")
				continue
			}
			c.say(at+took, ns, "Job", job, normal, "Completed", "job-controller", "Job completed")
			c.say(at+took, ns, "CronJob", name, normal, "SawCompletedJob", "cronjob-controller", "Saw completed job")
			c.say(at+took, ns, "CronJob", name, normal, "SuccessfulDelete", "cronjob-controller", "Deleted job")
		}
	}
}

// rollout replaces the pods of a Deployment.
func (c *cluster) rollout(at float64, a app) (pods []string) {
	rs := c.replicaSet(a)
	for range a.replicas {
		pod := rs + "-" + c.suffix(5)
		pods = append(pods, pod)
		c.say(at, a.namespace, "Deployment", a.name, normal, "ScalingReplicaSet", "deployment-controller", "Scaled up replica set "+rs+" to "+strconv.Itoa(len(pods)))
		c.say(at, a.namespace, "ReplicaSet", rs, normal, "SuccessfulCreate", "replicaset-controller", "Created pod")
		c.runs(at+1, a.namespace, pod)
		at += 10 + c.rng.ExpFloat64()*20
	}
	return pods
}

func (c *cluster) rollouts(share float64) {
	c.every(420*share, rhythm, func(at float64) {
		a := c.app()
		for _, pod := range c.rollout(at, a) {
			old := c.pod(a)
			c.say(at+40, a.namespace, "Pod", old, normal, "Killing", "kubelet", "Stopping container")
			c.say(at+40, a.namespace, "ReplicaSet", old[:len(old)-6], normal, "SuccessfulDelete", "replicaset-controller", "Deleted pod")
			for n := range c.rng.IntN(3) { // while it starts
				c.say(at+20+10*float64(n), a.namespace, "Pod", pod, warning, "Unhealthy", "kubelet", "Readiness probe failed")
			}
			if c.rng.IntN(40) == 0 {
				c.say(at+30, a.namespace, "Pod", pod, warning, "BackOff", "kubelet", "Back-off restarting failed container")
			}
			if c.rng.IntN(3) == 0 {
				c.say(at, a.namespace, "Pod", pod, warning, "PolicyViolation", "kyverno-admission", "validation rule failed")
			}
		}
		if c.rng.IntN(5) == 0 {
			c.say(at+2, a.namespace, "Ingress", a.name, normal, "Sync", "nginx-ingress-controller", "Scheduled for sync")
		}
	})
}

func (c *cluster) autoscaling(share float64) {
	for i := range int(60 * share) {
		a := c.apps[i*len(c.apps)/60]
		c.every(30, rhythm, func(at float64) {
			c.say(at, a.namespace, "HorizontalPodAutoscaler", a.name, normal, "SuccessfulRescale", "horizontal-pod-autoscaler", "New size")
			one := a
			one.replicas = 1
			c.rollout(at, one)
			c.say(at+300, a.namespace, "Pod", c.pod(a), normal, "Killing", "kubelet", "Stopping container")
		})
		c.every(3, nil, func(at float64) {
			for n := range 1 + c.rng.IntN(3) {
				c.say(at+float64(15*n), a.namespace, "HorizontalPodAutoscaler", a.name, warning, "FailedGetResourceMetric", "horizontal-pod-autoscaler", "no metrics returned")
				c.say(at+float64(15*n), a.namespace, "HorizontalPodAutoscaler", a.name, warning, "FailedComputeMetricsReplicas", "horizontal-pod-autoscaler", "invalid metrics")
			}
		})
	}
}

// nodePool adds and removes nodes. Events about a Node are in the namespace default.
func (c *cluster) nodePool(share float64) {
	c.every(40*share, rhythm, func(at float64) {
		for range 2 + c.rng.IntN(4) {
			a := c.app()
			pod := c.pod(a)
			c.say(at, a.namespace, "Pod", pod, warning, "FailedScheduling", "default-scheduler", "Insufficient cpu")
			c.say(at+5, a.namespace, "Pod", pod, normal, "TriggeredScaleUp", "cluster-autoscaler", "pod triggered scale-up")
			c.runs(at+90, a.namespace, pod)
		}
		c.boots(at+60, "node-"+c.suffix(5))
	})
	c.every(40*share, rhythm, func(at float64) {
		node := "node-" + c.suffix(5)
		c.say(at, "default", "Node", node, normal, "ScaleDown", "cluster-autoscaler", "marked the node as toBeDeleted")
		if c.rng.IntN(8) == 0 {
			c.say(at+30, "default", "Node", node, normal, "NodeNotReady", "node-controller", "status is now: NodeNotReady")
		}
		c.say(at+40, "default", "Node", node, normal, "RemovingNode", "node-controller", "Removing Node from Controller")
	})
}

func (c *cluster) boots(at float64, node string) {
	c.say(at, "default", "Node", node, normal, "Starting", "kubelet", "Starting kubelet")
	c.say(at, "default", "Node", node, warning, "InvalidDiskCapacity", "kubelet", "invalid capacity 0 on image filesystem")
	for _, reason := range []string{"NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeAllocatableEnforced"} {
		c.say(at+1, "default", "Node", node, normal, reason, "kubelet", "status is now")
	}
	c.say(at+2, "default", "Node", node, normal, "RegisteredNode", "node-controller", "Registered Node in Controller")
	c.say(at+20, "default", "Node", node, normal, "NodeReady", "kubelet", "status is now: NodeReady")
	for range c.rng.IntN(4) {
		c.say(at+3, "kube-system", "Pod", "agent-"+c.suffix(5), warning, "NetworkNotReady", "kubelet", "cni plugin not initialized")
	}
}

// crashing are pods that nobody has looked at for weeks.
func (c *cluster) crashing(share float64) {
	for range int(20 * share) {
		a := c.app()
		pod := c.pod(a)
		for at := 300 * c.rng.Float64(); at < c.end-600; at += 290 + 20*c.rng.Float64() {
			c.say(at, a.namespace, "Pod", pod, normal, "Pulled", "kubelet", "Container image already present")
			c.say(at, a.namespace, "Pod", pod, normal, "Created", "kubelet", "Created container")
			c.say(at+1, a.namespace, "Pod", pod, normal, "Started", "kubelet", "Started container")
			for n := range c.rng.IntN(4) {
				c.say(at+5+float64(20*n), a.namespace, "Pod", pod, warning, "BackOff", "kubelet", "Back-off restarting failed container")
			}
		}
	}
	for range int(12 * share) {
		a := c.app()
		pod := c.pod(a)
		c.every(100, nil, func(at float64) {
			c.say(at, a.namespace, "Pod", pod, warning, "DNSConfigForming", "kubelet", "Nameserver limits were exceeded")
		})
	}
}

// probes fail now and then, some in bursts.
func (c *cluster) probes(share float64) {
	for i := range int(90 * share) {
		a := c.apps[(i*len(c.apps)/90+1)%len(c.apps)]
		pod := c.pod(a)
		c.every([]float64{3, 10, 60}[i%3], nil, func(at float64) {
			for n := range 1 + c.rng.IntN(5) {
				c.say(at+10*float64(n), a.namespace, "Pod", pod, warning, "Unhealthy", "kubelet", "Readiness probe failed: timeout")
			}
			if c.rng.IntN(10) == 0 {
				c.say(at+50, a.namespace, "Pod", pod, normal, "Killing", "kubelet", "failed liveness probe, will be restarted")
			}
		})
	}
}

func (c *cluster) images(share float64) {
	c.every(15*share, rhythm, func(at float64) {
		a := c.app()
		pod := c.pod(a)
		for n := range 1 + c.rng.IntN(2) {
			c.say(at+float64(15*n), a.namespace, "Pod", pod, normal, "Pulling", "kubelet", "Pulling image")
			c.say(at+float64(15*n)+1, a.namespace, "Pod", pod, warning, "Failed", "kubelet", "Failed to pull image: i/o timeout")
			c.say(at+float64(15*n)+2, a.namespace, "Pod", pod, normal, "BackOff", "kubelet", "Back-off pulling image")
		}
	})
}

func (c *cluster) volumes(share float64) {
	c.every(60*share, rhythm, func(at float64) {
		a := c.app()
		pod := c.pod(a)
		if c.rng.IntN(12) == 0 {
			c.say(at, a.namespace, "Pod", pod, warning, "FailedAttachVolume", "attachdetach-controller", "Multi-Attach error for volume")
		}
		c.say(at+5, a.namespace, "Pod", pod, normal, "SuccessfulAttachVolume", "attachdetach-controller", "AttachVolume.Attach succeeded")
		if c.rng.IntN(5) == 0 {
			c.say(at+8, a.namespace, "Pod", pod, warning, "FailedMount", "kubelet", "MountVolume.SetUp failed: failed to sync configmap cache: timed out")
		}
	})
	c.every(50*share, rhythm, func(at float64) {
		ns, claim := c.team(), "data-"+c.suffix(5)
		c.say(at, ns, "PersistentVolumeClaim", claim, normal, "ExternalProvisioning", "persistentvolume-controller", "waiting for a volume to be created")
		if c.rng.IntN(25) == 0 {
			c.say(at+1, ns, "PersistentVolumeClaim", claim, warning, "ProvisioningFailed", "ebs.csi.aws.com", "rpc error: code = DeadlineExceeded")
		}
		c.say(at+4, ns, "PersistentVolumeClaim", claim, normal, "ProvisioningSucceeded", "ebs.csi.aws.com", "Successfully provisioned volume")
	})
}

func (c *cluster) operators(share float64) {
	c.every(12*share, nil, func(at float64) {
		ns, name := c.team(), "tls-"+c.suffix(5)
		for n, reason := range []string{"Issuing", "Generated", "Requested", "Reused"} {
			c.say(at+float64(n), ns, "Certificate", name, normal, reason, "cert-manager-certificates-issuing", "certificate")
		}
	})
	c.every(300*share, rhythm, func(at float64) {
		for n, reason := range []string{"OperationStarted", "ResourceUpdated", "OperationCompleted"} {
			c.say(at+float64(4*n), "argocd", "Application", c.app().name, normal, reason, "argocd-application-controller", "application")
		}
	})
	c.every(2*share, nil, func(at float64) {
		c.say(at, "kube-system", "Lease", fmt.Sprintf("controller-%d", c.rng.IntN(8)), normal, "LeaderElection", fmt.Sprintf("controller-%d", c.rng.IntN(8)), "became leader")
	})
}

// rare are warnings that come a few times a week anywhere: what is new on a quiet day.
func (c *cluster) rare(share float64) {
	for _, r := range []struct {
		perWeek                float64
		kind, reason, reporter string
	}{
		{14, "Node", "OOMKilling", "kernel-monitor"}, {5, "Node", "SystemOOM", "kubelet"}, {3, "Node", "Rebooted", "kubelet"},
		{4, "Node", "EvictionThresholdMet", "kubelet"}, {6, "Node", "FreeDiskSpaceFailed", "kubelet"}, {4, "Node", "ImageGCFailed", "kubelet"},
		{8, "Node", "ContainerGCFailed", "kubelet"}, {3, "Node", "TaskHung", "kernel-monitor"}, {2, "Node", "KubeletIsDown", "health-checker"},
		{7, "Pod", "Evicted", "kubelet"}, {20, "Pod", "FailedPreStopHook", "kubelet"}, {15, "Pod", "FailedPostStartHook", "kubelet"},
		{25, "Pod", "FailedKillPod", "kubelet"}, {12, "Pod", "FailedCreatePodSandBox", "kubelet"}, {9, "Pod", "FailedSync", "kubelet"},
		{40, "Pod", "ProbeWarning", "kubelet"}, {10, "Pod", "TaintManagerEviction", "taint-eviction-controller"}, {6, "Pod", "InspectFailed", "kubelet"},
		{9, "Pod", "NodeNotReady", "node-controller"}, {4, "Pod", "Preempting", "default-scheduler"}, {5, "Pod", "FailedMapVolume", "kubelet"},
		{14, "Endpoints", "FailedToUpdateEndpoint", "endpoint-controller"}, {10, "EndpointSlice", "FailedToUpdateEndpointSlices", "endpoint-slice-controller"},
		{10, "ReplicaSet", "FailedCreate", "replicaset-controller"}, {8, "Job", "FailedCreate", "job-controller"}, {6, "StatefulSet", "FailedCreate", "statefulset-controller"},
		{6, "Job", "DeadlineExceeded", "job-controller"}, {8, "CronJob", "MissSchedule", "cronjob-controller"}, {4, "CronJob", "TooManyMissedTimes", "cronjob-controller"},
		{6, "PodDisruptionBudget", "NoPods", "controllermanager"}, {8, "PodDisruptionBudget", "CalculateExpectedPodCountFailed", "controllermanager"},
		{6, "Service", "SyncLoadBalancerFailed", "service-controller"}, {4, "Service", "UnAvailableLoadBalancer", "service-controller"},
		{5, "Ingress", "Translate", "ingress-gce"}, {7, "Ingress", "BadConfig", "cert-manager-ingress-shim"}, {4, "Certificate", "Failed", "cert-manager-certificates-issuing"},
		{5, "Order", "Failed", "cert-manager-orders"}, {9, "Application", "ResourceOutOfSync", "argocd-application-controller"},
		{6, "ExternalSecret", "UpdateFailed", "external-secrets"}, {5, "HelmRelease", "UpgradeFailed", "helm-controller"}, {4, "Kustomization", "HealthCheckFailed", "kustomize-controller"},
		{3, "PersistentVolume", "VolumeFailedDelete", "persistentvolume-controller"}, {4, "HorizontalPodAutoscaler", "FailedRescale", "horizontal-pod-autoscaler"},
	} {
		c.every(r.perWeek/7*share, nil, func(at float64) {
			a := c.app()
			ns, name := a.namespace, a.name
			switch r.kind {
			case "Node":
				ns, name = "default", c.node()
			case "Pod":
				name = c.pod(a)
			}
			for n := range 1 + c.rng.IntN(2) {
				c.say(at+float64(20*n), ns, r.kind, name, warning, r.reason, r.reporter, "a rare one")
			}
		})
	}
}
