//go:build !race

package changes_test

import "fmt"

// fresh are incidents of kinds that no other list has. They were written without knowledge of how rows are ranked.
var fresh = []feltIncident{
	{"chat-stage", incident{"namespace enforces a security level", "chat-stage", "DaemonSet", "FailedCreate", "", func(s *scene) {
		for wait, at := 1.0, 0.0; at < 900; wait = min(300, wait*2) {
			s.warn(at, "chat-stage", "DaemonSet", "log-agent", "FailedCreate", "daemonset-controller", `Error creating: pods "log-agent-x" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes`)
			at += wait
		}
	}}},
	{"maps-dev", incident{"name of an image that cannot be", "maps-dev", "Pod", "InspectFailed", "", func(s *scene) {
		for _, pod := range s.deploy(0, "maps-dev", "worker", 3) {
			for at := 3.0; at < 1200; at += 12 {
				s.warn(at, "maps-dev", "Pod", pod, "InspectFailed", "kubelet", `Failed to apply default image tag "Registry.example/Worker": couldn't parse image name: invalid reference format: repository name must be lowercase`)
				s.warn(at, "maps-dev", "Pod", pod, "Failed", "kubelet", "Error: InvalidImageName")
			}
		}
	}}},
	{"stock-stage", incident{"no process numbers left on a node", "default", "Node", "NodeHasPIDPressure", "", func(s *scene) {
		s.note(0, "default", "Node", "node-26", "NodeHasPIDPressure", "kubelet", "Node node-26 status is now: NodeHasPIDPressure")
		s.warn(4, "default", "Node", "node-26", "EvictionThresholdMet", "kubelet", "Attempting to reclaim pids")
		for i, pod := range append(s.somewhere(8), "stock-stage/"+s.pod(app{name: "worker"}), "stock-stage/"+s.pod(app{name: "api"})) {
			ns, name := split(pod)
			for at := 10 + 4*float64(i); at < 900; at += 40 {
				s.warn(at, ns, "Pod", name, "Failed", "kubelet", "Error: failed to start containerd task: OCI runtime create failed: fork/exec /proc/self/exe: resource temporarily unavailable")
			}
			if i%3 == 0 {
				s.warn(90+20*float64(i), ns, "Pod", name, "Evicted", "kubelet", "The node was low on resource: pids.")
			}
		}
	}}},
	{"orders-stage", incident{"name server does not load its configuration", "kube-system", "Pod", "BackOff", "coredns", func(s *scene) {
		rs := "coredns-" + s.suffix(9)
		for range 2 {
			s.crash(0, "kube-system", rs+"-"+s.suffix(5))
		}
		for i, pod := range append(s.somewhere(16), "orders-stage/"+s.pod(app{name: "api"}), "orders-stage/"+s.pod(app{name: "web"})) {
			ns, name := split(pod)
			s.unhealthy(35+5*float64(i), 900, ns, name, "Readiness probe failed: HTTP probe failed with statuscode: 503")
			if i%4 == 0 {
				s.crash(60+5*float64(i), ns, name)
			}
		}
	}}},
	{"payments", incident{"budget of disruptions stops a drain", "default", "Node", "DisruptionBlocked", "", func(s *scene) {
		for at := 0.0; at < 1200; at += 120 {
			s.note(at, "default", "Node", "node-14", "DisruptionBlocked", "karpenter", `Cannot disrupt Node: pdb "payments/gateway" prevents pod evictions`)
		}
	}}},
	{"search-dev", incident{"quota of claims", "search-dev", "StatefulSet", "FailedCreate", "", func(s *scene) {
		for wait, at := 1.0, 0.0; at < 1000; wait = min(240, wait*2) {
			s.warn(at, "search-dev", "StatefulSet", "index", "FailedCreate", "statefulset-controller", "create Claim data-index-3 for Pod index-3 in StatefulSet index failed error: persistentvolumeclaims is forbidden: exceeded quota: storage, requested: persistentvolumeclaims=1")
			at += wait
		}
	}}},
	{"media-dev", incident{"balancer finds no subnets", "media-dev", "Ingress", "FailedBuildModel", "", func(s *scene) {
		for wait, at := 1.0, 0.0; at < 1000; wait *= 2 {
			s.warn(at, "media-dev", "Ingress", "web", "FailedBuildModel", "ingress", "Failed build model due to couldn't auto-discover subnets: unable to resolve at least one subnet")
			at += wait
		}
	}}},
	{"fraud-dev", incident{"operator of external metrics has ended", "keda", "Pod", "BackOff", "keda-operator", func(s *scene) {
		s.crash(0, "keda", "keda-operator-metrics-"+s.suffix(9)+"-"+s.suffix(5))
		for _, target := range []string{"fraud-dev/worker", "mail/worker", "reports/export"} {
			ns, name := split(target)
			for at := 25.0; at < 1200; at += 15 {
				s.warn(at, ns, "HorizontalPodAutoscaler", "keda-hpa-"+name, "FailedGetExternalMetric", "horizontal-pod-autoscaler", "unable to get external metric: unable to fetch metrics from external metrics API: the server is currently unable to handle the request")
			}
		}
	}}},
	{"accounts-stage", incident{"migration before an upgrade fails", "accounts-stage", "Job", "BackoffLimitExceeded", "accounts-migrate", func(s *scene) {
		s.note(0, "accounts-stage", "Job", "accounts-migrate", "SuccessfulCreate", "job-controller", "Created pod: accounts-migrate-x7k2p")
		for n := range 3 {
			pod := "accounts-migrate-" + s.suffix(5)
			s.runs(s.start+1+40*float64(n), "accounts-stage", pod)
			s.warn(20+40*float64(n), "accounts-stage", "Pod", pod, "BackOff", "kubelet", "Back-off restarting failed container migrate in pod")
		}
		s.warn(130, "accounts-stage", "Job", "accounts-migrate", "BackoffLimitExceeded", "job-controller", "Job has reached the specified backoff limit")
		s.warn(134, "flux-system", "HelmRelease", "accounts-stage", "UpgradeFailed", "helm-controller", "Helm upgrade failed for release accounts-stage/accounts: pre-upgrade hooks failed: job accounts-migrate failed: BackoffLimitExceeded")
	}}},
	{"shop-stage", incident{"issuer of certificates has no account", "default", "ClusterIssuer", "ErrInitIssuer", "", func(s *scene) {
		for at := 0.0; at < 1200; at += 60 {
			s.warn(at, "default", "ClusterIssuer", "letsencrypt", "ErrInitIssuer", "cert-manager-clusterissuers", "Error initializing issuer: 403 urn:ietf:params:acme:error:unauthorized: account is not active")
		}
		for i, ns := range []string{"shop-stage", "maps", "mail-test"} {
			for at := 20 + 3*float64(i); at < 1200; at += 180 {
				s.note(at, ns, "CertificateRequest", "tls-web-1", "WaitingForApproval", "cert-manager-certificaterequests-issuer-acme", "Not signing CertificateRequest until it is Approved")
				s.note(at+1, ns, "CertificateRequest", "tls-web-1", "IssuerNotReady", "cert-manager-certificaterequests-issuer-acme", "Referenced issuer does not have a Ready status condition")
			}
		}
	}}},
	{"search", incident{"device of a node has failed", "search", "Pod", "UnexpectedAdmissionError", "", func(s *scene) {
		rs := s.replicaSet(app{name: "embed"})
		for n := range 14 {
			pod := rs + "-" + s.suffix(5)
			at := 40 * float64(n)
			s.note(at, "search", "ReplicaSet", rs, "SuccessfulCreate", "replicaset-controller", "Created pod: "+pod)
			s.note(at, "search", "Pod", pod, "Scheduled", "default-scheduler", "Successfully assigned search/"+pod+" to node-49")
			s.warn(at+1, "search", "Pod", pod, "UnexpectedAdmissionError", "kubelet", "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected")
		}
	}}},
	{"maps-test", incident{"pool of nodes gets a taint", "", "Pod", "TaintManagerEviction", "", func(s *scene) {
		pods := append(s.somewhere(28), "maps-test/"+s.pod(app{name: "tiles"}), "maps-test/"+s.pod(app{name: "api"}))
		for i, pod := range pods {
			ns, name := split(pod)
			s.note(float64(i)/10, ns, "Pod", name, "TaintManagerEviction", "taint-eviction-controller", "Marking for deletion Pod "+pod)
			s.note(1+float64(i)/10, ns, "Pod", name, "Killing", "kubelet", "Stopping container app")
			for at := 2 + float64(i)/10; at < 1200; at += 300 {
				s.warn(at, ns, "Pod", name[:len(name)-5]+s.suffix(5), "FailedScheduling", "default-scheduler", "0/60 nodes are available: 60 node(s) had untolerated taint {maintenance: }")
			}
		}
	}}},
	{"mail-stage", incident{"rule of a policy refuses a new version", "mail-stage", "Deployment", "ReplicaSetCreateError", "", func(s *scene) {
		for wait, at := 1.0, 0.0; at < 1000; wait *= 2 {
			s.warn(at, "mail-stage", "Deployment", "gateway", "ReplicaSetCreateError", "deployment-controller", `Failed to create new replica set "gateway-7c9": admission webhook "validate.kyverno.svc" denied the request: label team is required`)
			at += wait
		}
	}}},
	{"reports", incident{"job of yesterday hangs", "reports", "CronJob", "JobAlreadyActive", "", func(s *scene) {
		for at := 0.0; at < 1200; at += 300 {
			s.note(at, "reports", "CronJob", "nightly", "JobAlreadyActive", "cronjob-controller", "Not starting job because prior execution is running and concurrency policy is Forbid")
		}
	}}},
	{"payments-test", incident{"snapshots are refused", "payments-test", "VolumeSnapshot", "SnapshotContentCreationFailed", "", func(s *scene) {
		for n := range 3 {
			for wait, at := 2.0, 5*float64(n); at < 1000; wait *= 2 {
				s.warn(at, "payments-test", "VolumeSnapshot", fmt.Sprintf("ledger-%d", n), "SnapshotContentCreationFailed", "snapshot-controller", "Failed to create snapshot content with error: snapshot class fast not found")
				at += wait
			}
		}
	}}},
	{"chat-test", incident{"volume does not grow", "chat-test", "PersistentVolumeClaim", "VolumeResizeFailed", "", func(s *scene) {
		s.note(0, "chat-test", "PersistentVolumeClaim", "data-store-0", "Resizing", "external-resizer ebs.csi.aws.com", "External resizer is resizing volume pvc")
		for wait, at := 2.0, 3.0; at < 1000; wait *= 2 {
			s.warn(at, "chat-test", "PersistentVolumeClaim", "data-store-0", "VolumeResizeFailed", "external-resizer ebs.csi.aws.com", "resize volume failed: rpc error: code = Internal desc = wait for modification cooldown of 6h")
			at += wait
		}
	}}},
	{"stock", incident{"disk of the control plane is slow", "kube-system", "Pod", "Unhealthy", "etcd", func(s *scene) {
		s.unhealthy(0, 900, "kube-system", "etcd-control-plane-0", "Liveness probe failed: HTTP probe failed with statuscode: 503")
		for n, lease := range []string{"kube-controller-manager", "kube-scheduler"} {
			s.note(35+10*float64(n), "kube-system", "Lease", lease, "LeaderElection", lease, "control-plane-0 stopped leading")
			s.note(60+10*float64(n), "kube-system", "Lease", lease, "LeaderElection", lease, "control-plane-2 became leader")
		}
		for i := range 10 {
			a := s.apps[i*13%len(s.apps)]
			s.warn(40+12*float64(i), a.namespace, "EndpointSlice", a.name, "FailedToUpdateEndpointSlices", "endpoint-slice-controller", "Error updating Endpoint Slices for Service: etcdserver: request timed out")
		}
		for at := 45.0; at < 900; at += 90 {
			s.warn(at, "stock", "Endpoints", "database", "FailedToUpdateEndpoint", "endpoint-controller", "Failed to update endpoint stock/database: etcdserver: request timed out")
		}
	}}},
	{"fraud-test", incident{"control plane of the mesh is away", "istio-system", "Pod", "BackOff", "istiod", func(s *scene) {
		s.crash(0, "istio-system", "istiod-"+s.suffix(9)+"-"+s.suffix(5))
		for _, ns := range []string{"fraud-test", "shop-dev"} {
			for i, pod := range s.deploy(30, ns, "gateway", 3) {
				s.unhealthy(45+20*float64(i), 1200, ns, pod, "Startup probe failed: Get http://10.1.4.7:15021/healthz/ready: connection refused")
			}
		}
	}}},
	{"media-test", incident{"containers write more than they may", "media-test", "Pod", "Evicted", "", func(s *scene) {
		rs := s.replicaSet(app{name: "encoder"})
		for n := range 6 {
			pod := rs + "-" + s.suffix(5)
			at := 110 * float64(n)
			s.note(at-60, "media-test", "ReplicaSet", rs, "SuccessfulCreate", "replicaset-controller", "Created pod: "+pod)
			s.runs(s.start+at-59, "media-test", pod)
			s.warn(at, "media-test", "Pod", pod, "Evicted", "kubelet", `Container encoder exceeded its local ephemeral storage limit "2Gi".`)
			s.note(at+1, "media-test", "Pod", pod, "Killing", "kubelet", "Stopping container encoder")
		}
	}}},
	{"orders-test", incident{"hook before the end hangs", "orders-test", "Pod", "FailedPreStopHook", "", func(s *scene) {
		s.deploy(0, "orders-test", "sync", 4)
		for n := range 4 {
			old := s.pod(app{name: "sync"})
			s.note(40+12*float64(n), "orders-test", "Pod", old, "Killing", "kubelet", "Stopping container sync")
			s.warn(70+12*float64(n), "orders-test", "Pod", old, "FailedPreStopHook", "kubelet", "PreStopHook failed: command /bin/drain exited with 137")
		}
	}}},
}
