package discovery_test

import (
	"context"
	"testing"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/discovery"
	"tidings.example/eventsvc/internal/store"
)

// deletions is a store whose first pages have no event, because all that they looked at was
// deleted.
type deletions struct{ store.Store }

func (deletions) List(_ context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	p := store.Page{Revision: 7}
	switch q.After.Name {
	case "":
		p.Last, p.More = store.Key{Namespace: "shop", Name: "a"}, true
	case "a":
		p.Last, p.More = store.Key{Namespace: "shop", Name: "b"}, true
	default:
		visit(&store.View{Key: store.Key{Namespace: "shop", Name: "c"}, Revision: 5})
		p.Last = store.Key{Namespace: "shop", Name: "c"}
	}
	return p, nil
}

// TestEmptyPages: a namespace exists if a later page has its only event.
func TestEmptyPages(t *testing.T) {
	t.Parallel()
	n := discovery.NewNamespaces(deletions{}, nil, nil, nil, 1, nil)
	if err := n.Exists(t.Context(), access.Grant{}, "shop", 0); err != nil {
		t.Error(err)
	}
}
