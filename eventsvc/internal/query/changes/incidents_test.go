package changes_test

import (
	"fmt"
	"strings"
)

// incident is a script of what components say when something breaks. Reasons, reporters,
// types and delays are those of Kubernetes and of the operators named.
type incident struct {
	name string
	// cause is the series that names the cause: namespace, kind and reason. An empty
	// namespace fits any, as the change may be one of many namespaces.
	namespace, kind, reason string
	object                  string // prefix of the object that a row must name or sample, if the cause is one of many
	play                    func(*scene)
}

// scene is an incident at its time.
type scene struct {
	*cluster
	start float64
}

func (s *scene) warn(after float64, ns, kind, name, reason, reporter, note string) {
	s.say(s.start+after, ns, kind, name, warning, reason, reporter, note)
}

func (s *scene) note(after float64, ns, kind, name, reason, reporter, note string) {
	s.say(s.start+after, ns, kind, name, normal, reason, reporter, note)
}

// deploy is a rollout of n pods.
func (s *scene) deploy(after float64, ns, name string, n int) []string {
	return s.rollout(s.start+after, app{ns, name, n})
}

// crash has a pod's container end soon after each start, with the kubelet's back-off.
func (s *scene) crash(after float64, ns, pod string) {
	for wait := 10.0; after < 1200; wait = min(300, wait*2) {
		s.note(after, ns, "Pod", pod, "Pulled", "kubelet", "Container image already present on machine")
		s.note(after, ns, "Pod", pod, "Created", "kubelet", "Created container")
		s.note(after+1, ns, "Pod", pod, "Started", "kubelet", "Started container")
		for n := range int(wait/12) + 1 {
			s.warn(after+4+12*float64(n), ns, "Pod", pod, "BackOff", "kubelet", "Back-off restarting failed container")
		}
		after += wait
	}
}

// pull has the kubelet fail to pull an image, with its back-off. A back-off of an image is
// of type Normal.
func (s *scene) pull(after float64, ns, pod, problem string) {
	for wait := 10.0; after < 1200; wait = min(300, wait*2) {
		s.note(after, ns, "Pod", pod, "Pulling", "kubelet", "Pulling image")
		s.warn(after+1, ns, "Pod", pod, "Failed", "kubelet", "Failed to pull image: "+problem)
		s.warn(after+1, ns, "Pod", pod, "Failed", "kubelet", "Error: ErrImagePull")
		s.note(after+5, ns, "Pod", pod, "BackOff", "kubelet", "Back-off pulling image")
		s.warn(after+5, ns, "Pod", pod, "Failed", "kubelet", "Error: ImagePullBackOff")
		after += wait
	}
}

// unhealthy has a probe fail every ten seconds.
func (s *scene) unhealthy(after, until float64, ns, pod, note string) {
	for ; after < until; after += 10 {
		s.warn(after, ns, "Pod", pod, "Unhealthy", "kubelet", note)
	}
}

// somewhere returns pods that run on one node or in many namespaces.
func (s *scene) somewhere(n int) (pods []string) {
	for range n {
		a := s.app()
		pods = append(pods, a.namespace+"/"+s.pod(a))
	}
	return pods
}

func split(pod string) (namespace, name string) {
	namespace, name, _ = strings.Cut(pod, "/")
	return namespace, name
}

// replaced has a controller make new pods for lost ones.
func (s *scene) replaced(after float64, pods []string) {
	for i, pod := range pods {
		ns, name := split(pod)
		rs := name[:len(name)-6]
		one := rs + "-" + s.suffix(5)
		s.note(after+float64(i)/10, ns, "ReplicaSet", rs, "SuccessfulCreate", "replicaset-controller", "Created pod")
		if i%3 == 0 {
			s.warn(after+float64(i)/10, ns, "Pod", one, "FailedScheduling", "default-scheduler", "0/60 nodes are available: 1 node(s) had untolerated taint")
			s.runs(s.start+after+60, ns, one)
			continue
		}
		s.runs(s.start+after+float64(i)/10, ns, one)
	}
}

