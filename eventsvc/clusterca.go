package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/shared/cli"
)

// configMap names a ConfigMap of the cluster that this process is a pod of.
type configMap struct{ namespace, name string }

// UnmarshalText reads NAMESPACE/NAME.
func (c *configMap) UnmarshalText(text []byte) error {
	namespace, name, _ := strings.Cut(string(text), "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("%q is no ConfigMap: write NAMESPACE/NAME, for instance tidings/eventsvc-ca", text)
	}
	*c = configMap{namespace, name}
	return nil
}

// String is the ConfigMap as it is written.
func (c configMap) String() string {
	if c.name == "" {
		return ""
	}
	return c.namespace + "/" + c.name
}

// caKey is the key of an authority in a ConfigMap, as in kube-root-ca.crt, which every namespace has.
const caKey = "ca.crt"

// tellAuthority returns the task that writes the authority of the self-signed certificate into the ConfigMap of
// --tls-ca-configmap. Pods that mount it start when it is there. The account needs get and update of this object alone.
func (s *serve) tellAuthority(log *slog.Logger) (func(context.Context) error, error) {
	config, inside, err := client.InCluster()
	if err == nil && !inside {
		err = cli.Usagef("--tls-ca-configmap is set, but this is no pod of a cluster: leave it out")
	}
	if err != nil {
		return nil, err
	}
	api, err := client.New(config)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.DataDir, "tls", "ca.crt")
	return func(ctx context.Context) error {
		var backoff client.Backoff
		for {
			authority, err := os.ReadFile(file)
			if err == nil {
				err = s.TLSCAConfigMap.write(ctx, api, string(authority))
			}
			if err == nil {
				log.InfoContext(ctx, "the certificate authority is in the ConfigMap", "configmap", s.TLSCAConfigMap.String())
				return nil
			}
			if ctx.Err() != nil {
				return nil
			}
			log.WarnContext(ctx, "the certificate authority is not in the ConfigMap yet, so new clients wait for it", "configmap", s.TLSCAConfigMap.String(), "error", err)
			if backoff.Wait(ctx, err) != nil {
				return nil
			}
		}
	}, nil
}

// write sets the key of the ConfigMap, unless it has that value.
func (c configMap) write(ctx context.Context, api *client.Client, authority string) error {
	path := "/api/v1/namespaces/" + url.PathEscape(c.namespace) + "/configmaps/" + url.PathEscape(c.name)
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
