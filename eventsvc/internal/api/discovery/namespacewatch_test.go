package discovery_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/api/apitest"
)

// createIn stores an event in a namespace.
func createIn(w *apitest.World, namespace, name string) {
	w.T.Helper()
	w.Do("POST", apitest.NamespacesPath+"/"+namespace+"/events",
		`{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"`+namespace+`"}}`).Must(201)
}

// TestGoldenNamespaces: the exact bytes in each format.
func TestGoldenNamespaces(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	createIn(w, "a", "x")
	const form = ";v=v1;g=meta.k8s.io;as="
	for name, accept := range map[string]string{
		"json": "", "yaml": "application/yaml", "protobuf": apitest.Protobuf, "table.json": "application/json" + form + "Table",
	} {
		apitest.Golden(t, "namespaces."+name, w.Do("GET", apitest.NamespacesPath, "", "Accept", accept).Must(200).Body)
		apitest.Golden(t, "namespace."+name, w.Do("GET", apitest.NamespacesPath+"/a", "", "Accept", accept).Must(200).Body)
	}
	for name, accept := range map[string]string{"partial.json": "application/json", "partial.protobuf": apitest.Protobuf} {
		apitest.Golden(t, "namespaces."+name, w.Do("GET", apitest.NamespacesPath, "", "Accept", accept+form+"PartialObjectMetadataList").Must(200).Body)
		apitest.Golden(t, "namespace."+name, w.Do("GET", apitest.NamespacesPath+"/a", "", "Accept", accept+form+"PartialObjectMetadata").Must(200).Body)
	}
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	createIn(w, "a-b", "x")
	createIn(w, "a", "x")
	createIn(w, "a", "y")
	before := w.Do("GET", apitest.NamespacesPath, "").Must(200)
	all := []string{"a", "a-b", "default", "kube-node-lease", "kube-public", "kube-system"}
	apitest.Equal(t, before.Names(), all)
	apitest.Equal(t, before.At("kind"), any("NamespaceList"))
	createIn(w, "zzz", "x")
	apitest.Equal(t, len(w.Do("GET", apitest.NamespacesPath, "").Must(200).Names()), 7)
	rv := before.At("metadata.resourceVersion").(string)
	apitest.Equal(t, w.Do("GET", apitest.NamespacesPath+"?resourceVersionMatch=Exact&resourceVersion="+rv, "").Must(200).Names(), all)
	page := w.Do("GET", apitest.NamespacesPath+"?limit=4", "").Must(200)
	apitest.Equal(t, page.Names(), all[:4])
	createIn(w, "zzzz", "x") // is not in the list that is being read
	rest := w.Do("GET", apitest.NamespacesPath+"?limit=4&continue="+page.At("metadata.continue").(string), "").Must(200)
	apitest.Equal(t, rest.Names(), []string{"kube-public", "kube-system", "zzz"})
	apitest.Equal(t, rest.At("metadata.continue"), nil)

	apitest.Equal(t, w.Do("GET", apitest.NamespacesPath+"?fieldSelector=metadata.name%3Da", "").Must(200).Names(), []string{"a"})
	apitest.Equal(t, w.Do("GET", apitest.NamespacesPath+"?labelSelector=kubernetes.io/metadata.name+in+(a,zzz)", "").Must(200).Names(), []string{"a", "zzz"})
	w.Do("GET", apitest.NamespacesPath+"?fieldSelector=x%3Dy", "").Must(400)
	w.Do("GET", apitest.NamespacesPath+"?labelSelector=(", "").Must(400)
	w.Do("GET", apitest.NamespacesPath+"?resourceVersion=9999", "").Must(504)
	w.Do("GET", apitest.NamespacesPath+"?resourceVersion=1&continue=x", "").Must(400)
	w.Do("POST", apitest.NamespacesPath, `{}`).Must(405)
	w.Do("DELETE", apitest.NamespacesPath+"/a", "").Must(405)

	one := w.Do("GET", apitest.NamespacesPath+"/a", "").Must(200)
	apitest.Equal(t, one.At("status.phase"), any("Active"))
	apitest.Equal(t, one.At("metadata.labels"), any(map[string]any{"kubernetes.io/metadata.name": "a"}))
	apitest.Equal(t, one.At("spec.finalizers"), any([]any{"kubernetes"}))
	apitest.Equal(t, w.Do("GET", apitest.NamespacesPath+"/none", "").Must(404).Status().Message, `namespaces "none" not found`)

	table := w.Do("GET", apitest.NamespacesPath, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Must(200)
	apitest.Equal(t, table.At("rows").([]any)[0].(map[string]any)["cells"], any([]any{"a", "Active", "<unknown>"}))
	w.Do("GET", apitest.NamespacesPath, "", "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").Must(200)
	var list corev1.NamespaceList
	apitest.Equal(t, apitest.Unwrap(t, w.Do("GET", apitest.NamespacesPath, "", "Accept", "application/vnd.kubernetes.protobuf").Must(200).Body, &list).Kind, "NamespaceList")
	apitest.Equal(t, list.Items[0].Name, "a")
}

func TestWatchNamespaces(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	createIn(w, "a", "x")
	srv := w.Serve()
	first := w.Watch(srv, apitest.NamespacesPath+apitest.WatchList)
	apitest.Equal(t, first.Take(5), []apitest.Change{
		{"ADDED", "a"}, {"ADDED", "default"}, {"ADDED", "kube-node-lease"},
		{"ADDED", "kube-public"}, {"ADDED", "kube-system"},
	})
	kind, bookmark := first.Next()
	apitest.Equal(t, kind, "BOOKMARK")
	apitest.Equal(t, bookmark["kind"], any("Namespace"))
	apitest.Equal(t, apitest.Field(bookmark, "metadata.annotations"), any(map[string]any{apitest.InitialEnd: "true"}))
	rv := apitest.Field(bookmark, "metadata.resourceVersion").(string)

	createIn(w, "a", "y")
	createIn(w, "default", "x")
	createIn(w, "b", "x")
	w.Do("DELETE", apitest.NamespacesPath+"/a/events/x", "").Must(200)
	w.Do("DELETE", apitest.NamespacesPath+"/b/events/x", "").Must(200)
	w.Do("DELETE", apitest.NamespacesPath+"/a/events/y", "").Must(200)
	w.Do("DELETE", apitest.NamespacesPath+"/default/events/x", "").Must(200)
	createIn(w, "a", "z")
	want := []apitest.Change{
		{"ADDED", "b"}, {"DELETED", "b"}, {"DELETED", "a"}, {"ADDED", "a"},
	}
	apitest.Equal(t, first.Take(4), want)
	apitest.Equal(t, w.Watch(srv, apitest.NamespacesPath+"?watch=1&resourceVersion="+rv).Take(4), want)
	apitest.Equal(t, w.Watch(srv, apitest.NamespacesPath+"?watch=1&fieldSelector=metadata.name%3Da&resourceVersion="+rv).Take(2), want[2:])
	table := w.Watch(srv, apitest.NamespacesPath+apitest.WatchList, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	_, object := table.Next()
	apitest.Equal(t, len(object["columnDefinitions"].([]any)), 3)
	_, object = table.Next()
	apitest.Equal(t, object["columnDefinitions"], nil)
}

func TestWhoAmI(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	path := "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	a := w.Do("POST", path, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`).Must(201)
	apitest.Equal(t, a.At("status.userInfo"), any(map[string]any{
		"username": "good", "groups": []any{"system:authenticated"},
		"extra": map[string]any{"client_id": []any{"good"}, "issuer": []any{"https://issuer.example"}, "scope": []any{"events"}},
	}))
	body := apitest.Wrap(t, "authentication.k8s.io/v1", "SelfSubjectReview", &authenticationv1.SelfSubjectReview{})
	p := w.Do("POST", path, body, "Content-Type", "application/vnd.kubernetes.protobuf", "Accept", "application/vnd.kubernetes.protobuf").Must(201)
	var r authenticationv1.SelfSubjectReview
	apitest.Unwrap(t, p.Body, &r)
	apitest.Equal(t, r.Status.UserInfo.Username, "good")
	w.Do("POST", path, `{"kind":"Pod","apiVersion":"v1"}`).Must(400)
	w.Do("POST", path, `{`).Must(400)
	w.Do("GET", path, "").Must(405)
	w.Do("POST", path, `{}`, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Must(406)
}

func TestCanI(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for _, c := range []struct {
		attributes string
		want       bool
	}{
		{`"resourceAttributes":{"verb":"create","group":"events.k8s.io","resource":"events","namespace":"default"}`, true},
		{`"resourceAttributes":{"verb":"list","resource":"events"}`, true},
		{`"resourceAttributes":{"verb":"*","group":"*","resource":"*"}`, true},
		{`"resourceAttributes":{"verb":"list","resource":"namespaces"}`, true},
		{`"resourceAttributes":{"verb":"create","resource":"namespaces"}`, false},
		{`"resourceAttributes":{"verb":"list","resource":"pods"}`, false},
		{`"resourceAttributes":{"verb":"update","resource":"events","subresource":"status"}`, false},
		{`"resourceAttributes":{"verb":"list","group":"events.k8s.io","version":"v1beta1","resource":"events"}`, false},
		{`"nonResourceAttributes":{"verb":"get","path":"/version"}`, true},
		{`"nonResourceAttributes":{"verb":"post","path":"/version"}`, false},
	} {
		a := w.Do("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"spec":{`+c.attributes+`}}`).Must(201)
		if got := a.At("status.allowed"); got != c.want {
			t.Errorf("%s: %v", c.attributes, got)
		}
	}
	rules := w.Do("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`).Must(201)
	first := rules.At("status.resourceRules").([]any)[0]
	apitest.Equal(t, apitest.Field(first, "resources"), any([]any{"events"}))
}
