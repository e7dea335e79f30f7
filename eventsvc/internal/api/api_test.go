package api_test

import (
	"flag"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
)

// Some tests wait for seconds, so more of them run at a time than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // -parallel goes before
		panic(err)
	}
	os.Exit(m.Run())
}

func TestLifeOfAnEvent(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	made := w.Do("POST", apitest.EventsPath, apitest.NewEvent("e1")).Must(201)
	apitest.Equal(t, made.At("kind"), any("Event"))
	apitest.Equal(t, made.At("apiVersion"), any("events.k8s.io/v1"))
	apitest.Equal(t, made.At("metadata.namespace"), any("default"))
	rv := made.At("metadata.resourceVersion").(string)

	got := w.Do("GET", apitest.EventsPath+"/e1", "").Must(200)
	apitest.Equal(t, got.Object(), made.Object())
	apitest.Equal(t, w.Do("GET", apitest.CorePath+"/e1", "").Must(200).At("message"), any("hello"))
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{"e1"})
	apitest.Equal(t, w.Do("GET", "/apis/events.k8s.io/v1/events", "").Must(200).Names(), []string{"e1"})

	patched := w.Do("PATCH", apitest.EventsPath+"/e1", `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:05:05.000000Z"}}`,
		"Content-Type", "application/strategic-merge-patch+json").Must(200)
	apitest.Equal(t, patched.At("series.count"), any(2.0))
	if patched.At("metadata.resourceVersion") == rv {
		t.Error("a patch that changes something keeps the resourceVersion")
	}

	put := w.Do("PUT", apitest.EventsPath+"/e1", apitest.NewEvent("e1", `"series":{"count":3,"lastObservedTime":"2026-01-02T03:05:05.000000Z"}`)).Must(200)
	apitest.Equal(t, put.At("series.count"), any(3.0))

	gone := w.Do("DELETE", apitest.EventsPath+"/e1", "").Must(200).Status()
	apitest.Equal(t, gone.Details, &metav1.StatusDetails{
		Name: "e1", Group: "events.k8s.io", Kind: "events", UID: gone.Details.UID,
	})
	w.Do("GET", apitest.EventsPath+"/e1", "").Must(404)
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{})
}

func TestEverythingSurvivesARestart(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a", "b")
	before := w.Do("GET", apitest.EventsPath, "").Must(200)
	w.Stop()
	w.Start()
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Object(), before.Object())
	w.Create("c")
	s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&resourceVersion="+rv)
	apitest.Equal(t, s.Take(1), []apitest.Change{{"ADDED", "c", "hello"}})
}

func TestNewNeedsItsParts(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for name, drop := range map[string]func(*api.Config){
		"Store": func(c *api.Config) { c.Store = nil }, "Codec": func(c *api.Config) { c.Codec = nil },
		"Verify": func(c *api.Config) { c.Verify = nil }, "Probe": func(c *api.Config) { c.Probe = nil },
		"Timeline": func(c *api.Config) { c.Timeline = nil }, "Policy": func(c *api.Config) { c.Policy = nil },
		"Withdrawn": func(c *api.Config) { c.Withdrawn = nil }, "Fresh": func(c *api.Config) { c.Fresh = nil },
	} {
		c := w.Config
		drop(&c)
		if _, err := api.New(c); err == nil {
			t.Errorf("without %s there is no error", name)
		}
	}
}
