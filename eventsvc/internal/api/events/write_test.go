package events_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/apitest"
)

// refusal is a request that is refused, and with what.
type refusal struct {
	name, method, path, body string
	headers                  []string
	code                     int
	reason                   metav1.StatusReason
	text                     string // the whole message; with a trailing * its beginning
}

func refuses(w *apitest.World, t *testing.T, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := *w
			w.T = t
			st := w.Do(c.method, c.path, c.body, c.headers...).Must(c.code).Status()
			apitest.Equal(t, st.Reason, c.reason)
			apitest.Equal(t, st.Status, metav1.StatusFailure)
			if begin, ok := strings.CutSuffix(c.text, "*"); !ok {
				apitest.Equal(t, st.Message, c.text)
			} else if !strings.HasPrefix(st.Message, begin) {
				t.Errorf("%s\ndoes not begin with\n%s", st.Message, begin)
			}
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("taken")
	invalid := metav1.StatusReasonInvalid
	bad := metav1.StatusReasonBadRequest
	refuses(w, t, []refusal{
		{"exists", "POST", apitest.EventsPath, apitest.NewEvent("taken"), nil, 409, metav1.StatusReasonAlreadyExists, `events.events.k8s.io "taken" already exists`},
		{"exists in core", "POST", apitest.CorePath, `{"metadata":{"name":"taken"},"involvedObject":{"namespace":"default"}}`, nil, 409, metav1.StatusReasonAlreadyExists, `events "taken" already exists`},
		{"exists, dry run", "POST", apitest.EventsPath + "?dryRun=All", apitest.NewEvent("taken"), nil, 409, metav1.StatusReasonAlreadyExists, `events.events.k8s.io "taken" already exists`},
		{"other namespace", "POST", "/apis/events.k8s.io/v1/namespaces/other/events", apitest.NewEvent("x", `"metadata":{"name":"x","namespace":"default"}`), nil, 400, bad, "the namespace of the provided object does not match the namespace sent on the request"},
		{"resourceVersion", "POST", apitest.EventsPath, apitest.NewEvent("x", `"metadata":{"name":"x","resourceVersion":"1"}`), nil, 400, bad, "resourceVersion should not be set on objects to be created"},
		{"no name", "POST", apitest.EventsPath, apitest.NewEvent("x", `"metadata":{}`), nil, 422, invalid, `Event "" is invalid: metadata.name: Required value: name or generateName is required*`},
		{"only a name", "POST", apitest.EventsPath, `{"metadata":{"name":"b1"}}`, nil, 422, invalid, `Event "b1" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid value: ]`},
		{"empty body", "POST", apitest.EventsPath, "", nil, 400, bad, "*"},
		{"truncated", "POST", apitest.EventsPath, `{"kind":`, nil, 400, bad, "the object provided is unrecognized (must be of type Event): couldn't get version/kind; json parse error: unexpected end of JSON input ({\"kind\":)"},
		{"other version", "POST", apitest.EventsPath, `{"kind":"Event","apiVersion":"v1"}`, nil, 400, bad, "the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)"},
		{"text", "POST", apitest.EventsPath, "x", []string{"Content-Type", "text/plain"}, 415, metav1.StatusReasonUnsupportedMediaType, "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"too large", "POST", apitest.EventsPath, `{"note":"` + strings.Repeat("x", 4<<20) + `"}`, nil, 413, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728"},
		{"dryRun", "POST", apitest.EventsPath + "?dryRun=None", apitest.NewEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["None"]: supported values: "All"`},
		{"empty dryRun", "POST", apitest.EventsPath + "?dryRun=", apitest.NewEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported values: "All"`},
		{"fieldManager", "POST", apitest.EventsPath + "?fieldManager=" + strings.Repeat("x", 129), apitest.NewEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes`},
		{"fieldManager not printable", "POST", apitest.EventsPath + "?fieldManager=a%07", apitest.NewEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\a": invalid character U+0007 (at position 1)`},
		{"fieldValidation", "POST", apitest.EventsPath + "?fieldValidation=Lax", apitest.NewEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Lax": supported values: "", "Ignore", "Strict", "Warn"`},
		{"unknown field", "POST", apitest.EventsPath + "?fieldValidation=Strict", apitest.NewEvent("x", `"noteX":"a"`), nil, 400, bad, `Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field "noteX"`},
		{"bad namespace", "POST", "/apis/events.k8s.io/v1/namespaces/Bad_NS/events", apitest.NewEvent("x"), nil, 422, invalid, `Event "x" is invalid: *`},
		{"not acceptable", "POST", apitest.EventsPath, apitest.NewEvent("unstored"), []string{"Accept", "text/html"}, 406, metav1.StatusReasonNotAcceptable, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"timeout", "POST", apitest.EventsPath + "?timeout=soon", apitest.NewEvent("x"), nil, 400, bad, `invalid timeout specified in the request URL - time: invalid duration "soon"`},
		{"all namespaces", "POST", "/apis/events.k8s.io/v1/events", apitest.NewEvent("x"), nil, 405, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource"},
		{"one", "POST", apitest.EventsPath + "/x", apitest.NewEvent("x"), nil, 405, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource"},
	})
	w.Do("GET", apitest.EventsPath+"/unstored", "").Must(404)
	w.Do("GET", apitest.EventsPath+"/x", "").Must(404)
}

func TestCreateSetsMetadata(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	a := w.Do("POST", apitest.EventsPath, apitest.NewEvent("x", `"metadata":{"name":"x","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z",`+
		`"deletionTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x"}`)).Must(201)
	if uid := a.At("metadata.uid"); uid == "mine" || uid == nil {
		t.Errorf("uid %v", uid)
	}
	if created := a.At("metadata.creationTimestamp").(string); strings.HasPrefix(created, "2001") {
		t.Error(created)
	}
	apitest.Equal(t, a.At("metadata.deletionTimestamp"), nil)
	apitest.Equal(t, a.At("metadata.selfLink"), nil)
}

func TestGenerateName(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	body := apitest.NewEvent("x", `"metadata":{"generateName":"gen-`+strings.Repeat("a", 60)+`"}`)
	first := w.Do("POST", apitest.EventsPath, body).Must(201)
	second := w.Do("POST", apitest.EventsPath, body).Must(201)
	if n := first.At("metadata.name").(string); len(n) != 63 || n == second.At("metadata.name") || !strings.HasPrefix(n, "gen-aaa") {
		t.Error(n)
	}
	apitest.Equal(t, len(w.Do("GET", apitest.EventsPath, "").Must(200).Names()), 2)
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	warned := w.Do("POST", apitest.EventsPath, apitest.NewEvent("a", `"noteX":"1"`, `"note":"2"`)).Must(201)
	apitest.Equal(t, warned.Header.Values("Warning"), []string{`299 - "unknown field \"noteX\""`, `299 - "duplicate field \"note\""`})
	apitest.Equal(t, warned.At("note"), any("2"))
	ignored := w.Do("POST", apitest.EventsPath+"?fieldValidation=Ignore", apitest.NewEvent("b", `"noteX":"1"`)).Must(201)
	apitest.Equal(t, len(ignored.Header.Values("Warning")), 0)
}

func TestDuplicateOwnersAreDropped(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	owner := `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}`
	meta := `"metadata":{"name":"a","ownerReferences":[` + owner + `,` + owner + `]}`
	const text = `299 - ".metadata.ownerReferences contains duplicate entries`
	for _, a := range []*apitest.Answer{
		w.Do("POST", apitest.EventsPath, apitest.NewEvent("a", meta)).Must(201),
		w.Do("PUT", apitest.EventsPath+"/a", apitest.NewEvent("a", meta)).Must(200),
		w.Do("PATCH", apitest.EventsPath+"/a", "{"+meta+"}", "Content-Type", apitest.MergePatch).Must(200),
	} {
		if !strings.HasPrefix(a.Header.Get("Warning"), text) {
			t.Error(a.Header.Get("Warning"))
		}
		apitest.Equal(t, len(a.At("metadata.ownerReferences").([]any)), 1)
	}
}

func TestManyWarningsAreCut(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	var fields []string
	for i := range 30 {
		fields = append(fields, `"`+strings.Repeat(string(rune('a'+i%26)), 300)+string(rune('A'+i/26))+`":1`)
	}
	total := 0
	values := w.Do("POST", apitest.EventsPath, apitest.NewEvent("a", fields...)).Must(201).Header.Values("Warning")
	for _, v := range values {
		total += len(v)
	}
	if len(values) < 10 || total > 4096+len(values)*20 {
		t.Errorf("%d warnings of %d bytes", len(values), total)
	}
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a")
	made := w.Do("POST", apitest.EventsPath+"?dryRun=All", apitest.NewEvent("b")).Must(201)
	apitest.Equal(t, made.At("metadata.resourceVersion"), nil)
	if made.At("metadata.uid") == nil || made.At("metadata.creationTimestamp") == nil {
		t.Errorf("%s", made.Body)
	}
	named := w.Do("POST", apitest.EventsPath+"?dryRun=All", apitest.NewEvent("", `"metadata":{"generateName":"g-"}`)).Must(201)
	if name, _ := named.At("metadata.name").(string); !strings.HasPrefix(name, "g-") {
		t.Error(name)
	}
	put := w.Do("PUT", apitest.EventsPath+"/a?dryRun=All", apitest.NewEvent("a", `"metadata":{"name":"a","labels":{"x":"y"}}`)).Must(200)
	apitest.Equal(t, put.At("metadata.resourceVersion"), any(rv))
	apitest.Equal(t, put.At("metadata.labels.x"), any("y"))
	w.Do("PUT", apitest.EventsPath+"/c?dryRun=All", apitest.NewEvent("c")).Must(201)
	patch := w.Do("PATCH", apitest.EventsPath+"/a?dryRun=All", `{"metadata":{"labels":{"x":"z"}}}`, "Content-Type", apitest.MergePatch).Must(200)
	apitest.Equal(t, patch.At("metadata.labels.x"), any("z"))
	apitest.Equal(t, patch.At("metadata.resourceVersion"), any(rv))
	gone := w.Do("DELETE", apitest.EventsPath+"/a?dryRun=All", "").Must(200).Status()
	apitest.Equal(t, gone.Details.Name, "a")
	w.Do("DELETE", apitest.EventsPath+"?dryRun=All", "").Must(200)

	list := w.Do("GET", apitest.EventsPath, "").Must(200)
	apitest.Equal(t, list.Names(), []string{"a"})
	apitest.Equal(t, list.At("metadata.resourceVersion"), any(rv))
	apitest.Equal(t, apitest.Field(list.At("items").([]any)[0], "metadata.labels"), any(map[string]any{"app": "a"}))
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a")
	live := w.Do("GET", apitest.EventsPath+"/a", "").Must(200)
	uid := live.At("metadata.uid").(string)
	meta := func(more string) string { return `"metadata":{"name":"a"` + more + `}` }
	conflict, bad := metav1.StatusReasonConflict, metav1.StatusReasonBadRequest
	modified := `Operation cannot be fulfilled on events.events.k8s.io "a": the object has been modified; please apply your changes to the latest version and try again`
	refuses(w, t, []refusal{
		{"other version", "PUT", apitest.EventsPath + "/a", apitest.NewEvent("a", meta(`,"resourceVersion":"1"`)), nil, 409, conflict, modified},
		{"no version", "PUT", apitest.EventsPath + "/a", apitest.NewEvent("a", meta(`,"resourceVersion":"x"`)), nil, 400, bad, `invalid resource version: *`},
		{"other uid", "PUT", apitest.EventsPath + "/a", apitest.NewEvent("a", meta(`,"uid":"zzz"`)), nil, 409, conflict, `Operation cannot be fulfilled on events.events.k8s.io "a": Precondition failed: UID in precondition: zzz, UID in object meta: ` + uid},
		{"uid of none", "PUT", apitest.EventsPath + "/none", apitest.NewEvent("none", `"metadata":{"name":"none","uid":"zzz"}`), nil, 409, conflict, `Operation cannot be fulfilled on events.events.k8s.io "none": Precondition failed: UID in precondition: zzz, UID in object meta: `},
		{"no name", "PUT", apitest.EventsPath + "/a", apitest.NewEvent("", `"metadata":{}`), nil, 400, bad, "the name of the object (a based on URL) was undeterminable: name must be provided"},
		{"other name", "PUT", apitest.EventsPath + "/a", apitest.NewEvent("b"), nil, 400, bad, "the name of the object (b) does not match the name on the URL (a)"},
		{"other namespace", "PUT", apitest.EventsPath + "/a", apitest.NewEvent("", meta(`,"namespace":"b"`)), nil, 400, bad, "the namespace of the provided object does not match the namespace sent on the request"},
		{"immutable", "PUT", apitest.EventsPath + "/a", apitest.NewEvent("a", `"note":"changed"`), nil, 422, metav1.StatusReasonInvalid, `Event "a" is invalid: message: Invalid value: "changed": field is immutable`},
		{"deletionTimestamp", "PUT", apitest.EventsPath + "/a", apitest.NewEvent("a", meta(`,"deletionTimestamp":"2026-01-02T03:04:05Z"`)), nil, 422, metav1.StatusReasonInvalid, `Event "a" is invalid: *`},
		{"options", "PUT", apitest.EventsPath + "/a?dryRun=x", apitest.NewEvent("a"), nil, 422, metav1.StatusReasonInvalid, `UpdateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"`},
	})
	for _, version := range []string{``, `,"resourceVersion":"0"`, `,"resourceVersion":"` + rv + `"`, `,"uid":"` + uid + `"`} {
		same := w.Do("PUT", apitest.EventsPath+"/a", apitest.NewEvent("a", meta(`,"labels":{"app":"a"}`+version))).Must(200)
		apitest.Equal(t, same.At("metadata.resourceVersion"), any(rv)) // nothing changed
	}
	changed := w.Do("PUT", apitest.EventsPath+"/a", apitest.NewEvent("a", meta(`,"labels":{"app":"b"},"creationTimestamp":"2001-01-01T00:00:00Z","generation":7,"resourceVersion":"`+rv+`"`))).Must(200)
	apitest.Equal(t, changed.At("metadata.uid"), any(uid))
	apitest.Equal(t, changed.At("metadata.creationTimestamp"), live.At("metadata.creationTimestamp"))
	apitest.Equal(t, changed.At("metadata.generation"), nil)
	if changed.At("metadata.resourceVersion") == rv {
		t.Error("the version is that of before")
	}
	made := w.Do("PUT", apitest.EventsPath+"/new", apitest.NewEvent("new", `"metadata":{"name":"new","resourceVersion":"77"}`)).Must(201)
	apitest.Equal(t, made.At("metadata.name"), any("new"))
	w.Do("PUT", apitest.EventsPath+"/bad", `{"metadata":{"name":"bad"}}`).Must(422) // the rules of new events
}

// TestViewsDiffer: an event is checked by the rules of the API group that it is
// written through.
func TestViewsDiffer(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a")
	w.Do("PATCH", apitest.CorePath+"/a", `{"message":"new"}`, "Content-Type", apitest.MergePatch).Must(200)
	apitest.Equal(t, w.Do("GET", apitest.EventsPath+"/a", "").Must(200).At("note"), any("new"))
	st := w.Do("PATCH", apitest.EventsPath+"/a", `{"note":"newer"}`, "Content-Type", apitest.MergePatch).Must(422).Status()
	apitest.Equal(t, st.Details.Causes, []metav1.StatusCause{{
		Type: metav1.CauseTypeFieldValueInvalid, Field: "message", Message: `Invalid value: "newer": field is immutable`,
	}})
	w.Do("POST", apitest.CorePath, `{"metadata":{"name":"Bad_Name"},"involvedObject":{"namespace":"default"},"type":"weird"}`).Must(201)
	apitest.Equal(t, w.Do("GET", apitest.EventsPath+"/Bad_Name", "").Must(200).At("type"), any("weird"))
	apitest.Equal(t, w.Do("GET", apitest.CorePath+"?fieldSelector=source%3Dexample.com/ctl", "").Must(200).Names(), []string{"a"})
	w.Do("DELETE", apitest.EventsPath+"/Bad_Name", "").Must(200)
}

func TestPatch(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a")
	patch := func(kind, body string) *apitest.Answer {
		return w.Do("PATCH", apitest.EventsPath+"/a", body, "Content-Type", kind)
	}
	apitest.Equal(t, patch(apitest.MergePatch, `{"metadata":{"labels":{"app":"a"}}}`).Must(200).At("metadata.resourceVersion"), any(rv))
	apitest.Equal(t, patch(apitest.MergePatch, `{"metadata":{"labels":{"x":"1"}}}`).Must(200).At("metadata.labels.x"), any("1"))
	apitest.Equal(t, patch(apitest.StrategicPatch+"; charset=utf-8", `{"metadata":{"labels":{"x":null}}}`).Must(200).At("metadata.labels.x"), nil)
	apitest.Equal(t, patch(apitest.JSONPatch, `[{"op":"test","path":"/metadata/name","value":"a"},{"op":"add","path":"/metadata/labels/y","value":"2"}]`).
		Must(200).At("metadata.labels.y"), any("2"))
	bad, invalid := metav1.StatusReasonBadRequest, metav1.StatusReasonInvalid
	of := func(kind string) []string { return []string{"Content-Type", kind} }
	unknown := "415: Unsupported Media Type"
	path := apitest.EventsPath + "/a"
	refuses(w, t, []refusal{
		{"missing", "PATCH", apitest.EventsPath + "/none", `{}`, of(apitest.MergePatch), 404, metav1.StatusReasonNotFound, `events.events.k8s.io "none" not found`},
		{"plain JSON", "PATCH", path, `{}`, of("application/json"), 415, metav1.StatusReasonUnsupportedMediaType, unknown},
		{"no type", "PATCH", path, `{}`, nil, 415, metav1.StatusReasonUnsupportedMediaType, unknown},
		{"other name", "PATCH", path, `{"metadata":{"name":"b"}}`, of(apitest.MergePatch), 400, bad, "the name of the object (b) does not match the name on the URL (a)"},
		{"no name", "PATCH", path, `{"metadata":{"name":null}}`, of(apitest.MergePatch), 400, bad, "the name of the object (a based on URL) was undeterminable: name must be provided"},
		{"other namespace", "PATCH", path, `{"metadata":{"name":"b","namespace":"b"}}`, of(apitest.MergePatch), 400, bad, "the namespace of the provided object does not match the namespace sent on the request"},
		{"other version", "PATCH", path, `{"metadata":{"resourceVersion":"1"}}`, of(apitest.MergePatch), 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on events.events.k8s.io "a": the object has been modified; please apply your changes to the latest version and try again`},
		{"force", "PATCH", path + "?force=true", `{}`, of(apitest.MergePatch), 422, invalid, `PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch`},
		{"failing test", "PATCH", path, `[{"op":"test","path":"/note","value":"x"}]`, of(apitest.JSONPatch), 422, invalid, "the server rejected our request due to an error in our request"},
		{"no array", "PATCH", path, `{}`, of(apitest.JSONPatch), 400, bad, "error decoding patch: *"},
		{"apply without manager", "PATCH", path, `{}`, of(apitest.ApplyPatch), 422, invalid, `PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`},
	})
}

func TestDelete(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	rv := w.Create("a")
	uid := w.Do("GET", apitest.EventsPath+"/a", "").Must(200).At("metadata.uid").(string)
	conflict, invalid := metav1.StatusReasonConflict, metav1.StatusReasonInvalid
	path := apitest.EventsPath + "/a"
	refuses(w, t, []refusal{
		{"missing", "DELETE", apitest.EventsPath + "/none", "", nil, 404, metav1.StatusReasonNotFound, `events.events.k8s.io "none" not found`},
		{"uid", "DELETE", path, `{"preconditions":{"uid":"zzz"}}`, nil, 409, conflict, `Operation cannot be fulfilled on Event "a": the UID in the precondition (zzz) does not match the UID in record (` + uid + `). The object might have been deleted and then recreated`},
		{"version", "DELETE", path, `{"preconditions":{"resourceVersion":"1"}}`, nil, 409, conflict, `Operation cannot be fulfilled on Event "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (` + rv + `). The object might have been modified`},
		{"policy", "DELETE", path + "?propagationPolicy=No", "", nil, 422, invalid, `DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "No": supported values: "Foreground", "Background", "Orphan", "nil"`},
		{"both policies", "DELETE", path, `{"orphanDependents":true,"propagationPolicy":"Orphan"}`, nil, 422, invalid, `DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set`},
		{"dryRun", "DELETE", path + "?dryRun=", "", nil, 422, invalid, `DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported values: "All"`},
		{"wrong kind", "DELETE", path, `{"kind":"Pod","apiVersion":"v1"}`, nil, 400, metav1.StatusReasonBadRequest, `no kind "Pod" is registered for version "v1" in scheme*`},
		{"format", "DELETE", path, `x`, []string{"Content-Type", "text/plain"}, 415, metav1.StatusReasonUnsupportedMediaType, "the body of the request was in an unknown format*"},
		{"all namespaces", "DELETE", "/apis/events.k8s.io/v1/events", "", nil, 405, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource"},
	})
	gone := w.Do("DELETE", path+"?gracePeriodSeconds=5&propagationPolicy=Foreground", `{"propagationPolicy":"Background"}`).Must(200)
	apitest.Equal(t, gone.Object(), map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success",
		"details": map[string]any{"name": "a", "group": "events.k8s.io", "kind": "events", "uid": uid},
	})
	w.Create("b")
	core := w.Do("DELETE", apitest.CorePath+"/b?gracePeriodSeconds=5&propagationPolicy=Foreground", "").Must(200)
	apitest.Equal(t, core.At("details.group"), nil)
	w.Do("GET", apitest.EventsPath+"/b", "").Must(404)
}

// TestDeleteOptionsInBothPlaces: an option counts in the query and in the body, in every
// format; the body wins, but what either says is dry is dry.
func TestDeleteOptionsInBothPlaces(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a", "b")
	uid := w.Do("GET", apitest.EventsPath+"/a", "").Must(200).At("metadata.uid").(string)
	all, orphan := []string{"All"}, false
	foreground := metav1.DeletePropagationForeground
	for _, path := range []string{apitest.EventsPath + "/a?", apitest.EventsPath + "?fieldSelector=metadata.name%3Da&"} {
		for _, c := range []struct {
			name, query string
			body        *metav1.DeleteOptions
			code        int
		}{
			{"dry in the query, no body", "dryRun=All", nil, 200},
			{"dry in the query, empty body", "dryRun=All", &metav1.DeleteOptions{}, 200},
			{"dry in the query, other options in the body", "dryRun=All", &metav1.DeleteOptions{PropagationPolicy: &foreground}, 200},
			{"dry in the body", "", &metav1.DeleteOptions{DryRun: all}, 200},
			{"dry in the body, other options in the query", "gracePeriodSeconds=1&propagationPolicy=Background", &metav1.DeleteOptions{DryRun: all}, 200},
			{"dry in both", "dryRun=All", &metav1.DeleteOptions{DryRun: all}, 200},
			{"a wrong dry run in the query", "dryRun=None", &metav1.DeleteOptions{}, 422},
			{"an empty dry run in the query", "dryRun=", &metav1.DeleteOptions{}, 422},
			{"a wrong dry run in the query, a right one in the body", "dryRun=None", &metav1.DeleteOptions{DryRun: all}, 422},
			{"a wrong dry run in the body", "dryRun=All", &metav1.DeleteOptions{DryRun: []string{"None"}}, 422},
			{"a wrong policy in the query", "propagationPolicy=Sideways", &metav1.DeleteOptions{}, 422},
			{"a wrong grace period in the query", "gracePeriodSeconds=x", &metav1.DeleteOptions{}, 400},
			{"a policy here and its predecessor there", "propagationPolicy=Orphan", &metav1.DeleteOptions{OrphanDependents: &orphan}, 422},
			{"a wrong policy in the query, a right one in the body", "dryRun=All&propagationPolicy=Sideways", &metav1.DeleteOptions{PropagationPolicy: &foreground}, 200},
			{"uid in the query", "uid=zzz", &metav1.DeleteOptions{}, 409},
			{"uid in the body", "", &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("zzz")}, 409},
			{"another uid in the query", "dryRun=All&uid=zzz", &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(uid)}, 200},
		} {
			if c.body == nil {
				w.Do("DELETE", path+c.query, "").Must(c.code)
			} else {
				text, err := json.Marshal(c.body)
				if err != nil {
					t.Fatal(err)
				}
				for media, body := range map[string]string{"application/json": string(text), "application/yaml": string(text), apitest.Protobuf: apitest.Wrap(t, "events.k8s.io/v1", "DeleteOptions", c.body)} {
					if a := w.Do("DELETE", path+c.query, body, "Content-Type", media); a.Code != c.code {
						t.Errorf("%s, %s of %s: %d %s", c.name, media, path, a.Code, a.Body)
					}
				}
			}
			apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{"a", "b"})
			if t.Failed() {
				t.Fatal(c.name)
			}
		}
	}
	// In the query of a collection it is the version of the list.
	w.Do("DELETE", apitest.EventsPath+"?resourceVersion=1&fieldSelector=metadata.name%3Da", `{}`).Must(200)
	w.Do("DELETE", apitest.EventsPath+"/b?resourceVersion=1", `{}`).Must(409)
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{"b"})
}

