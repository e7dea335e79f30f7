package api

import (
	"context"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// namespaceStream is a watch of namespaces: it follows all events and tells
// which namespaces begin and cease to hold some.
type namespaceStream struct {
	*stream
	format codec.Format
	match  func(name string) bool
	names  []string        // that there are when the stream begins
	known  map[string]bool // that there are now; nil: not looked up yet
	later  bool            // a frame was sent: tables have columns only in the first
}

// watchNamespaces streams the changes of namespaces.
func (s *Server) watchNamespaces(c echo.Context, o metav1.ListOptions, f codec.Format, match func(string) bool) (follow func() error, err error) {
	end := s.upgradable(c, f)
	n := &namespaceStream{stream: s.newStream(c, f, s.codec.NewFrames(f, event.CoreV1), o.AllowWatchBookmarks), format: f, match: match}
	n.stream.deliver, n.stream.bookmark = n.deliver, n.bookmark
	n.atEnd = []func(){end}
	return n.open(c, o, watched{begin: n.begin, initial: n.initial})
}

// begin looks up which namespaces there are.
func (n *namespaceStream) begin(ctx context.Context) (uint64, error) {
	return n.learn(ctx, 0)
}

func (n *namespaceStream) learn(ctx context.Context, revision uint64) (uint64, error) {
	names, revision, err := n.namespacesAt(ctx, revision)
	n.names, n.known = names, make(map[string]bool, len(names))
	for _, name := range names {
		n.known[name] = true
	}
	return revision, err
}

func (n *namespaceStream) initial(context.Context) error {
	for _, name := range n.names {
		if err := n.send(watch.Added, newNamespace(name, 1)); err != nil {
			return err
		}
	}
	return nil
}

// deliver looks at a change of an event for what it does to its namespace.
func (n *namespaceStream) deliver(ctx context.Context, d store.Delivery) error {
	if n.known == nil {
		if _, err := n.learn(ctx, n.revision); err != nil {
			return err
		}
	}
	name := d.Object.Namespace
	if d.Type != store.Removed {
		if n.known[name] {
			return nil
		}
		n.known[name] = true
		return n.send(watch.Added, newNamespace(name, d.Revision))
	}
	err := n.namespaceExists(ctx, name, d.Revision)
	if !apierrors.IsNotFound(err) {
		return err
	}
	delete(n.known, name)
	return n.send(watch.Deleted, newNamespace(name, d.Revision))
}

func (n *namespaceStream) bookmark(initialEnd bool) error {
	ns := &corev1.Namespace{TypeMeta: newNamespace("", 0).TypeMeta}
	ns.ResourceVersion = formatVersion(n.revision)
	if initialEnd {
		ns.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return n.frame(watch.Bookmark, ns)
}

// send sends a change of a namespace that the watch is about.
func (n *namespaceStream) send(t watch.EventType, ns *corev1.Namespace) error {
	if !n.match(ns.Name) {
		return nil
	}
	return n.frame(t, ns)
}

func (n *namespaceStream) frame(t watch.EventType, ns *corev1.Namespace) error {
	obj := namespaceForm(n.format, ns, metav1.ListMeta{ResourceVersion: ns.ResourceVersion}, !n.later)
	n.later = true
	return n.append(n.frames.AppendRuntime(n.out.buffer(), t, obj))
}
