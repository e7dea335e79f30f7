package api_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
)

const namespacesPath = "/api/v1/namespaces"

// createIn stores an event in a namespace.
func (w *world) createIn(namespace, name string) {
	w.t.Helper()
	w.do("POST", namespacesPath+"/"+namespace+"/events",
		`{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"`+namespace+`"}}`).must(201)
}

// TestGoldenNamespaces: the exact bytes in each format.
func TestGoldenNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createIn("a", "x")
	const form = ";v=v1;g=meta.k8s.io;as="
	for name, accept := range map[string]string{
		"json": "", "yaml": "application/yaml", "protobuf": protobuf, "table.json": "application/json" + form + "Table",
	} {
		golden(t, "namespaces."+name, w.do("GET", namespacesPath, "", "Accept", accept).must(200).body)
		golden(t, "namespace."+name, w.do("GET", namespacesPath+"/a", "", "Accept", accept).must(200).body)
	}
	for name, accept := range map[string]string{"partial.json": "application/json", "partial.protobuf": protobuf} {
		golden(t, "namespaces."+name, w.do("GET", namespacesPath, "", "Accept", accept+form+"PartialObjectMetadataList").must(200).body)
		golden(t, "namespace."+name, w.do("GET", namespacesPath+"/a", "", "Accept", accept+form+"PartialObjectMetadata").must(200).body)
	}
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createIn("a-b", "x")
	w.createIn("a", "x")
	w.createIn("a", "y")
	before := w.do("GET", namespacesPath, "").must(200)
	all := []string{"a", "a-b", "default", "kube-node-lease", "kube-public", "kube-system"}
	equal(t, before.names(), all)
	equal(t, before.at("kind"), any("NamespaceList"))
	w.createIn("zzz", "x")
	equal(t, len(w.do("GET", namespacesPath, "").must(200).names()), 7)
	rv := before.at("metadata.resourceVersion").(string)
	equal(t, w.do("GET", namespacesPath+"?resourceVersionMatch=Exact&resourceVersion="+rv, "").must(200).names(), all)
	page := w.do("GET", namespacesPath+"?limit=4", "").must(200)
	equal(t, page.names(), all[:4])
	w.createIn("zzzz", "x") // is not in the list that is being read
	rest := w.do("GET", namespacesPath+"?limit=4&continue="+page.at("metadata.continue").(string), "").must(200)
	equal(t, rest.names(), []string{"kube-public", "kube-system", "zzz"})
	equal(t, rest.at("metadata.continue"), nil)

	equal(t, w.do("GET", namespacesPath+"?fieldSelector=metadata.name%3Da", "").must(200).names(), []string{"a"})
	equal(t, w.do("GET", namespacesPath+"?labelSelector=kubernetes.io/metadata.name+in+(a,zzz)", "").must(200).names(), []string{"a", "zzz"})
	w.do("GET", namespacesPath+"?fieldSelector=x%3Dy", "").must(400)
	w.do("GET", namespacesPath+"?labelSelector=(", "").must(400)
	w.do("GET", namespacesPath+"?resourceVersion=9999", "").must(504)
	w.do("GET", namespacesPath+"?resourceVersion=1&continue=x", "").must(400)
	w.do("POST", namespacesPath, `{}`).must(405)
	w.do("DELETE", namespacesPath+"/a", "").must(405)

	one := w.do("GET", namespacesPath+"/a", "").must(200)
	equal(t, one.at("status.phase"), any("Active"))
	equal(t, one.at("metadata.labels"), any(map[string]any{"kubernetes.io/metadata.name": "a"}))
	equal(t, one.at("spec.finalizers"), any([]any{"kubernetes"}))
	equal(t, w.do("GET", namespacesPath+"/none", "").must(404).status().Message, `namespaces "none" not found`)

	table := w.do("GET", namespacesPath, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").must(200)
	equal(t, table.at("rows").([]any)[0].(map[string]any)["cells"], any([]any{"a", "Active", "<unknown>"}))
	w.do("GET", namespacesPath, "", "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").must(200)
	var list corev1.NamespaceList
	equal(t, unwrap(t, w.do("GET", namespacesPath, "", "Accept", "application/vnd.kubernetes.protobuf").must(200).body, &list).Kind, "NamespaceList")
	equal(t, list.Items[0].Name, "a")
}

func TestWatchNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createIn("a", "x")
	srv := w.serve()
	first := w.watch(srv, namespacesPath+watchList)
	equal(t, first.take(5), []change{
		{Type: "ADDED", Name: "a"}, {Type: "ADDED", Name: "default"}, {Type: "ADDED", Name: "kube-node-lease"},
		{Type: "ADDED", Name: "kube-public"}, {Type: "ADDED", Name: "kube-system"},
	})
	kind, bookmark := first.next()
	equal(t, kind, "BOOKMARK")
	equal(t, bookmark["kind"], any("Namespace"))
	equal(t, field(bookmark, "metadata.annotations"), any(map[string]any{initialEnd: "true"}))
	rv := field(bookmark, "metadata.resourceVersion").(string)

	w.createIn("a", "y")
	w.createIn("default", "x")
	w.createIn("b", "x")
	w.do("DELETE", namespacesPath+"/a/events/x", "").must(200)
	w.do("DELETE", namespacesPath+"/b/events/x", "").must(200)
	w.do("DELETE", namespacesPath+"/a/events/y", "").must(200)
	w.do("DELETE", namespacesPath+"/default/events/x", "").must(200)
	w.createIn("a", "z")
	want := []change{
		{Type: "ADDED", Name: "b"}, {Type: "DELETED", Name: "b"}, {Type: "DELETED", Name: "a"}, {Type: "ADDED", Name: "a"},
	}
	equal(t, first.take(4), want)
	equal(t, w.watch(srv, namespacesPath+"?watch=1&resourceVersion="+rv).take(4), want)
	equal(t, w.watch(srv, namespacesPath+"?watch=1&fieldSelector=metadata.name%3Da&resourceVersion="+rv).take(2), want[2:])
	table := w.watch(srv, namespacesPath+watchList, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	_, object := table.next()
	equal(t, len(object["columnDefinitions"].([]any)), 3)
	_, object = table.next()
	equal(t, object["columnDefinitions"], nil)
}

func TestWhoAmI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	a := w.do("POST", path, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`).must(201)
	equal(t, a.at("status.userInfo"), any(map[string]any{
		"username": "good", "groups": []any{"system:authenticated"},
		"extra": map[string]any{"client_id": []any{"good"}, "issuer": []any{"https://issuer.example"}, "scope": []any{"events"}},
	}))
	body := wrap(t, "authentication.k8s.io/v1", "SelfSubjectReview", &authenticationv1.SelfSubjectReview{})
	p := w.do("POST", path, body, "Content-Type", "application/vnd.kubernetes.protobuf", "Accept", "application/vnd.kubernetes.protobuf").must(201)
	var r authenticationv1.SelfSubjectReview
	unwrap(t, p.body, &r)
	equal(t, r.Status.UserInfo.Username, "good")
	w.do("POST", path, `{"kind":"Pod","apiVersion":"v1"}`).must(400)
	w.do("POST", path, `{`).must(400)
	w.do("GET", path, "").must(405)
	w.do("POST", path, `{}`, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").must(406)
}

func TestCanI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
		a := w.do("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"spec":{`+c.attributes+`}}`).must(201)
		if got := a.at("status.allowed"); got != c.want {
			t.Errorf("%s: %v", c.attributes, got)
		}
	}
	rules := w.do("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`).must(201)
	first := rules.at("status.resourceRules").([]any)[0]
	equal(t, field(first, "resources"), any([]any{"events"}))
}
