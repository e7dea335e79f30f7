package objectchange_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/mirror/objectchange"
)

// read reads an object with this spec, labels and annotations.
func read(t testing.TB, kind, content string) *objectchange.Seen {
	t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(content), &object); err != nil {
		t.Fatal(err)
	}
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["uid"], meta["resourceVersion"] = "web", "u", "1"
	object["metadata"] = meta
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	s, err := objectchange.Read(text, "v1", kind)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func note(before, after *objectchange.Seen) string {
	return objectchange.Changed(after, objectchange.Compare(before, after), 1, "", time.Time{}, time.Time{})
}

// TestNotes: what differs is said in words that are read at once.
func TestNotes(t *testing.T) {
	t.Parallel()
	containers := func(list string) string { return `{"spec":{"template":{"spec":{"containers":[` + list + `]}}}}` }
	for name, c := range map[string]struct{ kind, before, after, want string }{
		"nothing":       {"Pod", `{"spec":{"a":1}}`, `{"spec":{"a":1}}`, ""},
		"status":        {"Pod", `{"status":{"a":1}}`, `{"status":{"a":2}}`, ""},
		"order of keys": {"Pod", `{"spec":{"a":1,"b":2}}`, `{"spec":{"b":2,"a":1}}`, ""},
		"scalar":        {"Deployment", `{"spec":{"replicas":3}}`, `{"spec":{"replicas":5}}`, "replicas: 3 → 5"},
		"set":           {"Node", `{"spec":{}}`, `{"spec":{"unschedulable":true}}`, "unschedulable: set to true; spec: removed, was {}"},
		"removed":       {"Node", `{"spec":{"a":"x","unschedulable":true}}`, `{"spec":{"a":"x"}}`, "unschedulable: removed, was true"},
		"tag":           {"Deployment", containers(`{"name":"web","image":"r:5000/web:1"}`), containers(`{"name":"web","image":"r:5000/web:2"}`), "spec.template.spec.containers[web].image: 1 → 2"},
		"no tag":        {"Deployment", containers(`{"name":"web","image":"r:5000/web"}`), containers(`{"name":"web","image":"r:5000/web:2"}`), "spec.template.spec.containers[web].image: r:5000/web → r:5000/web:2"},
		"another image": {"Deployment", containers(`{"name":"web","image":"a:1"}`), containers(`{"name":"web","image":"b:1"}`), "spec.template.spec.containers[web].image: a:1 → b:1"},
		"a container":   {"Deployment", containers(`{"name":"web","image":"a:1"}`), containers(`{"name":"web","image":"a:1"},{"name":"proxy","image":"p:1","args":["x"]}`), "spec.template.spec.containers[proxy]: added (image p:1)"},
		"two variables": {"Deployment", containers(`{"name":"a","image":"a:1","env":[{"name":"X","value":"x"}]}`), containers(`{"name":"a","image":"a:1","env":[{"name":"X","value":"x"},{"name":"Y","value":"y"},{"name":"Z","value":"z"}]}`),
			"spec.template.spec.containers[a].env[Y].value: set to y; spec.template.spec.containers[a].env[Z].value: set to z"},
		"container gone": {"Deployment", containers(`{"name":"a","image":"a:1"},{"name":"b","image":"b:1","args":["x"]}`), containers(`{"name":"a","image":"a:1"}`), "spec.template.spec.containers[b]: removed"},
		"digest":         {"Pod", `{"spec":{"image":"r/web:1@sha256:0123456789abcdef"}}`, `{"spec":{"image":"r/web:2@sha256:fedcba9876543210"}}`, "image: 1@sha256:0123456789ab → 2@sha256:fedcba987654"},
		"order of items": {"Deployment", containers(`{"name":"a","image":"a:1"},{"name":"b","image":"b:1"}`), containers(`{"name":"b","image":"b:1"},{"name":"a","image":"a:1"}`), ""},
		"variable":       {"Deployment", containers(`{"name":"a","env":[{"name":"MODE","value":"x"}]}`), containers(`{"name":"a","env":[{"name":"MODE","value":"y"}]}`), "spec.template.spec.containers[a].env[MODE].value: x → y"},
		"ports":          {"Service", `{"spec":{"ports":[{"port":80,"targetPort":1},{"port":443,"targetPort":2}]}}`, `{"spec":{"ports":[{"port":443,"targetPort":3},{"port":80,"targetPort":1}]}}`, "spec.ports[443].targetPort: 2 → 3"},
		"words":          {"Pod", `{"spec":{"args":["--a=1","-v"]}}`, `{"spec":{"args":["--a=2","-v"]}}`, "args: --a=1 -v → --a=2 -v"},
		"label":          {"Node", `{"metadata":{"labels":{"disk":"ssd"}}}`, `{"metadata":{"labels":{"disk":"hdd"}}}`, "metadata.labels[disk]: ssd → hdd"},
		"counted": {"Deployment", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"1","control-plane.alpha.kubernetes.io/leader":"a"}}}`,
			`{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"2","control-plane.alpha.kubernetes.io/leader":"b"}}}`, ""},
		"restart": {"Deployment", `{"spec":{"template":{"metadata":{"annotations":{"pod-template-hash":"1"}}}}}`, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`,
			"spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]: set to now"},
		"image first": {"Deployment", `{"metadata":{"annotations":{"a":"1"}},"spec":{"replicas":1,"image":"x:1"}}`, `{"metadata":{"annotations":{"a":"2"}},"spec":{"replicas":2,"image":"x:2"}}`,
			"image: 1 → 2; replicas: 1 → 2; metadata.annotations[a]: 1 → 2"},
		"keys of a ConfigMap": {"ConfigMap", `{"data":{"a.yaml":"x","b":"1"}}`, `{"data":{"a.yaml":"y","c":"1"}}`, "data[a.yaml]: changed; data[b]: removed; data[c]: added"},
		"a long value":        {"Pod", `{"spec":{"script":"` + strings.Repeat("x", 300) + `1"}}`, `{"spec":{"script":"` + strings.Repeat("x", 300) + `2"}}`, "script: changed"},
		"control characters":  {"Pod", `{"spec":{"a":"x"}}`, "{\"spec\":{\"a\":\"\\u001b[31mred\\u202e\\nline\"}}", "a: x → [31mred line…"},
	} {
		if got := note(read(t, c.kind, c.before), read(t, c.kind, c.after)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestLongNotes: a note is cut where it tells least, and says how much is left out.
func TestLongNotes(t *testing.T) {
	t.Parallel()
	annotations := func(value string) string {
		all := map[string]string{}
		for n := range 200 {
			all[fmt.Sprintf("example.com/annotation-%d", n)] = value
		}
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": all}, "spec": map[string]any{"image": "a:" + value, "replicas": len(value)}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	got := note(read(t, "X", annotations("1")), read(t, "X", annotations("22")))
	if !strings.HasPrefix(got, "image: 1 → 22; replicas: 1 → 2; metadata.annotations[") || !strings.HasSuffix(got, " annotations)") || len(got) > 1024 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// TestHidden: values that are secrets by their name or form are hidden, and references to them are not.
func TestHidden(t *testing.T) {
	t.Parallel()
	const planted = "pl4nted"
	hidden := []string{
		`{"spec":{"password":"%s"}}`, `{"spec":{"db":{"adminPassword":"%s"}}}`, `{"spec":{"apiKey":"%s"}}`, `{"spec":{"credentials":{"user":"%s"}}}`,
		`{"spec":{"token":["%s"]}}`, `{"spec":{"env":[{"name":"DB_PASSWD","value":"%s"}]}}`, `{"spec":{"env":[{"name":"SENTRY_DSN","value":"%s"}]}}`,
		`{"spec":{"env":[{"name":"X","value":"postgres://u:%s@h/db"}]}}`, `{"spec":{"args":["--token","%s"]}}`, `{"spec":{"args":["--api-key=%s"]}}`,
		`{"spec":{"command":["sh","-c","export PASSWORD=%s; run"]}}`, `{"metadata":{"annotations":{"example.com/token":"%s"}}}`,
		`{"metadata":{"annotations":{"x":"{\"password\": \"%s\"}"}}}`, `{"metadata":{"labels":{"access-key":"%s"}}}`,
		`{"spec":{"x":"Bearer %sabc"}}`, `{"spec":{"tls":{"privateKey":"%s"}}}`, `{"spec":{"password":123,"y":"password: %s"}}`,
		`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"%s"}}}`, `{"spec":{"x":"ghp_%s0123456789012345"}}`,
		`{"spec":{"x":[{"name":"a","secret":{"deep":{"er":"%s"}}},{"name":"b","token":"%s"}]}}`,
	}
	for _, form := range hidden {
		if form == hidden[len(hidden)-1] { // a volume of a secret is no secret, and has no value
			form = `{"spec":{"x":[{"name":"a","clientSecret":{"deep":{"er":"%s"}}},{"name":"b","token":"%s"}]}}`
		}
		s := read(t, "Custom", strings.ReplaceAll(form, "%s", planted))
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), planted) || strings.Contains(note(read(t, "Custom", `{}`), s), planted) {
			t.Errorf("%s is shown: %s", form, text)
		}
		if other := read(t, "Custom", strings.ReplaceAll(form, "%s", "0th3r")); !strings.Contains(form, "last-applied") && len(objectchange.Compare(s, other)) == 0 {
			t.Errorf("%s: the change is not seen", form)
		}
	}
	for _, form := range []string{
		`{"spec":{"volumes":[{"name":"tls","secret":{"secretName":"shown"}}]}}`, `{"spec":{"env":[{"name":"PASSWORD","valueFrom":{"secretKeyRef":{"name":"shown"}}}]}}`,
		`{"spec":{"imagePullSecrets":[{"name":"shown"}]}}`, `{"spec":{"serviceAccountName":"shown"}}`, `{"spec":{"tls":{"secretRef":{"name":"shown"}}}}`,
		`{"metadata":{"annotations":{"cert-manager.io/cluster-issuer":"shown"}}}`, `{"spec":{"author":"shown"}}`,
	} {
		if got := note(read(t, "Custom", `{}`), read(t, "Custom", form)); !strings.Contains(got, "shown") {
			t.Errorf("%s is hidden: %s", form, got)
		}
	}
}

// TestBounds: of an object with more levels or fields than are looked at, the rest is hidden, and a change of it is
// seen.
func TestBounds(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`{"a":1},`, 2000)
	for name, form := range map[string]string{
		"fields": `{"spec":{"a":[` + many + `{"b":1}],"z":[{"name":"DB_PASSWD","value":"%s"}]}}`,
		"levels": `{"spec":` + strings.Repeat(`{"a":`, 40) + `[{"name":"DB_PASSWD","value":"%s"}]` + strings.Repeat("}", 41),
	} {
		before, after := read(t, "Custom", strings.ReplaceAll(form, "%s", "pl4nted")), read(t, "Custom", strings.ReplaceAll(form, "%s", "0th3r"))
		if text, err := json.Marshal(before); err != nil || strings.Contains(string(text), "pl4nted") || len(objectchange.Compare(before, after)) != 1 {
			t.Errorf("%s: %v, %d changes: %.300s", name, err, len(objectchange.Compare(before, after)), text)
		}
	}
}

// TestAuthor: who changed a field is the manager that owns it and wrote since. Of one who scaled, the API server keeps
// no time.
func TestAuthor(t *testing.T) {
	t.Parallel()
	object := func(managers string, replicas int) *objectchange.Seen {
		return read(t, "Deployment", fmt.Sprintf(`{"metadata":{"managedFields":[%s]},"spec":{"replicas":%d,"paused":true}}`, managers, replicas))
	}
	const spec = `"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}`
	before := object(`{"manager":"helm","time":"2026-01-02T03:04:05Z",`+spec+`}`, 3)
	for managers, want := range map[string]string{
		`{"manager":"helm","time":"2026-01-02T03:04:05Z","fieldsV1":{"f:spec":{"f:paused":{}}}},{"manager":"kubectl","subresource":"scale",` + spec + `}`: "kubectl at 0001-01-01T00:00:00Z",
		`{"manager":"flux","time":"2026-01-02T03:05:00Z",` + spec + `}`:                                                                                   "flux at 2026-01-02T03:05:00Z",
		`{"manager":"old","time":"2026-01-02T03:00:00Z",` + spec + `}`:                                                                                    " at 0001-01-01T00:00:00Z",
		`{"manager":"kubelet","time":"2026-01-02T03:05:00Z","subresource":"status",` + spec + `}`:                                                         " at 0001-01-01T00:00:00Z",
	} {
		after := object(managers, 5)
		name, at := objectchange.Author(before, after, objectchange.Compare(before, after))
		if got := name + " at " + at.Format(time.RFC3339); got != want {
			t.Errorf("%s: %q, want %q", managers, got, want)
		}
	}
}

// TestState: what was seen is there after the file is opened again, and hidden values are not. A file that another
// process has, or that is none, is refused by its name.
func TestState(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "changes.db")
	open := func() *objectchange.State {
		t.Helper()
		s, err := objectchange.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	before := read(t, "Secret", `{"data":{"a":"x"},"metadata":{"labels":{"l":"1"}}}`)
	at := objectchange.Position{Version: "7", Complete: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if err := s.Put("/p", map[string]*objectchange.Seen{"u": before, "v": before}, objectchange.Position{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("/p", map[string]*objectchange.Seen{"v": nil}, at); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer func() { _ = s.Close() }()
	uids, err := s.UIDs("/p")
	if err != nil || len(uids) != 1 || !uids["u"] {
		t.Errorf("uids %v, %v", uids, err)
	}
	if got, err := s.Position("/p"); err != nil || !cmp.Equal(got, at) {
		t.Errorf("position %v, %v", got, err)
	}
	after, err := s.Object("/p", "u")
	if err != nil || note(after, read(t, "Secret", `{"data":{"a":"x"},"metadata":{"labels":{"l":"2"}}}`)) != "metadata.labels[l]: 1 → 2" {
		t.Errorf("%+v, %v", after, err)
	}
	after.Hashes = before.Hashes
	if got := note(after, read(t, "Secret", `{"data":{"a":"y"},"metadata":{"labels":{"l":"1"}}}`)); got != "data[a]: changed" {
		t.Errorf("with the hashes of this process: %q", got)
	}
	if none, err := s.Object("/p", "v"); none != nil || err != nil {
		t.Errorf("forgotten: %v, %v", none, err)
	}
}

// FuzzRead: whatever an object holds, reading and comparing do not fail, a note fits into an event, and its text has no
// control characters.
func FuzzRead(f *testing.F) {
	f.Add(`{"spec":{"a":[{"name":"x","value":"y"},{"name":"x"}],"b":null}}`, `{"spec":{"a":[[],[{}],1.5e300],"b":{"":"","]":{"[":"\u0000"}}}}`)
	f.Add(`{"data":{"k":"v"}}`, `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"},"managedFields":[{"manager":"m","time":"2026-01-02T03:04:05Z","fieldsV1":{"f:spec":{"k:{}":1,"v:":{}}}}]}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var seen []*objectchange.Seen
		for _, text := range []string{a, b} {
			object := map[string]any{}
			if json.Unmarshal([]byte(text), &object) != nil {
				t.Skip("no object")
			}
			meta, _ := object["metadata"].(map[string]any)
			if meta == nil {
				meta = map[string]any{}
			}
			meta["name"], meta["uid"], meta["resourceVersion"] = "n", "u", "1"
			object["metadata"] = meta
			whole, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			s, err := objectchange.Read(whole, "v1", "Secret")
			if err != nil {
				t.Skip(err)
			}
			seen = append(seen, s)
		}
		if again := objectchange.Compare(seen[0], seen[0]); len(again) > 0 {
			t.Errorf("differs from itself: %+v", again)
		}
		changes := objectchange.Compare(seen[0], seen[1])
		author, _ := objectchange.Author(seen[0], seen[1], changes)
		for _, text := range []string{
			objectchange.Changed(seen[1], changes, 2, author, time.Unix(1, 0), time.Unix(2, 0)), objectchange.Created(seen[1]), objectchange.Deleted(seen[0], time.Time{}, time.Time{}),
		} {
			if len(text) > 1024 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("%d bytes: %q", len(text), text)
			}
		}
	})
}

// BenchmarkRead reads a Deployment of 5 KB that Helm has written, as its mirror does with each version.
func BenchmarkRead(b *testing.B) {
	var env, owned []string
	for n := range 20 {
		env = append(env, fmt.Sprintf(`{"name":"SETTING_%d","value":"value of setting %d"}`, n, n))
		owned = append(owned, fmt.Sprintf(`"k:{\"name\":\"SETTING_%d\"}":{".":{},"f:name":{},"f:value":{}}`, n))
	}
	text := []byte(`{"metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web","team":"blue","app.kubernetes.io/managed-by":"Helm"},
		"annotations":{"meta.helm.sh/release-name":"web","example.com/docs":"https://wiki.example.com/teams/blue/services/web?tab=runbook"},
		"managedFields":[{"manager":"helm","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:env":{` + strings.Join(owned, ",") + `}}}}}}}}]},
		"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"registry.example/shop/web:1.4.2","args":["--listen=:8080","--log-level=info","--cache=redis:6379"],"env":[` + strings.Join(env, ",") +
		`],"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"resources":{"limits":{"memory":"512Mi"},"requests":{"cpu":"100m","memory":"256Mi"}},"readinessProbe":{"httpGet":{"path":"/readyz","port":8080},"periodSeconds":10}}]}}}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if s, err := objectchange.Read(text, "apps/v1", "Deployment"); err != nil || len(s.Fields) < 30 {
			b.Fatal(s, err)
		}
	}
}
