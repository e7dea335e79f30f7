//go:build !race

package changes_test

import (
	"fmt"
	"testing"
)

// elsewhere are incidents of which most have their cause outside the namespace in which it is
// felt. They were written before the ranking was changed for them.
var elsewhere = []feltIncident{
	{"media-stage", incident{"credentials of the registry expired", "media-stage", "Pod", "Failed", "", func(s *scene) {
		for _, pod := range s.deploy(0, "media-stage", "worker", 3) {
			s.pull(4, "media-stage", pod, "failed to authorize: 401 Unauthorized: token has expired")
		}
	}}},
	{"orders", incident{"database fails over", "stock", "Pod", "Unhealthy", "database", func(s *scene) {
		s.unhealthy(0, 400, "stock", "database-0", "Readiness probe failed: /tmp:5432 - no response")
		s.note(45, "stock", "Pod", "database-0", "Killing", "kubelet", "Container postgres failed liveness probe, will be restarted")
		for i, name := range []string{"api", "worker"} {
			for range 3 {
				pod := s.pod(app{name: name})
				s.crash(20+10*float64(i), "orders", pod)
				s.unhealthy(25+10*float64(i), 700, "orders", pod, "Readiness probe failed: dial tcp 10.0.7.3:5432: lookup database.stock.svc.cluster.local: connect: connection refused")
			}
		}
	}}},
	{"maps", incident{"kernel of a node hangs", "default", "Node", "KernelDeadlock", "", func(s *scene) {
		s.warn(0, "default", "Node", "node-44", "KernelDeadlock", "kernel-monitor", "kernel: task dockerd:1215 blocked for more than 120 seconds.")
		for i, pod := range append(s.somewhere(12), "maps/"+s.pod(app{name: "tiles"}), "maps/"+s.pod(app{name: "api"})) {
			ns, name := split(pod)
			s.unhealthy(20+3*float64(i), 700, ns, name, "Liveness probe failed: context deadline exceeded")
			s.warn(200+3*float64(i), ns, "Pod", name, "FailedKillPod", "kubelet", "error killing pod: context deadline exceeded")
		}
	}}},
	{"search", incident{"storage driver crashes", "kube-system", "Pod", "BackOff", "ebs-csi-controller", func(s *scene) {
		s.crash(0, "kube-system", "ebs-csi-controller-6f8c9d7b5d-x2x7q")
		for n := range 3 {
			claim := fmt.Sprintf("data-index-%d", n)
			for at := 40 + float64(n); at < 1200; at += 30 {
				s.warn(at, "search", "PersistentVolumeClaim", claim, "ProvisioningFailed", "ebs.csi.aws.com", "failed to provision volume: rpc error: code = Unavailable desc = connection error")
			}
			for at := 60 + float64(n); at < 1200; at += 122 {
				s.warn(at, "search", "Pod", fmt.Sprintf("index-%d", n), "FailedMount", "kubelet", "Unable to attach or mount volumes: timed out waiting for the condition")
			}
		}
	}}},
	{"fraud", incident{"limit range refuses pods", "fraud", "ReplicaSet", "FailedCreate", "", func(s *scene) {
		s.note(0, "fraud", "Deployment", "api", "ScalingReplicaSet", "deployment-controller", "Scaled up replica set")
		rs := s.replicaSet(app{name: "api"})
		for wait, at := 1.0, 0.5; at < 900; wait *= 2 {
			s.warn(at, "fraud", "ReplicaSet", rs, "FailedCreate", "replicaset-controller", "pods is forbidden: maximum memory usage per Container is 2Gi, but limit is 4Gi")
			at += wait
		}
	}}},
	{"payments", incident{"key missing in a config map", "payments", "Pod", "Failed", "", func(s *scene) {
		s.note(-5, "flux-system", "Kustomization", "payments", "Progressing", "kustomize-controller", "Deployment/payments/gateway configured")
		for _, pod := range s.deploy(0, "payments", "gateway", 2) {
			for at := 4.0; at < 1200; at += 13 {
				s.note(at, "payments", "Pod", pod, "Pulled", "kubelet", "Container image already present on machine")
				s.warn(at, "payments", "Pod", pod, "Failed", "kubelet", "Error: couldn't find key endpoint in ConfigMap payments/gateway")
			}
		}
		s.warn(300, "flux-system", "Kustomization", "payments", "HealthCheckFailed", "kustomize-controller", "timeout waiting for: [Deployment/payments/gateway status: 'InProgress']")
	}}},
	{"accounts", incident{"provider takes a node back", "default", "Node", "SpotInterruption", "", func(s *scene) {
		s.warn(0, "default", "Node", "node-29", "SpotInterruption", "aws-node-termination-handler", "Spot Interruption event received. Instance will be interrupted")
		s.note(1, "default", "Node", "node-29", "NodeNotSchedulable", "kubelet", "Node node-29 status is now: NodeNotSchedulable")
		pods := append(s.somewhere(18), "accounts/"+s.pod(app{name: "api"}), "accounts/"+s.pod(app{name: "web"}))
		for i, pod := range pods {
			ns, name := split(pod)
			s.note(3+float64(i)/4, ns, "Pod", name, "Killing", "kubelet", "Stopping container")
			s.unhealthy(8, 40, ns, name, "Readiness probe failed: connection refused")
		}
		s.replaced(8, pods)
	}}},
	{"reports", incident{"one container eats its memory", "default", "Node", "OOMKilling", "", func(s *scene) {
		pod := s.pod(app{name: "export"})
		for at := 0.0; at < 1200; at += 80 {
			s.warn(at, "default", "Node", "node-12", "OOMKilling", "kernel-monitor", "Memory cgroup out of memory: Killed process 4711 (java), pod "+pod+"_reports")
		}
		s.crash(2, "reports", pod)
	}}},
	{"mail", incident{"secret store refuses", "default", "ClusterSecretStore", "ValidationFailed", "", func(s *scene) {
		for at := 0.0; at < 1200; at += 120 {
			s.warn(at, "default", "ClusterSecretStore", "vault", "ValidationFailed", "external-secrets", "unable to validate store: Code: 403. permission denied")
		}
		for i := range 14 {
			a := s.apps[i*11%len(s.apps)]
			for at := 30 + 2*float64(i); at < 1200; at += 60 {
				s.warn(at, a.namespace, "ExternalSecret", a.name, "UpdateFailed", "external-secrets", "error retrieving secret: ClusterSecretStore vault is not ready")
			}
		}
		for at := 31.0; at < 1200; at += 60 {
			s.warn(at, "mail", "ExternalSecret", "smtp", "UpdateFailed", "external-secrets", "error retrieving secret: ClusterSecretStore vault is not ready")
		}
	}}},
	{"payments-stage", incident{"webhook of certificates is away", "cert-manager", "Pod", "Unhealthy", "cert-manager-webhook", func(s *scene) {
		s.unhealthy(0, 1200, "cert-manager", s.pod(app{name: "cert-manager-webhook"}), "Liveness probe failed: connection refused")
		for _, ns := range []string{"payments-stage", "chat-dev"} {
			for at := 40.0; at < 1200; at += 45 {
				s.warn(at, ns, "Ingress", "web", "BadConfig", "cert-manager-ingress-shim", `Internal error occurred: failed calling webhook "webhook.cert-manager.io": Post "https://cert-manager-webhook.cert-manager.svc:443": connection refused`)
			}
		}
	}}},
	{"orders-dev", incident{"scheduler is down", "kube-system", "Pod", "BackOff", "kube-scheduler", func(s *scene) {
		s.crash(0, "kube-system", "kube-scheduler-control-plane-0")
		for n := range 6 {
			s.note(60*float64(n), "orders-dev", "Deployment", "api", "ScalingReplicaSet", "deployment-controller", "Scaled up replica set")
			s.note(60*float64(n), "orders-dev", "ReplicaSet", s.replicaSet(app{name: "api"}), "SuccessfulCreate", "replicaset-controller", "Created pod")
		}
		s.warn(500, "orders-dev", "Deployment", "api", "ProgressDeadlineExceeded", "deployment-controller", "ReplicaSet has timed out progressing")
	}}},
	{"search-stage", incident{"autoscaler takes a node that is in use", "default", "Node", "ScaleDown", "", func(s *scene) {
		for n := range 4 {
			s.note(2*float64(n), "default", "Node", fmt.Sprintf("node-%d", 50+n), "ScaleDown", "cluster-autoscaler", "marked the node as toBeDeleted")
		}
		for n := range 3 {
			pod := fmt.Sprintf("index-%d", n)
			s.note(10, "search-stage", "Pod", pod, "ScaleDown", "cluster-autoscaler", "deleting pod for node scale down")
			s.note(11, "search-stage", "Pod", pod, "Killing", "kubelet", "Stopping container")
			for at := 40.0; at < 1200; at += 60 {
				s.warn(at, "search-stage", "Pod", pod, "FailedAttachVolume", "attachdetach-controller", "Multi-Attach error for volume pvc: Volume is already used by pod on node-5"+fmt.Sprint(n))
			}
		}
	}}},
	{"fraud", incident{"disk of a database is full", "fraud", "Pod", "BackOff", "database", func(s *scene) {
		s.crash(0, "fraud", "database-0")
		for range 2 {
			s.unhealthy(30, 800, "fraud", s.pod(app{name: "api"}), "Readiness probe failed: HTTP probe failed with statuscode: 503")
		}
	}}},
	{"chat-dev", incident{"network agent of a node crashes", "kube-system", "Pod", "BackOff", "cilium", func(s *scene) {
		s.crash(0, "kube-system", "cilium-"+s.suffix(5))
		for i, pod := range append(s.somewhere(15), "chat-dev/"+s.pod(app{name: "web"}), "chat-dev/"+s.pod(app{name: "api"})) {
			ns, name := split(pod)
			s.unhealthy(12+2*float64(i), 900, ns, name, "Readiness probe failed: no route to host")
		}
	}}},
	{"reports-test", incident{"jobs over the quota", "reports-test", "Job", "FailedCreate", "", func(s *scene) {
		for n := range 4 {
			for at := 30 * float64(n); at < 1000; at += 100 {
				s.warn(at, "reports-test", "Job", fmt.Sprintf("billing-%d", 29631500+n), "FailedCreate", "job-controller", "pods is forbidden: exceeded quota: compute, requested: limits.cpu=4, used: limits.cpu=30, limited: limits.cpu=32")
			}
		}
	}}},
	{"shop-dev", incident{"others take the place", "shop-dev", "Pod", "Preempted", "", func(s *scene) {
		s.deploy(-4, "stock-dev", "batch", 6)
		for i := range 5 {
			a := app{name: []string{"api", "web"}[i%2]}
			s.note(float64(3*i), "shop-dev", "Pod", s.pod(a), "Preempted", "default-scheduler", "Preempted by pod on node node-09")
			for at := 5 + float64(3*i); at < 1200; at += 300 {
				s.warn(at, "shop-dev", "Pod", s.pod(a), "FailedScheduling", "default-scheduler", "0/60 nodes are available: 60 Insufficient cpu. preemption: 0/60 nodes are available")
			}
		}
	}}},
	{"accounts-test", incident{"runtime of a node does not answer", "default", "Node", "NodeNotReady", "", func(s *scene) {
		for at := 0.0; at < 600; at += 150 {
			s.note(at, "default", "Node", "node-03", "NodeNotReady", "kubelet", "Node node-03 status is now: NodeNotReady")
			s.note(at+70, "default", "Node", "node-03", "NodeReady", "kubelet", "Node node-03 status is now: NodeReady")
		}
		for i, pod := range append(s.somewhere(9), "accounts-test/"+s.pod(app{name: "web"})) {
			ns, name := split(pod)
			s.warn(1, ns, "Pod", name, "NodeNotReady", "node-controller", "Node is not ready")
			s.warn(30+float64(i), ns, "Pod", name, "FailedSync", "kubelet", "error determining status: rpc error: code = DeadlineExceeded")
		}
	}}},
	{"media", incident{"disks of the storage cluster fail", "rook-ceph", "Pod", "Unhealthy", "rook-ceph-osd", func(s *scene) {
		for n := range 2 {
			s.unhealthy(float64(5*n), 1200, "rook-ceph", fmt.Sprintf("rook-ceph-osd-%d-7d5fb757db-x2x7q", n), "Liveness probe failed: no valid command found; admin_socket: exception getting command descriptions")
		}
		for n := range 3 {
			for at := 50 + float64(n); at < 1200; at += 122 {
				s.warn(at, "media", "Pod", s.pod(app{name: "encoder"}), "FailedMount", "kubelet", "MountVolume.MountDevice failed for volume pvc: rpc error: code = Internal desc = rbd: map failed: timed out waiting for rook-ceph-mon.rook-ceph.svc")
			}
		}
	}}},
	{"fraud-stage", incident{"broker is away", "streams", "Pod", "BackOff", "kafka", func(s *scene) {
		s.crash(0, "streams", "kafka-2")
		for _, name := range []string{"api", "worker", "sync"} {
			s.unhealthy(35, 900, "fraud-stage", s.pod(app{name: name}), "Readiness probe failed: kafka-2.kafka-brokers.streams.svc:9092: no broker available")
		}
	}}},
	{"accounts-dev", incident{"time to live of an old version", "accounts-dev", "Pod", "Unhealthy", "", func(s *scene) {
		for i, pod := range s.deploy(0, "accounts-dev", "gateway", 4) {
			s.unhealthy(15+float64(i), 1200, "accounts-dev", pod, "Readiness probe failed: x509: certificate signed by unknown authority")
		}
	}}},
}

