//go:build !race

package changes_test

import "fmt"

// unseen are incidents of kinds that no other list has. They were written before the ranking was changed for quiet
// times.
var unseen = []feltIncident{
	{"stock-dev", incident{"file system of a node becomes read-only", "default", "Node", "FilesystemIsReadOnly", "", func(s *scene) {
		s.warn(0, "default", "Node", "node-31", "FilesystemIsReadOnly", "kernel-monitor", "Remounting filesystem read-only")
		for i, pod := range append(s.somewhere(7), "stock-dev/"+s.pod(app{name: "api"})) {
			ns, name := split(pod)
			for at := 15 + 6*float64(i); at < 1000; at += 30 {
				s.warn(at, ns, "Pod", name, "Failed", "kubelet", "Error: failed to create containerd container: mkdir /var/lib/containerd: read-only file system")
			}
		}
	}}},
	{"chat", incident{"route to a service that was renamed", "chat", "HTTPRoute", "BackendNotFound", "", func(s *scene) {
		for wait, at := 2.0, 0.0; at < 1000; wait = min(120, wait*2) {
			s.warn(at, "chat", "HTTPRoute", "web", "BackendNotFound", "gateway-controller", `Service "chat/web-v1" not found`)
			at += wait
		}
	}}},
	{"fraud-stage", incident{"service account is missing", "fraud-stage", "ReplicaSet", "FailedCreate", "", func(s *scene) {
		s.note(-1, "fraud-stage", "Deployment", "score", "ScalingReplicaSet", "deployment-controller", "Scaled up replica set")
		rs := s.replicaSet(app{name: "score"})
		for wait, at := 1.0, 0.0; at < 900; wait *= 2 {
			s.warn(at, "fraud-stage", "ReplicaSet", rs, "FailedCreate", "replicaset-controller", `Error creating: pods "score-" is forbidden: error looking up service account fraud-stage/score: serviceaccount "score" not found`)
			at += wait
		}
	}}},
	{"orders", incident{"operator cannot reconcile a database", "orders", "PostgresCluster", "ReconcileError", "", func(s *scene) {
		for at := 0.0; at < 1200; at += 75 {
			s.warn(at, "orders", "PostgresCluster", "ledger", "ReconcileError", "postgres-operator", "admission denied: spec.storage cannot shrink")
		}
	}}},
	{"search-dev", incident{"synchronisation of an application fails", "argocd", "Application", "OperationFailed", "search-dev", func(s *scene) {
		s.note(-8, "argocd", "Application", "search-dev", "OperationStarted", "argocd-application-controller", "application")
		for at := 0.0; at < 1200; at += 180 {
			s.warn(at, "argocd", "Application", "search-dev", "OperationFailed", "argocd-application-controller", "Sync operation to 8c1f2 failed: one or more objects failed to apply to namespace search-dev: field is immutable")
		}
	}}},
	{"reports-stage", incident{"pods of a set cannot follow their volume", "reports-stage", "Pod", "FailedScheduling", "store", func(s *scene) {
		for n := range 2 {
			s.note(-2, "reports-stage", "StatefulSet", "store", "SuccessfulCreate", "statefulset-controller", fmt.Sprintf("create Pod store-%d in StatefulSet store successful", n))
			for at := float64(n); at < 1200; at += 300 {
				s.warn(at, "reports-stage", "Pod", fmt.Sprintf("store-%d", n), "FailedScheduling", "default-scheduler", "0/60 nodes are available: 60 node(s) had volume node affinity conflict")
			}
		}
	}}},
	{"mail-dev", incident{"secret of a volume was deleted", "mail-dev", "Pod", "FailedMount", "", func(s *scene) {
		for _, pod := range s.deploy(0, "mail-dev", "gateway", 3) {
			for wait, at := 1.0, 3.0; at < 1200; wait = min(120, wait*2) {
				s.warn(at, "mail-dev", "Pod", pod, "FailedMount", "kubelet", `MountVolume.SetUp failed for volume "tls" : secret "gateway-tls" not found`)
				at += wait
			}
		}
	}}},
	{"maps", incident{"address of a service is taken twice", "maps", "Service", "ClusterIPAlreadyAllocated", "", func(s *scene) {
		for at := 0.0; at < 1200; at += 180 {
			s.warn(at, "maps", "Service", "tiles", "ClusterIPAlreadyAllocated", "ipallocator-repair-controller", "Cluster IP 10.96.4.7 was assigned to multiple services; please recreate service")
		}
	}}},
	{"payments-dev", incident{"cache of another team ends for its memory", "shop-stage", "Pod", "BackOff", "redis", func(s *scene) {
		s.crash(0, "shop-stage", "redis-0")
		for i := range 4 {
			s.unhealthy(25+7*float64(i), 900, "payments-dev", s.pod(app{name: "api"}), "Readiness probe failed: dial tcp: redis.shop-stage.svc.cluster.local:6379: connect: connection refused")
		}
	}}},
	{"accounts", incident{"aggregated API is away", "default", "APIService", "FailedDiscoveryCheck", "", func(s *scene) {
		for at := 0.0; at < 1200; at += 30 {
			s.warn(at, "default", "APIService", "v1beta1.custom.metrics.k8s.io", "FailedDiscoveryCheck", "kube-aggregator", "failing or missing response from https://10.96.3.3:443/apis/custom.metrics.k8s.io/v1beta1")
		}
		for i := range 9 {
			a := s.apps[i*17%len(s.apps)]
			for at := 20 + float64(i); at < 1200; at += 15 {
				s.warn(at, a.namespace, "HorizontalPodAutoscaler", a.name, "FailedGetPodsMetric", "horizontal-pod-autoscaler", "unable to get metric requests_per_second: no custom metrics API registered")
			}
		}
		for at := 25.0; at < 1200; at += 15 {
			s.warn(at, "accounts", "HorizontalPodAutoscaler", "api", "FailedGetPodsMetric", "horizontal-pod-autoscaler", "unable to get metric requests_per_second: no custom metrics API registered")
		}
	}}},
	{"media", incident{"volume of a claim is lost", "media", "PersistentVolumeClaim", "ClaimLost", "", func(s *scene) {
		s.warn(0, "media", "PersistentVolumeClaim", "assets", "ClaimLost", "persistentvolume-controller", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
		for i := range 3 {
			for at := 20 + float64(3*i); at < 1200; at += 122 {
				s.warn(at, "media", "Pod", s.pod(app{name: "web"}), "FailedMount", "kubelet", `Unable to attach or mount volumes: persistentvolumeclaim "assets" bound to non-existent persistentvolume`)
			}
		}
	}}},
	{"chat-stage", incident{"vertical autoscaler evicts too much", "chat-stage", "Pod", "EvictedByVPA", "", func(s *scene) {
		for n := range 9 {
			pod := s.pod(app{name: "worker"})
			at := 45 * float64(n)
			s.note(at, "chat-stage", "Pod", pod, "EvictedByVPA", "vpa-updater", "Pod was evicted by VPA Updater to apply resource recommendation.")
			s.note(at+1, "chat-stage", "Pod", pod, "Killing", "kubelet", "Stopping container worker")
			s.runs(s.start+at+3, "chat-stage", s.pod(app{name: "worker"}))
		}
	}}},
	{"stock-test", incident{"port of the host is taken", "stock-test", "Pod", "NodePorts", "", func(s *scene) {
		rs := s.replicaSet(app{name: "probe"})
		for n := range 12 {
			pod := rs + "-" + s.suffix(5)
			at := 30 * float64(n)
			s.note(at, "stock-test", "ReplicaSet", rs, "SuccessfulCreate", "replicaset-controller", "Created pod: "+pod)
			s.warn(at+1, "stock-test", "Pod", pod, "NodePorts", "kubelet", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports")
		}
	}}},
	{"orders-dev", incident{"jobs of another team fill the nodes", "reports-dev", "Job", "SuccessfulCreate", "", func(s *scene) {
		for n := range 4 {
			for i := range 60 {
				pod := fmt.Sprintf("backfill-%d-%s", n, s.suffix(5))
				s.note(float64(5*n)+float64(i)/4, "reports-dev", "Job", fmt.Sprintf("backfill-%d", n), "SuccessfulCreate", "job-controller", "Created pod: "+pod)
				if n < 2 {
					s.runs(s.start+float64(5*n)+float64(i)/4+1, "reports-dev", pod)
				} else {
					s.warn(float64(5*n)+float64(i)/4+1, "reports-dev", "Pod", pod, "FailedScheduling", "default-scheduler", "0/60 nodes are available: 60 Insufficient cpu")
				}
			}
		}
		for i := range 5 {
			for at := 40 + 9*float64(i); at < 1200; at += 300 {
				s.warn(at, "orders-dev", "Pod", s.pod(app{name: "api"}), "FailedScheduling", "default-scheduler", "0/60 nodes are available: 60 Insufficient cpu")
			}
		}
	}}},
	{"shop", incident{"somebody scales a service to none", "accounts-stage", "ReplicaSet", "SuccessfulDelete", "", func(s *scene) {
		rs := s.replicaSet(app{name: "login"})
		for n := range 6 {
			pod := rs + "-" + s.suffix(5)
			s.note(float64(n)/3, "accounts-stage", "Deployment", "login", "ScalingReplicaSet", "deployment-controller", "Scaled down replica set "+rs+" to 0 from 6")
			s.note(float64(n)/3, "accounts-stage", "ReplicaSet", rs, "SuccessfulDelete", "replicaset-controller", "Deleted pod: "+pod)
			s.note(1+float64(n)/3, "accounts-stage", "Pod", pod, "Killing", "kubelet", "Stopping container login")
		}
		for i := range 3 {
			s.unhealthy(20+8*float64(i), 1000, "shop", s.pod(app{name: "web"}), "Readiness probe failed: Get http://login.accounts-stage.svc:8080/healthz: connection refused")
		}
	}}},
	{"fraud", incident{"requests to sign certificates of nodes are denied", "default", "CertificateSigningRequest", "CertificateDenied", "", func(s *scene) {
		for n := range 4 {
			s.warn(30*float64(n), "default", "CertificateSigningRequest", "csr-"+s.suffix(5), "CertificateDenied", "node-approver", "requested addresses are not those of node-5"+fmt.Sprint(n))
		}
		for i, pod := range append(s.somewhere(6), "fraud/"+s.pod(app{name: "api"})) {
			ns, name := split(pod)
			for at := 60 + 10*float64(i); at < 1000; at += 60 {
				s.warn(at, ns, "Pod", name, "FailedToRetrieveImagePullSecret", "kubelet", "Unable to retrieve some image pull secrets: x509: certificate has expired")
			}
		}
	}}},
	{"media-stage", incident{"start takes longer than its probe lets it", "media-stage", "Pod", "Unhealthy", "", func(s *scene) {
		for i, pod := range s.deploy(0, "media-stage", "encoder", 3) {
			s.unhealthy(12+5*float64(i), 1200, "media-stage", pod, "Startup probe failed: HTTP probe failed with statuscode: 503")
			for at := 75 + 5*float64(i); at < 1200; at += 70 {
				s.note(at, "media-stage", "Pod", pod, "Killing", "kubelet", "Container encoder failed startup probe, will be restarted")
			}
		}
	}}},
	{"maps-stage", incident{"backup blocks a database", "maps-stage", "Backup", "BackupFailed", "", func(s *scene) {
		s.note(0, "maps-stage", "Backup", "geo-nightly", "Starting", "cloudnative-pg", "Starting backup for cluster geo")
		s.warn(40, "maps-stage", "Backup", "geo-nightly", "BackupFailed", "cloudnative-pg", "backup command failed: exit status 4: no space left in bucket")
		for at := 60.0; at < 1200; at += 90 {
			s.warn(at, "maps-stage", "Cluster", "geo", "ContinuousArchivingFailing", "cloudnative-pg", "WAL archiving is failing: no space left in bucket")
		}
	}}},
	{"search-test", incident{"drivers of a new node do not register", "kube-system", "Pod", "BackOff", "csi-node", func(s *scene) {
		s.crash(0, "kube-system", "csi-node-"+s.suffix(5))
		for n := range 3 {
			for at := 45 + 4*float64(n); at < 1200; at += 122 {
				s.warn(at, "search-test", "Pod", fmt.Sprintf("index-%d", n), "FailedMount", "kubelet", "MountVolume.MountDevice failed for volume pvc: driver name ebs.csi.aws.com not found in the list of registered CSI drivers")
			}
		}
	}}},
	{"mail", incident{"configuration of a proxy is refused", "mail", "EnvoyFilter", "Rejected", "", func(s *scene) {
		s.warn(0, "mail", "EnvoyFilter", "limits", "Rejected", "istiod", "Internal:Error adding/updating listener(s): unknown field rate_limit")
		for i := range 2 {
			s.unhealthy(20+5*float64(i), 800, "mail", s.pod(app{name: "gateway"}), "Readiness probe failed: HTTP probe failed with statuscode: 503")
		}
	}}},
}
