package discovery

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

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/stream"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
)

// Namespaces serves namespaces, which are not stored: there are the well-known ones, those
// named in the settings, and those that hold events which the caller may see. That is enough for clients that list
// namespaces before they ask for anything else.
//
// Namespaces are read from the store at a revision, so that their pages show one moment and
// a watch goes on where a list ended. All methods are safe for concurrent use and return API
// errors or errors of the store.
type Namespaces struct {
	store     store.Store
	codec     *codec.Codec
	io        *httpio.IO
	streams   *stream.Streams
	maxTerms  int
	permanent []string // those that are there whether they hold events or not
}

// NewNamespaces returns the namespaces of a store, and those that are named. Selectors may have
// so many terms.
func NewNamespaces(s store.Store, c *codec.Codec, io *httpio.IO, streams *stream.Streams, maxTerms int, named []string) *Namespaces {
	return &Namespaces{
		store: s, codec: c, io: io, streams: streams, maxTerms: maxTerms,
		permanent: append([]string{"default", "kube-node-lease", "kube-public", "kube-system"}, named...),
	}
}

// Route serves the paths of namespaces.
func (n *Namespaces) Route(e *echo.Echo, guard *access.Guard) {
	e.GET("/api/v1/namespaces", n.streams.ListOrWatch(access.Namespaces, false, n.list))
	e.GET("/api/v1/namespaces/:namespace", guard.Allow(access.Namespaces, policy.Get, n.get))
}

// Exists returns a 404 for a namespace that was not there at a revision for a request, and nil
// for one that was. Revision 0 is the newest.
func (n *Namespaces) Exists(ctx context.Context, may access.Grant, namespace string, revision uint64) error {
	if slices.Contains(n.permanent, namespace) {
		return nil
	}
	_, found, _, err := n.first(ctx, store.Query{Namespace: namespace, Revision: revision, Limit: 1, Selector: may.Narrow(nil)})
	if err != nil {
		return err
	}
	if !found {
		return apierrors.NewNotFound(access.Namespaces, namespace)
	}
	return nil
}

// at returns the namespaces of a revision, and the revision. It reads one event of each
// namespace, however many there are.
func (n *Namespaces) at(ctx context.Context, may access.Grant, revision uint64) (map[string]bool, uint64, error) {
	names := map[string]bool{}
	for _, name := range n.permanent {
		names[name] = true
	}
	q := store.Query{Revision: revision, Limit: 1, Selector: may.Narrow(nil)}
	for {
		name, found, at, err := n.first(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		if q.Revision = at; !found {
			return names, at, nil
		}
		names[name] = true
		q.After = store.Key{Namespace: name, Name: "\xff"} // after every name in it: names are UTF-8
	}
}

// first returns the namespace of the first event of a list, and the revision. A page may have
// no event although there are more, behind many that were deleted.
func (n *Namespaces) first(ctx context.Context, q store.Query) (namespace string, found bool, revision uint64, err error) {
	for {
		next, page, err := store.Records(ctx, n.store, q)
		if err != nil {
			return "", false, 0, err
		}
		if len(next) > 0 {
			return next[0].Namespace, true, page.Revision, nil
		}
		if !page.More {
			return "", false, page.Revision, nil
		}
		q.Revision, q.After = page.Revision, page.Last
	}
}

// get answers with one namespace.
func (n *Namespaces) get(c echo.Context, may access.Grant) error {
	f, err := codec.Negotiate(c.Request(), codec.ScopeObject)
	if err != nil {
		return err
	}
	name := c.Param("namespace")
	if err := n.Exists(c.Request().Context(), may, name, 0); err != nil {
		return err
	}
	return n.io.Object(c, http.StatusOK, f, object(f, newNamespace(name, 1), true))
}

// tokenNamespace is the namespace of continue tokens, which have a namespace and a name.
const tokenNamespace = "namespaces"

// list answers with namespaces, page by page if need be, or watches them.
func (n *Namespaces) list(c echo.Context, may access.Grant, o metav1.ListOptions, f codec.Format) (follow func(), err error) {
	match, err := n.selector(o)
	if err != nil {
		return nil, err
	}
	if o.Watch {
		return n.watch(c, may, o, f, match)
	}
	start, err := httpio.ParseStart(tokenNamespace, o, n.store.Revision())
	if err != nil {
		return nil, err
	}
	all, revision, err := n.at(c.Request().Context(), may, start.Revision)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return name <= start.After.Name || !match(name) })
	meta := metav1.ListMeta{ResourceVersion: httpio.FormatVersion(revision)}
	if limit := o.Limit; limit > 0 && int64(len(names)) > limit {
		names = names[:limit]
		meta.Continue = httpio.EncodeContinue(tokenNamespace, int64(revision), store.Key{Name: names[limit-1]}, 0)
	}
	return nil, n.io.Object(c, http.StatusOK, f, listObject(f, meta, names))
}

// selector returns which namespaces a list or watch is about.
func (n *Namespaces) selector(o metav1.ListOptions) (func(name string) bool, error) {
	if err := event.CheckTerms(o.FieldSelector, o.LabelSelector, n.maxTerms); err != nil {
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
