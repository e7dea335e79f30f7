package api

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Namespaces are not stored. There are the well-known ones, those named in the
// settings, and those that hold events: enough for clients that list them
// before they ask for anything else.

// permanent are the namespaces that are there whether they hold events or not.
func (s *Server) permanent() []string {
	return append([]string{"default", "kube-node-lease", "kube-public", "kube-system"}, s.Namespaces...)
}

// admitNamespace tells whether events may be created in a namespace. Unless
// namespaces are required, all are there.
func (s *Server) admitNamespace(ctx context.Context, namespace string) error {
	if !s.RequireNamespaces {
		return nil
	}
	return s.namespaceExists(ctx, namespace, 0)
}

// namespaceExists is a 404 for a namespace that was not there at a revision.
func (s *Server) namespaceExists(ctx context.Context, namespace string, revision uint64) error {
	if slices.Contains(s.permanent(), namespace) {
		return nil
	}
	page, err := s.store.List(ctx, store.Query{Namespace: namespace, Revision: revision, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Records) == 0 {
		return apierrors.NewNotFound(namespacesResource, namespace)
	}
	return nil
}

// namespacesAt returns the namespaces that there were at a revision, sorted.
// It steps from namespace to namespace, however many events they hold.
func (s *Server) namespacesAt(ctx context.Context, revision uint64) ([]string, uint64, error) {
	names := map[string]bool{}
	for _, name := range s.permanent() {
		names[name] = true
	}
	q := store.Query{Revision: revision, Limit: 1}
	for {
		page, err := s.store.List(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		q.Revision = page.Revision
		if len(page.Records) == 0 {
			return slices.Sorted(maps.Keys(names)), page.Revision, nil
		}
		name := page.Records[0].Namespace
		names[name] = true
		q.After = store.Key{Namespace: name, Name: "\xff"} // behind every name in it: they are UTF-8
	}
}

func namespaceResource() metav1.APIResource {
	return metav1.APIResource{
		Name: "namespaces", SingularName: "namespace", Kind: "Namespace", Verbs: metav1.Verbs{"get", "list", "watch"},
		ShortNames: []string{"ns"}, StorageVersionHash: storageHash("/v1/Namespace"),
	}
}

// getNamespace answers with one namespace.
func (s *Server) getNamespace(c echo.Context) error {
	f, err := s.codec.Negotiate(c.Request(), codec.ScopeObject)
	if err != nil {
		return err
	}
	name := c.Param("namespace")
	if err := s.namespaceExists(c.Request().Context(), name, 0); err != nil {
		return err
	}
	ns := newNamespace(name, 1)
	return s.runtime(c, http.StatusOK, f, namespaceForm(f, ns, metav1.ListMeta{ResourceVersion: ns.ResourceVersion}, true))
}

// listNamespaces answers with namespaces, page by page if need be, or watches
// them.
func (s *Server) listNamespaces(c echo.Context, o metav1.ListOptions, f codec.Format) (follow func() error, err error) {
	match, err := s.namespaceSelector(o)
	if err != nil {
		return nil, err
	}
	if o.Watch {
		return s.watchNamespaces(c, o, f, match)
	}
	revision, after, err := s.namespacePage(o)
	if err != nil {
		return nil, err
	}
	names, revision, err := s.namespacesAt(c.Request().Context(), revision)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name <= after || !match(name) })
	meta := metav1.ListMeta{ResourceVersion: formatVersion(revision)}
	if limit := o.Limit; limit > 0 && int64(len(names)) > limit {
		names = names[:limit]
		meta.Continue = encodeContinue("namespaces", int64(revision), store.Key{Name: names[limit-1]})
	}
	return nil, s.runtime(c, http.StatusOK, f, namespaceList(f, names, meta))
}

// namespacePage is the revision that a list shows and the name that it goes on
// behind.
func (s *Server) namespacePage(o metav1.ListOptions) (revision uint64, after string, err error) {
	rv, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return 0, "", err
	}
	if o.Continue != "" {
		if rv != 0 {
			return 0, "", apierrors.NewBadRequest(textContinueVersion)
		}
		revision, key, err := decodeContinue("namespaces", o.Continue)
		return revision, key.Name, err
	}
	if current := s.store.Revision(); rv > current {
		return 0, "", tooLarge(rv, current, 0)
	}
	if o.ResourceVersionMatch == metav1.ResourceVersionMatchExact || o.ResourceVersionMatch == "" && o.Limit > 0 {
		return rv, "", nil
	}
	return 0, "", nil
}

// namespaceSelector tells which namespaces a list or watch is about.
func (s *Server) namespaceSelector(o metav1.ListOptions) (func(name string) bool, error) {
	if err := event.CheckTerms(o.FieldSelector, o.LabelSelector, s.MaxSelectorTerms); err != nil {
		return nil, err
	}
	byLabel, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range byField.Requirements() {
		if requirement.Field != "metadata.name" && requirement.Field != "status.phase" {
			return nil, apierrors.NewBadRequest("field label not supported: " + requirement.Field)
		}
	}
	return func(name string) bool {
		return byLabel.Matches(labels.Set{corev1.LabelMetadataName: name}) &&
			byField.Matches(fields.Set{"metadata.name": name, "status.phase": string(corev1.NamespaceActive)})
	}, nil
}
