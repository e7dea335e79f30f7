package dump

import (
	"fmt"
	"maps"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"tidings.example/eventsvc/internal/event"
)

// clusterLabel is the label that people select by. Queries use [event.ClusterLabel]. A mirror sets both.
const clusterLabel = "cluster"

// LabelsOf returns the labels that events of a cluster get, besides others.
func LabelsOf(cluster string, others map[string]string) (map[string]string, error) {
	all := maps.Clone(others)
	if cluster != "" {
		if all == nil {
			all = map[string]string{}
		}
		all[event.ClusterLabel], all[clusterLabel] = cluster, cluster
		if errs := validation.IsValidLabelValue(cluster); len(errs) > 0 {
			return nil, fmt.Errorf("--cluster %q cannot be the value of a label: %s", cluster, strings.Join(errs, "; "))
		}
	}
	if errs := metav1validation.ValidateLabels(all, field.NewPath("--label")); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return all, nil
}
