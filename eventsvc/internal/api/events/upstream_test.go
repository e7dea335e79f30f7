package events_test

import (
	"encoding/json"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// TestDeleteUnreadable: a delete that ignores errors of reading is for events that cannot be read. It keeps one that
// can be, and is refused for collections, unless it says false.
func TestDeleteUnreadable(t *testing.T) {
	t.Parallel()
	const option = "ignoreStoreReadErrorWithClusterBreakingPotential"
	w := apitest.New(t)
	w.Create("a", "b")
	const kept = `Operation cannot be fulfilled on events.events.k8s.io \"a\": StorageError: invalid object, Code: 4, Key: /registry/events/default/a, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage`
	for _, dryRun := range []string{"", "&dryRun=All"} {
		if a := w.Do("DELETE", apitest.EventsPath+"/a?"+option+"=true"+dryRun, "").Must(409); !strings.Contains(string(a.Body), kept) {
			t.Errorf("%s", a.Body)
		}
	}
	w.Do("DELETE", apitest.EventsPath+"/a", `{"`+option+`":true}`).Must(409)
	w.Do("DELETE", apitest.EventsPath+"/a?"+option+"=true&gracePeriodSeconds=0", "").Must(422)
	w.Do("DELETE", apitest.EventsPath+"/none?"+option+"=true", "").Must(404)
	w.Do("DELETE", apitest.EventsPath+"?"+option+"=true", "").Must(422)
	apitest.Equal(t, len(w.Do("GET", apitest.EventsPath, "").Names()), 2)
	w.Do("DELETE", apitest.EventsPath+"/a?"+option+"=false", "").Must(200)
	w.Do("DELETE", apitest.EventsPath+"?"+option+"=false", "").Must(200)
	unreadable := store.Draft{Attributes: event.AttributesOf(&eventsv1.Event{}), Value: []byte{1, 0xff}}
	if _, err := store.Create(t.Context(), w.DB, store.Key{Namespace: "default", Name: "bad"}, unreadable); err != nil {
		t.Fatal(err)
	}
	w.Do("DELETE", apitest.EventsPath+"/bad", "").Must(500)
	w.Do("DELETE", apitest.EventsPath+"/bad?"+option+"=true&dryRun=All", "").Must(200)
	w.Do("DELETE", apitest.EventsPath+"/bad?"+option+"=true", "").Must(200)
	apitest.Equal(t, len(w.Do("GET", apitest.EventsPath, "").Names()), 0)
}

// TestApplyWithUIDOfNone: as in kube-apiserver (patcher.applyPatch in its source).
func TestApplyWithUIDOfNone(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	body := apitest.NewEvent("a", `"metadata":{"name":"a","uid":"zzz"}`, `"apiVersion":"events.k8s.io/v1","kind":"Event"`)
	a := w.Do("PATCH", apitest.EventsPath+"/a?fieldManager=m", body, "Content-Type", "application/apply-patch+yaml").Must(409)
	apitest.Equal(t, a.At("message"), any(`Operation cannot be fulfilled on events.events.k8s.io "a": uid mismatch: the provided object specified uid zzz, and no existing object was found`))
}

// TestRepeatedOwnerIsTracked: the fields of a patch are tracked before owners that it repeats are dropped, so its
// manager owns what it repeats, as in kube-apiserver (jsonPatcher, then dedupOwnerReferencesTransformer in its source).
func TestRepeatedOwnerIsTracked(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	const owner = `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}`
	w.Do("POST", apitest.EventsPath+"?fieldManager=maker", apitest.NewEvent("a", `"metadata":{"name":"a","ownerReferences":[`+owner+`]}`)).Must(201)
	a := w.Do("PATCH", apitest.EventsPath+"/a?fieldManager=patcher", `[{"op":"add","path":"/metadata/ownerReferences/-","value":`+owner+`}]`,
		"Content-Type", "application/json-patch+json").Must(200)
	apitest.Equal(t, len(a.At("metadata.ownerReferences").([]any)), 1)
	managers := map[string]string{}
	for _, m := range a.At("metadata.managedFields").([]any) {
		text, _ := json.Marshal(apitest.Field(m, "fieldsV1"))
		managers[apitest.Field(m, "manager").(string)] = string(text)
	}
	if managers["patcher"] == "" {
		t.Errorf("the managers are %v", managers)
	}
	t.Log(managers)
}
