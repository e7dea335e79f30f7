package incidents

import (
	"fmt"
	"slices"
	"time"
)

// scenes are the incidents. When one is played, its facts are noted.
type scenes struct {
	*cluster
	facts *Facts
}

// all is each incident at its time.
func (s scenes) all() []activity {
	return []activity{
		{before(51 * time.Hour), true, s.oom},
		{before(26*time.Hour + 10*time.Minute), true, s.notReady},
		{before(5*time.Hour + 12*time.Minute), true, s.pulls},
		{before(75 * time.Minute), true, s.badRollout},
		{before(50 * time.Minute), true, s.mounts},
	}
}

// before is a time so long before the end of the week.
func before(d time.Duration) time.Duration { return Length - d }

// at turns a time of the week into an instant.
func (f *Facts) at(d time.Duration) time.Time { return f.Begin.Add(d) }

// take returns an app by its name, and leaves it alone from now on: only a scene changes it.
func (s scenes) take(namespace, name string) *app {
	i := slices.IndexFunc(s.apps, func(a *app) bool { return a.deployment.namespace == namespace && a.deployment.name == name })
	a := s.apps[i]
	s.apps = slices.Delete(s.apps, i, i+1)
	return a
}

// nodeOf returns the node that a pod runs on.
func (s scenes) nodeOf(p *pod) *object {
	for _, n := range s.nodes {
		if n.name == p.node {
			return n
		}
	}
	panic("incidents: there is no " + p.node)
}

// oom kills one pod for its memory for nine hours.
func (s scenes) oom(from time.Duration) {
	until := from + 9*time.Hour
	a := s.take("search", "cache")
	p := a.pods[0]
	node := s.nodeOf(p)
	note := "Memory cgroup out of memory: Killed process %d (java) total-vm:8123456kB, anon-rss:4194112kB, pod %s_%s"
	kills := 0
	for at := from; at < until; at += 6 * time.Minute {
		s.say(at, reason{warning, "OOMKilling", "", "kernel-monitor"}, node, p.node, note, 20_000+s.rng.IntN(9_000), p.name, p.namespace)
		s.say(at+20*time.Second, pulled, p.object, p.node, "Container image %q already present on machine", a.image())
		s.say(at+21*time.Second, created, p.object, p.node, "Created container: app")
		s.say(at+22*time.Second, started, p.object, p.node, "Started container app")
		kills++
	}
	s.repeat(from+time.Minute, until, 3*time.Minute, backOff, p.object, p.node, "Back-off restarting failed container app in pod %s_%s(%s)", p.name, p.namespace, p.uid)
	o := &s.facts.OOM
	o.Begin, o.End, o.Kills = s.facts.at(from), s.facts.at(until-6*time.Minute), kills
	o.Namespace, o.Pod, o.Node = p.namespace, p.name, p.node
}

// notReady stops a node for 18 minutes. Its pods are evicted after five.
func (s scenes) notReady(from time.Duration) {
	until := from + 18*time.Minute
	node := s.nodes[16]
	s.say(from, reason{normal, "NodeNotReady", "", nodes}, node, "", "Node %s status is now: NodeNotReady", node.name)
	for _, a := range s.apps {
		for i, p := range a.pods {
			if p.node != node.name {
				continue
			}
			s.say(from+time.Second, reason{warning, "NodeNotReady", "", nodes}, p.object, "", "Node is not ready")
			s.say(from+5*time.Minute, reason{normal, "TaintManagerEviction", "", "taint-eviction-controller"}, p.object, "", "Marking for deletion Pod %s/%s", p.namespace, p.name)
			next := s.pod(a)
			for next.node == node.name {
				next.node = s.node().name
			}
			s.say(from+5*time.Minute, podMade, a.replicaSet, "", "Created pod: %s", next.name)
			s.runs(from+5*time.Minute+time.Second, next, a.image())
			a.pods[i] = next
		}
	}
	s.say(until-30*time.Second, reason{normal, "Starting", "", kubelet}, node, node.name, "Starting kubelet.")
	s.say(until-29*time.Second, reason{warning, "Rebooted", "", kubelet}, node, node.name, "Node %s has been rebooted, boot id: %s", node.name, uid(s.rng))
	s.say(until, reason{normal, "NodeReady", "", kubelet}, node, node.name, "Node %s status is now: NodeReady", node.name)
	s.facts.NotReady.Begin, s.facts.NotReady.End, s.facts.NotReady.Node = s.facts.at(from), s.facts.at(until), node.name
}

