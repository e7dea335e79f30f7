package api_test

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
)

const (
	protobuf   = "application/vnd.kubernetes.protobuf"
	asTable    = ";as=Table;v=v1;g=meta.k8s.io"
	asPartial  = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asPartials = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// TestEveryVerbInProtobuf goes through the life of an event as typed clients
// do: bodies, answers, options and errors are protobuf.
func TestEveryVerbInProtobuf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	headers := []string{"Content-Type", protobuf, "Accept", protobuf + ",application/json"}
	ev := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}, Message: "one"}
	made := w.do("POST", corePath, wrap(t, "v1", "Event", ev), headers...).must(201)
	equal(t, made.header.Get("Content-Type"), protobuf)
	got := &corev1.Event{}
	unwrap(t, made.body, got)
	equal(t, got.Message, "one")

	got.Message = "two"
	unwrap(t, w.do("PUT", corePath+"/a", wrap(t, "v1", "Event", got), headers...).must(200).body, got)
	equal(t, got.Message, "two")
	patched := w.do("PATCH", corePath+"/a", `{"message":"three"}`, "Content-Type", strategicPatch, "Accept", protobuf).must(200)
	unwrap(t, patched.body, got)
	equal(t, got.Message, "three")

	other := &eventsv1.Event{}
	kind := unwrap(t, w.do("GET", eventsPath+"/a", "", headers...).must(200).body, other)
	equal(t, kind.APIVersion+" "+other.Note, "events.k8s.io/v1 three")

	var st metav1.Status
	unwrap(t, w.do("GET", corePath+"/none", "", headers...).must(404).body, &st)
	equal(t, string(st.Reason), "NotFound")

	options := &metav1.DeleteOptions{}
	unwrap(t, w.do("DELETE", eventsPath+"/a", wrap(t, "events.k8s.io/v1", "DeleteOptions", options), headers...).must(200).body, &st)
	equal(t, st.Status, "Success")
	equal(t, string(st.Details.UID), string(got.UID))
}

// TestTables: what kubectl prints, in every verb.
func TestTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	accept := []string{"Accept", "application/json" + asTable + ",application/json"}
	rows := func(a *answer) int {
		t.Helper()
		equal(t, a.at("kind"), any("Table"))
		equal(t, len(a.at("columnDefinitions").([]any)), 10)
		return len(a.at("rows").([]any))
	}
	equal(t, rows(w.do("POST", eventsPath, newEvent("a"), accept...).must(201)), 1)
	w.create("b", "c")
	equal(t, rows(w.do("GET", eventsPath+"/a", "", accept...).must(200)), 1)
	list := w.do("GET", eventsPath+"?limit=2", "", accept...).must(200)
	equal(t, rows(list), 2)
	equal(t, list.at("metadata.remainingItemCount"), any(1.0))
	equal(t, rows(w.do("PUT", eventsPath+"/a", newEvent("a"), accept...).must(200)), 1)
	equal(t, rows(w.do("PATCH", eventsPath+"/a", `{}`, append(accept, "Content-Type", mergePatch)...).must(200)), 1)
	equal(t, w.do("DELETE", eventsPath+"/a", "", accept...).must(200).at("kind"), any("Status"))
	equal(t, w.do("GET", eventsPath+"/a", "", accept...).must(404).at("kind"), any("Status"))
	w.do("GET", eventsPath+"?includeObject=Foo", "", accept...).must(400)
	w.do("GET", eventsPath, "", "Accept", protobuf+asTable).must(406)
	row := w.do("GET", eventsPath+"?includeObject=Object", "", accept...).must(200).at("rows").([]any)[0]
	equal(t, field(row, "object.note"), any("hello"))
}

func TestMetadataOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "b", "c")
	one := w.do("GET", eventsPath+"/a", "", "Accept", "application/json"+asPartial).must(200)
	equal(t, one.at("kind"), any("PartialObjectMetadata"))
	equal(t, one.at("note"), nil)
	w.do("GET", eventsPath, "", "Accept", "application/json"+asPartial).must(406)
	w.do("GET", eventsPath+"/a", "", "Accept", "application/json"+asPartials).must(406)
	var list metav1.PartialObjectMetadataList
	unwrap(t, w.do("GET", eventsPath+"?limit=2", "", "Accept", protobuf+asPartials).must(200).body, &list)
	equal(t, len(list.Items), 2)
	equal(t, *list.RemainingItemCount, int64(1))
	// The deleted ones, as they were.
	var gone metav1.PartialObjectMetadataList
	unwrap(t, w.do("DELETE", eventsPath, "", "Accept", protobuf+asPartials).must(200).body, &gone)
	equal(t, len(gone.Items), 3)
	equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{})
}

