package chart_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ours finds what refers to an object of the release by its name: accounts, volumes, rights, hosts and what is said to
// people.
var ours = regexp.MustCompile(`(?:serviceAccountName: |serviceName: |claimName: |secretName: |configMap: \{name: |kind: (?:Role|ClusterRole|ServiceAccount|Service|ConfigMap), name: ` +
	`|backendRefs: \[\{name: |service: \{name: |resourceNames: \[|system:serviceaccount:tidings:|inject-ca-from: tidings/|https?://|dnsNames: \[|hostname: |Pod/` +
	`|_HOSTS, value: |_HTTP_HOST, value: |TLS_CA_CONFIGMAP, value: tidings/|(?:deployment|service)/|create token |in the ConfigMap )([a-z][-a-z0-9]*[a-z0-9])`)

// foreignNames are names that a release refers to and does not make.
var foreignNames = []string{
	"system", "extension-apiserver-authentication-reader", "kube-root-ca", "v1", "kubernetes", "localhost", // of the cluster
	"tokensvc-keys", "eventsvc-dsn", // secrets that people make, and name in values
}

// TestNames: with a prefix, all names of a release begin with it, but that of the API that it registers. What refers to
// them follows, and nothing else changes. So a namespace has room for two releases.
func TestNames(t *testing.T) {
	t.Parallel()
	const prefix = "zz-"
	for set, values := range valueSets(t) {
		if prefixOf(values) != "" {
			continue
		}
		plain, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		values = maps.Clone(values)
		values["fullnameOverride"] = strings.TrimSuffix(prefix, "-")
		named, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		given := fmt.Sprint(values)
		for name, text := range named {
			if diff := cmp.Diff(plain[name], strings.ReplaceAll(text, prefix, "")); diff != "" {
				t.Errorf("%s: %s (-plain +named):\n%s", set, name, diff)
			}
			for _, found := range ours.FindAllStringSubmatch(text, -1) {
				if to := found[1]; !strings.HasPrefix(to, prefix) && !slices.Contains(foreignNames, to) && !strings.Contains(given, to) {
					t.Errorf("%s: %s: %q names what is not of this release", set, name, found[0])
				}
			}
		}
		for _, object := range objects(t, values) {
			if name := object.(metav1.Object).GetName(); !strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "v1.events.") {
				t.Errorf("%s: %T %s", set, object, name)
			}
		}
	}
}

// TestNameOverride: the prefix is made of the release and the name as Helm's own charts do it, and is short enough for
// every name.
func TestNameOverride(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ release, name, fullname, service string }{
		{"tidings", "", "", "eventsvc"},
		{"prod", "history", "", "prod-history-eventsvc"},
		{"prod-history", "history", "", "prod-history-eventsvc"},
		{"prod", "history", "kept", "kept-eventsvc"},
		{"a-release-of-thirty-five-characters", "history", "", "a-release-of-thirty-five-characters-eventsvc"},
		{"a-release-of-quite-a-few-characters-more", "history", "", "a-release-of-quite-a-few-characters-eventsvc"},
	} {
		values := map[string]any{"nameOverride": tc.name, "fullnameOverride": tc.fullname}
		files, err := renderAs(t, tc.release, values)
		if err != nil || !strings.Contains(files["tidings/templates/eventsvc.yaml"], "kind: Service\nmetadata:\n  name: "+tc.service+"\n") {
			t.Errorf("%+v: %v\n%s", tc, err, files["tidings/templates/eventsvc.yaml"])
		}
	}
	for _, release := range []string{"1st", "a.b"} {
		if _, err := renderAs(t, release, map[string]any{"nameOverride": "history"}); err == nil || !strings.Contains(err.Error(), "set fullnameOverride") {
			t.Errorf("%s: %v", release, err)
		}
	}
}
