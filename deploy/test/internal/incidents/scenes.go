package incidents

import (
	"fmt"
	"time"
)

// scenes are the incidents. When one is played, its facts are noted.
func (c *cluster) scenes(f *Facts) []activity {
	return []activity{
		{before(51 * time.Hour), true, func(at time.Duration) { c.oom(f, at) }},
		{before(26*time.Hour + 10*time.Minute), true, func(at time.Duration) { c.notReady(f, at) }},
		{before(5*time.Hour + 12*time.Minute), true, func(at time.Duration) { c.pulls(f, at) }},
		{before(75 * time.Minute), true, func(at time.Duration) { c.badRollout(f, at) }},
		{before(50 * time.Minute), true, func(at time.Duration) { c.mounts(f, at) }},
	}
}

// before is a time so long before the end of the week.
func before(d time.Duration) time.Duration { return Length - d }

// at turns a time of the week into an instant.
func (f *Facts) at(d time.Duration) time.Time { return f.Begin.Add(d) }

// oom kills one pod for its memory for nine hours.
func (c *cluster) oom(f *Facts, from time.Duration) {
	until := from + 9*time.Hour
	a := c.take("search", "cache")
	p := a.pods[0]
	node := c.nodeOf(p)
	note := "Memory cgroup out of memory: Killed process %d (java) total-vm:8123456kB, anon-rss:4194112kB, pod %s_%s"
	kills := 0
	for at := from; at < until; at += 6 * time.Minute {
		c.say(at, reason{warning, "OOMKilling", "", "kernel-monitor"}, node, p.node, note, 20_000+c.rng.IntN(9_000), p.name, p.namespace)
		c.say(at+20*time.Second, pulled, p.object, p.node, "Container image %q already present on machine", a.image())
		c.say(at+21*time.Second, created, p.object, p.node, "Created container: app")
		c.say(at+22*time.Second, started, p.object, p.node, "Started container app")
		kills++
	}
	c.repeat(from+time.Minute, until, 3*time.Minute, backOff, p.object, p.node, "Back-off restarting failed container app in pod %s_%s(%s)", p.name, p.namespace, p.uid)
	o := &f.OOM
	o.Begin, o.End, o.Kills = f.at(from), f.at(until-6*time.Minute), kills
	o.Namespace, o.Pod, o.Node = p.namespace, p.name, p.node
}

// nodeOf returns the node that a pod runs on.
func (c *cluster) nodeOf(p *pod) *object {
	for _, n := range c.nodes {
		if n.name == p.node {
			return n
		}
	}
	panic("incidents: there is no " + p.node)
}

// notReady stops a node for 18 minutes. Its pods are evicted after five.
func (c *cluster) notReady(f *Facts, from time.Duration) {
	until := from + 18*time.Minute
	node := c.nodes[16]
	c.say(from, reason{normal, "NodeNotReady", "", nodes}, node, "", "Node %s status is now: NodeNotReady", node.name)
	for _, a := range c.apps {
		for i, p := range a.pods {
			if p.node != node.name {
				continue
			}
			c.say(from+time.Second, reason{warning, "NodeNotReady", "", nodes}, p.object, "", "Node is not ready")
			c.say(from+5*time.Minute, reason{normal, "TaintManagerEviction", "", "taint-eviction-controller"}, p.object, "", "Marking for deletion Pod %s/%s", p.namespace, p.name)
			next := c.pod(a)
			for next.node == node.name {
				next.node = c.node().name
			}
			c.say(from+5*time.Minute, podMade, a.replicaSet, "", "Created pod: %s", next.name)
			c.runs(from+5*time.Minute+time.Second, next, a.image())
			a.pods[i] = next
		}
	}
	c.say(until-30*time.Second, reason{normal, "Starting", "", kubelet}, node, node.name, "Starting kubelet.")
	c.say(until-29*time.Second, reason{warning, "Rebooted", "", kubelet}, node, node.name, "Node %s has been rebooted, boot id: %s", node.name, uid(c.rng))
	c.say(until, reason{normal, "NodeReady", "", kubelet}, node, node.name, "Node %s status is now: NodeReady", node.name)
	f.NotReady.Begin, f.NotReady.End, f.NotReady.Node = f.at(from), f.at(until), node.name
}