var incidents = []incident{
	{"bad rollout", "shop", "Pod", "BackOff", "api", func(s *scene) {
		for _, pod := range s.deploy(0, "shop", "api", 4) {
			s.crash(5, "shop", pod)
		}
	}},
	{"node loss", "default", "Node", "NodeNotReady", "", func(s *scene) {
		pods := s.somewhere(30)
		s.note(0, "default", "Node", "node-17", "NodeNotReady", "node-controller", "Node node-17 status is now: NodeNotReady")
		for _, pod := range pods {
			ns, name := split(pod)
			s.warn(0, ns, "Pod", name, "NodeNotReady", "node-controller", "Node is not ready")
			s.note(300, ns, "Pod", name, "TaintManagerEviction", "taint-eviction-controller", "Marking for deletion Pod")
		}
		s.replaced(301, pods)
	}},
	{"image missing", "media", "Pod", "Failed", "", func(s *scene) {
		for _, pod := range s.deploy(0, "media", "web", 3) {
			s.pull(4, "media", pod, "registry/web:1.9: not found")
		}
	}},
	{"wrong tag in one of many rollouts", "orders", "Pod", "Failed", "worker", func(s *scene) {
		for _, name := range []string{"api", "web", "cache", "gateway", "sync"} { // these are well
			s.deploy(0, "orders", name, 3)
			s.warn(20, "orders", "Pod", s.pod(app{name: name}), "Unhealthy", "kubelet", "Readiness probe failed")
		}
		for _, pod := range s.deploy(10, "orders", "worker", 3) {
			s.pull(14, "orders", pod, "manifest unknown")
		}
	}},
	{"quota exceeded", "reports-dev", "ReplicaSet", "FailedCreate", "", func(s *scene) {
		s.note(0, "reports-dev", "Deployment", "api", "ScalingReplicaSet", "deployment-controller", "Scaled up replica set")
		rs := s.replicaSet(app{name: "api"})
		for wait, at := 1.0, 0.0; at < 900; wait *= 2 {
			s.warn(at, "reports-dev", "ReplicaSet", rs, "FailedCreate", "replicaset-controller", "pods is forbidden: exceeded quota: compute")
			at += wait
		}
	}},
	{"probes fail as a database is slow", "accounts", "Pod", "Unhealthy", "", func(s *scene) {
		for n := range 6 {
			s.unhealthy(float64(n), 1200, "accounts", s.pod(app{name: []string{"api", "web"}[n%2]}), "Readiness probe failed: HTTP probe failed with statuscode: 503")
		}
	}},
	{"eviction storm by a full disk", "default", "Node", "EvictionThresholdMet", "", func(s *scene) {
		pods := s.somewhere(25)
		s.warn(0, "default", "Node", "node-08", "FreeDiskSpaceFailed", "kubelet", "Failed to garbage collect required amount of images")
		s.warn(2, "default", "Node", "node-08", "EvictionThresholdMet", "kubelet", "Attempting to reclaim ephemeral-storage")
		s.note(3, "default", "Node", "node-08", "NodeHasDiskPressure", "kubelet", "Node node-08 status is now: NodeHasDiskPressure")
		for i, pod := range pods {
			ns, name := split(pod)
			s.warn(5+10*float64(i), ns, "Pod", name, "Evicted", "kubelet", "The node was low on resource: ephemeral-storage")
			s.note(6+10*float64(i), ns, "Pod", name, "Killing", "kubelet", "Stopping container")
			if i%5 == 0 {
				s.warn(10+10*float64(i), "default", "Node", "node-08", "EvictionThresholdMet", "kubelet", "Attempting to reclaim ephemeral-storage")
			}
		}
		s.replaced(20, pods)
	}},
	{"memory pressure and OOM kills", "default", "Node", "SystemOOM", "", func(s *scene) {
		for n := range 4 {
			s.warn(float64(45*n), "default", "Node", "node-21", "SystemOOM", "kubelet", "System OOM encountered, victim process: java")
			s.warn(float64(45*n), "default", "Node", "node-21", "OOMKilling", "kernel-monitor", "Memory cgroup out of memory")
		}
		s.note(50, "default", "Node", "node-21", "NodeHasInsufficientMemory", "kubelet", "status is now: NodeHasInsufficientMemory")
		for i, pod := range s.somewhere(8) {
			ns, name := split(pod)
			s.crash(10+20*float64(i), ns, name)
			s.warn(120+10*float64(i), ns, "Pod", name, "Evicted", "kubelet", "The node was low on resource: memory")
		}
	}},
	{"certificate expired", "payments", "Certificate", "Failed", "", func(s *scene) {
		for at := 0.0; at < 1200; at += 60 {
			s.note(at, "payments", "Certificate", "gateway-tls", "Issuing", "cert-manager-certificates-trigger", "Renewing certificate as renewal was scheduled")
			s.warn(at+3, "payments", "Certificate", "gateway-tls", "Failed", "cert-manager-certificates-issuing", "The certificate request has failed to complete and will be retried")
		}
		for range 3 {
			s.unhealthy(30, 1200, "payments", s.pod(app{name: "gateway"}), "Liveness probe failed: x509: certificate has expired")
		}
	}},
	{"DNS failure", "kube-system", "Pod", "Unhealthy", "coredns", func(s *scene) {
		for range 2 {
			s.unhealthy(0, 1200, "kube-system", s.pod(app{name: "coredns"}), "Readiness probe failed: HTTP probe failed with statuscode: 503")
		}
		for i, pod := range s.somewhere(60) {
			ns, name := split(pod)
			s.unhealthy(20+5*float64(i), 600, ns, name, "Readiness probe failed: dial tcp: lookup db: i/o timeout")
			if i%4 == 0 {
				s.crash(60+5*float64(i), ns, name)
			}
		}
	}},
	{"NFS server gone", "reports", "Pod", "FailedMount", "", func(s *scene) {
		for n := range 5 {
			pod := s.pod(app{name: "export"})
			s.note(float64(n), "reports", "Pod", pod, "Scheduled", "default-scheduler", "Successfully assigned")
			for at := float64(n); at < 1200; at += 122 {
				s.warn(at, "reports", "Pod", pod, "FailedMount", "kubelet", "MountVolume.SetUp failed for volume data: mount.nfs: Connection timed out")
			}
		}
	}},
	{"volume attached elsewhere", "stock", "Pod", "FailedAttachVolume", "", func(s *scene) {
		pod := "database-0"
		s.note(0, "stock", "Pod", pod, "Scheduled", "default-scheduler", "Successfully assigned")
		for at := 0.0; at < 1200; at += 60 {
			s.warn(at, "stock", "Pod", pod, "FailedAttachVolume", "attachdetach-controller", "Multi-Attach error for volume pvc: Volume is already exclusively attached to one node")
		}
		for at := 120.0; at < 1200; at += 135 {
			s.warn(at, "stock", "Pod", pod, "FailedMount", "kubelet", "Unable to attach or mount volumes: timed out waiting for the condition")
		}
	}},
	{"claim without storage class", "search-test", "PersistentVolumeClaim", "ProvisioningFailed", "", func(s *scene) {
		for at := 0.0; at < 1200; at += 15 {
			s.warn(at, "search-test", "PersistentVolumeClaim", "data-index-0", "ProvisioningFailed", "persistentvolume-controller", "storageclass.storage.k8s.io fast not found")
		}
		for at := 1.0; at < 1200; at += 300 {
			s.warn(at, "search-test", "Pod", "index-0", "FailedScheduling", "default-scheduler", "pod has unbound immediate PersistentVolumeClaims")
		}
	}},
	{"no CPU left", "search", "Pod", "FailedScheduling", "", func(s *scene) {
		s.note(0, "search", "Deployment", "index", "ScalingReplicaSet", "deployment-controller", "Scaled up replica set to 12")
		rs := s.replicaSet(app{name: "index"})
		for range 9 {
			pod := rs + "-" + s.suffix(5)
			s.note(0, "search", "ReplicaSet", rs, "SuccessfulCreate", "replicaset-controller", "Created pod")
			for at := 0.0; at < 1200; at += 300 {
				s.warn(at, "search", "Pod", pod, "FailedScheduling", "default-scheduler", "0/60 nodes are available: 60 Insufficient cpu")
				s.note(at+10, "search", "Pod", pod, "NotTriggerScaleUp", "cluster-autoscaler", "pod didn't trigger scale-up: 1 max node group size reached")
			}
		}
	}},
	{"metrics server down", "", "HorizontalPodAutoscaler", "FailedGetResourceMetric", "", func(s *scene) {
		s.crash(0, "kube-system", s.pod(app{name: "metrics-server"}))
		for i := range 40 {
			a := s.apps[i*5%len(s.apps)]
			for at := 20 + float64(i%15); at < 1200; at += 60 {
				s.warn(at, a.namespace, "HorizontalPodAutoscaler", a.name, "FailedGetResourceMetric", "horizontal-pod-autoscaler", "unable to fetch metrics from resource metrics API: the server is currently unable to handle the request")
				s.warn(at, a.namespace, "HorizontalPodAutoscaler", a.name, "FailedComputeMetricsReplicas", "horizontal-pod-autoscaler", "invalid metrics")
			}
		}
	}},
	{"job deadline exceeded", "reports-stage", "Job", "DeadlineExceeded", "", func(s *scene) {
		for n := range 3 {
			job := fmt.Sprintf("billing-%d", 29631000+n)
			s.note(float64(90*n), "reports-stage", "Pod", job+"-"+s.suffix(5), "Killing", "kubelet", "Stopping container")
			s.note(float64(90*n), "reports-stage", "Job", job, "SuccessfulDelete", "job-controller", "Deleted pod")
			s.warn(float64(90*n), "reports-stage", "Job", job, "DeadlineExceeded", "job-controller", "Job was active longer than specified deadline")
		}
	}},
	{"admission webhook down", "", "ReplicaSet", "FailedCreate", "", func(s *scene) {
		s.crash(0, "policy", s.pod(app{name: "admission"}))
		for i := range 12 {
			a := s.apps[i*7%len(s.apps)]
			rs := s.replicaSet(a)
			s.note(15+20*float64(i), a.namespace, "Deployment", a.name, "ScalingReplicaSet", "deployment-controller", "Scaled up replica set")
			for wait, at := 1.0, 15+20*float64(i); at < 900; wait *= 2 {
				s.warn(at, a.namespace, "ReplicaSet", rs, "FailedCreate", "replicaset-controller", "Internal error occurred: failed calling webhook: connection refused")
				at += wait
			}
		}
	}},
	{"config map missing", "mail", "Pod", "Failed", "", func(s *scene) {
		for _, pod := range s.deploy(0, "mail", "gateway", 2) {
			for at := 4.0; at < 1200; at += 13 {
				s.note(at, "mail", "Pod", pod, "Pulled", "kubelet", "Container image already present on machine")
				s.warn(at, "mail", "Pod", pod, "Failed", "kubelet", `Error: configmap "smtp" not found`)
			}
		}
	}},
	{"liveness flapping", "chat", "Pod", "Unhealthy", "", func(s *scene) {
		for n := range 3 {
			pod := s.pod(app{name: "web"})
			for at := 5 * float64(n); at < 1200; at += 90 {
				s.unhealthy(at, at+30, "chat", pod, "Liveness probe failed: context deadline exceeded")
				s.note(at+30, "chat", "Pod", pod, "Killing", "kubelet", "Container web failed liveness probe, will be restarted")
				s.note(at+60, "chat", "Pod", pod, "Started", "kubelet", "Started container")
			}
		}
	}},
	{"node rebooted", "default", "Node", "Rebooted", "", func(s *scene) {
		s.note(0, "default", "Node", "node-33", "NodeNotReady", "kubelet", "status is now: NodeNotReady")
		s.boots(s.start+60, "node-33")
		s.warn(61, "default", "Node", "node-33", "Rebooted", "kubelet", "Node node-33 has been rebooted, boot id: 4c")
		for _, pod := range s.somewhere(30) {
			ns, name := split(pod)
			s.warn(0, ns, "Pod", name, "NodeNotReady", "node-controller", "Node is not ready")
			s.note(65, ns, "Pod", name, "SandboxChanged", "kubelet", "Pod sandbox changed, it will be killed and re-created")
			for n, reason := range []string{"Pulled", "Created", "Started"} {
				s.note(66+float64(n), ns, "Pod", name, reason, "kubelet", "container")
			}
		}
	}},
}
