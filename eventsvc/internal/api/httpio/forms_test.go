package httpio_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/apitest"
)

// TestEveryVerbInProtobuf goes through the life of an event as typed clients
// do: bodies, answers, options and errors are protobuf.
func TestEveryVerbInProtobuf(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	headers := []string{"Content-Type", apitest.Protobuf, "Accept", apitest.Protobuf + ",application/json"}
	ev := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}, Message: "one"}
	made := w.Do("POST", apitest.CorePath, apitest.Wrap(t, "v1", "Event", ev), headers...).Must(201)
	apitest.Equal(t, made.Header.Get("Content-Type"), apitest.Protobuf)
	got := &corev1.Event{}
	apitest.Unwrap(t, made.Body, got)
	apitest.Equal(t, got.Message, "one")

	got.Message = "two"
	apitest.Unwrap(t, w.Do("PUT", apitest.CorePath+"/a", apitest.Wrap(t, "v1", "Event", got), headers...).Must(200).Body, got)
	apitest.Equal(t, got.Message, "two")
	patched := w.Do("PATCH", apitest.CorePath+"/a", `{"message":"three"}`, "Content-Type", apitest.StrategicPatch, "Accept", apitest.Protobuf).Must(200)
	apitest.Unwrap(t, patched.Body, got)
	apitest.Equal(t, got.Message, "three")

	other := &eventsv1.Event{}
	kind := apitest.Unwrap(t, w.Do("GET", apitest.EventsPath+"/a", "", headers...).Must(200).Body, other)
	apitest.Equal(t, kind.APIVersion+" "+other.Note, "events.k8s.io/v1 three")

	var st metav1.Status
	apitest.Unwrap(t, w.Do("GET", apitest.CorePath+"/none", "", headers...).Must(404).Body, &st)
	apitest.Equal(t, string(st.Reason), "NotFound")

	options := &metav1.DeleteOptions{}
	apitest.Unwrap(t, w.Do("DELETE", apitest.EventsPath+"/a", apitest.Wrap(t, "events.k8s.io/v1", "DeleteOptions", options), headers...).Must(200).Body, &st)
	apitest.Equal(t, st.Status, "Success")
	apitest.Equal(t, string(st.Details.UID), string(got.UID))
}

// TestTables: what kubectl prints, in every verb.
func TestTables(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	accept := []string{"Accept", "application/json" + apitest.AsTable + ",application/json"}
	rows := func(a *apitest.Answer) int {
		t.Helper()
		apitest.Equal(t, a.At("kind"), any("Table"))
		apitest.Equal(t, len(a.At("columnDefinitions").([]any)), 10)
		return len(a.At("rows").([]any))
	}
	apitest.Equal(t, rows(w.Do("POST", apitest.EventsPath, apitest.NewEvent("a"), accept...).Must(201)), 1)
	w.Create("b", "c")
	apitest.Equal(t, rows(w.Do("GET", apitest.EventsPath+"/a", "", accept...).Must(200)), 1)
	list := w.Do("GET", apitest.EventsPath+"?limit=2", "", accept...).Must(200)
	apitest.Equal(t, rows(list), 2)
	apitest.Equal(t, list.At("metadata.remainingItemCount"), any(1.0))
	apitest.Equal(t, rows(w.Do("PUT", apitest.EventsPath+"/a", apitest.NewEvent("a"), accept...).Must(200)), 1)
	apitest.Equal(t, rows(w.Do("PATCH", apitest.EventsPath+"/a", `{}`, append(accept, "Content-Type", apitest.MergePatch)...).Must(200)), 1)
	apitest.Equal(t, w.Do("DELETE", apitest.EventsPath+"/a", "", accept...).Must(200).At("kind"), any("Status"))
	apitest.Equal(t, w.Do("GET", apitest.EventsPath+"/a", "", accept...).Must(404).At("kind"), any("Status"))
	w.Do("GET", apitest.EventsPath+"?includeObject=Foo", "", accept...).Must(400)
	w.Do("GET", apitest.EventsPath, "", "Accept", apitest.Protobuf+apitest.AsTable).Must(406)
	row := w.Do("GET", apitest.EventsPath+"?includeObject=Object", "", accept...).Must(200).At("rows").([]any)[0]
	apitest.Equal(t, apitest.Field(row, "object.note"), any("hello"))
}

func TestMetadataOnly(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a", "b", "c")
	one := w.Do("GET", apitest.EventsPath+"/a", "", "Accept", "application/json"+apitest.AsPartial).Must(200)
	apitest.Equal(t, one.At("kind"), any("PartialObjectMetadata"))
	apitest.Equal(t, one.At("note"), nil)
	w.Do("GET", apitest.EventsPath, "", "Accept", "application/json"+apitest.AsPartial).Must(406)
	w.Do("GET", apitest.EventsPath+"/a", "", "Accept", "application/json"+apitest.AsPartials).Must(406)
	var list metav1.PartialObjectMetadataList
	apitest.Unwrap(t, w.Do("GET", apitest.EventsPath+"?limit=2", "", "Accept", apitest.Protobuf+apitest.AsPartials).Must(200).Body, &list)
	apitest.Equal(t, len(list.Items), 2)
	apitest.Equal(t, *list.RemainingItemCount, int64(1))
	// The deleted ones, as they were.
	var gone metav1.PartialObjectMetadataList
	apitest.Unwrap(t, w.Do("DELETE", apitest.EventsPath, "", "Accept", apitest.Protobuf+apitest.AsPartials).Must(200).Body, &gone)
	apitest.Equal(t, len(gone.Items), 3)
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{})
}

