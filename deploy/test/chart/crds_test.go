package chart_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	_ "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"tidings.example/shared/waittest"
)

// crds are the definitions, in the modules of their projects, of the foreign kinds that the chart makes. The imports
// above have go.mod name the versions.
var crds = map[string][]string{
	"sigs.k8s.io/gateway-api": {
		"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
		"config/crd/standard/gateway.networking.k8s.io_backendtlspolicies.yaml",
	},
	"github.com/prometheus-operator/prometheus-operator": {
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	},
	"github.com/cert-manager/cert-manager": {"deploy/crds/cert-manager.io_certificates.yaml"},
}

// define makes the API server know the foreign kinds, and waits until it serves them.
func (c *cluster) define() {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	to := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for module, files := range crds {
		dir := moduleDir(c.t, module)
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
			if err != nil {
				c.t.Fatal(err)
			}
			crd := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(text, &crd.Object); err != nil {
				c.t.Fatalf("%s: %v", file, err)
			}
			if _, err := to.Create(c.t.Context(), crd, metav1.CreateOptions{}); err != nil {
				c.t.Fatalf("%s: %v", file, err)
			}
		}
	}
	waittest.Becomes(c.t, func() error {
		served := map[string]bool{}
		_, lists, err := c.admin.Discovery().ServerGroupsAndResources()
		for _, list := range lists {
			for _, r := range list.APIResources {
				served[list.GroupVersion+" "+r.Kind] = true
			}
		}
		for _, kind := range foreign {
			if !served[kind] {
				err = errors.Join(err, fmt.Errorf("%s is not served", kind))
			}
		}
		return err
	})
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
