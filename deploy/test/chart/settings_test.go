package chart_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// bin has eventsvc and tokensvc as they are built from this repository.
var bin string

func TestMain(m *testing.M) { os.Exit(inBin(m)) }

func inBin(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "chart"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(bin) }()
	for _, service := range []string{"eventsvc", "tokensvc"} {
		build := exec.Command("go", "build", "-o", filepath.Join(bin, service), ".")
		build.Dir, build.Env = filepath.Join(root, service), append(os.Environ(), "GOWORK=off")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build in %s: %v\n%s", service, err, out)
			return 1
		}
	}
	return m.Run()
}

// environment returns the variables of a container. The ConfigMaps that it mounts are files below dir, and what only a
// pod has is left to the caller.
func environment(t *testing.T, dir string, all []runtime.Object, spec *corev1.PodSpec, c corev1.Container) []string {
	t.Helper()
	var moved []string
	for _, mount := range c.VolumeMounts {
		for _, v := range spec.Volumes {
			if v.Name != mount.Name || v.ConfigMap == nil {
				continue
			}
			to := filepath.Join(dir, v.Name)
			if err := os.MkdirAll(to, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range find[*corev1.ConfigMap](t, all, v.ConfigMap.Name).Data {
				if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			moved = append(moved, mount.MountPath+"/", to+"/")
		}
	}
	var env []string
	for _, variable := range c.Env {
		if strings.HasSuffix(variable.Name, "_DSN_FILE") { // a secret, which the programs read
			variable.Value = filepath.Join(dir, "dsn")
			if err := os.WriteFile(variable.Value, []byte("postgres://tidings@db.example/tidings?sslmode=verify-full"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		env = append(env, variable.Name+"="+strings.NewReplacer(moved...).Replace(variable.Value))
	}
	return env
}

// TestSettings: the programs take the variables and files that the chart gives them, and have nothing to warn of.
func TestSettings(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		all, prefix := objects(t, values), prefixOf(values)
		if values["hub"] == nil {
			server := &find[*appsv1.StatefulSet](t, all, prefix+"eventsvc").Spec.Template.Spec
			env := environment(t, t.TempDir(), all, server, server.Containers[0])
			run(t, name, env, "", "eventsvc", "config", "print")
		}
		if name != "hub" {
			copier := &find[*appsv1.Deployment](t, all, prefix+"eventsvc-mirror").Spec.Template.Spec
			env := environment(t, t.TempDir(), all, copier, copier.Containers[0])
			run(t, name, env, "this is no pod of a cluster", "eventsvc", copier.Containers[0].Args...)
		}
		if values["alerts"] != nil {
			told := &find[*appsv1.StatefulSet](t, all, prefix+"eventsvc-alerts").Spec.Template.Spec
			env := environment(t, t.TempDir(), all, told, told.Containers[0])
			run(t, name, env, "--ca-file", "eventsvc", told.Containers[0].Args...) // eventsvc has not written it
		}
		if values["aggregated"] != nil {
			proxied := &find[*appsv1.Deployment](t, all, prefix+"eventsvc-aggregate").Spec.Template.Spec
			env := environment(t, t.TempDir(), all, proxied, proxied.Containers[0])
			run(t, name, env, "is no pod of a cluster", "eventsvc", proxied.Containers[0].Args...)
		}
		if values["tokensvc"] != nil {
			issuer := &find[*appsv1.Deployment](t, all, prefix+"tokensvc").Spec.Template.Spec
			run(t, name, environment(t, t.TempDir(), all, issuer, issuer.Containers[0]), "", "tokensvc", "config", "print")
		}
	}
}

// TestRules: eventsvc and the mirror are given the same file of rules, in a directory that the kubelet keeps up to
// date. What is in it is what the chart was given: eventsvc refuses it if it cannot be.
func TestRules(t *testing.T) {
	t.Parallel()
	for where, why := range map[string]string{"reason=Killing": "", "type in ()": "type in"} {
		all := objects(t, map[string]any{"rules": []any{map[string]any{"name": "killing", "where": where, "keep": "24h"}}})
		server := &find[*appsv1.StatefulSet](t, all, "eventsvc").Spec.Template.Spec
		copier := &find[*appsv1.Deployment](t, all, "eventsvc-mirror").Spec.Template.Spec
		for _, spec := range []*corev1.PodSpec{server, copier} {
			c := spec.Containers[0]
			if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "rules" && m.SubPath == "" }) {
				t.Errorf("%s: the rules are not mounted as a directory", c.Name)
			}
			env := environment(t, t.TempDir(), all, spec, c)
			i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "EVENTSVC_RULES_FILE=") })
			if i < 0 {
				t.Fatalf("%s has no file of rules: %v", c.Name, env)
			}
			text, err := os.ReadFile(strings.TrimPrefix(env[i], "EVENTSVC_RULES_FILE="))
			if err != nil || !strings.Contains(string(text), "where: "+where+"\n") {
				t.Errorf("%s: %v\n%s", c.Name, err, text)
			}
			if spec == server {
				run(t, where, env, why, "eventsvc", "config", "print")
			}
		}
	}
}

// run runs a program, which must end well and say nothing on standard error, or end badly and say why.
func run(t *testing.T, name string, env []string, why, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...)
	cmd.Env = env
	var said strings.Builder
	cmd.Stderr = &said
	err := cmd.Run()
	if (err == nil) != (why == "") || why == "" && said.Len() > 0 || !strings.Contains(said.String(), why) {
		t.Errorf("%s: %s %v: %v\n%s\n%v", name, program, args, err, said.String(), env)
	}
}

// TestAlerts: the rules of the chart are those of the repository.
func TestAlerts(t *testing.T) {
	t.Parallel()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(root + "/deploy/observability/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range chart.Files {
		if file.Name == "files/alerts.yaml" && string(file.Data) == string(want) {
			return
		}
	}
	t.Error("the alerts are not those of deploy/observability")
}
