package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestManifests renders deploy/kubernetes with kubectl, checks the result
// against the OpenAPI schemas of Kubernetes, and decodes it into the API's own
// types.
func TestManifests(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"tokensvc", "eventsvc"} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(root, "deploy/kubernetes", service)
			rendered := render(t, filepath.Join(folder, "production"))
			other := map[string]string{"tokensvc": "eventsvc", "eventsvc": "tokensvc"}[service]
			if strings.Contains(rendered, other) {
				t.Errorf("the manifests name %s", other)
			}
			checkWorkload(t, rendered)
		})
		t.Run(service+"/monitoring", func(t *testing.T) {
			t.Parallel()
			rendered := renderWith(t, service+"/production", service+"/monitoring")
			expect(t, rendered, "kind: PodMonitor", "jobLabel: app.kubernetes.io/name", "port: admin", "kubernetes.io/metadata.name: monitoring")
		})
	}
	t.Run("tokensvc/federation", func(t *testing.T) {
		t.Parallel()
		rendered := render(t, filepath.Join(root, "deploy/kubernetes/tokensvc/production"))
		expect(t, rendered, "name: TOKENSVC_TRUSTED_ISSUERS_FILE", "expirationSeconds: 900")
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "tokensvc"), "--clients-file", filepath.Join(root, "deploy/local/clients.yaml"),
			"--trusted-issuers-file", filepath.Join(root, "deploy/kubernetes/tokensvc/federation/issuers.yaml"))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "this is no pod of a cluster") {
			t.Errorf("the file is not taken: %v %s", err, out) // it is, up to what only a pod has
		}
		replaced := renderOverlay(t, "resources: [BASE/tokensvc/production]\n"+
			"configMapGenerator: [{name: tokensvc-issuers, behavior: replace, literals: ['issuers.yaml=- {issuer: https://my.example}']}]\n")
		expect(t, replaced, "issuer: https://my.example")
		if strings.Contains(replaced, "issuer: cluster") {
			t.Errorf("an overlay does not replace the issuers:\n%s", replaced)
		}
	})
	t.Run("eventsvc/certificate", func(t *testing.T) {
		t.Parallel()
		rendered := renderWith(t, "eventsvc/production", "eventsvc/certificate")
		checkWorkload(t, rendered)
		expect(t, rendered, "secretName: eventsvc-tls", "name: EVENTSVC_TLS_KEY_FILE")
		for _, gone := range []string{"TLS_SELF_SIGNED", "eventsvc-ca"} {
			if strings.Contains(rendered, gone) {
				t.Errorf("%s is still there", gone)
			}
		}
	})
	t.Run("eventsvc/tokensvc", func(t *testing.T) {
		t.Parallel()
		rendered := renderWith(t, "eventsvc/production", "eventsvc/tokensvc")
		checkWorkload(t, rendered)
		expect(t, rendered, "value: http://tokensvc/oauth2/jwks", "value: http://tokensvc/oauth2/token")
	})
	t.Run("eventsvc/replicas", func(t *testing.T) {
		t.Parallel()
		rendered := renderWith(t, "eventsvc/production", "eventsvc/replicas")
		for _, document := range strings.Split(rendered, "\n---\n") {
			for _, fault := range conforms(t, document) {
				t.Error(fault)
			}
			if object, ok := strict(t, document).(*appsv1.StatefulSet); ok {
				hardened(t, object.Spec.Template.Spec)
				spread := object.Spec.Template.Spec.TopologySpreadConstraints
				if len(spread) != 2 || spread[0].LabelSelector.MatchLabels["app.kubernetes.io/name"] != object.Spec.Template.Labels["app.kubernetes.io/name"] {
					t.Errorf("the pods are not spread: %+v", spread)
				}
			}
		}
		expect(t, rendered, "replicas: 3", "name: EVENTSVC_STORE_DSN_FILE", "secretName: eventsvc-dsn", "kind: PodDisruptionBudget")
	})
	t.Run("mirror/monitoring", func(t *testing.T) {
		t.Parallel()
		expect(t, renderWith(t, "mirror", "mirror/monitoring"), "kind: PodMonitor", "jobLabel: app.kubernetes.io/name", "port: admin")
	})
}

