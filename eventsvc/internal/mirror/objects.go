package mirror

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"golang.org/x/time/rate"

	"tidings.example/eventsvc/internal/client"
)

const (
	objectsMost   = 4096
	objectsRate   = 20 // requests a second
	objectsQueued = 64
	objectsSoon   = objectsRate / 4 // of the queue are read within enrichWait
	objectReaders = 4
	objectTimeout = 5 * time.Second
	askAgain      = time.Minute // for what was not there, or not allowed
	groupsMost    = 256
)

// reference names an object as events do.
type reference struct {
	apiVersion, kind, namespace, name string
	uid                               types.UID
}

// objects reads objects that are not followed, one by one, when events are about them. It is safe for concurrent use.
type objects struct {
	source  *client.Client
	only    *client.Client // of metadata
	factsOf func(kind string, object *metadata) facts
	log     *slog.Logger
	limit   *rate.Limiter
	queue   chan *object

	mu     sync.Mutex
	known  *lru.Cache                            // by reference, of an *object
	denied map[schema.GroupVersionKind]time.Time // until when kinds are not asked for

	discovery sync.Mutex
	groups    map[string]group // by apiVersion
}

// object is what is known of one object of the source.
type object struct {
	reference
	found found[facts]
	until time.Time // then it is read again; zero: never
	read  chan struct{}
}

// group has the resources of an apiVersion by kind.
type group struct {
	kinds map[string]Resource
	read  time.Time
}

func newObjects(source *client.Client, factsOf func(string, *metadata) facts, log *slog.Logger) *objects {
	return &objects{
		source: source, only: source.Metadata(), factsOf: factsOf, log: log,
		limit: rate.NewLimiter(objectsRate, objectsRate), queue: make(chan *object, objectsQueued),
		known:  lru.New(objectsMost),
		denied: map[schema.GroupVersionKind]time.Time{}, groups: map[string]group{},
	}
}

// find returns what is known of an object. If nothing is, it is going to be read.
func (o *objects) find(ref reference) found[facts] {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, _ := o.known.Get(ref)
	it, ok := known.(*object)
	if ok && (it.until.IsZero() || time.Now().Before(it.until)) {
		return it.found
	}
	if time.Now().Before(o.denied[gvk(ref)]) {
		return found[facts]{result: enrichedOff}
	}
	soon := len(o.queue) < objectsSoon
	it = &object{reference: ref, read: make(chan struct{})}
	select {
	case o.queue <- it:
	default:
		return found[facts]{result: enrichedLate}
	}
	it.found.soon = it.read
	o.known.Add(ref, it)
	if !soon {
		return found[facts]{result: enrichedLate} // a later version of the event may find it
	}
	return it.found
}

func gvk(ref reference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.apiVersion, ref.kind)
}

// run reads objects until ctx ends.
func (o *objects) run(ctx context.Context) {
	var all sync.WaitGroup
	for range objectReaders {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case it := <-o.queue:
					f, until := o.read(ctx, it.reference)
					o.mu.Lock()
					it.found, it.until = f, until
					o.mu.Unlock()
					close(it.read)
				}
			}
		})
	}
	all.Wait()
}

// errNoKind means that the source has no such kind, or that a name is none.
var errNoKind = errors.New("no such kind of object")

// read asks the source for an object, and says until when the answer is good; zero: for ever.
func (o *objects) read(ctx context.Context, ref reference) (f found[facts], until time.Time) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	var is metadata
	target, err := o.path(ctx, ref)
	if err == nil {
		err = o.get(ctx, o.only, target, &is)
	}
	switch code := client.Code(err); {
	case err == nil:
		o.allow(ref, nil)
		if is.Metadata.UID == ref.uid {
			return found[facts]{value: o.factsOf(ref.kind, &is), result: enrichedAdded}, time.Time{}
		}
		return found[facts]{result: enrichedUnknown}, time.Now().Add(askAgain)
	case code == http.StatusForbidden:
		o.allow(ref, err)
		return found[facts]{result: enrichedOff}, time.Now().Add(askAgain)
	case code == http.StatusNotFound || errors.Is(err, errNoKind):
		return found[facts]{result: enrichedUnknown}, time.Now().Add(askAgain)
	default:
		return found[facts]{result: enrichedLate}, time.Now().Add(time.Second)
	}
}

// get sends one of the requests of which there are only so many a second.
func (o *objects) get(ctx context.Context, from *client.Client, path string, answer any) error {
	if err := o.limit.Wait(ctx); err != nil {
		return err
	}
	return from.Do(ctx, client.Request{Path: path}, answer)
}

// allow notes whether objects of a kind may be read, and logs when that changes.
func (o *objects) allow(ref reference, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kind := gvk(ref)
	_, before := o.denied[kind]
	switch {
	case err == nil && before:
		delete(o.denied, kind)
		o.log.Info("events get the labels of their objects again", "kind", kind.String())
	case err != nil:
		o.denied[kind] = time.Now().Add(askAgain)
		if !before {
			o.log.Warn("events get no labels of their objects, because the source does not let these be read", "kind", kind.String(),
				"error", err, "hint", "let this account get them, if that is wanted")
		}
	}
}

// path returns the path of an object. What an event says about its object is only a claim: it must not name another
// path.
func (o *objects) path(ctx context.Context, ref reference) (string, error) {
	r, err := o.resource(ctx, ref)
	if err != nil {
		return "", err
	}
	if len(path.IsValidPathSegmentName(ref.name)) > 0 || len(path.IsValidPathSegmentName(ref.namespace)) > 0 || ref.name == "" {
		return "", errNoKind
	}
	if !r.Namespaced {
		ref.namespace = ""
	}
	return r.path(ref.namespace) + "/" + url.PathEscape(ref.name), nil
}

// resource returns the resource of a kind. Those of an apiVersion are read when one is needed first, and at most once a
// minute because a kind is not among them.
func (o *objects) resource(ctx context.Context, ref reference) (Resource, error) {
	version, err := schema.ParseGroupVersion(ref.apiVersion)
	if err != nil || len(path.IsValidPathSegmentName(version.Version)) > 0 || len(path.IsValidPathSegmentName(version.Group)) > 0 || version.Version == "" {
		return Resource{}, errNoKind
	}
	o.discovery.Lock()
	defer o.discovery.Unlock()
	known, ok := o.groups[ref.apiVersion]
	if _, has := known.kinds[ref.kind]; !has && (!ok || time.Since(known.read) >= askAgain) {
		known = group{kinds: map[string]Resource{}, read: time.Now()}
		var list metav1.APIResourceList
		if err := o.get(ctx, o.source, rootOf(version), &list); err != nil && client.Code(err) != http.StatusNotFound {
			return Resource{}, err
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") { // else it is a part of one
				known.kinds[r.Kind] = Resource{version.Group, version.Version, r.Name, r.Kind, r.Namespaced}
			}
		}
		if len(o.groups) >= groupsMost {
			clear(o.groups)
		}
		o.groups[ref.apiVersion] = known
	}
	r, ok := known.kinds[ref.kind]
	if !ok {
		return Resource{}, errNoKind
	}
	return r, nil
}
