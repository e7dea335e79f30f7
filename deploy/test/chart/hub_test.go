package chart_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestHubPage: the values of the page about hubs render, eventsvc takes the files, and decides as the table of the page
// says.
func TestHubPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/deploy/docs/how-to/hub.md")
	if err != nil {
		t.Fatal(err)
	}
	values := valuesOn(t, page, 0)
	dir := t.TempDir()
	for name, content := range find[*corev1.ConfigMap](t, objects(t, values), "eventsvc-access").Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rows := regexp.MustCompile(`(?m)^\| the (mirror|aggregate) of (\w+) \| (\w+) \| (\w+) \| (yes|no) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 6 {
		t.Fatalf("%d decisions", len(rows))
	}
	for _, row := range rows {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "eventsvc"), "can-i", row[3], "-A", "--cluster", row[4],
			"--policy-file", filepath.Join(dir, "policy.yaml"), "--issuers-file", filepath.Join(dir, "issuers.yaml"), "--issuer=",
			"--token-issuer", "https://"+row[2]+".example", "--client-id", "system:serviceaccount:tidings:eventsvc-"+row[1])
		cmd.Env = []string{}
		out, err := cmd.CombinedOutput()
		if !strings.HasPrefix(string(out), row[5]+": ") || (err == nil) != (row[5] == "yes") {
			t.Errorf("%s: %v\n%s", row[0], err, out)
		}
	}
}

// TestGrafanaPage: with the values of the page about Grafana, eventsvc trades users and passwords at the tokensvc of
// the chart, and lets the client of the page read.
func TestGrafanaPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/deploy/docs/how-to/grafana.md")
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, valuesOn(t, page, 1))
	env := find[*appsv1.StatefulSet](t, all, "eventsvc").Spec.Template.Spec.Containers[0].Env
	if !slices.Contains(env, corev1.EnvVar{Name: "EVENTSVC_BASIC_TOKEN_URL", Value: "http://tokensvc/oauth2/token"}) {
		t.Errorf("no trade in %v", env)
	}
	dir := t.TempDir()
	for name, content := range find[*corev1.ConfigMap](t, all, "eventsvc-access").Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "eventsvc"), "can-i", "list", "-A",
		"--policy-file", filepath.Join(dir, "policy.yaml"), "--issuers-file", filepath.Join(dir, "issuers.yaml"), "--issuer=",
		"--token-issuer", "https://tokens.example.com", "--client-id", "grafana")
	cmd.Env = []string{}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "yes: ") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestAuthorityPage: the values of the page about certificates render, and eventsvc takes the issuer with its
// authority.
func TestAuthorityPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/deploy/docs/how-to/certificates.md")
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, valuesOn(t, page, 0))
	if files := find[*corev1.ConfigMap](t, all, "eventsvc-access").Data; !strings.Contains(files["issuers.yaml"], "caFile: /etc/corp-ca/ca.crt") {
		t.Errorf("no authority in\n%s", files["issuers.yaml"])
	}
	mounts := find[*appsv1.StatefulSet](t, all, "eventsvc").Spec.Template.Spec.Containers[0].VolumeMounts
	if !slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/corp-ca" }) {
		t.Errorf("no mount of it in %v", mounts)
	}
}

// valuesOn are the values of a block of a page, counted from 0.
func valuesOn(t *testing.T, page []byte, block int) (values map[string]any) {
	t.Helper()
	blocks := strings.Split(string(page), "```yaml\n")
	if block+1 >= len(blocks) {
		t.Fatalf("the page has %d blocks", len(blocks)-1)
	}
	text, _, _ := strings.Cut(blocks[block+1], "```")
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestMember: in a member cluster the chart makes the mirror and aggregate alone. They use the hub, trust its
// authority, and have tokens of its audience. The page's values are such a member's; another one trades its tokens at a
// tokensvc.
func TestMember(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/deploy/docs/how-to/hub.md")
	if err != nil {
		t.Fatal(err)
	}
	withoutCA := map[string]any{"hub": map[string]any{"url": "https://events.example.com"}}
	for name, member := range map[string]struct {
		values   map[string]any
		programs []string
		env      map[string]string // "": must not be set
		audience string
		ca       corev1.VolumeSource // the zero value: none
	}{
		"the page": {valuesOn(t, page, 1), []string{"eventsvc-mirror", "eventsvc-aggregate"},
			map[string]string{"EVENTSVC_TOKEN_FILE": "/var/run/secrets/tokens/eventsvc", "EVENTSVC_TOKEN_URL": ""}, "eventsvc",
			corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "hub-ca"}}}},
		"tokens of a tokensvc": {valueSets(t)["member"], []string{"eventsvc-mirror", "eventsvc-aggregate"},
			map[string]string{"EVENTSVC_TOKEN_URL": "https://tokens.example.com/oauth2/token", "EVENTSVC_ASSERTION_FILE": "/var/run/secrets/tokens/eventsvc", "EVENTSVC_TOKEN_FILE": ""},
			"https://tokens.example.com", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hub-ca"}}},
		"a public authority": {withoutCA, []string{"eventsvc-mirror"}, map[string]string{"EVENTSVC_CA_FILE": ""}, "eventsvc", corev1.VolumeSource{}},
	} {
		all := objects(t, member.values)
		var pods []string
		for _, object := range all {
			meta, spec := podOf(object)
			if spec == nil || meta.Name == "tidings-test-aggregated" { // which asks the API server
				continue
			}
			pods = append(pods, meta.Name)
			isMember(t, name+": "+meta.Name, spec, member.env, member.audience, member.ca)
		}
		slices.Sort(pods)
		if want := slices.Sorted(slices.Values(member.programs)); !slices.Equal(pods, want) {
			t.Errorf("%s: pods %v, want %v", name, pods, want)
		}
		for _, object := range all {
			kind := object.GetObjectKind().GroupVersionKind().Kind
			if m, ok := object.(metav1.Object); ok && (m.GetName() == "eventsvc" || m.GetName() == "eventsvc-access" || m.GetName() == "tidings-viewer") {
				t.Errorf("%s: there is a %s %s", name, kind, m.GetName())
			}
		}
	}
}

