package changes_test

import "fmt"

// heldOut are the incidents that were written when the weights of the ranking were fixed.
var heldOut = []incident{
	{"cron jobs missed after the controller was away", "", "CronJob", "MissSchedule", "", func(s *scene) {
		s.note(-15, "kube-system", "Lease", "kube-controller-manager", "LeaderElection", "kube-controller-manager", "controller-2 became leader")
		for i := range 24 {
			ns, name := s.namespaces[i*2], fmt.Sprintf("cron%d", i*2)
			s.warn(float64(i%7), ns, "CronJob", name, "MissSchedule", "cronjob-controller", "Missed scheduled time to start a job")
			for n := range 2 {
				job := fmt.Sprintf("%s-%d", name, 29632000+n)
				s.note(float64(8+i%7), ns, "CronJob", name, "SuccessfulCreate", "cronjob-controller", "Created job")
				s.note(float64(8+i%7), ns, "Job", job, "SuccessfulCreate", "job-controller", "Created pod")
				s.runs(s.start+float64(9+i%7), ns, job+"-"+s.suffix(5))
			}
		}
	}},
	{"ingress configuration does not load", "ingress-nginx", "Pod", "RELOAD", "", func(s *scene) {
		s.note(0, "chat-stage", "Ingress", "web", "Sync", "nginx-ingress-controller", "Scheduled for sync")
		for n := range 3 {
			pod := "ingress-nginx-controller-7d5fb757db-" + s.suffix(5)
			for at := 1 + float64(n); at < 1200; at += 60 {
				s.warn(at, "ingress-nginx", "Pod", pod, "RELOAD", "nginx-ingress-controller", "Error reloading NGINX: exit status 1: invalid number of arguments in proxy_set_header")
			}
		}
		s.unhealthy(200, 400, "chat-stage", s.pod(app{name: "web"}), "Readiness probe failed: 404")
	}},
	{"leader election lost", "kube-system", "Lease", "LeaderElection", "", func(s *scene) {
		for n, lease := range []string{"kube-controller-manager", "kube-scheduler", "cloud-controller-manager"} {
			s.note(float64(3*n), "kube-system", "Lease", lease, "LeaderElection", lease, "control-plane-1 stopped leading")
			s.note(float64(18+3*n), "kube-system", "Lease", lease, "LeaderElection", lease, "control-plane-2 became leader")
			pod := lease + "-control-plane-1"
			s.warn(float64(3+3*n), "kube-system", "Pod", pod, "BackOff", "kubelet", "Back-off restarting failed container")
			s.note(float64(30+3*n), "kube-system", "Pod", pod, "Started", "kubelet", "Started container")
			s.unhealthy(float64(5+3*n), 90, "kube-system", pod, "Liveness probe failed: connection refused")
		}
		s.unhealthy(4, 120, "kube-system", "kube-apiserver-control-plane-1", "Readiness probe failed: HTTP probe failed with statuscode: 500")
		for range 12 { // what waited meanwhile
			a := s.app()
			s.rollout(s.start+25, a)
		}
	}},
	{"network plugin not ready", "", "Pod", "NetworkNotReady", "", func(s *scene) {
		for n := range 3 {
			node := fmt.Sprintf("node-%d", 41+n)
			s.crash(float64(5*n), "kube-system", "calico-node-"+s.suffix(5))
			s.note(12+float64(5*n), "default", "Node", node, "NodeNotReady", "kubelet", "status is now: NodeNotReady")
		}
		for i, pod := range s.somewhere(24) {
			ns, name := split(pod)
			for at := 15 + float64(i%5); at < 1200; at += 24 {
				s.warn(at, ns, "Pod", name, "NetworkNotReady", "kubelet", "network is not ready: NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized")
			}
			if i%2 == 0 {
				s.warn(55, ns, "Pod", name, "NodeNotReady", "node-controller", "Node is not ready")
			}
		}
	}},
	{"clock of a node is off", "default", "Node", "NTPIsDown", "", func(s *scene) {
		s.warn(0, "default", "Node", "node-52", "NTPIsDown", "ntp-custom-plugin-monitor", "NTP service is not running")
		for i, pod := range s.somewhere(14) {
			ns, name := split(pod)
			for at := 40 + 9*float64(i); at < 1200; at += 64 {
				s.warn(at, ns, "Pod", name, "FailedMount", "kubelet", "MountVolume.SetUp failed for volume kube-api-access: failed to fetch token: Unauthorized")
			}
			s.unhealthy(60+9*float64(i), 500, ns, name, "Readiness probe failed: x509: certificate has expired or is not yet valid")
		}
		s.note(180, "default", "Node", "node-52", "NodeNotReady", "node-controller", "status is now: NodeNotReady")
	}},
	{"registry limits pulls", "", "Pod", "Failed", "", func(s *scene) {
		for i, pod := range s.somewhere(35) {
			ns, name := split(pod)
			s.note(15*float64(i), ns, "Pod", name, "Scheduled", "default-scheduler", "Successfully assigned")
			s.pull(15*float64(i)+1, ns, name, "toomanyrequests: You have reached your pull rate limit")
		}
	}},
	{"no addresses left for pods", "", "Pod", "FailedCreatePodSandBox", "", func(s *scene) {
		for i, pod := range s.somewhere(20) {
			ns, name := split(pod)
			s.note(20*float64(i), ns, "Pod", name, "Scheduled", "default-scheduler", "Successfully assigned")
			for at := 20*float64(i) + 2; at < 1200; at += 13 {
				s.warn(at, ns, "Pod", name, "FailedCreatePodSandBox", "kubelet", "failed to setup network for sandbox: failed to allocate for range 0: no IP addresses available in range set")
			}
		}
	}},
	{"quota of load balancers", "maps", "Service", "SyncLoadBalancerFailed", "", func(s *scene) {
		for wait, at := 5.0, 0.0; at < 1200; wait = min(300, wait*2) {
			s.note(at, "maps", "Service", "tiles", "EnsuringLoadBalancer", "service-controller", "Ensuring load balancer")
			s.warn(at+4, "maps", "Service", "tiles", "SyncLoadBalancerFailed", "service-controller", "Error syncing load balancer: googleapi: Error 403: Quota 'FORWARDING_RULES' exceeded")
			at += wait
		}
	}},
	{"controller lost its rights", "", "ExternalSecret", "UpdateFailed", "", func(s *scene) {
		for i := range 20 {
			a := s.apps[i*9%len(s.apps)]
			for at := 3 * float64(i); at < 1200; at += 60 {
				s.warn(at, a.namespace, "ExternalSecret", a.name, "UpdateFailed", "external-secrets", "secrets is forbidden: User system:serviceaccount:external-secrets:external-secrets cannot update resource secrets")
			}
			if i%6 == 0 {
				s.warn(100, a.namespace, "Pod", s.pod(a), "Failed", "kubelet", `Error: secret "credentials" not found`)
			}
		}
	}},
	{"autoscaler gets no nodes", "kube-system", "ConfigMap", "FailedToScaleUpGroup", "", func(s *scene) {
		for i := range 16 {
			a := s.app()
			pod := s.pod(a)
			for at := 6 * float64(i); at < 1200; at += 60 {
				s.warn(at, a.namespace, "Pod", pod, "FailedScheduling", "default-scheduler", "0/60 nodes are available: 60 Insufficient memory")
			}
			s.note(6*float64(i)+10, a.namespace, "Pod", pod, "TriggeredScaleUp", "cluster-autoscaler", "pod triggered scale-up")
		}
		s.note(12, "kube-system", "ConfigMap", "cluster-autoscaler-status", "ScaledUpGroup", "cluster-autoscaler", "Scale-up: setting group size to 8")
		for at := 75.0; at < 1200; at += 180 {
			s.warn(at, "kube-system", "ConfigMap", "cluster-autoscaler-status", "FailedToScaleUpGroup", "cluster-autoscaler", "Scale-up failed for group: InsufficientInstanceCapacity")
		}
	}},
}
