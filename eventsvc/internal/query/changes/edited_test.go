//go:build !race

package changes_test

import "fmt"

// edited records what a mirror says of a change of an object.
func (s *scene) edited(after float64, ns, kind, name, reason, note string) {
	s.note(after, ns, kind, name, reason, "tidings.example/mirror", note)
}

// edits are incidents whose cause is a change of an object, among changes that have caused nothing.
var edits = []feltIncident{
	{"shop", incident{"image that crashes", "shop", "Deployment", "ObjectChanged", "api", func(s *scene) {
		s.edited(-1, "shop", "Deployment", "api", "ObjectChanged", "spec.template.spec.containers[api].image: 1.4.2 → 1.5.0; by kubectl-set")
		s.edited(-220, "shop", "Deployment", "web", "ObjectChanged", "replicas: 3 → 4; by kubectl-scale")
		for _, pod := range s.deploy(0, "shop", "api", 4) {
			s.crash(5, "shop", pod)
		}
	}}},
	{"mail", incident{"tag that is not there", "mail", "Deployment", "ObjectChanged", "gateway", func(s *scene) {
		s.edited(-1, "mail", "Deployment", "gateway", "ObjectChanged", "spec.template.spec.containers[gateway].image: 2.0.1 → 2.0.l; by argocd-controller")
		for _, pod := range s.deploy(0, "mail", "gateway", 2) {
			s.pull(2, "mail", pod, "not found")
		}
	}}},
	{"orders", incident{"memory limit lowered", "orders", "StatefulSet", "ObjectChanged", "ledger", func(s *scene) {
		s.edited(-4, "orders", "StatefulSet", "ledger", "ObjectChanged", "spec.template.spec.containers[db].resources.limits.memory: 2Gi → 256Mi; by kubectl-edit")
		for n := range 3 {
			s.crash(20+30*float64(n), "orders", fmt.Sprintf("ledger-%d", n))
		}
	}}},
	{"media", incident{"key of a ConfigMap removed", "media", "ConfigMap", "ObjectChanged", "encoder", func(s *scene) {
		s.edited(-90, "media", "ConfigMap", "encoder", "ObjectChanged", "data[codec.yaml]: removed; by kubectl-edit")
		for _, pod := range s.deploy(0, "media", "worker", 3) {
			for at := 3.0; at < 1200; at += 20 {
				s.warn(at, "media", "Pod", pod, "FailedMount", "kubelet", `MountVolume.SetUp failed for volume "conf" : references non-existent config key: codec.yaml (configmap "encoder")`)
			}
		}
	}}},
	{"payments", incident{"secret deleted", "payments", "Secret", "ObjectDeleted", "gateway-tls", func(s *scene) {
		s.edited(-200, "payments", "Secret", "gateway-tls", "ObjectDeleted", "deleted")
		s.edited(-20, "payments", "Deployment", "gateway", "ObjectChanged", "spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]: set to now; by kubectl-rollout")
		for _, pod := range s.deploy(0, "payments", "gateway", 2) {
			for at := 3.0; at < 1200; at += 20 {
				s.warn(at, "payments", "Pod", pod, "FailedMount", "kubelet", `MountVolume.SetUp failed for volume "tls" : secret "gateway-tls" not found`)
			}
		}
	}}},
	{"search", incident{"node drained for good", "default", "Node", "ObjectChanged", "node-12", func(s *scene) {
		s.edited(-3, "default", "Node", "node-12", "ObjectChanged", "unschedulable: set to true; by kubectl-drain")
		s.note(0, "default", "Node", "node-12", "NodeNotSchedulable", "kubelet", "Node node-12 status is now: NodeNotSchedulable")
		for i := range 12 {
			s.warn(8+3*float64(i), "search", "Pod", s.pod(app{name: "index"}), "FailedScheduling", "default-scheduler", "0/60 nodes are available: 59 Insufficient memory, 1 node(s) were unschedulable: node-12")
		}
	}}},
	{"chat", incident{"probe with the wrong port", "chat", "Deployment", "ObjectChanged", "web", func(s *scene) {
		s.edited(-2, "chat", "Deployment", "web", "ObjectChanged", "spec.template.spec.containers[web].readinessProbe.httpGet.port: 8080 → 8090; by helm")
		for _, pod := range s.deploy(0, "chat", "web", 3) {
			s.unhealthy(15, 1100, "chat", pod, "Readiness probe failed: connect: connection refused")
		}
	}}},
	{"maps", incident{"claim for a class that is not there", "maps", "StatefulSet", "ObjectChanged", "tiles", func(s *scene) {
		s.edited(-1, "maps", "StatefulSet", "tiles", "ObjectChanged", "spec.volumeClaimTemplates[0].spec.storageClassName: fast → fastest; by terraform")
		for at := 0.0; at < 1200; at += 60 {
			s.warn(at, "maps", "Pod", "tiles-0", "FailedScheduling", "default-scheduler", "0/60 nodes are available: pod has unbound immediate PersistentVolumeClaims")
		}
	}}},
	{"stock", incident{"quota by a limit range", "stock", "Deployment", "ObjectChanged", "worker", func(s *scene) {
		s.edited(-2, "stock", "Deployment", "worker", "ObjectChanged", "replicas: 4 → 40; by kubectl-scale")
		rs := s.replicaSet(app{name: "worker"})
		for wait, at := 1.0, 0.0; at < 900; wait *= 2 {
			s.warn(at, "stock", "ReplicaSet", rs, "FailedCreate", "replicaset-controller", "Error creating: exceeded quota: compute")
			at += wait
		}
	}}},
	{"fraud", incident{"policy that blocks the database", "fraud", "NetworkPolicy", "ObjectChanged", "default", func(s *scene) {
		s.edited(-30, "fraud", "NetworkPolicy", "default", "ObjectChanged", "spec.egress[0].ports[5432]: removed; by kubectl-client-side-apply")
		for range 4 {
			s.unhealthy(0, 1100, "fraud", s.pod(app{name: "score"}), "Readiness probe failed: dial tcp 10.1.2.3:5432: i/o timeout")
		}
	}}},
	{"reports", incident{"schedule of a CronJob", "reports", "CronJob", "ObjectChanged", "export", func(s *scene) {
		s.edited(-1, "reports", "CronJob", "export", "ObjectChanged", "schedule: 0 3 * * * → */1 * * * *; by kubectl-edit")
		for n := range 18 {
			s.warn(60*float64(n)+2, "reports", "CronJob", "export", "JobAlreadyActive", "cronjob-controller", "Not starting job because prior execution is running and concurrency policy is Forbid")
		}
	}}},
	{"accounts", incident{"service of the wrong selector", "accounts", "Service", "ObjectChanged", "api", func(s *scene) {
		s.edited(-8, "accounts", "Service", "api", "ObjectChanged", "spec.selector[app]: api → apl; by kubectl-edit")
		for range 3 {
			s.unhealthy(4, 1100, "accounts", s.pod(app{name: "web"}), "Readiness probe failed: HTTP probe failed with statuscode: 503")
		}
	}}},
	{"shop-stage", incident{"arguments of a program", "shop-stage", "Deployment", "ObjectChanged", "cart", func(s *scene) {
		s.edited(-1, "shop-stage", "Deployment", "cart", "ObjectChanged", "spec.template.spec.containers[cart].args: --cache=redis → --cahce=redis; by kubectl-edit")
		s.edited(-400, "shop-stage", "ConfigMap", "banner", "ObjectChanged", "data[text]: changed; by cms")
		for _, pod := range s.deploy(0, "shop-stage", "cart", 3) {
			s.crash(3, "shop-stage", pod)
		}
	}}},
	{"mail-stage", incident{"ingress names a service that is not there", "mail-stage", "Ingress", "ObjectChanged", "web", func(s *scene) {
		s.edited(-1, "mail-stage", "Ingress", "web", "ObjectChanged", "spec.rules[0].http.paths[/].backend.service.name: web → wep; by flux")
		for at := 0.0; at < 1200; at += 30 {
			s.warn(at, "mail-stage", "Ingress", "web", "Rejected", "nginx-ingress-controller", "service mail-stage/wep does not exist")
		}
	}}},
	{"orders-stage", incident{"autoscaler with a metric that is not there", "orders-stage", "HorizontalPodAutoscaler", "ObjectChanged", "api", func(s *scene) {
		s.edited(-5, "orders-stage", "HorizontalPodAutoscaler", "api", "ObjectChanged", "spec.metrics[Pods].pods.metric.name: rps → requests; by kubectl-edit")
		for at := 0.0; at < 1200; at += 15 {
			s.warn(at, "orders-stage", "HorizontalPodAutoscaler", "api", "FailedGetPodsMetric", "horizontal-pod-autoscaler", "unable to get metric requests")
		}
	}}},
	{"search-stage", incident{"node labels", "default", "Node", "ObjectChanged", "node-31", func(s *scene) {
		s.edited(-6, "default", "Node", "node-31", "ObjectChanged", "metadata.labels[disk]: removed, was ssd; by kubectl-label")
		for i := range 6 {
			s.warn(5*float64(i), "search-stage", "Pod", s.pod(app{name: "index"}), "NodeAffinity", "kubelet", "Predicate NodeAffinity failed on node-31")
		}
	}}},
	{"media-stage", incident{"daemon set with a hostile volume", "media-stage", "DaemonSet", "ObjectCreated", "agent", func(s *scene) {
		s.edited(-1, "media-stage", "DaemonSet", "agent", "ObjectCreated", "created: spec.template.spec.containers[agent].image: agent:3; by kubectl-create")
		for wait, at := 1.0, 0.0; at < 900; wait = min(300, wait*2) {
			s.warn(at, "media-stage", "DaemonSet", "agent", "FailedCreate", "daemonset-controller", `Error creating: pods "agent-" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes`)
			at += wait
		}
	}}},
	{"payments-stage", incident{"rotated password", "payments-stage", "Secret", "ObjectChanged", "database", func(s *scene) {
		s.edited(-45, "payments-stage", "Secret", "database", "ObjectChanged", "data[password]: changed; by vault-agent")
		for range 3 {
			s.crash(0, "payments-stage", s.pod(app{name: "gateway"}))
		}
	}}},
	{"chat-dev", incident{"claim deleted", "chat-dev", "PersistentVolumeClaim", "ObjectDeleted", "history", func(s *scene) {
		s.edited(-15, "chat-dev", "PersistentVolumeClaim", "history", "ObjectDeleted", "deleted")
		for at := 0.0; at < 1200; at += 60 {
			s.warn(at, "chat-dev", "Pod", s.pod(app{name: "store"}), "FailedScheduling", "default-scheduler", `persistentvolumeclaim "history" not found`)
		}
	}}},
	{"stock-dev", incident{"budget that allows nothing", "stock-dev", "PodDisruptionBudget", "ObjectChanged", "api", func(s *scene) {
		s.edited(-100, "stock-dev", "PodDisruptionBudget", "api", "ObjectChanged", "spec.minAvailable: 1 → 100%; by kubectl-edit")
		for at := 0.0; at < 1200; at += 120 {
			s.note(at, "default", "Node", "node-14", "DisruptionBlocked", "karpenter", `Cannot disrupt Node: pdb "stock-dev/api" prevents pod evictions`)
		}
	}}},
	{"maps-dev", incident{"config map deleted", "maps-dev", "ConfigMap", "ObjectDeleted", "style", func(s *scene) {
		s.edited(-300, "maps-dev", "ConfigMap", "style", "ObjectDeleted", "deleted: keys style.json")
		s.edited(-2, "maps-dev", "Deployment", "tiles", "ObjectChanged", "spec.template.spec.containers[tiles].image: 7.1 → 7.2; by argocd-controller")
		for _, pod := range s.deploy(0, "maps-dev", "tiles", 2) {
			for at := 4.0; at < 1200; at += 15 {
				s.warn(at, "maps-dev", "Pod", pod, "Failed", "kubelet", `Error: configmap "style" not found`)
			}
		}
	}}},
	{"fraud-dev", incident{"service account deleted", "fraud-dev", "ServiceAccount", "ObjectDeleted", "scorer", func(s *scene) {
		s.edited(-240, "fraud-dev", "ServiceAccount", "scorer", "ObjectDeleted", "deleted")
		s.edited(-1, "fraud-dev", "Deployment", "score", "ObjectChanged", "replicas: 2 → 3; by kubectl")
		rs := s.replicaSet(app{name: "score"})
		for wait, at := 1.0, 0.0; at < 900; wait *= 2 {
			s.warn(at, "fraud-dev", "ReplicaSet", rs, "FailedCreate", "replicaset-controller", `Error creating: pods "score-" is forbidden: error looking up service account fraud-dev/scorer: serviceaccount "scorer" not found`)
			at += wait
		}
	}}},
	{"reports-dev", incident{"secret of a registry deleted", "reports-dev", "Secret", "ObjectDeleted", "registry", func(s *scene) {
		s.edited(-30, "reports-dev", "Secret", "registry", "ObjectDeleted", "deleted")
		for _, pod := range s.deploy(0, "reports-dev", "export", 2) {
			for at := 1.0; at < 1200; at += 20 {
				s.warn(at, "reports-dev", "Pod", pod, "FailedToRetrieveImagePullSecret", "kubelet", "Unable to retrieve some image pull secrets (registry); attempting to pull the image may not succeed.")
			}
			s.pull(2, "reports-dev", pod, "unauthorized")
		}
	}}},
	{"search-dev", incident{"service of an ingress deleted", "search-dev", "Service", "ObjectDeleted", "index", func(s *scene) {
		s.edited(-10, "search-dev", "Service", "index", "ObjectDeleted", "deleted")
		s.edited(-500, "search-dev", "Deployment", "web", "ObjectChanged", "replicas: 2 → 3; by kubectl")
		for at := 0.0; at < 1200; at += 30 {
			s.warn(at, "search-dev", "Ingress", "web", "Rejected", "nginx-ingress-controller", "service search-dev/index does not exist")
		}
	}}},
	{"accounts-dev", incident{"image that was rolled back since", "accounts-dev", "Deployment", "ObjectChanged", "login", func(s *scene) {
		s.edited(-3, "accounts-dev", "Deployment", "login", "ObjectChanged", "spec.template.spec.containers[login].image: 3.0 → 3.1; by flux")
		for _, pod := range s.deploy(0, "accounts-dev", "login", 3) {
			s.crash(4, "accounts-dev", pod)
		}
		s.edited(400, "accounts-dev", "Deployment", "login", "ObjectChanged", "spec.template.spec.containers[login].image: 3.1 → 3.0; by kubectl-rollout")
	}}},
}