func TestYAML(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	body := "metadata: {name: a}\ninvolvedObject: {namespace: default}\nmessage: |\n  two\n  lines\n"
	a := w.Do("POST", apitest.CorePath, body, "Content-Type", "application/yaml", "Accept", "application/yaml").Must(201)
	apitest.Equal(t, a.Header.Get("Content-Type"), "application/yaml")
	if !bytes.Contains(a.Body, []byte("message: |\n  two\n  lines\n")) {
		t.Errorf("%s", a.Body)
	}
	list := w.Do("GET", apitest.CorePath, "", "Accept", "application/yaml").Must(200)
	if !bytes.HasPrefix(list.Body, []byte("apiVersion: v1\nitems:\n- ")) {
		t.Errorf("%s", list.Body)
	}
}

// TestGzip: only large answers to get and list are compressed, and only if the
// client asks for it.
func TestGzip(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for i := range 300 {
		w.Do("POST", apitest.CorePath, fmt.Sprintf(`{"metadata":{"name":"e%03d"},"involvedObject":{"namespace":"default"},"message":%q}`, i, strings.Repeat("x", 1000))).Must(201)
	}
	w.Do("POST", apitest.CorePath, `{"metadata":{"name":"large"},"involvedObject":{"namespace":"default"},"message":"`+strings.Repeat("x", 200<<10)+`"}`).Must(201)
	for path, compressed := range map[string]bool{apitest.CorePath: true, apitest.CorePath + "/large": true, apitest.CorePath + "/e000": false, apitest.CorePath + "?limit=10": false} {
		plain := w.Do("GET", path, "").Must(200)
		apitest.Equal(t, plain.Header.Get("Content-Encoding"), "")
		a := w.Do("GET", path, "", "Accept-Encoding", "deflate, gzip").Must(200)
		if !compressed {
			apitest.Equal(t, a.Header.Get("Content-Encoding"), "")
			apitest.Equal(t, string(a.Body), string(plain.Body))
			apitest.Equal(t, a.Header.Get("Content-Length"), fmt.Sprint(len(a.Body)))
			continue
		}
		apitest.Equal(t, a.Header.Get("Content-Encoding"), "gzip")
		apitest.Equal(t, a.Header.Get("Vary"), "Accept-Encoding")
		z, err := gzip.NewReader(bytes.NewReader(a.Body))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		apitest.Equal(t, string(b), string(plain.Body))
	}
	patched := w.Do("PATCH", apitest.CorePath+"/large", `{}`, "Content-Type", apitest.MergePatch, "Accept-Encoding", "gzip").Must(200)
	apitest.Equal(t, patched.Header.Get("Content-Encoding"), "")
}

// TestApply is server-side apply over HTTP: create, take over, conflict.
func TestApply(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	apply := func(name, query, labels string) *apitest.Answer {
		body := apitest.NewEvent(name, `"metadata":{"name":"`+name+`","labels":{`+labels+`}}`, `"apiVersion":"events.k8s.io/v1","kind":"Event"`)
		return w.Do("PATCH", apitest.EventsPath+"/"+name+"?"+query, body, "Content-Type", apitest.ApplyPatch)
	}
	made := apply("a", "fieldManager=one", `"x":"1"`).Must(201)
	apitest.Equal(t, made.At("metadata.labels.x"), any("1"))
	again := apply("a", "fieldManager=one", `"x":"1"`).Must(200)
	apitest.Equal(t, again.At("metadata.resourceVersion"), made.At("metadata.resourceVersion"))

	st := apply("a", "fieldManager=two", `"x":"2"`).Must(409).Status()
	apitest.Equal(t, st.Message, `Apply failed with 1 conflict: conflict with "one": .metadata.labels.x`)
	apitest.Equal(t, st.Details.Causes, []metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "one"`, Field: ".metadata.labels.x",
	}})
	apitest.Equal(t, apply("a", "fieldManager=two&force=true", `"x":"2"`).Must(200).At("metadata.labels.x"), any("2"))
	apitest.Equal(t, apply("b", "fieldManager=one&dryRun=All", ``).Must(201).At("metadata.resourceVersion"), nil)
	w.Do("GET", apitest.EventsPath+"/b", "").Must(404)
	other := strings.Replace(apitest.NewEvent("c"), "{", `{"apiVersion":"v1","kind":"Event",`, 1)
	w.Do("PATCH", apitest.EventsPath+"/c?fieldManager=one", other, "Content-Type", apitest.ApplyPatch).Must(400)
}

func TestManagers(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for agent, want := range map[string]string{
		"kubectl/v1.37.2 (linux/amd64)": "kubectl", "": "unknown", "bell\u0007y/1": "belly", strings.Repeat("é", 100): strings.Repeat("é", 64),
	} {
		a := w.Do("POST", apitest.EventsPath+"?dryRun=All", apitest.NewEvent("a"), "User-Agent", agent).Must(201)
		entry := a.At("metadata.managedFields").([]any)[0]
		apitest.Equal(t, apitest.Field(entry, "manager"), any(want))
		apitest.Equal(t, apitest.Field(entry, "operation"), any("Update"))
	}
	a := w.Do("POST", apitest.EventsPath+"?fieldManager=me", apitest.NewEvent("a"), "User-Agent", "kubectl/1").Must(201)
	apitest.Equal(t, apitest.Field(a.At("metadata.managedFields").([]any)[0], "manager"), any("me"))
}
