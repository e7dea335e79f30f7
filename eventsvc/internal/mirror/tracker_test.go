package mirror_test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/mirror"
	"tidings.example/eventsvc/internal/mirror/objectchange"
	"tidings.example/shared/waittest"
)

// objects is a cluster that serves lists and watches of objects. Everything else is an empty list.
type objects struct {
	t       *testing.T
	mu      sync.Mutex
	moved   *sync.Cond
	version int
	oldest  int // versions before it are gone
	now     map[string]map[string]map[string]any
	log     []objectsChange
}

type objectsChange struct {
	version      int
	path, kind   string
	object       json.RawMessage
	disconnected bool
}

func newObjects(t *testing.T) (*objects, string) {
	o := &objects{t: t, version: 100, now: map[string]map[string]map[string]any{}}
	o.moved = sync.NewCond(&o.mu)
	server := httptest.NewServer(o)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return o, server.URL
}

// put creates or replaces an object. The manager wrote it at a time.
func (o *objects) put(path, namespace, name, manager string, at time.Time, content string) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(content), &object); err != nil {
		o.t.Fatal(err)
	}
	o.version++
	kind, key := "MODIFIED", namespace+"/"+name
	if o.now[path] == nil {
		o.now[path] = map[string]map[string]any{}
	}
	uid := fmt.Sprintf("uid-%s-%d", name, o.version)
	created := at.UTC().Format(time.RFC3339)
	if before := o.now[path][key]; before != nil {
		meta := before["metadata"].(map[string]any)
		uid, created = meta["uid"].(string), meta["creationTimestamp"].(string)
	} else {
		kind = "ADDED"
	}
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["uid"], meta["resourceVersion"], meta["creationTimestamp"] = name, uid, strconv.Itoa(o.version), created
	if namespace != "" {
		meta["namespace"] = namespace
	}
	meta["managedFields"] = []any{map[string]any{
		"manager": manager, "operation": "Update", "apiVersion": "v1", "time": at.UTC().Format(time.RFC3339), "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:spec": map[string]any{}, "f:data": map[string]any{}, "f:metadata": map[string]any{"f:annotations": map[string]any{}, "f:labels": map[string]any{}}},
	}}
	object["metadata"] = meta
	o.now[path][key] = object
	o.tell(kind, path, object)
}

func (o *objects) remove(path, namespace, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	object := o.now[path][namespace+"/"+name]
	delete(o.now[path], namespace+"/"+name)
	o.version++
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(o.version)
	o.tell("DELETED", path, object)
}

func (o *objects) tell(kind, path string, object map[string]any) {
	text, err := json.Marshal(object)
	if err != nil {
		o.t.Error(err)
	}
	o.log = append(o.log, objectsChange{version: o.version, path: path, kind: kind, object: text})
	o.moved.Broadcast()
}

// last returns the version of the last change of a resource, 0 if there was none.
func (o *objects) last(r mirror.Resource) (version int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.log {
		if strings.HasSuffix(c.path, "/"+r.Name) {
			version = c.version
		}
	}
	return version
}