func TestFinalizers(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	made := w.Do("POST", apitest.EventsPath, apitest.NewEvent("a", `"metadata":{"name":"a","finalizers":["example.com/keep"]}`)).Must(201)
	marked := w.Do("DELETE", apitest.EventsPath+"/a", "").Must(200)
	apitest.Equal(t, marked.At("kind"), any("Event"))
	apitest.Equal(t, marked.At("metadata.deletionGracePeriodSeconds"), any(0.0))
	if marked.At("metadata.deletionTimestamp") == nil || marked.At("metadata.resourceVersion") == made.At("metadata.resourceVersion") {
		t.Errorf("%s", marked.Body)
	}
	apitest.Equal(t, w.Do("DELETE", apitest.EventsPath+"/a", "").Must(200).Object(), marked.Object())
	apitest.Equal(t, w.Do("POST", apitest.EventsPath, apitest.NewEvent("a")).Must(409).Status().Message, `object is being deleted: events.events.k8s.io "a" already exists`)
	w.Do("PATCH", apitest.EventsPath+"/a", `{"metadata":{"finalizers":["example.com/keep","example.com/more"]}}`, "Content-Type", apitest.MergePatch).Must(422)
	w.Do("PATCH", apitest.EventsPath+"/a", `{"metadata":{"deletionTimestamp":null}}`, "Content-Type", apitest.MergePatch).Must(200)

	s := w.Watch(w.Serve(), apitest.EventsPath+"?watch=1&resourceVersion="+marked.At("metadata.resourceVersion").(string))
	last := w.Do("PATCH", apitest.EventsPath+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type", apitest.MergePatch).Must(200)
	apitest.Equal(t, last.At("metadata.resourceVersion"), marked.At("metadata.resourceVersion"))
	apitest.Equal(t, last.At("metadata.finalizers"), nil)
	apitest.Equal(t, s.Take(1), []apitest.Change{{"DELETED", "a", "hello"}})
	w.Do("GET", apitest.EventsPath+"/a", "").Must(404)
}

func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a", "b", "c", "d", "e")
	w.Do("POST", "/api/v1/namespaces/other/events", `{"metadata":{"name":"o"},"involvedObject":{"namespace":"other"}}`).Must(201)
	rv := w.Do("GET", apitest.EventsPath, "").Must(200).At("metadata.resourceVersion")

	one := w.Do("DELETE", apitest.EventsPath+"?labelSelector=app%3Da&watch=true", "").Must(200)
	apitest.Equal(t, one.Object(), map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": rv}, "status": "Success",
		"message": "deleted 1 events.events.k8s.io", "details": map[string]any{"group": "events.k8s.io", "kind": "events"},
	})
	page := w.Do("DELETE", apitest.EventsPath+"?limit=1", "").Must(200)
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{"c", "d", "e"})
	w.Do("DELETE", apitest.EventsPath+"?limit=1&continue="+page.At("metadata.continue").(string), "").Must(200)
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{"d", "e"})

	refuses(w, t, []refusal{
		{"uid", "DELETE", apitest.EventsPath, `{"preconditions":{"uid":"zzz"}}`, nil, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on Event *`},
		{"initial events", "DELETE", apitest.EventsPath + "?sendInitialEvents=true", "", nil, 422, metav1.StatusReasonInvalid, `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`},
		{"option", "DELETE", apitest.EventsPath, `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`, nil, 422, metav1.StatusReasonInvalid, `DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: *`},
		{"future", "DELETE", apitest.EventsPath + "?resourceVersion=999", "", nil, 504, metav1.StatusReasonTimeout, `Timeout: Too large resource version: *`},
	})
	table := w.Do("DELETE", apitest.EventsPath+"?resourceVersion=1", "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Must(200)
	apitest.Equal(t, table.At("kind"), any("Table"))
	apitest.Equal(t, len(table.At("rows").([]any)), 2)
	apitest.Equal(t, w.Do("GET", apitest.EventsPath, "").Must(200).Names(), []string{})
	apitest.Equal(t, w.Do("GET", "/api/v1/events", "").Must(200).Names(), []string{"o"})
}

func TestRequiredNamespaces(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, requireNamespaces)
	w.Create("a")
	for name, code := range map[string]int{"declared": 201, "unknown": 404, "Bad_NS": 404} {
		a := w.Do("POST", "/api/v1/namespaces/"+name+"/events", `{"metadata":{"name":"o"},"involvedObject":{"namespace":"`+name+`"}}`).Must(code)
		if code == 404 {
			st := a.Status()
			apitest.Equal(t, st.Message, `namespaces "`+name+`" not found`)
			apitest.Equal(t, st.Details, &metav1.StatusDetails{Name: name, Kind: "namespaces"})
		}
	}
	apitest.Equal(t, w.Do("GET", "/api/v1/namespaces/unknown/events", "").Must(200).Names(), []string{})
	w.Do("PUT", "/api/v1/namespaces/unknown/events/x", `{"metadata":{"name":"x"},"involvedObject":{"namespace":"unknown"}}`).Must(404)
}
