//go:build !race

package changes_test

import "fmt"

// further are incidents of kinds that no other list has. They were written before the rows that are one change were
// told apart by their type and their namespaces.
var further = []feltIncident{
	{"chat-dev", incident{"autoscaler goes up and down", "chat-dev", "HorizontalPodAutoscaler", "SuccessfulRescale", "", func(s *scene) {
		rs := s.replicaSet(app{name: "api"})
		for n := range 10 {
			at := 60 * float64(n)
			size := []string{"2; reason: All metrics below target", "9; reason: cpu resource utilization above target"}[n%2]
			s.note(at, "chat-dev", "HorizontalPodAutoscaler", "api", "SuccessfulRescale", "horizontal-pod-autoscaler", "New size: "+size)
			s.note(at, "chat-dev", "Deployment", "api", "ScalingReplicaSet", "deployment-controller", "Scaled replica set")
			for range 7 {
				pod := rs + "-" + s.suffix(5)
				if n%2 == 0 {
					s.note(at+1, "chat-dev", "ReplicaSet", rs, "SuccessfulDelete", "replicaset-controller", "Deleted pod: "+pod)
					s.note(at+1, "chat-dev", "Pod", pod, "Killing", "kubelet", "Stopping container api")
					continue
				}
				s.note(at+1, "chat-dev", "ReplicaSet", rs, "SuccessfulCreate", "replicaset-controller", "Created pod: "+pod)
				s.runs(s.start+at+1, "chat-dev", pod)
				s.warn(at+8, "chat-dev", "Pod", pod, "Unhealthy", "kubelet", "Readiness probe failed: connection refused")
			}
		}
	}}},
	{"reports-dev", incident{"job of each hour runs each minute", "reports-dev", "CronJob", "SuccessfulCreate", "", func(s *scene) {
		for n := range 18 {
			at, job := 60*float64(n), fmt.Sprintf("hourly-%d", 29631800+n)
			s.note(at, "reports-dev", "CronJob", "hourly", "SuccessfulCreate", "cronjob-controller", "Created job "+job)
			s.note(at, "reports-dev", "Job", job, "SuccessfulCreate", "job-controller", "Created pod")
			pod := job + "-" + s.suffix(5)
			if n < 4 {
				s.runs(s.start+at+1, "reports-dev", pod)
				continue
			}
			for ; at < 1200; at += 300 {
				s.warn(at+1, "reports-dev", "Pod", pod, "FailedScheduling", "default-scheduler", "0/60 nodes are available: 60 Insufficient memory")
			}
		}
	}}},
	{"orders", incident{"upgrade empties too many nodes at once", "default", "Node", "NodeNotSchedulable", "", func(s *scene) {
		for n := range 8 {
			s.note(4*float64(n), "default", "Node", fmt.Sprintf("node-%02d", n), "NodeNotSchedulable", "kubelet", "Node status is now: NodeNotSchedulable")
		}
		pods := append(s.somewhere(40), "orders/"+s.pod(app{name: "api"}), "orders/"+s.pod(app{name: "api"}), "orders/"+s.pod(app{name: "web"}))
		for i, pod := range pods {
			ns, name := split(pod)
			s.note(10+float64(i)/2, ns, "Pod", name, "Killing", "kubelet", "Stopping container")
			s.unhealthy(14+float64(i)/2, 60, ns, name, "Readiness probe failed: connection refused")
		}
		s.replaced(14, pods)
	}}},
	{"maps-stage", incident{"descheduler moves pods in a circle", "maps-stage", "Pod", "LowNodeUtilization", "", func(s *scene) {
		for n := range 12 {
			pod, at := s.pod(app{name: "tiles"}), 90*float64(n)
			s.note(at, "maps-stage", "Pod", pod, "LowNodeUtilization", "sigs.k8s.io/descheduler", "pod eviction from node-11 node by sigs.k8s.io/descheduler")
			s.note(at, "maps-stage", "Pod", pod, "Killing", "kubelet", "Stopping container tiles")
			s.runs(s.start+at+2, "maps-stage", s.pod(app{name: "tiles"}))
		}
	}}},
	{"payments-stage", incident{"secret for images has another name", "payments-stage", "Pod", "FailedToRetrieveImagePullSecret", "", func(s *scene) {
		for _, pod := range s.deploy(0, "payments-stage", "gateway", 2) {
			for at := 3.0; at < 1200; at += 15 {
				s.warn(at, "payments-stage", "Pod", pod, "FailedToRetrieveImagePullSecret", "kubelet", "Unable to retrieve some image pull secrets (registry-2025); attempting to pull the image may not succeed.")
			}
			s.pull(4, "payments-stage", pod, "pull access denied, repository does not exist or may require authorization")
		}
	}}},
	{"accounts-dev", incident{"balancer has no nodes", "accounts-dev", "Service", "UnAvailableLoadBalancer", "", func(s *scene) {
		for wait, at := 5.0, 0.0; at < 1200; wait = min(300, wait*2) {
			s.warn(at, "accounts-dev", "Service", "login", "UnAvailableLoadBalancer", "service-controller", "There are no available nodes for LoadBalancer")
			at += wait
		}
	}}},
	{"search-stage", incident{"kernel parameter is not allowed", "search-stage", "Pod", "SysctlForbidden", "", func(s *scene) {
		rs := s.replicaSet(app{name: "index"})
		for n := range 20 {
			pod, at := rs+"-"+s.suffix(5), 20*float64(n)
			s.note(at, "search-stage", "ReplicaSet", rs, "SuccessfulCreate", "replicaset-controller", "Created pod: "+pod)
			s.note(at, "search-stage", "Pod", pod, "Scheduled", "default-scheduler", "Successfully assigned search-stage/"+pod+" to node-30")
			s.warn(at+1, "search-stage", "Pod", pod, "SysctlForbidden", "kubelet", `forbidden sysctl: "net.core.somaxconn" not allowlisted`)
		}
	}}},
	{"mail-test", incident{"pods of a daemon fail as they start", "mail-test", "DaemonSet", "FailedDaemonPod", "", func(s *scene) {
		for n := range 25 {
			pod, at := "relay-"+s.suffix(5), 30*float64(n)
			s.warn(at, "mail-test", "DaemonSet", "relay", "FailedDaemonPod", "daemonset-controller", "Found failed daemon pod mail-test/"+pod+" on node node-18, will try to kill it")
			s.note(at+1, "mail-test", "DaemonSet", "relay", "SuccessfulDelete", "daemonset-controller", "Deleted pod: "+pod)
			s.note(at+2, "mail-test", "DaemonSet", "relay", "SuccessfulCreate", "daemonset-controller", "Created pod: relay-"+s.suffix(5))
		}
	}}},
	{"orders-test", incident{"health check deletes machines", "machines", "Machine", "MachineMarkedUnhealthy", "", func(s *scene) {
		for n := range 3 {
			at, node := 20*float64(n), fmt.Sprintf("node-%d", 36+n)
			s.warn(at, "machines", "Machine", "pool-a-"+s.suffix(5), "MachineMarkedUnhealthy", "machinehealthcheck-controller", "Machine of node "+node+" has been marked as unhealthy")
			s.note(at+15, "default", "Node", node, "NodeNotSchedulable", "kubelet", "Node status is now: NodeNotSchedulable")
			s.note(at+80, "default", "Node", node, "RemovingNode", "node-controller", "Removing Node from Controller")
		}
		pods := append(s.somewhere(15), "orders-test/"+s.pod(app{name: "api"}), "orders-test/"+s.pod(app{name: "web"}))
		for i, pod := range pods {
			ns, name := split(pod)
			s.note(20+2*float64(i), ns, "Pod", name, "Killing", "kubelet", "Stopping container")
		}
		s.replaced(22, pods)
	}}},
	{"shop-test", incident{"analysis ends a new version", "shop-test", "AnalysisRun", "MetricFailed", "", func(s *scene) {
		s.deploy(-120, "shop-test", "web", 1)
		s.warn(0, "shop-test", "AnalysisRun", "web-6f8c9d7b5d-2", "MetricFailed", "rollouts-controller", "Metric 'success-rate' Completed. Result: Failed")
		s.warn(0, "shop-test", "AnalysisRun", "web-6f8c9d7b5d-2", "AnalysisRunFailed", "rollouts-controller", "Analysis Completed. Result: Failed")
		s.warn(1, "shop-test", "Rollout", "web", "RolloutAborted", "rollouts-controller", "Rollout aborted update to revision 7: Metric success-rate assessed Failed due to failed (3) > failureLimit (2)")
		s.note(2, "shop-test", "Rollout", "web", "ScalingReplicaSet", "rollouts-controller", "Scaled down ReplicaSet web-6f8c9d7b5d from 1 to 0")
		s.note(3, "shop-test", "Pod", "web-6f8c9d7b5d-x2x7q", "Killing", "kubelet", "Stopping container web")
	}}},
}
