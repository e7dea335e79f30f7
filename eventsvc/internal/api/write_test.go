package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// refusal is a request that is refused, and with what.
type refusal struct {
	name, method, path, body string
	headers                  []string
	code                     int
	reason                   metav1.StatusReason
	text                     string // the whole message; with a trailing * its beginning
}

func (w *world) refuses(t *testing.T, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := *w
			w.t = t
			st := w.do(c.method, c.path, c.body, c.headers...).must(c.code).status()
			equal(t, st.Reason, c.reason)
			equal(t, st.Status, metav1.StatusFailure)
			if begin, ok := strings.CutSuffix(c.text, "*"); !ok {
				equal(t, st.Message, c.text)
			} else if !strings.HasPrefix(st.Message, begin) {
				t.Errorf("%s\ndoes not begin with\n%s", st.Message, begin)
			}
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("taken")
	invalid := metav1.StatusReasonInvalid
	bad := metav1.StatusReasonBadRequest
	w.refuses(t, []refusal{
		{"exists", "POST", eventsPath, newEvent("taken"), nil, 409, metav1.StatusReasonAlreadyExists, `events.events.k8s.io "taken" already exists`},
		{"exists in core", "POST", corePath, `{"metadata":{"name":"taken"},"involvedObject":{"namespace":"default"}}`, nil, 409, metav1.StatusReasonAlreadyExists, `events "taken" already exists`},
		{"exists, dry run", "POST", eventsPath + "?dryRun=All", newEvent("taken"), nil, 409, metav1.StatusReasonAlreadyExists, `events.events.k8s.io "taken" already exists`},
		{"other namespace", "POST", "/apis/events.k8s.io/v1/namespaces/other/events", newEvent("x", `"metadata":{"name":"x","namespace":"default"}`), nil, 400, bad, "the namespace of the provided object does not match the namespace sent on the request"},
		{"resourceVersion", "POST", eventsPath, newEvent("x", `"metadata":{"name":"x","resourceVersion":"1"}`), nil, 400, bad, "resourceVersion should not be set on objects to be created"},
		{"no name", "POST", eventsPath, newEvent("x", `"metadata":{}`), nil, 422, invalid, `Event "" is invalid: metadata.name: Required value: name or generateName is required*`},
		{"only a name", "POST", eventsPath, `{"metadata":{"name":"b1"}}`, nil, 422, invalid, `Event "b1" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid value: ]`},
		{"empty body", "POST", eventsPath, "", nil, 400, bad, "*"},
		{"truncated", "POST", eventsPath, `{"kind":`, nil, 400, bad, "the object provided is unrecognized (must be of type Event): couldn't get version/kind; json parse error: unexpected end of JSON input ({\"kind\":)"},
		{"other version", "POST", eventsPath, `{"kind":"Event","apiVersion":"v1"}`, nil, 400, bad, "the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)"},
		{"text", "POST", eventsPath, "x", []string{"Content-Type", "text/plain"}, 415, metav1.StatusReasonUnsupportedMediaType, "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"too large", "POST", eventsPath, `{"note":"` + strings.Repeat("x", 4<<20) + `"}`, nil, 413, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728"},
		{"dryRun", "POST", eventsPath + "?dryRun=None", newEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["None"]: supported values: "All"`},
		{"empty dryRun", "POST", eventsPath + "?dryRun=", newEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported values: "All"`},
		{"fieldManager", "POST", eventsPath + "?fieldManager=" + strings.Repeat("x", 129), newEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes`},
		{"fieldManager not printable", "POST", eventsPath + "?fieldManager=a%07", newEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\a": invalid character U+0007 (at position 1)`},
		{"fieldValidation", "POST", eventsPath + "?fieldValidation=Lax", newEvent("x"), nil, 422, invalid, `CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Lax": supported values: "", "Ignore", "Strict", "Warn"`},
		{"unknown field", "POST", eventsPath + "?fieldValidation=Strict", newEvent("x", `"noteX":"a"`), nil, 400, bad, `Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field "noteX"`},
		{"bad namespace", "POST", "/apis/events.k8s.io/v1/namespaces/Bad_NS/events", newEvent("x"), nil, 422, invalid, `Event "x" is invalid: *`},
		{"not acceptable", "POST", eventsPath, newEvent("unstored"), []string{"Accept", "text/html"}, 406, metav1.StatusReasonNotAcceptable, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"timeout", "POST", eventsPath + "?timeout=soon", newEvent("x"), nil, 400, bad, `invalid timeout specified in the request URL - time: invalid duration "soon"`},
		{"all namespaces", "POST", "/apis/events.k8s.io/v1/events", newEvent("x"), nil, 405, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource"},
		{"one", "POST", eventsPath + "/x", newEvent("x"), nil, 405, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource"},
	})
	w.do("GET", eventsPath+"/unstored", "").must(404)
	w.do("GET", eventsPath+"/x", "").must(404)
}

func TestCreateSetsMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do("POST", eventsPath, newEvent("x", `"metadata":{"name":"x","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z",`+
		`"deletionTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x"}`)).must(201)
	if uid := a.at("metadata.uid"); uid == "mine" || uid == nil {
		t.Errorf("uid %v", uid)
	}
	if created := a.at("metadata.creationTimestamp").(string); strings.HasPrefix(created, "2001") {
		t.Error(created)
	}
	equal(t, a.at("metadata.deletionTimestamp"), nil)
	equal(t, a.at("metadata.selfLink"), nil)
}

func TestGenerateName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := newEvent("x", `"metadata":{"generateName":"gen-`+strings.Repeat("a", 60)+`"}`)
	first := w.do("POST", eventsPath, body).must(201)
	second := w.do("POST", eventsPath, body).must(201)
	if n := first.at("metadata.name").(string); len(n) != 63 || n == second.at("metadata.name") || !strings.HasPrefix(n, "gen-aaa") {
		t.Error(n)
	}
	equal(t, len(w.do("GET", eventsPath, "").must(200).names()), 2)
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	warned := w.do("POST", eventsPath, newEvent("a", `"noteX":"1"`, `"note":"2"`)).must(201)
	equal(t, warned.header.Values("Warning"), []string{`299 - "unknown field \"noteX\""`, `299 - "duplicate field \"note\""`})
	equal(t, warned.at("note"), any("2"))
	ignored := w.do("POST", eventsPath+"?fieldValidation=Ignore", newEvent("b", `"noteX":"1"`)).must(201)
	equal(t, len(ignored.header.Values("Warning")), 0)
}

func TestDuplicateOwnersAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}`
	meta := `"metadata":{"name":"a","ownerReferences":[` + owner + `,` + owner + `]}`
	const text = `299 - ".metadata.ownerReferences contains duplicate entries`
	for _, a := range []*answer{
		w.do("POST", eventsPath, newEvent("a", meta)).must(201),
		w.do("PUT", eventsPath+"/a", newEvent("a", meta)).must(200),
		w.do("PATCH", eventsPath+"/a", "{"+meta+"}", "Content-Type", mergePatch).must(200),
	} {
		if !strings.HasPrefix(a.header.Get("Warning"), text) {
			t.Error(a.header.Get("Warning"))
		}
		equal(t, len(a.at("metadata.ownerReferences").([]any)), 1)
	}
}

func TestManyWarningsAreCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var fields []string
	for i := range 30 {
		fields = append(fields, `"`+strings.Repeat(string(rune('a'+i%26)), 300)+string(rune('A'+i/26))+`":1`)
	}
	total := 0
	values := w.do("POST", eventsPath, newEvent("a", fields...)).must(201).header.Values("Warning")
	for _, v := range values {
		total += len(v)
	}
	if len(values) < 10 || total > 4096+len(values)*20 {
		t.Errorf("%d warnings of %d bytes", len(values), total)
	}
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a")
	made := w.do("POST", eventsPath+"?dryRun=All", newEvent("b")).must(201)
	equal(t, made.at("metadata.resourceVersion"), nil)
	if made.at("metadata.uid") == nil || made.at("metadata.creationTimestamp") == nil {
		t.Errorf("%s", made.body)
	}
	named := w.do("POST", eventsPath+"?dryRun=All", newEvent("", `"metadata":{"generateName":"g-"}`)).must(201)
	if name, _ := named.at("metadata.name").(string); !strings.HasPrefix(name, "g-") {
		t.Error(name)
	}
	put := w.do("PUT", eventsPath+"/a?dryRun=All", newEvent("a", `"metadata":{"name":"a","labels":{"x":"y"}}`)).must(200)
	equal(t, put.at("metadata.resourceVersion"), any(rv))
	equal(t, put.at("metadata.labels.x"), any("y"))
	w.do("PUT", eventsPath+"/c?dryRun=All", newEvent("c")).must(201)
	patch := w.do("PATCH", eventsPath+"/a?dryRun=All", `{"metadata":{"labels":{"x":"z"}}}`, "Content-Type", mergePatch).must(200)
	equal(t, patch.at("metadata.labels.x"), any("z"))
	equal(t, patch.at("metadata.resourceVersion"), any(rv))
	gone := w.do("DELETE", eventsPath+"/a?dryRun=All", "").must(200).status()
	equal(t, gone.Details.Name, "a")
	w.do("DELETE", eventsPath+"?dryRun=All", "").must(200)

	list := w.do("GET", eventsPath, "").must(200)
	equal(t, list.names(), []string{"a"})
	equal(t, list.at("metadata.resourceVersion"), any(rv))
	equal(t, field(list.at("items").([]any)[0], "metadata.labels"), any(map[string]any{"app": "a"}))
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a")
	live := w.do("GET", eventsPath+"/a", "").must(200)
	uid := live.at("metadata.uid").(string)
	meta := func(more string) string { return `"metadata":{"name":"a"` + more + `}` }
	conflict, bad := metav1.StatusReasonConflict, metav1.StatusReasonBadRequest
	modified := `Operation cannot be fulfilled on events.events.k8s.io "a": the object has been modified; please apply your changes to the latest version and try again`
	w.refuses(t, []refusal{
		{"other version", "PUT", eventsPath + "/a", newEvent("a", meta(`,"resourceVersion":"1"`)), nil, 409, conflict, modified},
		{"no version", "PUT", eventsPath + "/a", newEvent("a", meta(`,"resourceVersion":"x"`)), nil, 400, bad, `invalid resource version: *`},
		{"other uid", "PUT", eventsPath + "/a", newEvent("a", meta(`,"uid":"zzz"`)), nil, 409, conflict, `Operation cannot be fulfilled on events.events.k8s.io "a": Precondition failed: UID in precondition: zzz, UID in object meta: ` + uid},
		{"uid of none", "PUT", eventsPath + "/none", newEvent("none", `"metadata":{"name":"none","uid":"zzz"}`), nil, 409, conflict, `Operation cannot be fulfilled on events.events.k8s.io "none": Precondition failed: UID in precondition: zzz, UID in object meta: `},
		{"no name", "PUT", eventsPath + "/a", newEvent("", `"metadata":{}`), nil, 400, bad, "the name of the object (a based on URL) was undeterminable: name must be provided"},
		{"other name", "PUT", eventsPath + "/a", newEvent("b"), nil, 400, bad, "the name of the object (b) does not match the name on the URL (a)"},
		{"other namespace", "PUT", eventsPath + "/a", newEvent("", meta(`,"namespace":"b"`)), nil, 400, bad, "the namespace of the provided object does not match the namespace sent on the request"},
		{"immutable", "PUT", eventsPath + "/a", newEvent("a", `"note":"changed"`), nil, 422, metav1.StatusReasonInvalid, `Event "a" is invalid: message: Invalid value: "changed": field is immutable`},
		{"deletionTimestamp", "PUT", eventsPath + "/a", newEvent("a", meta(`,"deletionTimestamp":"2026-01-02T03:04:05Z"`)), nil, 422, metav1.StatusReasonInvalid, `Event "a" is invalid: *`},
		{"options", "PUT", eventsPath + "/a?dryRun=x", newEvent("a"), nil, 422, metav1.StatusReasonInvalid, `UpdateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"`},
	})
	for _, version := range []string{``, `,"resourceVersion":"0"`, `,"resourceVersion":"` + rv + `"`, `,"uid":"` + uid + `"`} {
		same := w.do("PUT", eventsPath+"/a", newEvent("a", meta(`,"labels":{"app":"a"}`+version))).must(200)
		equal(t, same.at("metadata.resourceVersion"), any(rv)) // nothing changed
	}
	changed := w.do("PUT", eventsPath+"/a", newEvent("a", meta(`,"labels":{"app":"b"},"creationTimestamp":"2001-01-01T00:00:00Z","generation":7,"resourceVersion":"`+rv+`"`))).must(200)
	equal(t, changed.at("metadata.uid"), any(uid))
	equal(t, changed.at("metadata.creationTimestamp"), live.at("metadata.creationTimestamp"))
	equal(t, changed.at("metadata.generation"), nil)
	if changed.at("metadata.resourceVersion") == rv {
		t.Error("the version is that of before")
	}
	made := w.do("PUT", eventsPath+"/new", newEvent("new", `"metadata":{"name":"new","resourceVersion":"77"}`)).must(201)
	equal(t, made.at("metadata.name"), any("new"))
	w.do("PUT", eventsPath+"/bad", `{"metadata":{"name":"bad"}}`).must(422) // the rules of new events
}

