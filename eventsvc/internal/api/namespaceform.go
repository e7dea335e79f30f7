package api

import (
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
)

// newNamespace is how a namespace looks. It never changes, so it has always
// the same version and an uid made from its name.
func newNamespace(name string, rv uint64) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()),
			ResourceVersion: formatVersion(rv), Labels: map[string]string{corev1.LabelMetadataName: name},
		},
		Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
}

// namespaceForm is a namespace in the form that the client asked for.
func namespaceForm(f codec.Format, ns *corev1.Namespace, meta metav1.ListMeta, headers bool) runtime.Object {
	switch f.As {
	case codec.Table:
		t := newNamespaceTable(f, meta, headers)
		t.Rows = []metav1.TableRow{namespaceRow(f, ns)}
		return t
	case codec.Partial:
		return partialNamespace("meta.k8s.io/v1", ns)
	default:
		return ns
	}
}

// namespaceList is a list of namespaces in the form that the client asked for.
func namespaceList(f codec.Format, names []string, meta metav1.ListMeta) runtime.Object {
	switch f.As {
	case codec.Table:
		t := newNamespaceTable(f, meta, true)
		for _, name := range names {
			t.Rows = append(t.Rows, namespaceRow(f, newNamespace(name, 1)))
		}
		return t
	case codec.Partial:
		list := &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}, ListMeta: meta,
			Items: make([]metav1.PartialObjectMetadata, 0, len(names)),
		}
		for _, name := range names {
			list.Items = append(list.Items, *partialNamespace("meta.k8s.io/v1", newNamespace(name, 1)))
		}
		return list
	default:
		list := &corev1.NamespaceList{
			TypeMeta: metav1.TypeMeta{Kind: "NamespaceList", APIVersion: "v1"}, ListMeta: meta,
			Items: make([]corev1.Namespace, 0, len(names)),
		}
		for _, name := range names {
			ns := newNamespace(name, 1)
			ns.TypeMeta = metav1.TypeMeta{} // the list says it for all
			list.Items = append(list.Items, *ns)
		}
		return list
	}
}

func partialNamespace(apiVersion string, ns *corev1.Namespace) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: apiVersion}, ObjectMeta: ns.ObjectMeta,
	}
}

func newNamespaceTable(f codec.Format, meta metav1.ListMeta, headers bool) *metav1.Table {
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
	return t
}

// namespaceRow is a namespace's row. When it began is not known.
func namespaceRow(f codec.Format, ns *corev1.Namespace) metav1.TableRow {
	row := metav1.TableRow{Cells: []any{ns.Name, string(ns.Status.Phase), "<unknown>"}}
	switch f.IncludeObject {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		row.Object.Object = ns
	default:
		row.Object.Object = partialNamespace("meta.k8s.io/"+f.TableVersion, ns)
	}
	return row
}
