package event

import (
	"fmt"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// LimitError is the answer to a request beyond a limit of this service. Limit names
// the limit, for the metrics.
type LimitError struct {
	*apierrors.StatusError
	Limit string
}

// The limits of labels and annotations. kube-apiserver has only the second.
const (
	maxLabels      = 64 << 10
	maxAnnotations = validation.TotalAnnotationSizeLimitB
)

// CheckSize returns a [*LimitError] if the labels or annotations of an event have
// more bytes than are allowed. Those that have not grown pass, so that an event which
// was imported with more can still be changed. For a new event live is nil.
func CheckSize(ev, live *eventsv1.Event) error {
	if live == nil {
		live = &eventsv1.Event{}
	}
	for _, c := range []struct {
		name       string
		size, live int
		limit      int
	}{
		{"labels", bytesIn(ev.Labels), bytesIn(live.Labels), maxLabels},
		{"annotations", bytesIn(ev.Annotations), bytesIn(live.Annotations), maxAnnotations},
	} {
		if c.size > c.limit && c.size > c.live {
			return &LimitError{Invalid(ev.Name, field.ErrorList{
				field.TooLong(field.NewPath("metadata", c.name), "", c.limit),
			}), c.name}
		}
	}
	return nil
}

func bytesIn(m map[string]string) int {
	n := 0
	for name, value := range m {
		n += len(name) + len(value)
	}
	return n
}

// CheckTerms returns a [*LimitError] if selectors have more than limit requirements
// and values, because each may be evaluated for every event that is read or
// delivered. It counts commas, so that it costs little before the selectors are parsed.
func CheckTerms(fieldSelector, labelSelector string, limit int) error {
	terms := 0
	for _, selector := range []string{fieldSelector, labelSelector} {
		if selector != "" {
			terms += 1 + strings.Count(selector, ",")
		}
	}
	if terms <= limit {
		return nil
	}
	return &LimitError{apierrors.NewBadRequest(fmt.Sprintf(
		"the selectors have %d requirements and values, more than %d: ask for less and choose from the answer", terms, limit)), "selector"}
}