// feltIncident is an incident, and where somebody feels it.
type feltIncident struct {
	asks string // namespace in which it is felt
	incident
}

// TestElsewhere asks for changes ten minutes after each of these incidents began, about the whole
// cluster and about the namespace in which it is felt.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	for _, set := range []struct {
		name  string
		seed  uint64
		long  float64 // of the background
		all   []feltIncident
		first int // causes of 20 that must be first
	}{
		{"causes elsewhere", 3, 6 * day, elsewhere, 16}, {"fresh kinds", 4, 6 * day, fresh, 13}, {"unseen kinds", 5, 6 * day, unseen, 13},
		{"further kinds", 4, 6 * day, further, 16}, {"changed objects", 1, week, edits, 18},
	} {
		t.Run(set.name, func(t *testing.T) {
			t.Parallel()
			c := playedIn(background(set.seed, 1, set.long), unfelt(set.all))
			var found, fromThere places
			for i := range set.all {
				in, when := &set.all[i], at(c.begins(i)+asked)
				found.look(t, &in.incident, c.ask(t, when))
				fromThere.look(t, &in.incident, c.ask(t, when, in.asks))
			}
			found.want(t, set.first, 18)
			fromThere.want(t, 0, 15)
		})
	}
}

func unfelt(all []feltIncident) (list []incident) {
	for _, in := range all {
		list = append(list, in.incident)
	}
	return list
}
