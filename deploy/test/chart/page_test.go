package chart_test

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestProductionPage: the values for production of the page about the chart render, and their pods keep to the
// restricted standard.
func TestProductionPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/deploy/docs/how-to/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, valuesOn(t, page, 0))
	for _, name := range []string{"eventsvc", "eventsvc-alerts"} {
		set := find[*appsv1.StatefulSet](t, all, name)
		for _, fault := range restricted(t, set.Spec.Template.ObjectMeta, &set.Spec.Template.Spec) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}
