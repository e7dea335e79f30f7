package chart_test

import (
	"testing"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// podOf returns the pod that an object is, or that it makes; nil: none.
func podOf(object runtime.Object) (metav1.ObjectMeta, *corev1.PodSpec) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return named(o.Name, o.Spec.Template)
	case *appsv1.StatefulSet:
		return named(o.Name, o.Spec.Template)
	case *corev1.Pod:
		return o.ObjectMeta, &o.Spec
	}
	return metav1.ObjectMeta{}, nil
}

func named(name string, template corev1.PodTemplateSpec) (metav1.ObjectMeta, *corev1.PodSpec) {
	template.ObjectMeta.Name = name
	return template.ObjectMeta, &template.Spec
}

// restricted returns what the admission controller of Kubernetes has against a pod in a restricted namespace.
func restricted(t *testing.T, meta metav1.ObjectMeta, spec *corev1.PodSpec) (faults []string) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &meta, spec) {
		if !result.Allowed {
			faults = append(faults, result.ForbiddenReason+": "+result.ForbiddenDetail)
		}
	}
	return faults
}

// TestRestrictedFinds: a pod that may become root is found.
func TestRestrictedFinds(t *testing.T) {
	t.Parallel()
	if len(restricted(t, metav1.ObjectMeta{}, &corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}})) == 0 {
		t.Error("nothing is found")
	}
}

// value is a value of values.yaml.
type value struct{ path, comment string }

// leaves returns the values that have no values of their own, with the comment above them. A map in one line is a leaf.
func leaves(t *testing.T, text []byte) (all []value) {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	var walk func(prefix string, n *yaml.Node)
	walk = func(prefix string, n *yaml.Node) {
		for i := 0; i < len(n.Content); i += 2 {
			key, of := n.Content[i], n.Content[i+1]
			if of.Kind == yaml.MappingNode && of.Style&yaml.FlowStyle == 0 && key.HeadComment == "" {
				walk(prefix+key.Value+".", of)
				continue
			}
			all = append(all, value{prefix + key.Value, key.HeadComment})
		}
	}
	walk("", document.Content[0])
	return all
}
