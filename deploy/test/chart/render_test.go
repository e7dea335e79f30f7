package chart_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../../.."
	chartDir  = root + "/deploy/helm/tidings"
	namespace = "tidings"
)

// valueSets are the sets of testdata/values.yaml, by name.
func valueSets(t *testing.T) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile("testdata/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sets map[string]map[string]any
	if err := yaml.UnmarshalStrict(text, &sets); err != nil {
		t.Fatal(err)
	}
	return sets
}

// prefixOf is what values put before all names.
func prefixOf(values map[string]any) string {
	if prefix, ok := values["fullnameOverride"].(string); ok {
		return prefix + "-"
	}
	return ""
}

// viewed are the values of a chart with the account that reads everything.
var viewed = map[string]any{"viewer": map[string]any{"enabled": true}}

// render renders the chart without a cluster. It fails if the schema or a template refuses the values.
func render(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	return renderAs(t, "tidings", values)
}

// renderAs renders it for a release of a name.
func renderAs(t *testing.T, name string, values map[string]any) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: name, Namespace: namespace, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// objects renders the chart and returns its objects as the API has them, strictly decoded: one with a field that
// Kubernetes does not know is an error. Objects of kinds that are not Kubernetes' own are unstructured.
func objects(t *testing.T, values map[string]any) []runtime.Object {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	var all []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for _, document := range strings.Split("\n"+files[name], "\n---") {
			all = append(all, decode(t, name, document)...)
		}
	}
	return all
}

// foreign are the kinds that client-go does not know: of others' operators, and of the aggregation layer.
var foreign = []string{"cert-manager.io/v1 Certificate", "monitoring.coreos.com/v1 ServiceMonitor", "monitoring.coreos.com/v1 PrometheusRule", "apiregistration.k8s.io/v1 APIService",
	"gateway.networking.k8s.io/v1 HTTPRoute", "gateway.networking.k8s.io/v1 BackendTLSPolicy"}

func decode(t *testing.T, name, document string) []runtime.Object {
	t.Helper()
	var plain map[string]any
	if err := yaml.UnmarshalStrict([]byte(document), &plain); err != nil {
		t.Fatalf("%s: %v in\n%s", name, err, document)
	}
	if plain == nil {
		return nil
	}
	u := &unstructured.Unstructured{Object: plain}
	if slices.Contains(foreign, u.GetAPIVersion()+" "+u.GetKind()) {
		return []runtime.Object{u}
	}
	object, _, err := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode([]byte(document), nil, nil)
	if err != nil {
		t.Fatalf("%s: %v in\n%s", name, err, document)
	}
	return []runtime.Object{object}
}

// find returns the object of a type and a name.
func find[T interface {
	comparable
	runtime.Object
	GetName() string
}](t *testing.T, all []runtime.Object, name string) T {
	t.Helper()
	for _, object := range all {
		if o, ok := object.(T); ok && o.GetName() == name {
			return o
		}
	}
	var none T
	t.Fatalf("there is no %T %s", none, name)
	return none
}

// TestTwiceTheSame: a chart that is rendered twice, as Argo CD and "helm template" do, is the same to the byte. It asks
// no cluster and draws no lots.
func TestTwiceTheSame(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		first, err := render(t, values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		second, _ := render(t, values)
		if !maps.Equal(first, second) {
			t.Errorf("%s differs at the second time", name)
		}
	}
	for _, name := range templates(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"lookup", "rand", "gen", "now", "uuidv4", "Release.IsInstall", "Release.IsUpgrade", "Release.Revision"} {
			for action := range strings.SplitSeq(string(text), "{{") {
				action, _, _ = strings.Cut(action, "}}")
				if slices.ContainsFunc(strings.Fields(action), func(f string) bool { return strings.HasPrefix(strings.Trim(f, "(.$"), word) }) && !strings.HasPrefix(action, "- /*") {
					t.Errorf("%s: {{%s}} differs from time to time", name, action)
				}
			}
		}
	}
}

