package api

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/store"
)

// wellKnown are the namespaces that every cluster has.
func wellKnown() []string {
	return []string{"default", "kube-node-lease", "kube-public", "kube-system"}
}

// admitNamespace tells whether events may be created in a namespace. Unless
// namespaces are required, all are there.
func (r *resource) admitNamespace(ctx context.Context, namespace string) error {
	if !r.RequireNamespaces || slices.Contains(wellKnown(), namespace) || slices.Contains(r.Namespaces, namespace) {
		return nil
	}
	page, err := r.store.List(ctx, store.Query{Namespace: namespace, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Records) == 0 {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	}
	return nil
}
