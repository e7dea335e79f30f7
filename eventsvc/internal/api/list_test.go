package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
)

// TestLongPage has a page that is too long for one buffer, in JSON and in
// protobuf. It is kept in several buffers until it is sent, or read a second
// time if there is no room.
func TestLongPage(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Registry = prometheus.NewRegistry() })
	big := `"` + strings.Repeat("x", 400<<10) + `"` // so that 24 of them are many buffers
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("e%02d", i)
		w.Do("POST", apitest.CorePath, `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"default"},"message":`+big+`}`).Must(201)
		want = append(want, name)
	}
	for _, room := range []bool{true, false} {
		undo := func() {}
		if !room {
			undo = readNothingAhead(w)
		}
		a := w.Do("GET", apitest.CorePath+"?limit=24", "").Must(200)
		apitest.Equal(t, a.Names(), want[:24])
		apitest.Equal(t, a.At("metadata.remainingItemCount"), any(float64(1)))
		rest := w.Do("GET", apitest.CorePath+"?limit=24&continue="+a.At("metadata.continue").(string), "").Must(200)
		apitest.Equal(t, rest.Names(), want[24:])
		apitest.Equal(t, w.Do("GET", apitest.CorePath, "").Must(200).Names(), want)
		var list apitest.ProtoList
		list.Decode(t, w.Do("GET", apitest.CorePath, "", "Accept", "application/vnd.kubernetes.protobuf").Must(200).Body)
		apitest.Equal(t, list.Names, want)
		list.Decode(t, w.Do("GET", apitest.CorePath+"?limit=24", "", "Accept", "application/vnd.kubernetes.protobuf").Must(200).Body)
		apitest.Equal(t, list.Names, want[:24])
		undo()
		apitest.Equal(t, w.Metric("eventsvc_answers_unread_bytes"), 0.0)
	}
	// A collection of many pages is shown whole after it was deleted.
	gone := w.Do("DELETE", apitest.CorePath, "", "Accept", "application/json"+apitest.AsPartials).Must(200)
	apitest.Equal(t, gone.Names(), want)
	apitest.Equal(t, w.Do("GET", apitest.CorePath, "").Must(200).Names(), []string{})
}
