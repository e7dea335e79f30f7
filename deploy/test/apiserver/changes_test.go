package apiserver_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/deployment"

	"tidings.example/shared/waittest"
)

// kubectl runs the newest kubectl as the administrator.
func (c *cluster) kubectl(stdin string, args ...string) {
	c.t.Helper()
	config := c.file("kubeconfig-admin", fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: u, user: {token: admin-token}}]\n", c.url, filepath.Join(c.dir, "apiserver.crt")))
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig=" + config, "--cache-dir=" + filepath.Join(c.dir, "cache")}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// object says what the events about an object tell, as "reason: note", the oldest first.
func (h *history) object(kind, name string) (told []string) {
	h.t.Helper()
	events := h.events(url.Values{"fieldSelector": {"involvedObject.kind=" + kind + ",involvedObject.name=" + name}})
	slices.SortFunc(events, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	for _, ev := range events {
		if strings.HasPrefix(ev.Reason, "Object") {
			told = append(told, ev.Reason+": "+ev.Message)
		}
	}
	return told
}

// commands returns the commands of a page.
func commands(t *testing.T, page string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/how-to", page))
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(text), "\n```\n") {
		if i%2 == 1 {
			all = append(all, strings.Split(strings.ReplaceAll(block, "\\\n", ""), "\n")...)
		}
	}
	return all
}

// shell runs a command of eventsvc against the server, and returns what it prints.
func (h *history) shell(command string) string {
	h.t.Helper()
	token := filepath.Join(h.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(h.token), 0o600); err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.CommandContext(h.t.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "EVENTSVC_SERVER="+h.url, "EVENTSVC_TOKEN_FILE="+token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Errorf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

const changeable = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/shop/web:1.4.2", env: [{name: DB_PASSWORD, value: pl4nted-env}]}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: shop}
spec:
  serviceName: web
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: "db:1"}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: ds}}
  template: {metadata: {labels: {app: ds}}, spec: {containers: [{name: c, image: "agent:1"}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: web, namespace: shop}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "job:1"}]}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 3}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec: {podSelector: {}, policyTypes: [Ingress]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {app.yaml: "password: pl4nted-config"}
---
apiVersion: v1
kind: Secret
metadata: {name: web, namespace: shop}
stringData: {password: pl4nted-secret}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web, namespace: shop}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Node
metadata: {name: web}
`

// changeableKinds are the kinds of these objects.
var changeableKinds = []string{
	"Deployment", "StatefulSet", "DaemonSet", "CronJob", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Service", "Ingress", "NetworkPolicy",
	"ConfigMap", "Secret", "PersistentVolumeClaim", "Node",
}

const rollouts = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: rollouts, singular: rollout, kind: Rollout}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// controlled is a Deployment, and what controllers shall make of it.
const controlled = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  selector: {matchLabels: {app: api}}
  template: {metadata: {labels: {app: api}}, spec: {containers: [{name: api, image: "api:1"}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: wanted, namespace: shop}
data: {image: "api:2"}
`

// controllers run until the test ends: that of Deployments from kube-controller-manager, one that applies the image
// that a ConfigMap names, as Argo CD and Flux do, and one that scales, as an autoscaler does. All reconcile again every
// second.
func (c *cluster) controllers() {
	c.t.Helper()
	ctx, all := c.t.Context(), informers.NewSharedInformerFactory(c.admin, time.Second)
	deployments, err := deployment.NewDeploymentController(ctx, all.Apps().V1().Deployments(), all.Apps().V1().ReplicaSets(), all.Core().V1().Pods(), c.admin)
	if err != nil {
		c.t.Fatal(err)
	}
	reconcile := func(object any) { // what fails is tried again
		wanted, ok := object.(*corev1.ConfigMap)
		if !ok || wanted.Name != "wanted" {
			return
		}
		of := c.admin.AppsV1().Deployments(wanted.Namespace)
		container := applycorev1.Container().WithName("api").WithImage(wanted.Data["image"])
		release := applyappsv1.Deployment("api", wanted.Namespace).WithSpec(applyappsv1.DeploymentSpec().WithTemplate(
			applycorev1.PodTemplateSpec().WithSpec(applycorev1.PodSpec().WithContainers(container))))
		_, _ = of.Apply(ctx, release, metav1.ApplyOptions{FieldManager: "release-controller", Force: true})
		if scale, err := of.GetScale(ctx, "api", metav1.GetOptions{}); err == nil {
			scale.Spec.Replicas = 4
			_, _ = of.UpdateScale(ctx, "api", scale, metav1.UpdateOptions{FieldManager: "load-scaler"})
		}
	}
	_, err = all.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: reconcile, UpdateFunc: func(_, now any) { reconcile(now) }})
	if err != nil {
		c.t.Fatal(err)
	}
	all.Start(ctx.Done())
	go deployments.Run(ctx, 1)
}

