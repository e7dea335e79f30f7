package localca

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/client"
)

// ConfigMap names a ConfigMap of the cluster that this process is a pod of.
type ConfigMap struct{ Namespace, Name string }

// UnmarshalText reads NAMESPACE/NAME.
func (c *ConfigMap) UnmarshalText(text []byte) error {
	namespace, name, _ := strings.Cut(string(text), "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("%q is no ConfigMap: write NAMESPACE/NAME, for instance tidings/eventsvc-ca", text)
	}
	*c = ConfigMap{namespace, name}
	return nil
}

// String is the ConfigMap as it is written.
func (c ConfigMap) String() string {
	if c.Name == "" {
		return ""
	}
	return c.Namespace + "/" + c.Name
}

// caKey is the key of an authority in a ConfigMap, as in kube-root-ca.crt, which every namespace has.
const caKey = "ca.crt"

// Publisher returns the task that writes the authority in a directory of [TLSConfig] into a ConfigMap of the cluster
// that this process is a pod of. Pods that mount the ConfigMap start when it has the authority. The account of the pod
// needs get and update of this object alone. The task tries again until the object is written or ctx ends. Elsewhere
// than in a pod it is an error.
func Publisher(dir string, to ConfigMap, log *slog.Logger) (func(ctx context.Context) error, error) {
	config, inside, err := client.InCluster()
	if err == nil && !inside {
		err = errors.New("this is no pod of a cluster: leave it out")
	}
	if err != nil {
		return nil, err
	}
	api, err := client.New(config)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, caKey)
	return func(ctx context.Context) error {
		var backoff client.Backoff
		for {
			authority, err := os.ReadFile(file)
			if err == nil {
				err = to.write(ctx, api, string(authority))
			}
			if err == nil {
				log.InfoContext(ctx, "the certificate authority is in the ConfigMap", "configmap", to.String())
				return nil
			}
			if ctx.Err() != nil {
				return nil
			}
			log.WarnContext(ctx, "the certificate authority is not in the ConfigMap yet, so new clients wait for it", "configmap", to.String(), "error", err)
			if backoff.Wait(ctx, err) != nil {
				return nil
			}
		}
	}, nil
}

// write sets the key of the ConfigMap, unless it has that value.
func (c ConfigMap) write(ctx context.Context, api *client.Client, authority string) error {
	path := "/api/v1/namespaces/" + url.PathEscape(c.Namespace) + "/configmaps/" + url.PathEscape(c.Name)
	object := map[string]any{}
	if err := api.Do(ctx, client.Request{Path: path}, &object); err != nil {
		return err
	}
	data, _ := object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	if data[caKey] == authority {
		return nil
	}
	data[caKey] = authority
	object["data"] = data
	return api.Do(ctx, client.Request{Method: http.MethodPut, Path: path, Body: object}, nil)
}