func TestYAML(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := "metadata: {name: a}\ninvolvedObject: {namespace: default}\nmessage: |\n  two\n  lines\n"
	a := w.do("POST", corePath, body, "Content-Type", "application/yaml", "Accept", "application/yaml").must(201)
	equal(t, a.header.Get("Content-Type"), "application/yaml")
	if !bytes.Contains(a.body, []byte("message: |\n  two\n  lines\n")) {
		t.Errorf("%s", a.body)
	}
	list := w.do("GET", corePath, "", "Accept", "application/yaml").must(200)
	if !bytes.HasPrefix(list.body, []byte("apiVersion: v1\nitems:\n- ")) {
		t.Errorf("%s", list.body)
	}
}

// TestGzip: only large answers to get and list are compressed, and only if the
// client asks for it.
func TestGzip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 300 {
		w.do("POST", corePath, fmt.Sprintf(`{"metadata":{"name":"e%03d"},"involvedObject":{"namespace":"default"},"message":%q}`, i, strings.Repeat("x", 1000))).must(201)
	}
	w.do("POST", corePath, `{"metadata":{"name":"large"},"involvedObject":{"namespace":"default"},"message":"`+strings.Repeat("x", 200<<10)+`"}`).must(201)
	for path, compressed := range map[string]bool{corePath: true, corePath + "/large": true, corePath + "/e000": false, corePath + "?limit=10": false} {
		plain := w.do("GET", path, "").must(200)
		equal(t, plain.header.Get("Content-Encoding"), "")
		a := w.do("GET", path, "", "Accept-Encoding", "deflate, gzip").must(200)
		if !compressed {
			equal(t, a.header.Get("Content-Encoding"), "")
			equal(t, string(a.body), string(plain.body))
			equal(t, a.header.Get("Content-Length"), fmt.Sprint(len(a.body)))
			continue
		}
		equal(t, a.header.Get("Content-Encoding"), "gzip")
		equal(t, a.header.Get("Vary"), "Accept-Encoding")
		z, err := gzip.NewReader(bytes.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, string(b), string(plain.body))
	}
	patched := w.do("PATCH", corePath+"/large", `{}`, "Content-Type", mergePatch, "Accept-Encoding", "gzip").must(200)
	equal(t, patched.header.Get("Content-Encoding"), "")
}

// TestApply is server-side apply over HTTP: create, take over, conflict.
func TestApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apply := func(name, query, labels string) *answer {
		body := newEvent(name, `"metadata":{"name":"`+name+`","labels":{`+labels+`}}`, `"apiVersion":"events.k8s.io/v1","kind":"Event"`)
		return w.do("PATCH", eventsPath+"/"+name+"?"+query, body, "Content-Type", applyPatch)
	}
	made := apply("a", "fieldManager=one", `"x":"1"`).must(201)
	equal(t, made.at("metadata.labels.x"), any("1"))
	again := apply("a", "fieldManager=one", `"x":"1"`).must(200)
	equal(t, again.at("metadata.resourceVersion"), made.at("metadata.resourceVersion"))

	st := apply("a", "fieldManager=two", `"x":"2"`).must(409).status()
	equal(t, st.Message, `Apply failed with 1 conflict: conflict with "one": .metadata.labels.x`)
	equal(t, st.Details.Causes, []metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "one"`, Field: ".metadata.labels.x",
	}})
	equal(t, apply("a", "fieldManager=two&force=true", `"x":"2"`).must(200).at("metadata.labels.x"), any("2"))
	equal(t, apply("b", "fieldManager=one&dryRun=All", ``).must(201).at("metadata.resourceVersion"), nil)
	w.do("GET", eventsPath+"/b", "").must(404)
	other := strings.Replace(newEvent("c"), "{", `{"apiVersion":"v1","kind":"Event",`, 1)
	w.do("PATCH", eventsPath+"/c?fieldManager=one", other, "Content-Type", applyPatch).must(400)
}

func TestManagers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for agent, want := range map[string]string{
		"kubectl/v1.37.2 (linux/amd64)": "kubectl", "": "unknown", "bell\u0007y/1": "belly", strings.Repeat("é", 100): strings.Repeat("é", 64),
	} {
		a := w.do("POST", eventsPath+"?dryRun=All", newEvent("a"), "User-Agent", agent).must(201)
		entry := a.at("metadata.managedFields").([]any)[0]
		equal(t, field(entry, "manager"), any(want))
		equal(t, field(entry, "operation"), any("Update"))
	}
	a := w.do("POST", eventsPath+"?fieldManager=me", newEvent("a"), "User-Agent", "kubectl/1").must(201)
	equal(t, field(a.at("metadata.managedFields").([]any)[0], "manager"), any("me"))
}
