package httpio_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
)

// TestErrorsOfTheStore: the answer for each error of the store. It has a
// Retry-After only if nothing can have been written.
func TestErrorsOfTheStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		code   int
		reason metav1.StatusReason
		retry  string
	}{
		{store.ErrBusy, 429, metav1.StatusReasonTooManyRequests, "1"},
		{store.ErrUnwritable, 503, metav1.StatusReasonServiceUnavailable, ""},
		{store.ErrFull, 503, metav1.StatusReasonServiceUnavailable, ""},
		{store.ErrClosed, 503, metav1.StatusReasonServiceUnavailable, ""},
		{context.DeadlineExceeded, 504, metav1.StatusReasonTimeout, ""},
		{&store.CorruptError{Key: store.Key{Namespace: "default", Name: "a"}, Revision: 3, Reason: "secret"}, 500, metav1.StatusReasonInternalError, ""},
		{errors.New("secret"), 500, metav1.StatusReasonInternalError, ""},
	} {
		w := apitest.New(t)
		w.Config.Store = &apitest.Broken{Err: c.err}
		var err error
		if w.Server, err = api.New(w.Config); err != nil {
			t.Fatal(err)
		}
		for name, a := range map[string]*apitest.Answer{
			"create":     w.Do("POST", apitest.EventsPath, apitest.NewEvent("a")),
			"get":        w.Do("GET", apitest.EventsPath+"/a", ""),
			"list":       w.Do("GET", apitest.EventsPath, ""),
			"put":        w.Do("PUT", apitest.EventsPath+"/a", apitest.NewEvent("a")),
			"patch":      w.Do("PATCH", apitest.EventsPath+"/a", `{}`, "Content-Type", apitest.MergePatch),
			"delete":     w.Do("DELETE", apitest.EventsPath+"/a", ""),
			"collection": w.Do("DELETE", apitest.EventsPath, ""),
			"watch list": w.Do("GET", apitest.EventsPath+apitest.WatchList, ""),
			"namespaces": w.Do("GET", apitest.NamespacesPath, ""),
		} {
			st := a.Must(c.code).Status()
			if strings.Contains(st.Message, "secret") || st.Reason != c.reason || a.Header.Get("Retry-After") != c.retry || st.Kind != "Status" {
				t.Errorf("%s, %v: %s %v", name, c.err, a.Body, a.Header)
			}
		}
	}
}