// TestViewsDiffer: an event is checked by the rules of the API group that it is
// written through.
func TestViewsDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a")
	w.do("PATCH", corePath+"/a", `{"message":"new"}`, "Content-Type", mergePatch).must(200)
	equal(t, w.do("GET", eventsPath+"/a", "").must(200).at("note"), any("new"))
	st := w.do("PATCH", eventsPath+"/a", `{"note":"newer"}`, "Content-Type", mergePatch).must(422).status()
	equal(t, st.Details.Causes, []metav1.StatusCause{{
		Type: metav1.CauseTypeFieldValueInvalid, Field: "message", Message: `Invalid value: "newer": field is immutable`,
	}})
	w.do("POST", corePath, `{"metadata":{"name":"Bad_Name"},"involvedObject":{"namespace":"default"},"type":"weird"}`).must(201)
	equal(t, w.do("GET", eventsPath+"/Bad_Name", "").must(200).at("type"), any("weird"))
	equal(t, w.do("GET", corePath+"?fieldSelector=source%3Dexample.com/ctl", "").must(200).names(), []string{"a"})
	w.do("DELETE", eventsPath+"/Bad_Name", "").must(200)
}

func TestPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a")
	patch := func(kind, body string) *answer {
		return w.do("PATCH", eventsPath+"/a", body, "Content-Type", kind)
	}
	equal(t, patch(mergePatch, `{"metadata":{"labels":{"app":"a"}}}`).must(200).at("metadata.resourceVersion"), any(rv))
	equal(t, patch(mergePatch, `{"metadata":{"labels":{"x":"1"}}}`).must(200).at("metadata.labels.x"), any("1"))
	equal(t, patch(strategicPatch+"; charset=utf-8", `{"metadata":{"labels":{"x":null}}}`).must(200).at("metadata.labels.x"), nil)
	equal(t, patch(jsonPatch, `[{"op":"test","path":"/metadata/name","value":"a"},{"op":"add","path":"/metadata/labels/y","value":"2"}]`).
		must(200).at("metadata.labels.y"), any("2"))
	bad, invalid := metav1.StatusReasonBadRequest, metav1.StatusReasonInvalid
	of := func(kind string) []string { return []string{"Content-Type", kind} }
	unknown := "415: Unsupported Media Type"
	path := eventsPath + "/a"
	w.refuses(t, []refusal{
		{"missing", "PATCH", eventsPath + "/none", `{}`, of(mergePatch), 404, metav1.StatusReasonNotFound, `events.events.k8s.io "none" not found`},
		{"plain JSON", "PATCH", path, `{}`, of("application/json"), 415, metav1.StatusReasonUnsupportedMediaType, unknown},
		{"no type", "PATCH", path, `{}`, nil, 415, metav1.StatusReasonUnsupportedMediaType, unknown},
		{"other name", "PATCH", path, `{"metadata":{"name":"b"}}`, of(mergePatch), 400, bad, "the name of the object (b) does not match the name on the URL (a)"},
		{"no name", "PATCH", path, `{"metadata":{"name":null}}`, of(mergePatch), 400, bad, "the name of the object (a based on URL) was undeterminable: name must be provided"},
		{"other namespace", "PATCH", path, `{"metadata":{"name":"b","namespace":"b"}}`, of(mergePatch), 400, bad, "the namespace of the provided object does not match the namespace sent on the request"},
		{"other version", "PATCH", path, `{"metadata":{"resourceVersion":"1"}}`, of(mergePatch), 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on events.events.k8s.io "a": the object has been modified; please apply your changes to the latest version and try again`},
		{"force", "PATCH", path + "?force=true", `{}`, of(mergePatch), 422, invalid, `PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch`},
		{"failing test", "PATCH", path, `[{"op":"test","path":"/note","value":"x"}]`, of(jsonPatch), 422, invalid, "the server rejected our request due to an error in our request"},
		{"no array", "PATCH", path, `{}`, of(jsonPatch), 400, bad, "error decoding patch: *"},
		{"apply without manager", "PATCH", path, `{}`, of(applyPatch), 422, invalid, `PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`},
	})
}

func TestDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rv := w.create("a")
	uid := w.do("GET", eventsPath+"/a", "").must(200).at("metadata.uid").(string)
	conflict, invalid := metav1.StatusReasonConflict, metav1.StatusReasonInvalid
	path := eventsPath + "/a"
	w.refuses(t, []refusal{
		{"missing", "DELETE", eventsPath + "/none", "", nil, 404, metav1.StatusReasonNotFound, `events.events.k8s.io "none" not found`},
		{"uid", "DELETE", path, `{"preconditions":{"uid":"zzz"}}`, nil, 409, conflict, `Operation cannot be fulfilled on Event "a": the UID in the precondition (zzz) does not match the UID in record (` + uid + `). The object might have been deleted and then recreated`},
		{"version", "DELETE", path, `{"preconditions":{"resourceVersion":"1"}}`, nil, 409, conflict, `Operation cannot be fulfilled on Event "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (` + rv + `). The object might have been modified`},
		{"policy", "DELETE", path + "?propagationPolicy=No", "", nil, 422, invalid, `DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "No": supported values: "Foreground", "Background", "Orphan", "nil"`},
		{"both policies", "DELETE", path, `{"orphanDependents":true,"propagationPolicy":"Orphan"}`, nil, 422, invalid, `DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set`},
		{"dryRun", "DELETE", path + "?dryRun=", "", nil, 422, invalid, `DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported values: "All"`},
		{"wrong kind", "DELETE", path, `{"kind":"Pod","apiVersion":"v1"}`, nil, 400, metav1.StatusReasonBadRequest, `no kind "Pod" is registered for version "v1" in scheme*`},
		{"format", "DELETE", path, `x`, []string{"Content-Type", "text/plain"}, 415, metav1.StatusReasonUnsupportedMediaType, "the body of the request was in an unknown format*"},
		{"all namespaces", "DELETE", "/apis/events.k8s.io/v1/events", "", nil, 405, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource"},
	})
	gone := w.do("DELETE", path+"?gracePeriodSeconds=5&propagationPolicy=Foreground", `{"propagationPolicy":"Background"}`).must(200)
	equal(t, gone.object(), map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success",
		"details": map[string]any{"name": "a", "group": "events.k8s.io", "kind": "events", "uid": uid},
	})
	w.create("b")
	core := w.do("DELETE", corePath+"/b?gracePeriodSeconds=5&propagationPolicy=Foreground", "").must(200)
	equal(t, core.at("details.group"), nil)
	w.do("GET", eventsPath+"/b", "").must(404)
}

