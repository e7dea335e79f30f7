package localca

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/client"
)

// TestConfigMapOfAuthority: the authority comes into the ConfigMap beside what is there, and is written once.
func TestConfigMapOfAuthority(t *testing.T) {
	t.Parallel()
	object := corev1.ConfigMap{Data: map[string]string{"other": "stays"}}
	object.Name, object.Namespace, object.Labels = "eventsvc-ca", "tidings", map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	var writes atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api/v1/namespaces/tidings/configmaps/eventsvc-ca":
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Method == http.MethodPut:
			body, err := io.ReadAll(r.Body)
			if err == nil {
				object = corev1.ConfigMap{}
				err = json.Unmarshal(body, &object)
			}
			if err != nil {
				t.Error(err)
			}
			writes.Add(1)
		}
		_ = json.NewEncoder(w).Encode(object)
	}))
	defer server.Close()
	api, err := client.New(client.Config{Server: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var c ConfigMap
	if err := c.UnmarshalText([]byte("tidings/eventsvc-ca")); err != nil || c.String() != "tidings/eventsvc-ca" {
		t.Fatalf("%v, %v", c, err)
	}
	for range 2 {
		if err := c.write(t.Context(), api, "PEM"); err != nil {
			t.Fatal(err)
		}
	}
	if writes.Load() != 1 || object.Data["ca.crt"] != "PEM" || object.Data["other"] != "stays" || object.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Errorf("%d writes, %+v", writes.Load(), object)
	}
	if err := (ConfigMap{"tidings", "gone"}).write(t.Context(), api, "PEM"); err == nil {
		t.Error("a ConfigMap that is not there is written")
	}
	for _, bad := range []string{"", "eventsvc-ca", "tidings/", "/eventsvc-ca", "Tidings/x", "a/b/c"} {
		if new(ConfigMap).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestAuthorityElsewhere: outside of a cluster the setting is refused with the reason.
func TestAuthorityElsewhere(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tls"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Publisher(dir, ConfigMap{"tidings", "eventsvc-ca"}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it is taken")
	}
}