// compact forgets all changes, and ends the watches.
func (o *objects) compact() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.oldest = o.version
	o.log = append(o.log, objectsChange{version: o.version, disconnected: true})
	o.moved.Broadcast()
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		items := []any{}
		for _, object := range o.now[r.URL.Path] {
			items = append(items, object)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(o.version)}, "items": items})
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if from < o.oldest {
		_, _ = fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}}`)
		return
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
			o.mu.Lock()
			o.moved.Broadcast()
			o.mu.Unlock()
		case <-stop:
		}
	}()
	w.(http.Flusher).Flush()
	for next := len(o.log); ; {
		if next == len(o.log) {
			next = slices.IndexFunc(o.log, func(c objectsChange) bool { return c.version > from })
		}
		for ; next >= 0 && next < len(o.log); next++ {
			c := o.log[next]
			if c.disconnected {
				return
			}
			from = c.version
			if c.path == r.URL.Path {
				_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", c.kind, c.object)
			}
		}
		w.(http.Flusher).Flush()
		if r.Context().Err() != nil {
			return
		}
		next = len(o.log)
		o.moved.Wait()
	}
}

const (
	deploymentsPath = "/apis/apps/v1/deployments"
	secretsPath     = "/api/v1/secrets"
	configMapsPath  = "/api/v1/configmaps"
)

// changed lists the events about objects, the oldest first, as "reason kind namespace/name count: note".
func changed(w *apitest.World) (all []string) {
	w.T.Helper()
	var list corev1.EventList
	if err := json.Unmarshal(w.Do("GET", "/api/v1/events", "").Must(200).Body, &list); err != nil {
		w.T.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int {
		return strings.Compare(a.Annotations["mirror.tidings.example/resource-version"]+a.Name, b.Annotations["mirror.tidings.example/resource-version"]+b.Name)
	})
	for _, ev := range list.Items {
		if strings.HasPrefix(ev.Reason, "Object") {
			all = append(all, fmt.Sprintf("%s %s %s/%s %d: %s", ev.Reason, ev.InvolvedObject.Kind, ev.Namespace, ev.InvolvedObject.Name, ev.Count, ev.Message))
		}
	}
	slices.Sort(all)
	return all
}

// track has a mirror follow objects, with a file, until the returned function is called, which waits until the file has
// all of them. It returns after the first list.
func track(t *testing.T, source *objects, url, target, file string, names ...string) (stop func()) {
	t.Helper()
	state, err := objectchange.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	var resources []mirror.Resource
	metric, stopped := run(t, url, target, func(c *mirror.Config) {
		c.State = state
		if c.Changes, err = mirror.Resources(t.Context(), c.Source, names, c.Log); err != nil {
			t.Fatal(err)
		}
		resources = c.Changes
	})
	reach := func(version func(mirror.Resource) int) {
		for _, r := range resources {
			waittest.Until(t, r.String()+" is followed", func() bool {
				return metric("eventsvc_mirror_version", "namespace", "objects/"+r.String()) >= float64(version(r))
			})
		}
	}
	reach(func(mirror.Resource) int { return 100 })
	end := sync.OnceFunc(func() {
		stopped()
		if err := state.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return func() {
		reach(source.last)
		end()
	}
}

// becomes waits until the events about objects are these.
func becomes(t *testing.T, w *apitest.World, want ...string) {
	t.Helper()
	slices.Sort(want)
	waittest.Becomes(t, func() error {
		if got := changed(w); !slices.Equal(got, want) {
			return fmt.Errorf("events:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		return nil
	})
}

func deployment(image string, replicas int) string {
	return fmt.Sprintf(`{"spec":{"replicas":%d,"template":{"spec":{"containers":[{"name":"web","image":%q}]}}},"status":{"observedGeneration":%d}}`, replicas, image, time.Now().UnixNano())
}

// TestObjectChanges: a mirror makes an event of each change, of those while it was away too, and claims nothing about
// what was before its first start. What a watch has missed is told with the times between which it happened.
func TestObjectChanges(t *testing.T) {
	t.Parallel()
	target := apitest.New(t)
	hub := open(t, target, nil)
	source, url := newObjects(t)
	file := filepath.Join(t.TempDir(), "changes.db")
	past := time.Now().Add(-time.Hour)
	source.put(deploymentsPath, "shop", "web", "helm", past, deployment("r.example/shop/web:1.4.2", 3))
	track(t, source, url, hub.URL, file, "deployments")()
	becomes(t, target)

	// While the mirror is away, what the source keeps is told change by change.
	source.put(deploymentsPath, "shop", "web", "argocd-controller", past.Add(10*time.Minute), deployment("r.example/shop/web:1.5.0", 5))
	source.put(deploymentsPath, "shop", "web", "kube-controller-manager", past.Add(11*time.Minute), deployment("r.example/shop/web:1.5.0", 5)) // its status only
	source.put(deploymentsPath, "shop", "api", "helm", past.Add(20*time.Minute), deployment("api:1", 1))
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stop := track(t, source, url, hub.URL, file, "deployments")
	told := []string{
		"ObjectChanged Deployment shop/web 1: spec.template.spec.containers[web].image: 1.4.2 → 1.5.0; replicas: 3 → 5; by argocd-controller",
		"ObjectCreated Deployment shop/api 1: created: spec.template.spec.containers[web].image: api:1; replicas: 1; by helm",
	}
	becomes(t, target, told...)
	source.remove(deploymentsPath, "shop", "api")
	told = append(told, "ObjectDeleted Deployment shop/api 1: deleted: spec.template.spec.containers[web].image: api:1; replicas: 1")
	becomes(t, target, told...)
	stop()

	// A mirror that was killed before it could save its file sees all again, and nothing is told twice.
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	stop = track(t, source, url, hub.URL, file, "deployments")
	source.put(deploymentsPath, "shop", "web", "kubectl-scale", past.Add(20*time.Minute), deployment("r.example/shop/web:1.5.0", 6))
	told = append(told, "ObjectChanged Deployment shop/web 1: replicas: 5 → 6; by kubectl-scale")
	becomes(t, target, told...)
	stop()

	// What the source no longer keeps is found by comparing. An object that is older than the gap is not new.
	source.put(deploymentsPath, "shop", "web", "kubectl-edit", past.Add(30*time.Minute), deployment("r.example/shop/web:1.5.0", 0))
	source.put(deploymentsPath, "shop", "old", "helm", past, deployment("old:1", 1))
	source.compact()
	track(t, source, url, hub.URL, file, "deployments")
	waittest.Becomes(t, func() error {
		got := changed(target)
		if len(got) == len(told)+1 && slices.ContainsFunc(got, func(s string) bool {
			return strings.Contains(s, ": changed between ") && strings.HasSuffix(s, ": replicas: 6 → 0; by kubectl-edit")
		}) {
			return nil
		}
		return fmt.Errorf("%s", strings.Join(got, "\n"))
	})
}

// TestChangeFlood: changes of the same fields within a minute are one event with their count; another change is another
// event. A mirror that was killed meanwhile counts none of them twice, and none is lost.
func TestChangeFlood(t *testing.T) {
	t.Parallel()
	target := apitest.New(t)
	hub := open(t, target, nil)
	source, url := newObjects(t)
	file := filepath.Join(t.TempDir(), "changes.db")
	at := time.Now().Add(-30 * time.Minute).Truncate(time.Minute)
	beat := func(n int, image string) {
		source.put(deploymentsPath, "shop", "web", "ticker", at.Add(time.Duration(n)*time.Second),
			fmt.Sprintf(`{"metadata":{"annotations":{"example.com/beat":"%d"}},"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, n, image))
	}
	beat(0, "web:1")
	stop := track(t, source, url, hub.URL, file, "deployments")
	for n := 1; n <= 20; n++ {
		beat(n, "web:1")
	}
	becomes(t, target, "ObjectChanged Deployment shop/web 20: changed 20 times in a minute: metadata.annotations[example.com/beat]: 0 → 20; by ticker")
	stop()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n := 21; n <= 30; n++ {
		beat(n, "web:1")
	}
	beat(31, "web:2")
	want := []string{
		"ObjectChanged Deployment shop/web 30: changed 30 times in a minute: metadata.annotations[example.com/beat]: 0 → 30; by ticker",
		"ObjectChanged Deployment shop/web 1: spec.template.spec.containers[web].image: 1 → 2; metadata.annotations[example.com/beat]: 30 → 31; by ticker",
	}
	for range 2 {
		stop = track(t, source, url, hub.URL, file, "deployments")
		becomes(t, target, want...)
		stop()
		if err := os.WriteFile(file, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n := 32; n < 400; n += 8 { // each minute has an event
		beat(n, "web:2")
	}
	track(t, source, url, hub.URL, file, "deployments")
	waittest.Becomes(t, func() error {
		if got := changed(target); len(got) > 10 || len(got) < 7 {
			return fmt.Errorf("%s", strings.Join(got, "\n"))
		}
		return nil
	})
}

// TestSecretsStaySecret: of Secrets, ConfigMaps and of fields that are secrets by their name or form, the names are
// told. Neither the events nor the file have the values, in any encoding that a reader would try.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	target := apitest.New(t)
	hub := open(t, target, nil)
	source, url := newObjects(t)
	file := filepath.Join(t.TempDir(), "changes.db")
	past := time.Now().Add(-time.Hour)
	const planted = "hunter2planted"
	secret := base64.StdEncoding.EncodeToString([]byte(planted))
	write := func(round string, at time.Time) {
		source.put(secretsPath, "shop", "db", "vault", at, fmt.Sprintf(`{"type":"Opaque","data":{"password":%q,"user":%q},"metadata":{"annotations":{
			"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":\"%s\"}}","example.com/api-token":"%s"}}}`, secret+round, secret, planted, planted+round))
		source.put(configMapsPath, "shop", "app", "flux", at, fmt.Sprintf(`{"data":{"app.yaml":"password: %s","plain":%q},"binaryData":{"blob":%q}}`, planted+round, planted, secret+round))
		source.put(deploymentsPath, "shop", "web", "flux", at, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:%[2]s1",
			"args":["--listen=:80","--password","%[1]s%[2]s","--dsn=postgres://u:%[1]s%[2]s@db/x","--token=%[1]s"],
			"env":[{"name":"DB_PASSWORD","value":"%[1]s%[2]s"},{"name":"URL","value":"https://user:%[1]s%[2]s@example.com"},{"name":"MODE","value":"prod"},
			{"name":"API_KEY","valueFrom":{"secretKeyRef":{"name":"keys%[2]s","key":"api"}}}]}]}}}}`, planted, round))
	}
	write("", past)
	stop := track(t, source, url, hub.URL, file, "deployments", "secrets", "configmaps")
	write("b", past.Add(10*time.Minute))
	becomes(t, target,
		"ObjectChanged Secret shop/db 1: data[password]: changed; metadata.annotations[example.com/api-token]: changed; by vault",
		"ObjectChanged ConfigMap shop/app 1: binaryData[blob]: changed; data[app.yaml]: changed; by flux",
		"ObjectChanged Deployment shop/web 1: spec.template.spec.containers[web].image: 1 → b1; spec.template.spec.containers[web].args[2]: changed; "+
			"spec.template.spec.containers[web].args[3]: changed; spec.template.spec.containers[web].env[API_KEY].valueFrom.secretKeyRef.name: keys → keysb; "+
			"spec.template.spec.containers[web].env[DB_PASSWORD].value: changed; spec.template.spec.containers[web].env[URL].value: changed; by flux")
	stop()
	write("c", past.Add(20*time.Minute)) // another process cannot tell which of them have changed
	stop = track(t, source, url, hub.URL, file, "secrets")
	waittest.Becomes(t, func() error {
		got := changed(target)
		if slices.ContainsFunc(got, func(s string) bool {
			return strings.Contains(s, "data[password]: perhaps changed; data[user]: perhaps changed")
		}) {
			return nil
		}
		return fmt.Errorf("%s", strings.Join(got, "\n"))
	})
	stop()
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	state, err := objectchange.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	for _, path := range []string{deploymentsPath, secretsPath, configMapsPath} {
		uids, err := state.UIDs(path)
		if err != nil || len(uids) == 0 {
			t.Fatalf("%s: %v, %v", path, uids, err)
		}
		for uid := range uids {
			object, err := state.Object(path, uid)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, text...)
		}
	}
	stored = append(stored, target.Do("GET", "/api/v1/events", "").Must(200).Body...)
	for _, round := range []string{"", "b", "c"} {
		for _, value := range []string{planted + round, secret + round} {
			sum1, sum256, md := sha1.Sum([]byte(value)), sha256.Sum256([]byte(value)), md5.Sum([]byte(value))
			for _, form := range [][]byte{[]byte(value), sum1[:6], sum256[:6], md[:6], fmt.Appendf(nil, "%x", sum1[:6]), fmt.Appendf(nil, "%x", sum256[:6]), fmt.Appendf(nil, "%x", md[:6])} {
				if bytes.Contains(stored, form) {
					t.Errorf("%q is stored as %q", value, form)
				}
			}
		}
	}
}