// pulls of images fail on two nodes for an hour and a half.
func (c *cluster) pulls(f *Facts, from time.Duration) {
	until := from + 90*time.Minute
	p := &f.Pulls
	p.Nodes, p.Registry = []string{c.nodes[6].name, c.nodes[22].name}, "mirror.registry.example"
	last := from
	for i := range 24 {
		a := c.app()
		one := c.pod(a)
		one.node = p.Nodes[i%2]
		at := from + time.Duration(i)*3*time.Minute
		image := fmt.Sprintf("%s/%s:2.%d.0", p.Registry, a.deployment.name, a.version)
		c.say(at-3*time.Second, scheduled, one.object, "", "Successfully assigned %s/%s to %s", one.namespace, one.name, one.node)
		c.say(at-2*time.Second, pulling, one.object, one.node, "Pulling image %q", image)
		n := c.repeat(at, until, 5*time.Minute, failed, one.object, one.node, "Failed to pull image %q: rpc error: code = Unavailable desc = failed to resolve reference: dial tcp: lookup %s: no such host", image, p.Registry)
		last = max(last, at+time.Duration(n-1)*5*time.Minute)
		c.repeat(at+15*time.Second, until, 2*time.Minute, reason{normal, "BackOff", "", kubelet}, one.object, one.node, "Back-off pulling image %q", image)
		c.say(until+time.Minute, pulled, one.object, one.node, "Successfully pulled image %q in 2.4s", image)
		c.say(until+time.Minute+time.Second, started, one.object, one.node, "Started container app")
		p.Pods = append(p.Pods, one.namespace+"/"+one.name)
	}
	p.Begin, p.End = f.at(from), f.at(last)
}

// badRollout brings a version whose pods do not become ready.
func (c *cluster) badRollout(f *Facts, from time.Duration) {
	a := c.take("shop", "api")
	c.replace(from, a, false)
	r := &f.Rollout
	r.Begin, r.Failing = f.at(from), f.at(from+20*time.Second)
	r.Namespace, r.Deployment, r.ReplicaSet, r.Image = a.deployment.namespace, a.deployment.name, a.replicaSet.name, a.image()
	p := a.pods[0]
	r.Pods = []string{p.name}
	c.repeat(from+20*time.Second, Length, 10*time.Second, unhealthy, p.object, p.node, "Readiness probe failed: HTTP probe failed with statuscode: 500")
	c.say(from+10*time.Minute, reason{warning, "ProgressDeadlineExceeded", "", deployments}, a.deployment, "", "ReplicaSet %q has timed out progressing.", a.replicaSet.name)
}

// mounts fail after a node was drained, as the volume is still attached there.
func (c *cluster) mounts(f *Facts, from time.Duration) {
	m := &f.Mounts
	m.Begin, m.Namespace, m.Volume = f.at(from), "payments", "pvc-"+uid(c.rng)
	set := c.object("apps/v1", "StatefulSet", m.Namespace, "ledger")
	drained := c.nodes[30]
	c.say(from-4*time.Minute, reason{normal, "NodeNotSchedulable", "", kubelet}, drained, drained.name, "Node %s status is now: NodeNotSchedulable", drained.name)
	for i := range 2 {
		p := &pod{c.object("v1", "Pod", m.Namespace, fmt.Sprintf("ledger-%d", i)), c.nodes[10+i].name}
		at := from + time.Duration(i)*20*time.Second
		c.say(at-40*time.Second, reason{normal, "SuccessfulCreate", "", "statefulset-controller"}, set, "", "create Pod %s in StatefulSet ledger successful", p.name)
		c.say(at-39*time.Second, scheduled, p.object, "", "Successfully assigned %s/%s to %s", p.namespace, p.name, p.node)
		c.say(at-38*time.Second, reason{warning, "FailedAttachVolume", "", "attachdetach-controller"}, p.object, "", "Multi-Attach error for volume %q Volume is already exclusively attached to one node and can't be attached to another", m.Volume)
		c.repeat(at, Length, 2*time.Minute, noMount, p.object, p.node, "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition")
		m.Pods = append(m.Pods, p.name)
	}
}
