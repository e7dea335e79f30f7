package chart_test

import (
	"cmp"
	"slices"
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

// restrictedV2 returns what the SCC restricted-v2 has against a pod, by the rules that OpenShift publishes as
// scc-restricted-v2.yaml in github.com/openshift/cluster-kube-apiserver-operator. Users and groups are of the range of
// the namespace, which is unknown here, so a pod may name none.
func restrictedV2(spec *corev1.PodSpec) (faults []string) {
	fault := func(is bool, text string) {
		if is {
			faults = append(faults, text)
		}
	}
	fault(spec.HostNetwork || spec.HostPID || spec.HostIPC, "it uses the host")
	s := cmp.Or(spec.SecurityContext, &corev1.PodSecurityContext{})
	fault(s.RunAsUser != nil || s.FSGroup != nil, "it names a user or a group")
	fault(s.SELinuxOptions != nil || len(s.Sysctls) > 0, "it sets SELinux or sysctls")
	fault(s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault, "its seccomp profile is not runtime/default")
	for _, v := range spec.Volumes {
		o := v.VolumeSource
		fault(o.ConfigMap == nil && o.CSI == nil && o.DownwardAPI == nil && o.EmptyDir == nil && o.Ephemeral == nil && o.PersistentVolumeClaim == nil && o.Projected == nil && o.Secret == nil,
			"the volume "+v.Name+" is of a kind that is not allowed")
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		s := cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
		fault(s.Privileged != nil && *s.Privileged || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, c.Name+" may get more rights")
		fault(s.RunAsUser != nil || s.SELinuxOptions != nil || s.SeccompProfile != nil, c.Name+" differs from its pod")
		fault(s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0, c.Name+" keeps capabilities")
		fault(slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 }), c.Name+" has a port of the host")
	}
	return faults
}

// TestOpenShift: with the value openshift every pod keeps to the SCC that OpenShift gives by default, and without it
// none does.
func TestOpenShift(t *testing.T) {
	t.Parallel()
	values := valueSets(t)["openshift"]
	for _, on := range []bool{true, false} {
		values["openshift"] = on
		pods := 0
		for _, object := range objects(t, values) {
			meta, spec := podOf(object)
			if spec == nil {
				continue
			}
			pods++
			if faults := restrictedV2(spec); (len(faults) == 0) != on {
				t.Errorf("openshift %t: %s: %q", on, meta.Name, faults)
			}
		}
		if pods != 7 { // of five programs and two tests
			t.Errorf("%d pods", pods)
		}
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