// TestDeleteOptionsInBothPlaces: an option counts in the query and in the body, in every
// format; the body wins, but what either says is dry is dry.
func TestDeleteOptionsInBothPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "b")
	uid := w.do("GET", eventsPath+"/a", "").must(200).at("metadata.uid").(string)
	all, orphan := []string{"All"}, false
	foreground := metav1.DeletePropagationForeground
	for _, path := range []string{eventsPath + "/a?", eventsPath + "?fieldSelector=metadata.name%3Da&"} {
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
				w.do("DELETE", path+c.query, "").must(c.code)
			} else {
				text, err := json.Marshal(c.body)
				if err != nil {
					t.Fatal(err)
				}
				for media, body := range map[string]string{"application/json": string(text), "application/yaml": string(text), protobuf: wrap(t, "events.k8s.io/v1", "DeleteOptions", c.body)} {
					if a := w.do("DELETE", path+c.query, body, "Content-Type", media); a.code != c.code {
						t.Errorf("%s, %s of %s: %d %s", c.name, media, path, a.code, a.body)
					}
				}
			}
			equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{"a", "b"})
			if t.Failed() {
				t.Fatal(c.name)
			}
		}
	}
	// In the query of a collection it is the version of the list.
	w.do("DELETE", eventsPath+"?resourceVersion=1&fieldSelector=metadata.name%3Da", `{}`).must(200)
	w.do("DELETE", eventsPath+"/b?resourceVersion=1", `{}`).must(409)
	equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{"b"})
}

