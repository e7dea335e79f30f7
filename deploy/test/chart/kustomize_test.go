package chart_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// kustomized are the objects of a directory of deploy/kubernetes, with components.
func kustomized(t *testing.T, folder string, components ...string) (all []runtime.Object) {
	t.Helper()
	overlay := t.TempDir()
	base, err := filepath.Abs(root + "/deploy/kubernetes")
	if err == nil {
		base, err = filepath.Rel(overlay, base)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + base + "/" + folder + "]\ncomponents:\n"
	for _, c := range components {
		text += "  - " + base + "/" + c + "\n"
	}
	writeFile(t, filepath.Join(overlay, "kustomization.yaml"), text)
	out, err := exec.CommandContext(t.Context(), "kubectl", "kustomize", overlay).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v", folder, err)
	}
	for _, document := range strings.Split(string(out), "\n---\n") {
		all = append(all, decode(t, folder, document)...)
	}
	return all
}

// essence is what the chart and the bases must agree on in an object: not its labels, which say who made it.
func essence(t *testing.T, object runtime.Object) (name string, content any) {
	t.Helper()
	switch o := object.(type) {
	case *corev1.ServiceAccount:
		return "ServiceAccount " + o.Name, o.AutomountServiceAccountToken
	case *corev1.ConfigMap:
		files := map[string]any{}
		for name, text := range o.Data {
			var content any
			if err := yaml.Unmarshal([]byte(text), &content); err != nil {
				t.Fatal(err)
			}
			files[name] = content
		}
		return "ConfigMap " + o.Name, files
	case *corev1.Service:
		return "Service " + o.Name, []any{o.Spec.Ports, o.Spec.PublishNotReadyAddresses}
	case *policyv1.PodDisruptionBudget:
		return "PodDisruptionBudget " + o.Name, []any{o.Spec.MaxUnavailable, o.Spec.MinAvailable}
	case *networkingv1.NetworkPolicy:
		return "NetworkPolicy " + o.Name, []any{o.Spec.PolicyTypes, o.Spec.Ingress}
	case *rbacv1.Role:
		return "Role " + o.Name, o.Rules
	case *rbacv1.RoleBinding:
		return "RoleBinding " + o.Name, []any{o.Namespace == "kube-system", o.RoleRef, o.Subjects}
	case *rbacv1.ClusterRole:
		return "ClusterRole " + o.Name, []any{o.Rules, o.Labels["rbac.authorization.k8s.io/aggregate-to-view"]}
	case *rbacv1.ClusterRoleBinding:
		return "ClusterRoleBinding " + o.Name, []any{o.RoleRef, o.Subjects}
	case *appsv1.StatefulSet:
		return "StatefulSet " + o.Name, []any{o.Spec.Replicas, o.Spec.PersistentVolumeClaimRetentionPolicy, o.Spec.VolumeClaimTemplates[0].Spec, pod(o.Spec.Template.Spec)}
	case *appsv1.Deployment:
		return "Deployment " + o.Name, []any{o.Spec.Replicas, o.Spec.Strategy, pod(o.Spec.Template.Spec)}
	case *unstructured.Unstructured:
		if o.GetKind() == "APIService" {
			spec, _ := o.Object["spec"].(map[string]any)
			delete(spec, "caBundle") // whoever installs the base has to put it there
			return "APIService " + o.GetName(), spec
		}
		return "", nil // of operators
	case *corev1.Pod: // of helm test
		return "", nil
	}
	t.Fatalf("%T is compared with nothing", object)
	return "", nil
}

// pod is a pod without its image, and with its variables and mounts by name.
func pod(spec corev1.PodSpec) corev1.PodSpec {
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.Image, c.ImagePullPolicy = "", ""
		slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for i := range spec.TopologySpreadConstraints {
		spec.TopologySpreadConstraints[i].LabelSelector = nil
	}
	if spec.Affinity != nil {
		spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector = nil
	}
	return spec
}

