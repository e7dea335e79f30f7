package storetest_test

import (
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/storetest"
)

type modelEngine struct{ model *storetest.Model }

func (e modelEngine) Start(testing.TB) store.Store { return e.model }

func (modelEngine) Stop(testing.TB) {}

// The model passes the same cases, so that they and it agree with each other.
func TestModel(t *testing.T) {
	t.Parallel()
	storetest.Cases(t, func(_ testing.TB, now func() time.Time) storetest.Engine {
		return modelEngine{storetest.NewModel(now)}
	})
}