func TestFinalizers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.do("POST", eventsPath, newEvent("a", `"metadata":{"name":"a","finalizers":["example.com/keep"]}`)).must(201)
	marked := w.do("DELETE", eventsPath+"/a", "").must(200)
	equal(t, marked.at("kind"), any("Event"))
	equal(t, marked.at("metadata.deletionGracePeriodSeconds"), any(0.0))
	if marked.at("metadata.deletionTimestamp") == nil || marked.at("metadata.resourceVersion") == made.at("metadata.resourceVersion") {
		t.Errorf("%s", marked.body)
	}
	equal(t, w.do("DELETE", eventsPath+"/a", "").must(200).object(), marked.object())
	equal(t, w.do("POST", eventsPath, newEvent("a")).must(409).status().Message, `object is being deleted: events.events.k8s.io "a" already exists`)
	w.do("PATCH", eventsPath+"/a", `{"metadata":{"finalizers":["example.com/keep","example.com/more"]}}`, "Content-Type", mergePatch).must(422)
	w.do("PATCH", eventsPath+"/a", `{"metadata":{"deletionTimestamp":null}}`, "Content-Type", mergePatch).must(200)

	s := w.watch(w.serve(), eventsPath+"?watch=1&resourceVersion="+marked.at("metadata.resourceVersion").(string))
	last := w.do("PATCH", eventsPath+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type", mergePatch).must(200)
	equal(t, last.at("metadata.resourceVersion"), marked.at("metadata.resourceVersion"))
	equal(t, last.at("metadata.finalizers"), nil)
	equal(t, s.take(1), []change{{"DELETED", "a", "hello"}})
	w.do("GET", eventsPath+"/a", "").must(404)
}