// pulls of images fail on two nodes for an hour and a half.
func (s scenes) pulls(from time.Duration) {
	until := from + 90*time.Minute
	p := &s.facts.Pulls
	p.Nodes, p.Registry = []string{s.nodes[6].name, s.nodes[22].name}, "mirror.registry.example"
	last := from
	for i := range 24 {
		a := s.app()
		one := s.pod(a)
		one.node = p.Nodes[i%2]
		at := from + time.Duration(i)*3*time.Minute
		image := fmt.Sprintf("%s/%s:2.%d.0", p.Registry, a.deployment.name, a.version)
		s.say(at-3*time.Second, scheduled, one.object, "", "Successfully assigned %s/%s to %s", one.namespace, one.name, one.node)
		s.say(at-2*time.Second, pulling, one.object, one.node, "Pulling image %q", image)
		n := s.repeat(at, until, 5*time.Minute, failed, one.object, one.node, "Failed to pull image %q: rpc error: code = Unavailable desc = failed to resolve reference: dial tcp: lookup %s: no such host", image, p.Registry)
		last = max(last, at+time.Duration(n-1)*5*time.Minute)
		s.repeat(at+15*time.Second, until, 2*time.Minute, reason{normal, "BackOff", "", kubelet}, one.object, one.node, "Back-off pulling image %q", image)
		s.say(until+time.Minute, pulled, one.object, one.node, "Successfully pulled image %q in 2.4s", image)
		s.say(until+time.Minute+time.Second, started, one.object, one.node, "Started container app")
		p.Pods = append(p.Pods, one.namespace+"/"+one.name)
	}
	p.Begin, p.End = s.facts.at(from), s.facts.at(last)
}

// badRollout brings a version whose pods do not become ready.
func (s scenes) badRollout(from time.Duration) {
	a := s.take("shop", "api")
	s.replace(from, a, false)
	r := &s.facts.Rollout
	r.Begin, r.Failing = s.facts.at(from), s.facts.at(from+20*time.Second)
	r.Namespace, r.Deployment, r.ReplicaSet, r.Image = a.deployment.namespace, a.deployment.name, a.replicaSet.name, a.image()
	p := a.pods[0]
	r.Pods = []string{p.name}
	s.repeat(from+20*time.Second, Length, 10*time.Second, unhealthy, p.object, p.node, "Readiness probe failed: HTTP probe failed with statuscode: 500")
	s.say(from+10*time.Minute, reason{warning, "ProgressDeadlineExceeded", "", deployments}, a.deployment, "", "ReplicaSet %q has timed out progressing.", a.replicaSet.name)
}

// mounts fail after a node was drained, as the volume is still attached there.
func (s scenes) mounts(from time.Duration) {
	m := &s.facts.Mounts
	m.Begin, m.Namespace, m.Volume = s.facts.at(from), "payments", "pvc-"+uid(s.rng)
	set := s.object("apps/v1", "StatefulSet", m.Namespace, "ledger")
	drained := s.nodes[30]
	s.say(from-4*time.Minute, reason{normal, "NodeNotSchedulable", "", kubelet}, drained, drained.name, "Node %s status is now: NodeNotSchedulable", drained.name)
	for i := range 2 {
		p := &pod{s.object("v1", "Pod", m.Namespace, fmt.Sprintf("ledger-%d", i)), s.nodes[10+i].name}
		p.owner = set
		at := from + time.Duration(i)*20*time.Second
		s.say(at-40*time.Second, reason{normal, "SuccessfulCreate", "", "statefulset-controller"}, set, "", "create Pod %s in StatefulSet ledger successful", p.name)
		s.say(at-39*time.Second, scheduled, p.object, "", "Successfully assigned %s/%s to %s", p.namespace, p.name, p.node)
		s.say(at-38*time.Second, reason{warning, "FailedAttachVolume", "", "attachdetach-controller"}, p.object, "", "Multi-Attach error for volume %q Volume is already exclusively attached to one node and can't be attached to another", m.Volume)
		s.repeat(at, Length, 2*time.Minute, noMount, p.object, p.node, "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition")
		m.Pods = append(m.Pods, p.name)
	}
}