func templates(t *testing.T) []string {
	t.Helper()
	a, err := filepath.Glob(chartDir + "/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := filepath.Glob(chartDir + "/templates/tests/*")
	return slices.DeleteFunc(append(a, b...), func(name string) bool { return filepath.Ext(name) == "" })
}

// TestLint: helm lint has nothing to say.
func TestLint(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		result := lint.RunAll(chartDir, values, namespace)
		for _, m := range result.Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m.Error())
			}
		}
	}
}

// TestDefault: the chart makes eventsvc with a volume and the mirror, and no secret is needed.
func TestDefault(t *testing.T) {
	t.Parallel()
	all := objects(t, nil)
	kinds := map[string]int{}
	for _, object := range all {
		kinds[object.GetObjectKind().GroupVersionKind().Kind]++
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "secretName") || strings.Contains(string(text), "tokensvc") || strings.Contains(string(text), "secretRef") {
			t.Errorf("it needs a secret, or tokensvc:\n%s", text)
		}
	}
	want := map[string]int{
		"StatefulSet": 1, "Deployment": 1, "Service": 1, "PodDisruptionBudget": 1, "NetworkPolicy": 1, "ConfigMap": 2, "ServiceAccount": 3,
		"Role": 1, "RoleBinding": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Pod": 1,
	}
	if !maps.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
	if files, err := render(t, nil); err != nil || strings.Contains(fmt.Sprint(files), "tidings-viewer") {
		t.Errorf("the default has an account that reads everything, or: %v", err)
	}
	files, err := render(t, viewed)
	if err != nil {
		t.Fatal(err)
	}
	notes := files["tidings/templates/NOTES.txt"]
	for _, command := range []string{
		"kubectl -n tidings port-forward service/eventsvc 8443:443",
		"kubectl -n tidings create token tidings-viewer --audience eventsvc --duration 15m",
		"kubectl -n tidings delete pvc -l app.kubernetes.io/name=eventsvc,app.kubernetes.io/instance=tidings",
	} {
		if !strings.Contains(notes, "\n  "+command+"\n") && !strings.HasSuffix(notes, "\n  "+command) {
			t.Errorf("the notes lack %q:\n%s", command, notes)
		}
	}
}

// TestSchemaRefuses: values that cannot work are refused before anything is installed.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"clusterr: x":           "clusterr",
		"cluster: Big_One":      "/cluster",
		"cluster: ''":           "/cluster",
		"fullnameOverride: 1st": "/fullnameOverride",
		"fullnameOverride: a-name-that-leaves-no-room-for-those-after-it": "/fullnameOverride",
		"nameOverride: History":                                        "/nameOverride",
		"eventsvc: {retention: forever}":                               "/eventsvc/retention",
		"eventsvc: {storage: {size: much}}":                            "/eventsvc/storage/size",
		"eventsvc: {env: [{value: x}]}":                                "/eventsvc/env/0",
		"image: {pullPolicy: Sometimes}":                               "/image/pullPolicy",
		"tls: {mode: none}":                                            "/tls/mode",
		"tls: {mode: cert-manager}":                                    "/tls/issuer/name",
		"postgres: {enabled: true}":                                    "/tls/mode",
		"ingress: {enabled: true}":                                     "/ingress/host",
		"tokensvc: {enabled: true}":                                    "/tokensvc/publicURL",
		"signIn: {issuer: 'http://a.example'}":                         "/signIn/issuer",
		"signIn: {issuer: 'https://a.example'}":                        "/signIn/clientID",
		"rules: [{name: a}]":                                           "/rules/0",
		"rules: [{name: a, drop: true, keep: 1h}]":                     "/rules/0",
		"rules: [{name: A, drop: true}]":                               "/rules/0/name",
		"rules: [{name: a, drop: false}]":                              "/rules/0/drop",
		"rules: [{name: a, keep: long}]":                               "/rules/0/keep",
		"rules: [{name: a, keep: 7}]":                                  "/rules/0/keep",
		"rules: [{name: a, drop: true, reason: Killing}]":              "/rules/0",
		"rules: [{name: a, where: 'colour=red', drop: true}]":          "/rules/0/where",
		"rules: [{name: a, keep: 1.5.5d}]":                             "/rules/0/keep",
		"eventsvc: {retention: 1.5d}":                                  "/eventsvc/retention",
		"eventsvc: {retention: 1.5.5d}":                                "/eventsvc/retention",
		"eventsvc: {storage: {size: 1.5.5Gi}}":                         "/eventsvc/storage/size",
		"eventsvc: {podLabels: {a b: c}}":                              "invalid propertyName 'a b'",
		"eventsvc: {affinity: {node: c}}":                              "invalid propertyName 'node'",
		"image: {tag: 'a b'}":                                          "/image/tag",
		"image: {digest: 'sha256:1'}":                                  "/image/digest",
		"mirror: {replicas: 2, changes: [workloads]}":                  "/mirror/replicas",
		"httpRoute: {enabled: true}":                                   "/httpRoute",
		"bindings: [{role: reader, subjects: [{clientID: a}]}]":        `there is no role "reader"`,
		"monitoring: {enabled: 'yes'}":                                 "/monitoring/enabled",
		"tokensvc: {enabled: true, publicURL: 'https://a.example'}":    "tokensvc has no clients",
		"aggregated: {enabled: true, tls: {caBundle: x}}":              "/eventsvc/groupDomain",
		"aggregated: {advertise: [get, delete]}":                       "/aggregated/advertise",
		"aggregated: {replicas: 0}":                                    "/aggregated/replicas",
		"mirror: {changes: [Deployments]}":                             "/mirror/changes/0",
		"mirror: {changesSize: 1}":                                     "/mirror/changesSize",
		"alerts: {enabled: true}":                                      "/alerts/alertmanagers",
		"alerts: {alertmanagers: [alertmanager]}":                      "/alerts/alertmanagers/0",
		"alerts: {rules: [{name: A}]}":                                 "/alerts/rules/0",
		"alerts: {rules: [{name: A, search: x, silence: 5}]}":          "/alerts/rules/0/silence",
		"alerts: {rules: [{name: A, search: x, reason: y}]}":           "/alerts/rules/0",
		"hub: {url: 'http://a.example'}":                               "/hub/url",
		"hub: {url: 'https://a.example', caConfigMap: a, caSecret: b}": "/hub",
		"hub: {caConfigMap: a}":                                        "/hub/caConfigMap",
		"hub: {caSecret: a}":                                           "/hub/caSecret",
		"hub: {audience: a}":                                           "/hub/audience",
		"hub: {tokenURL: 'https://a.example'}":                         "/hub/tokenURL",
		"{hub: {url: 'https://a.example'}, tokensvc: {enabled: true, publicURL: 'https://b.example'}}": "/tokensvc/enabled",
		"{hub: {url: 'https://a.example'}, ingress: {enabled: true, host: b.example}}":                 "/ingress/enabled",
	} {
		var values map[string]any
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to name %s", text, err, want)
		}
	}
}

// TestEveryValue: each value has a comment, is in the schema, and is read by a template.
func TestEveryValue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var used bytes.Buffer
	for _, name := range templates(t) {
		template, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		used.Write(template)
	}
	var schema map[string]any
	raw, err := os.ReadFile(chartDir + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	for _, v := range leaves(t, text) {
		if v.comment == "" {
			t.Errorf("%s has no comment", v.path)
		}
		if !known(schema, strings.Split(v.path, ".")) {
			t.Errorf("%s is not in the schema", v.path)
		}
		last := v.path[strings.LastIndex(v.path, ".")+1:]
		if !strings.Contains(used.String(), ".Values."+v.path) && !strings.Contains(used.String(), "."+last) {
			t.Errorf("no template reads %s", v.path)
		}
	}
}

// known reports whether the schema has the value, and no others beside it.
func known(schema map[string]any, path []string) bool {
	for _, key := range path {
		properties, _ := schema["properties"].(map[string]any)
		if schema["additionalProperties"] != false {
			return false
		}
		var ok bool
		if schema, ok = properties[key].(map[string]any); !ok {
			return false
		}
	}
	return true
}

// TestRestricted: every pod may run where the namespace enforces the restricted standard.
func TestRestricted(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		pods := 0
		for _, object := range objects(t, values) {
			meta, spec := podOf(object)
			if spec == nil {
				continue
			}
			pods++
			for _, fault := range restricted(t, meta, spec) {
				t.Errorf("%s: %s: %s", name, meta.Name, fault)
			}
			if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
				t.Errorf("%s: %s: service links are on: their variables would be unknown settings", name, meta.Name)
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				if c.Resources.Limits.Memory().IsZero() || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s: %s has no memory limit, or writes to its image", name, meta.Name, c.Name)
				}
			}
			if program := strings.TrimPrefix(meta.Name, prefixOf(values)); program != "eventsvc-mirror" && program != "eventsvc-aggregate" && (spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken) {
				t.Errorf("%s: %s: a token for the API server is mounted", name, meta.Name)
			}
		}
		if pods < 2 {
			t.Errorf("%s: %d pods", name, pods)
		}
	}
}

// TestChanges: a mirror that follows objects may list and watch the kinds that are named and no others, and has a
// volume for its file, which no second pod opens. Without kinds there is none of this.
func TestChanges(t *testing.T) {
	t.Parallel()
	values := valueSets(t)["elsewhere"]
	watched := func() (all []string) {
		for _, rule := range find[*rbacv1.Role](t, objects(t, values), "eventsvc-mirror").Rules {
			if slices.Equal(rule.Verbs, []string{"list", "watch"}) {
				all = append(all, rule.APIGroups[0]+"/"+strings.Join(rule.Resources, ","))
			}
		}
		slices.Sort(all)
		return all
	}
	if got, want := watched(), []string{
		"/configmaps", "/nodes", "/persistentvolumeclaims", "/secrets", "/services", "apps/daemonsets", "apps/deployments", "apps/statefulsets",
		"argoproj.io/rollouts", "autoscaling/horizontalpodautoscalers", "batch/cronjobs", "networking.k8s.io/ingresses", "networking.k8s.io/networkpolicies",
		"policy/poddisruptionbudgets",
	}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	all := objects(t, values)
	claim := find[*corev1.PersistentVolumeClaim](t, all, "eventsvc-mirror").Spec
	mirror := find[*appsv1.Deployment](t, all, "eventsvc-mirror").Spec
	if claim.Resources.Requests.Storage().String() != "2Gi" || *claim.StorageClassName != "fast" || mirror.Strategy.Type != appsv1.RecreateDeploymentStrategyType ||
		!slices.ContainsFunc(mirror.Template.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "eventsvc-mirror"
		}) {
		t.Errorf("%+v\n%+v", claim, mirror)
	}
	delete(values["mirror"].(map[string]any), "changes")
	if got := watched(); len(got) > 0 || slices.ContainsFunc(objects(t, values), func(o runtime.Object) bool { _, is := o.(*corev1.PersistentVolumeClaim); return is }) {
		t.Errorf("without kinds: %v", got)
	}
}

// TestNamespaces: a mirror of some namespaces has its rights there, and in the cluster none but to read what namespaces
// there are.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	for set, more := range map[string]string{"elsewhere": "[namespaces]", "some-namespaces": ""} {
		var in []string
		var cluster string
		for _, object := range objects(t, valueSets(t)[set]) {
			switch o := object.(type) {
			case *rbacv1.Role:
				if o.Name == "eventsvc-mirror" && slices.Contains(o.Rules[0].Resources, "events") {
					in = append(in, o.Namespace)
				}
			case *rbacv1.ClusterRole:
				for _, rule := range o.Rules {
					cluster += fmt.Sprint(rule.Resources)
				}
			}
		}
		if !slices.Equal(in, []string{"shop", "mail"}) || cluster != more {
			t.Errorf("%s: in %v, and in the cluster %s", set, in, cluster)
		}
	}
}

// TestImages: images are what registry, repository, tag and digest say, and the label of the version is a label.
func TestImages(t *testing.T) {
	t.Parallel()
	for set, want := range map[string][2]string{
		"digest-in-tag": {"tidings/eventsvc:v1.2.3@sha256:", "v1.2.3"},
		"long-tag":      {"tidings/eventsvc:main-", "main-0123456789"},
		"pinned":        {"mirror.example.com/platform/tidings/eventsvc:v1.2.3@sha256:", "v1.2.3"},
	} {
		server := find[*appsv1.StatefulSet](t, objects(t, valueSets(t)[set]), "eventsvc")
		label := server.Labels["app.kubernetes.io/version"]
		if image := server.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, want[0]) || !strings.HasPrefix(label, want[1]) || len(validation.IsValidLabelValue(label)) > 0 {
			t.Errorf("%s: image %s, version %s", set, image, label)
		}
	}
}

// TestOnce: what a list has by a key, it has once: server-side apply refuses anything else. A variable of the values
// replaces that of the chart.
func TestOnce(t *testing.T) {
	t.Parallel()
	for set, values := range valueSets(t) {
		for _, object := range objects(t, values) {
			meta, spec := podOf(object)
			if spec == nil {
				continue
			}
			for _, c := range spec.Containers {
				var names []string
				for _, variable := range c.Env {
					names = append(names, variable.Name)
				}
				for _, mount := range c.VolumeMounts {
					names = append(names, mount.MountPath)
				}
				if all := len(names); len(slices.Compact(slices.Sorted(slices.Values(names)))) != all {
					t.Errorf("%s: %s has twice: %v", set, meta.Name, names)
				}
			}
		}
	}
	all := objects(t, valueSets(t)["own-variables"])
	for name, c := range map[string]corev1.Container{
		"EVENTSVC_CREATE_RATE=100:200":  find[*appsv1.StatefulSet](t, all, "eventsvc").Spec.Template.Spec.Containers[0],
		"EVENTSVC_COPY_LABELS=team,app": find[*appsv1.Deployment](t, all, "eventsvc-mirror").Spec.Template.Spec.Containers[0],
		"TOKENSVC_STOP_DELAY=10s":       find[*appsv1.Deployment](t, all, "tokensvc").Spec.Template.Spec.Containers[0],
	} {
		if !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name+"="+v.Value == name }) {
			t.Errorf("no %s in %v", name, c.Env)
		}
	}
}

// TestScheduled: each program's pods go where its values say, and carry what they say.
func TestScheduled(t *testing.T) {
	t.Parallel()
	pods := 0
	for _, object := range objects(t, valueSets(t)["scheduled"]) {
		meta, spec := podOf(object)
		if spec == nil || strings.HasPrefix(meta.Name, "tidings-test") {
			continue
		}
		pods++
		if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.PodAntiAffinity != nil || spec.PriorityClassName != "system-cluster-critical" ||
			spec.NodeSelector["pool"] != "history" || len(spec.Tolerations) != 1 || meta.Labels["team"] != "platform" || meta.Labels["app.kubernetes.io/name"] != meta.Name ||
			meta.Annotations["linkerd.io/inject"] != "disabled" {
			t.Errorf("%s: %+v %+v", meta.Name, meta, spec)
		}
	}
	if pods != 5 {
		t.Errorf("%d programs", pods)
	}
	server := find[*appsv1.StatefulSet](t, objects(t, valueSets(t)["private-authority"]), "eventsvc").Spec.Template.Spec
	if !slices.ContainsFunc(server.Volumes, func(v corev1.Volume) bool { return v.Name == "corporate" && v.Secret.SecretName == "corporate-ca" }) ||
		!slices.ContainsFunc(server.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/ssl/certs" }) {
		t.Errorf("%+v", server)
	}
}

var update = flag.Bool("update", false, "write the README of the chart")

// TestReadme: the README of the chart has each value with its type, its default and its comment. -update writes it.
func TestReadme(t *testing.T) {
	t.Parallel()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# tidings\n\n%s\n\n## Values\n\n| Key | Type | Default | Description |\n|-----|------|---------|-------------|\n", chart.Metadata.Description)
	for _, v := range leaves(t, text) {
		var of any = chart.Values
		for _, key := range strings.Split(v.path, ".") {
			of = of.(map[string]any)[key]
		}
		kind := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "bool", reflect.Slice: "list", reflect.Map: "object"}[reflect.ValueOf(of).Kind()]
		preset, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		comment := strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll("\n"+v.comment, "\n#", "")), "|", "\\|")
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", v.path, cmp.Or(kind, "int"), preset, comment)
	}
	if *update {
		if err := os.WriteFile(chartDir+"/README.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readme, err := os.ReadFile(chartDir + "/README.md"); err != nil || string(readme) != b.String() {
		t.Errorf("the README is not that of the values: go test -run TestReadme -update . (%v)", err)
	}
}

// TestAlertsRead: what tells somebody may read events and nothing else, and has no token for the cluster.
func TestAlertsRead(t *testing.T) {
	t.Parallel()
	all := objects(t, valueSets(t)["alerts"])
	text := find[*corev1.ConfigMap](t, all, "eventsvc-access").Data["policy.yaml"]
	var policy struct {
		Bindings []struct {
			Role     string
			Subjects []struct{ ClientID string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &policy); err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, b := range policy.Bindings {
		if b.Subjects[0].ClientID == "system:serviceaccount:tidings:eventsvc-alerts" {
			roles = append(roles, b.Role)
		}
	}
	if !slices.Equal(roles, []string{"events:read"}) {
		t.Errorf("%v\n%s", roles, text)
	}
	for _, object := range all {
		if b, ok := object.(*rbacv1.ClusterRoleBinding); ok && b.Subjects[0].Name == "eventsvc-alerts" {
			t.Errorf("it has a right in the cluster: %+v", b)
		}
	}
	if env := find[*appsv1.StatefulSet](t, all, "eventsvc-alerts").Spec.Template.Spec.Containers[0].Env; !slices.Contains(env, corev1.EnvVar{
		Name: "EVENTSVC_ALERTMANAGER", Value: "http://alertmanager-0.monitoring:9093,http://alertmanager-1.monitoring:9093",
	}) {
		t.Errorf("%v", env)
	}
}

// TestAggregated: the aggregated API is off by default. On, it is what no cluster is harmed by: behind the cluster's
// own groups, one pod at least, on different nodes, reached although eventsvc is away, and taken out by one command.
func TestAggregated(t *testing.T) {
	t.Parallel()
	for _, object := range objects(t, nil) {
		if object.GetObjectKind().GroupVersionKind().Kind == "APIService" {
			t.Error("the default registers an API")
		}
	}
	values := valueSets(t)["aggregated"]
	all := objects(t, values)
	var registered *unstructured.Unstructured
	for _, object := range all {
		if u, ok := object.(*unstructured.Unstructured); ok && u.GetKind() == "APIService" {
			registered = u
		}
	}
	want := map[string]any{
		"group": "events.example.com", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
		"service":  map[string]any{"name": "eventsvc-aggregate", "namespace": "tidings", "port": int64(443)},
		"caBundle": base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\n")),
	}
	raw, _ := yaml.Marshal(registered.Object["spec"])
	wanted, _ := yaml.Marshal(want)
	if string(raw) != string(wanted) || registered.GetName() != "v1.events.example.com" {
		t.Errorf("%s, want\n%s", raw, wanted)
	}
	pods := find[*appsv1.Deployment](t, all, "eventsvc-aggregate").Spec
	if *pods.Replicas != 2 || pods.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 || pods.Template.Spec.Affinity.PodAntiAffinity == nil {
		t.Errorf("%+v", pods)
	}
	if budget := find[*policyv1.PodDisruptionBudget](t, all, "eventsvc-aggregate").Spec; budget.MinAvailable.IntValue() != 1 {
		t.Errorf("%+v", budget)
	}
	service := find[*corev1.Service](t, all, "eventsvc-aggregate").Spec
	if !service.PublishNotReadyAddresses || service.Ports[0].TargetPort.String() != "https" || pods.Template.Spec.Containers[0].Ports[0].ContainerPort != 10250 {
		t.Errorf("%+v", service)
	}
	if rule := find[*networkingv1.NetworkPolicy](t, all, "eventsvc-aggregate").Spec.Ingress[0]; len(rule.From) > 0 {
		t.Errorf("the control plane is shut out: %+v", rule)
	}
	files, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"kubectl get history -n NAMESPACE", "kubectl delete apiservice v1.events.example.com"} {
		if notes := files["tidings/templates/NOTES.txt"]; !strings.Contains(notes, "\n  "+text+"\n") {
			t.Errorf("the notes lack %q:\n%s", text, notes)
		}
	}
	for set, aggregated := range map[string]bool{"aggregated": true, "aggregated-cert-manager": false} {
		labels := find[*rbacv1.ClusterRole](t, objects(t, valueSets(t)[set]), "tidings-history-view").Labels
		if got := labels["rbac.authorization.k8s.io/aggregate-to-view"] == "true"; got != aggregated {
			t.Errorf("%s: %v", set, labels)
		}
	}
	if text := files["tidings/templates/aggregate.yaml"]; strings.Contains(text, "insecureSkipTLSVerify") || strings.Contains(text, "inject-ca-from") {
		t.Error(text)
	}
	all = objects(t, valueSets(t)["aggregated-own-authority"])
	rule := find[*rbacv1.ClusterRole](t, all, "eventsvc-aggregate-authority").Rules[0]
	own := find[*appsv1.Deployment](t, all, "eventsvc-aggregate").Spec.Template.Spec
	if !slices.Equal(rule.ResourceNames, []string{"v1.events.example.com"}) || !slices.Equal(rule.Verbs, []string{"get", "update"}) ||
		slices.ContainsFunc(own.Volumes, func(v corev1.Volume) bool { return v.Secret != nil }) {
		t.Errorf("%+v %+v", rule, own.Volumes)
	}
	files, err = render(t, valueSets(t)["aggregated-cert-manager"])
	if text := files["tidings/templates/aggregate.yaml"]; err != nil || !strings.Contains(text, "cert-manager.io/inject-ca-from: tidings/eventsvc-aggregate") || strings.Contains(text, "caBundle") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestPackage: the release sets the images, and Helm makes one file of the chart that renders to the same, and has the
// alerts.
func TestPackage(t *testing.T) {
	t.Parallel()
	workflow, err := os.ReadFile(root + "/.github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"repository: tidings$|", "helm package deploy/helm/tidings", "oci://"} {
		if !strings.Contains(string(workflow), line) {
			t.Errorf("the release does not say %q", line)
		}
	}
	values, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(values), "\n  repository: tidings\n") != 1 {
		t.Error("the line that the release replaces is not there once")
	}
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = "1.2.3", "v1.2.3"
	file, err := chartutil.Save(chart, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := loader.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "tidings", Namespace: namespace, IsInstall: true}
	all, err := util.ToRenderValues(packed, map[string]any{"monitoring": map[string]any{"enabled": true}}, release, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(packed, all)
	if err != nil || !strings.Contains(files["tidings/templates/monitoring.yaml"], "alert: ServiceDown") || !strings.Contains(files["tidings/templates/eventsvc.yaml"], "image: tidings/eventsvc:v1.2.3\n") {
		t.Errorf("%v\n%s", err, files["tidings/templates/eventsvc.yaml"])
	}
}