func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "b", "c", "d", "e")
	w.do("POST", "/api/v1/namespaces/other/events", `{"metadata":{"name":"o"},"involvedObject":{"namespace":"other"}}`).must(201)
	rv := w.do("GET", eventsPath, "").must(200).at("metadata.resourceVersion")

	one := w.do("DELETE", eventsPath+"?labelSelector=app%3Da&watch=true", "").must(200)
	equal(t, one.object(), map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": rv}, "status": "Success",
		"message": "deleted 1 events.events.k8s.io", "details": map[string]any{"group": "events.k8s.io", "kind": "events"},
	})
	page := w.do("DELETE", eventsPath+"?limit=1", "").must(200)
	equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{"c", "d", "e"})
	w.do("DELETE", eventsPath+"?limit=1&continue="+page.at("metadata.continue").(string), "").must(200)
	equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{"d", "e"})

	w.refuses(t, []refusal{
		{"uid", "DELETE", eventsPath, `{"preconditions":{"uid":"zzz"}}`, nil, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on Event *`},
		{"initial events", "DELETE", eventsPath + "?sendInitialEvents=true", "", nil, 422, metav1.StatusReasonInvalid, `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`},
		{"option", "DELETE", eventsPath, `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`, nil, 422, metav1.StatusReasonInvalid, `DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: *`},
		{"future", "DELETE", eventsPath + "?resourceVersion=999", "", nil, 504, metav1.StatusReasonTimeout, `Timeout: Too large resource version: *`},
	})
	table := w.do("DELETE", eventsPath+"?resourceVersion=1", "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").must(200)
	equal(t, table.at("kind"), any("Table"))
	equal(t, len(table.at("rows").([]any)), 2)
	equal(t, w.do("GET", eventsPath, "").must(200).names(), []string{})
	equal(t, w.do("GET", "/api/v1/events", "").must(200).names(), []string{"o"})
}

func TestRequiredNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, requireNamespaces)
	w.create("a")
	for name, code := range map[string]int{"declared": 201, "unknown": 404, "Bad_NS": 404} {
		a := w.do("POST", "/api/v1/namespaces/"+name+"/events", `{"metadata":{"name":"o"},"involvedObject":{"namespace":"`+name+`"}}`).must(code)
		if code == 404 {
			st := a.status()
			equal(t, st.Message, `namespaces "`+name+`" not found`)
			equal(t, st.Details, &metav1.StatusDetails{Name: name, Kind: "namespaces"})
		}
	}
	equal(t, w.do("GET", "/api/v1/namespaces/unknown/events", "").must(200).names(), []string{})
	w.do("PUT", "/api/v1/namespaces/unknown/events/x", `{"metadata":{"name":"x"},"involvedObject":{"namespace":"unknown"}}`).must(404)
}