// checkWorkload checks all documents against the schemas, and that there is one workload, which is hardened.
func checkWorkload(t *testing.T, rendered string) {
	t.Helper()
	pods := 0
	for _, document := range strings.Split(rendered, "\n---\n") {
		for _, fault := range conforms(t, document) {
			t.Error(fault)
		}
		switch object := strict(t, document).(type) {
		case *appsv1.Deployment:
			hardened(t, object.Spec.Template.Spec)
			pods++
		case *appsv1.StatefulSet:
			hardened(t, object.Spec.Template.Spec)
			pods++
		}
	}
	if pods != 1 {
		t.Errorf("%d workloads, want 1", pods)
	}
}

// renderWith renders an overlay of a directory of deploy/kubernetes with a component.
func renderWith(t *testing.T, folder, component string) string {
	t.Helper()
	return renderOverlay(t, "resources: [BASE/"+folder+"]\ncomponents: [BASE/"+component+"]\n")
}

// renderOverlay renders a kustomization, in which BASE stands for deploy/kubernetes.
func renderOverlay(t *testing.T, text string) string {
	t.Helper()
	overlay := t.TempDir()
	base, err := filepath.Rel(overlay, filepath.Join(root, "deploy/kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(strings.ReplaceAll(text, "BASE", base)), 0o600); err != nil {
		t.Fatal(err)
	}
	return render(t, overlay)
}

// TestMirrorManifests: the mirror's pod is as hardened as the others but for the service account that it needs, and
// that may read events and what copies get labels of, and change nothing. Its environment is read by the program
// itself.
func TestMirrorManifests(t *testing.T) {
	t.Parallel()
	for name, rendered := range map[string]string{
		"here":      render(t, filepath.Join(root, "deploy/kubernetes/mirror")),
		"assertion": renderWith(t, "mirror", "mirror/assertion"),
		"secret":    renderWith(t, "mirror", "mirror/secret"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkMirror(t, rendered)
			if hasSecret := strings.Contains(strings.ToLower(rendered), "secretname"); hasSecret != (name == "secret") {
				t.Errorf("a secret is mounted: %v", hasSecret)
			}
			if hasToken := strings.Contains(rendered, "serviceAccountToken:"); hasToken != (name != "secret") {
				t.Errorf("a token is projected: %v", hasToken)
			}
		})
	}
}

func checkMirror(t *testing.T, rendered string) {
	t.Helper()
	kinds := map[string]int{}
	for _, document := range strings.Split(rendered, "\n---\n") {
		for _, fault := range conforms(t, document) {
			t.Error(fault)
		}
		object := strict(t, document)
		kinds[object.GetObjectKind().GroupVersionKind().Kind]++
		switch object := object.(type) {
		case *appsv1.Deployment:
			pod := object.Spec.Template.Spec
			if pod.ServiceAccountName != "eventsvc-mirror" || pod.AutomountServiceAccountToken == nil || !*pod.AutomountServiceAccountToken {
				t.Errorf("service account %q, mounted %v", pod.ServiceAccountName, pod.AutomountServiceAccountToken)
			}
			pod.AutomountServiceAccountToken = new(bool)
			hardened(t, pod)
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "eventsvc"), pod.Containers[0].Args...)
			for _, variable := range pod.Containers[0].Env {
				cmd.Env = append(cmd.Env, variable.Name+"="+variable.Value)
			}
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "this is no pod of a cluster") {
				t.Errorf("the settings are not taken: %v %s", err, out)
			}
		case *rbacv1.ClusterRole:
			read, get := []string{"get", "list", "watch"}, []string{"get"}
			want := []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: read},
				{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: read},
				{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets", "statefulsets", "daemonsets"}, Verbs: get},
				{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}, Verbs: get},
				{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: read},
			}
			if !reflect.DeepEqual(object.Rules, want) {
				t.Errorf("rules %v", object.Rules)
			}
		}
	}
	if len(kinds) != 4 {
		t.Errorf("objects %v", kinds)
	}
}

func render(t *testing.T, folder string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl"), "kustomize", folder).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v\n%s", folder, err, out)
	}
	return string(out)
}

func strict(t *testing.T, document string) runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := decoder.Decode([]byte(document), nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	return object
}

// hardened checks the restricted pod security standard, both probes and a
// memory limit.
func hardened(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
		t.Errorf("pod security context: %+v", s)
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("a service account token is mounted")
	}
	if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
		t.Error("service links are on: their variables would be unknown settings")
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: security context %+v", c.Name, s)
		}
		if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s has no probes or no memory limit", c.Name)
		}
	}
}
