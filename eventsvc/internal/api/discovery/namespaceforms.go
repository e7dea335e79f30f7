package discovery

import (
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
)

// newNamespace returns a namespace as clients see it. Its uid is made from its name.
func newNamespace(name string, rv uint64) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()),
			ResourceVersion: httpio.FormatVersion(rv), Labels: map[string]string{corev1.LabelMetadataName: name},
		},
		Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
}

// object is a namespace in the form that the client asked for. A table has columns
// only with headers.
func object(f codec.Format, ns *corev1.Namespace, headers bool) runtime.Object {
	switch f.As {
	case codec.Table:
		return table(f, metav1.ListMeta{ResourceVersion: ns.ResourceVersion}, headers, ns)
	case codec.Partial:
		return partial("v1", ns)
	}
	return ns
}

// listObject is a list of namespaces in the form that the client asked for.
func listObject(f codec.Format, meta metav1.ListMeta, names []string) runtime.Object {
	all := make([]*corev1.Namespace, len(names))
	for i, name := range names {
		all[i] = newNamespace(name, 1)
	}
	switch f.As {
	case codec.Table:
		return table(f, meta, true, all...)
	case codec.Partial:
		list := &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}, ListMeta: meta,
			Items: make([]metav1.PartialObjectMetadata, len(all)),
		}
		for i, ns := range all {
			list.Items[i] = *partial("v1", ns)
		}
		return list
	}
	list := &corev1.NamespaceList{
		TypeMeta: metav1.TypeMeta{Kind: "NamespaceList", APIVersion: "v1"}, ListMeta: meta, Items: make([]corev1.Namespace, len(all)),
	}
	for i, ns := range all {
		list.Items[i] = *ns
		list.Items[i].TypeMeta = metav1.TypeMeta{} // the list says it for all
	}
	return list
}

func partial(version string, ns *corev1.Namespace) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/" + version}, ObjectMeta: ns.ObjectMeta,
	}
}

// table has a row for each namespace. Its age is not known.
func table(f codec.Format, meta metav1.ListMeta, headers bool, all ...*corev1.Namespace) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/" + f.TableVersion}, ListMeta: meta, Rows: []metav1.TableRow{},
	}
	if headers {
		about := metav1.ObjectMeta{}.SwaggerDoc()
		t.ColumnDefinitions = []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: about["name"]},
			{Name: "Status", Type: "string", Description: "The status of the namespace"},
			{Name: "Age", Type: "string", Description: about["creationTimestamp"]},
		}
	}
	for _, ns := range all {
		row := metav1.TableRow{Cells: []any{ns.Name, string(ns.Status.Phase), "<unknown>"}}
		switch f.IncludeObject {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object.Object = ns
		default:
			row.Object.Object = partial(f.TableVersion, ns)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