// isMember checks how a pod reaches the hub.
func isMember(t *testing.T, name string, spec *corev1.PodSpec, env map[string]string, audience string, ca corev1.VolumeSource) {
	t.Helper()
	set := map[string]string{}
	for _, v := range spec.Containers[0].Env {
		set[v.Name] = v.Value
	}
	env = maps.Clone(env)
	env["EVENTSVC_SERVER"] = "https://events.example.com"
	for variable, want := range env {
		if set[variable] != want {
			t.Errorf("%s: %s is %q, want %q", name, variable, set[variable], want)
		}
	}
	var found corev1.VolumeSource
	for _, v := range spec.Volumes {
		switch v.Name {
		case "token":
			if got := v.Projected.Sources[0].ServiceAccountToken.Audience; got != audience {
				t.Errorf("%s: the audience is %s", name, got)
			}
		case "ca":
			found = v.VolumeSource
		}
	}
	mounted := slices.IndexFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == "ca" && m.MountPath+"/ca.crt" == set["EVENTSVC_CA_FILE"]
	})
	switch {
	case ca == (corev1.VolumeSource{}):
		if found != ca || set["EVENTSVC_CA_FILE"] != "" {
			t.Errorf("%s: an authority is mounted: %+v", name, found)
		}
	case mounted < 0,
		ca.ConfigMap != nil && (found.ConfigMap == nil || found.ConfigMap.Name != ca.ConfigMap.Name),
		ca.Secret != nil && (found.Secret == nil || found.Secret.SecretName != ca.Secret.SecretName):
		t.Errorf("%s: the authority is %+v, want %+v at %s", name, found, ca, set["EVENTSVC_CA_FILE"])
	}
}
