package discovery

import (
	"context"
	"maps"
	"slices"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/stream"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// namespaceSource is a [stream.Source]: it follows all events and reports which namespaces
// begin and cease to hold some.
type namespaceSource struct {
	*Namespaces
	may    access.Grant
	format codec.Format
	match  func(name string) bool
	known  map[string]bool // the namespaces now; nil: not looked up yet
	later  bool            // a frame was sent: tables have columns only in the first
}

// watch streams the changes of namespaces.
func (n *Namespaces) watch(c echo.Context, may access.Grant, o metav1.ListOptions, f codec.Format, match func(string) bool) (follow func(), err error) {
	q := store.WatchQuery{Selector: may.Narrow(nil)}
	return n.streams.Open(c, may, o, q, f, n.codec.NewFrames(f, event.CoreV1), &namespaceSource{Namespaces: n, may: may, format: f, match: match})
}

// Begin implements [stream.Source].
func (n *namespaceSource) Begin(ctx context.Context) (revision uint64, err error) {
	n.known, revision, err = n.at(ctx, n.may, 0)
	return revision, err
}

// Initial implements [stream.Source].
func (n *namespaceSource) Initial(_ context.Context, s *stream.Stream) error {
	for _, name := range slices.Sorted(maps.Keys(n.known)) {
		if err := n.send(s, watch.Added, newNamespace(name, 1)); err != nil {
			return err
		}
	}
	return nil
}

// Deliver implements [stream.Source]: the change of an event may be the first of its
// namespace or leave none in it.
func (n *namespaceSource) Deliver(ctx context.Context, s *stream.Stream, d store.Delivery) (err error) {
	if n.known == nil {
		if n.known, _, err = n.at(ctx, n.may, s.Revision); err != nil {
			return err
		}
	}
	name := d.Object.Namespace
	if d.Type != store.Removed {
		if n.known[name] {
			return nil
		}
		n.known[name] = true
		return n.send(s, watch.Added, newNamespace(name, d.Revision))
	}
	if err = n.Exists(ctx, n.may, name, d.Revision); !apierrors.IsNotFound(err) {
		return err
	}
	delete(n.known, name)
	return n.send(s, watch.Deleted, newNamespace(name, d.Revision))
}

// Bookmark implements [stream.Source].
func (n *namespaceSource) Bookmark(s *stream.Stream, initialEnd bool) error {
	ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}}
	ns.ResourceVersion = httpio.FormatVersion(s.Revision)
	if initialEnd {
		ns.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return n.frame(s, watch.Bookmark, ns)
}

// send sends a change of a namespace if the watch is about it.
func (n *namespaceSource) send(s *stream.Stream, t watch.EventType, ns *corev1.Namespace) error {
	if !n.match(ns.Name) {
		return nil
	}
	return n.frame(s, t, ns)
}

func (n *namespaceSource) frame(s *stream.Stream, t watch.EventType, ns *corev1.Namespace) error {
	obj := object(n.format, ns, !n.later)
	n.later = true
	return s.Append(s.Frames.AppendRuntime(s.Buffer(), t, obj))
}