// TestWhatWasChanged runs the page of this name: with the rights that it names, a mirror makes an event of each
// effective change: by kubectl, by server-side apply, by running controllers, and of a custom resource; also of what
// happened while the mirror, the server or the API server were killed. No byte that is stored has a planted secret.
func TestWhatWasChanged(t *testing.T) {
	c := startCluster(t)
	c.grant(func(r *rbacv1.ClusterRole) {
		for group, names := range map[string][]string{
			"apps": {"deployments", "statefulsets", "daemonsets"}, "batch": {"cronjobs"}, "autoscaling": {"horizontalpodautoscalers"}, "policy": {"poddisruptionbudgets"},
			"networking.k8s.io": {"ingresses", "networkpolicies"}, "": {"services", "configmaps", "secrets", "nodes", "persistentvolumeclaims"}, "example.com": {"rollouts"},
		} {
			r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: names, Verbs: []string{"list", "watch"}})
		}
	})
	h := startHistory(t, c)
	c.namespace("shop", nil)
	c.kubectl(rollouts, "apply", "-f", "-")
	c.kubectl("", "wait", "--for=condition=Established", "crd/rollouts.example.com")
	state, page := t.TempDir(), commands(t, "what-was-changed.md")
	_, settings, _ := strings.Cut(page[0], "--server https://events.example ")
	settings = strings.NewReplacer("/var/lib/eventsvc-mirror", state, "workloads", "workloads,rollouts.example.com").Replace(settings)
	m := startMirror(t, c, c.url, h, strings.Fields(settings)...)
	followed := func() {
		t.Helper()
		for _, name := range []string{"deployments.apps", "secrets", "rollouts.example.com", "nodes"} {
			eventually(t, name+" are followed", func() bool {
				version := m.metric(fmt.Sprintf(`eventsvc_mirror_version{namespace="objects/%s"}`, name))
				return version != "" && version != "0"
			})
		}
	}
	followed()
	exact := func(told string) string { return told }
	tells := func(kind string, want ...string) { // a beginning of these
		t.Helper()
		kind, name, _ := strings.Cut(kind, "/")
		waittest.Becomes(t, func() error {
			told := h.object(kind, cmp.Or(name, "web"))
			for _, w := range want {
				if slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(exact(s), w) }) {
					return nil
				}
			}
			return fmt.Errorf("%s: want %q, told is:\n  %s", kind, want, strings.Join(told, "\n  "))
		})
	}

	c.kubectl(changeable, "apply", "-f", "-")
	for _, kind := range changeableKinds {
		tells(kind, "ObjectCreated: created")
	}
	c.kubectl("", "-n", "shop", "set", "image", "deployment/web", "web=registry.example/shop/web:1.5.0")
	tells("Deployment", "ObjectChanged: spec.template.spec.containers[web].image: 1.4.2 → 1.5.0; by kubectl-set")
	for i, command := range page[1:] {
		told := h.shell(strings.ReplaceAll(command, "2026-11-28 14:05", "now"))
		if i == 0 && !strings.Contains(told, "1.4.2 → 1.5.0; by kubectl-set") {
			t.Errorf("%s: %s", command, told)
		}
	}
	c.kubectl("", "-n", "shop", "scale", "deployment/web", "--replicas=5")
	tells("Deployment", "ObjectChanged: replicas: 3 → 5; by kubectl")
	c.kubectl(strings.Replace(changeable, `image: "db:1"`, `image: "db:2"`, 1), "apply", "--server-side", "--force-conflicts", "--field-manager=flux", "-f", "-")
	tells("StatefulSet", "ObjectChanged: spec.template.spec.containers[db].image: 1 → 2; by flux")
	for kind, change := range map[string][2]string{
		"DaemonSet":               {`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"agent:2"}]}}}}`, "spec.template.spec.containers[c].image: 1 → 2"},
		"HorizontalPodAutoscaler": {`{"spec":{"maxReplicas":9}}`, "maxReplicas: 3 → 9"},
		"PodDisruptionBudget":     {`{"spec":{"minAvailable":2}}`, "minAvailable: 1 → 2"},
		"Ingress":                 {`{"spec":{"defaultBackend":{"service":{"name":"api"}}}}`, "spec.defaultBackend.service.name: web → api"},
		"NetworkPolicy":           {`{"spec":{"policyTypes":["Ingress","Egress"]}}`, "policyTypes: Ingress → Ingress Egress"},
		"PersistentVolumeClaim":   {`{"metadata":{"labels":{"tier":"gold"}}}`, "metadata.labels[tier]: set to gold"},
	} {
		c.kubectl("", "-n", "shop", "patch", kind, "web", "-p", change[0])
		tells(kind, "ObjectChanged: "+change[1]+"; by kubectl-patch")
	}
	c.controllers()
	c.kubectl(controlled, "apply", "-f", "-")
	tells("Deployment/api", "ObjectChanged: spec.template.spec.containers[api].image: 1 → 2; by release-controller")
	tells("Deployment/api", "ObjectChanged: replicas: 1 → 4; by load-scaler")
	c.kubectl("", "cordon", "web")
	tells("Node", "ObjectChanged: unschedulable: set to true")
	c.kubectl("", "-n", "shop", "patch", "secret", "web", "-p", `{"stringData":{"password":"pl4nted-later"}}`)
	tells("Secret", "ObjectChanged: data[password]: changed; by kubectl-patch")
	c.kubectl("apiVersion: example.com/v1\nkind: Rollout\nmetadata: {name: web, namespace: shop}\nspec: {steps: [{name: a, weight: 10}], apiKey: pl4nted-custom}\n", "apply", "-f", "-")
	tells("Rollout", "ObjectCreated: created")
	c.kubectl("", "-n", "shop", "patch", "rollout", "web", "--type=merge", "-p", `{"spec":{"steps":[{"name":"a","weight":50}]}}`)
	tells("Rollout", "ObjectChanged: spec.steps[a].weight: 10 → 50; by kubectl-patch")

	// Whoever is killed, each change is told once.
	m.process.kill()
	c.kubectl("", "-n", "shop", "patch", "service", "web", "-p", `{"spec":{"selector":{"app":"wep"}}}`)
	m.start()
	tells("Service", "ObjectChanged: spec.selector.app: web → wep; by kubectl-patch")
	h.server.kill()
	c.kubectl("", "-n", "shop", "patch", "configmap", "web", "-p", `{"data":{"app.yaml":"password: pl4nted-again"}}`)
	h.server = h.server.again(t)
	h.ready()
	// A mirror that was killed has no hash of data any more, unless its watch goes on before the object was made.
	tells("ConfigMap", "ObjectChanged: data[app.yaml]: changed; by kubectl-patch", "ObjectChanged: data[app.yaml]: perhaps changed; by kubectl-patch")
	m.process.kill()
	c.server = c.server.again(t)
	c.ready()
	// An API server that was killed keeps no changes of before: then the times are told between which one happened.
	between := regexp.MustCompile(`changed between \S+Z and \S+Z: `)
	exact = func(told string) string { return between.ReplaceAllString(told, "") }
	c.kubectl("", "-n", "shop", "patch", "cronjob", "web", "-p", `{"spec":{"schedule":"*/5 * * * *"}}`)
	m.start()
	followed()
	tells("CronJob", "ObjectChanged: schedule: 0 3 * * * → */5 * * * *; by kubectl-patch")
	c.kubectl(changeable, "delete", "--wait=false", "-f", "-")
	for _, kind := range changeableKinds {
		if kind == "PersistentVolumeClaim" { // stays until its controller removes the finalizer
			tells(kind, "ObjectChanged: metadata.deletionTimestamp: set to ")
		} else {
			tells(kind, "ObjectDeleted: deleted")
		}
	}
	for _, note := range h.object("Deployment", "api") { // nothing of what controllers count, and of what they write again
		if !strings.HasPrefix(note, "ObjectCreated: ") && !strings.HasSuffix(note, "; by release-controller") && !strings.HasSuffix(note, "; by load-scaler") {
			t.Errorf("told too: %s", note)
		}
	}
	for _, kind := range changeableKinds {
		told := h.object(kind, "web")
		once := slices.Compact(slices.Sorted(slices.Values(told)))
		if len(once) != len(told) {
			t.Errorf("%s: an event twice: %s", kind, strings.Join(told, "\n  "))
		}
	}

	m.process.kill()
	h.server.kill()
	for _, dir := range []string{state, h.data} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, secret := range []string{"pl4nted", base64.StdEncoding.EncodeToString([]byte("pl4nted-secret")), base64.StdEncoding.EncodeToString([]byte("pl4nted-later"))} {
				if bytes.Contains(text, []byte(secret)) {
					t.Errorf("%s has %q", path, secret)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