// TestKustomize: the chart and the Kustomize bases describe the same pods, rights and policies. What helm test needs is
// the chart's alone.
func TestKustomize(t *testing.T) {
	t.Parallel()
	of := func(all []runtime.Object) map[string]any {
		contents := map[string]any{}
		for _, object := range all {
			if name, content := essence(t, object); name != "" {
				contents[name] = content
			}
		}
		return contents
	}
	chart := of(objects(t, viewed)) // the bases have the account that reads everything: an overlay takes it out
	delete(chart, "ServiceAccount tidings-test")
	access := chart["ConfigMap eventsvc-access"].(map[string]any)["policy.yaml"].(map[string]any)
	for _, list := range []string{"roles", "bindings"} {
		access[list] = slices.DeleteFunc(access[list].([]any), func(entry any) bool {
			return reflect.ValueOf(entry).IsValid() && (entry.(map[string]any)["name"] == "test" || entry.(map[string]any)["role"] == "test")
		})
	}
	bases := of(slices.Concat(kustomized(t, "eventsvc/production"), kustomized(t, "mirror")))
	if diff := cmp.Diff(bases, chart); diff != "" {
		t.Errorf("eventsvc and the mirror (-bases +chart):\n%s", diff)
	}
	sets := valueSets(t)
	chart, bases = of(objects(t, sets["aggregated"])), of(kustomized(t, "eventsvc/production", "aggregate"))
	ofAggregate := func(name string) bool {
		return strings.HasSuffix(name, "aggregate") || strings.HasSuffix(name, "tidings-history-view") || strings.HasPrefix(name, "APIService") || name == "StatefulSet eventsvc"
	}
	for _, all := range []map[string]any{chart, bases} {
		maps.DeleteFunc(all, func(name string, _ any) bool { return !ofAggregate(name) })
	}
	if diff := cmp.Diff(bases, chart); diff != "" || len(chart) < 10 {
		t.Errorf("the aggregated API, %d objects (-bases +chart):\n%s", len(chart), diff)
	}
	chart = of(objects(t, sets["tokens-database"]))
	bases = of(kustomized(t, "tokensvc/production"))
	for _, name := range []string{"Service tokensvc", "PodDisruptionBudget tokensvc"} {
		if diff := cmp.Diff(bases[name], chart[name]); diff != "" {
			t.Errorf("%s (-bases +chart):\n%s", name, diff)
		}
	}
	ours := find[*appsv1.Deployment](t, objects(t, sets["tokens-database"]), "tokensvc").Spec
	theirs := find[*appsv1.Deployment](t, kustomized(t, "tokensvc/production"), "tokensvc").Spec
	if diff := cmp.Diff(pod(theirs.Template.Spec).Containers[0].SecurityContext, pod(ours.Template.Spec).Containers[0].SecurityContext); diff != "" || *ours.Replicas != *theirs.Replicas {
		t.Errorf("tokensvc (-bases +chart):\n%s", diff)
	}
}

// TestTokens: eventsvc trades passwords where tokensvc runs beside it, in the chart and in the component of the bases,
// and nowhere else. It takes the settings of the component.
func TestTokens(t *testing.T) {
	t.Parallel()
	const name = "EVENTSVC_BASIC_TOKEN_URL"
	traded := func(all []runtime.Object, server string) string {
		env := find[*appsv1.StatefulSet](t, all, server).Spec.Template.Spec.Containers[0].Env
		i := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == name })
		if i < 0 {
			return ""
		}
		return env[i].Value
	}
	for set, values := range valueSets(t) {
		if values["hub"] != nil { // a member of a fleet has no eventsvc
			continue
		}
		want := ""
		if values["tokensvc"] != nil {
			want = "http://" + prefixOf(values) + "tokensvc/oauth2/token"
		}
		if got := traded(objects(t, values), prefixOf(values)+"eventsvc"); got != want {
			t.Errorf("%s: %s is %q, want %q", set, name, got, want)
		}
	}
	bases := kustomized(t, "eventsvc/production", "eventsvc/tokensvc")
	if got := traded(bases, "eventsvc"); got != "http://tokensvc/oauth2/token" {
		t.Errorf("bases: %s is %q", name, got)
	}
	if got := traded(kustomized(t, "eventsvc/production"), "eventsvc"); got != "" {
		t.Errorf("bases without tokensvc: %s is %q", name, got)
	}
	server := &find[*appsv1.StatefulSet](t, bases, "eventsvc").Spec.Template.Spec
	env := environment(t, t.TempDir(), bases, server, server.Containers[0])
	run(t, "bases", append(env, "EVENTSVC_ISSUER=https://tokens.example.com"), "", "eventsvc", "config", "print")
}
