package events_test

import (
	"context"

	"strings"
	"testing"

	"tidings.example/eventsvc/internal/store"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
)

// TestGeneratedNamesThatAreTaken: eight names are tried.
func TestGeneratedNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	body := apitest.NewEvent("", `"metadata":{"generateName":"g-"}`)
	for taken, code := range map[int]int{0: 201, 7: 201, 8: 409} {
		w := apitest.New(t)
		s := &crowded{Store: w.DB, taken: taken}
		w.Config.Store = s
		var err error
		if w.Server, err = api.New(w.Config); err != nil {
			t.Fatal(err)
		}
		a := w.Do("POST", apitest.EventsPath, body).Must(code)
		apitest.Equal(t, s.tried, min(taken+1, 8))
		if code == 409 {
			apitest.Equal(t, a.Header.Get("Retry-After"), "1")
			st := a.Status()
			apitest.Equal(t, st.Reason, metav1.StatusReasonAlreadyExists)
			if !strings.HasSuffix(st.Message, " already exists, the server was not able to generate a unique name for the object") {
				t.Error(st.Message)
			}
		}
	}
}

// TestFinalizerDuringDeletionOfACollection: an event that gets a finalizer
// after it was listed is only marked, and one that changes otherwise goes.
func TestFinalizerDuringDeletionOfACollection(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("plain", "changed", "held")
	direct := *w
	w.Config.Store = &meddler{Store: w.DB, first: func() {
		direct.Do("PATCH", apitest.EventsPath+"/changed", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", apitest.MergePatch).Must(200)
		direct.Do("PATCH", apitest.EventsPath+"/held", `{"metadata":{"finalizers":["example.com/hold"]}}`, "Content-Type", apitest.MergePatch).Must(200)
	}}
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	w.Do("DELETE", apitest.EventsPath, "").Must(200)
	left := w.Do("GET", apitest.EventsPath, "").Must(200).At("items").([]any)
	if len(left) != 1 {
		t.Fatalf("%d events are left, want the one that is held", len(left))
	}
	if got := w.Do("GET", apitest.EventsPath+"/held", "").Must(200).At("metadata.deletionTimestamp"); got == nil {
		t.Error("the event with a finalizer is not marked")
	}
}

// crowded is a store in which the first names that are tried are taken.
type crowded struct {
	store.Store
	taken, tried int
}

func (c *crowded) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	if c.tried++; c.tried <= c.taken {
		return store.Result{}, store.ErrExists
	}
	return c.Store.Update(ctx, key, expect, decide)
}

// meddler does something between the listing of a collection and its deletion.
type meddler struct {
	store.Store
	first func()
}

func (m *meddler) DeleteMany(ctx context.Context, seen []store.Seen, by []byte) (int, []store.Key, error) {
	m.first()
	return m.Store.DeleteMany(ctx, seen, by)
}
