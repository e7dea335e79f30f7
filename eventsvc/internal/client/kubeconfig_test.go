package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/client"
)

// cluster starts a server that answers with the subject of the client certificate and the token.
func cluster(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = fmt.Fprintf(w, "%q", name+" "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// pair returns a client certificate and its key in PEM.
func pair(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// TestKubeconfig: every form of authority and user that kubectl writes is read, and those that are not supported are
// errors.
func TestKubeconfig(t *testing.T) {
	t.Parallel()
	server, dir := cluster(t), t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	cert, key := pair(t, "jane")
	write := func(name string, content []byte, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), content, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("ca.crt", ca, 0o600)
	write("client.crt", cert, 0o600)
	write("client.key", key, 0o600)
	write("token", []byte("from-file\n"), 0o600)
	write("plugin", []byte("#!/bin/sh\nprintf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"'$1-$WHO-${KUBERNETES_EXEC_INFO:+info}'\"}}'\n"), 0o700)
	encode := base64.StdEncoding.EncodeToString
	const exec = `{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: ./plugin, args: [arg], env: [{name: WHO, value: me}]}}`
	for _, c := range []struct{ name, cluster, user, want string }{
		{"authority in a file, token", "certificate-authority: ca.crt", "{token: abc}", "nobody abc"},
		{"authority inside", "certificate-authority-data: " + encode(ca), "{token: abc}", "nobody abc"},
		{"not verified", "insecure-skip-tls-verify: true", "{token: abc}", "nobody abc"},
		{"another name", "certificate-authority: ca.crt, tls-server-name: example.com", "{token: abc}", "nobody abc"},
		{"token in a file", "certificate-authority: ca.crt", "{tokenFile: token, token: other}", "nobody from-file"},
		{"client certificate in files", "certificate-authority: ca.crt", "{client-certificate: client.crt, client-key: client.key}", "jane "},
		{"client certificate inside", "certificate-authority: ca.crt", "{client-certificate-data: " + encode(cert) + ", client-key-data: " + encode(key) + "}", "jane "},
		{"program", "certificate-authority: ca.crt", exec, "nobody arg-me-info"},
		{"no user", "certificate-authority: ca.crt", "{}", "nobody "},
		{"unknown authority", "server: x", "{}", "x509"},
		{"wrong name", "certificate-authority: ca.crt, tls-server-name: other.example", "{}", "x509"},
		{"missing file", "certificate-authority: none.crt", "{}", "none.crt"},
		{"no certificate", "certificate-authority: token", "{}", "PEM"},
		{"missing key", "certificate-authority: ca.crt", "{client-certificate: client.crt, client-key: none.key}", "none.key"},
		{"proxy", "certificate-authority: ca.crt, proxy-url: http://x", "{}", "HTTPS_PROXY"},
		{"impersonation", "certificate-authority: ca.crt", "{as: admin}", "impersonation"},
		{"impersonated uid", "certificate-authority: ca.crt", "{as-uid: u}", "impersonation"},
		{"impersonated groups", "certificate-authority: ca.crt", "{as-groups: [system:masters]}", "impersonation"},
		{"impersonated extra", "certificate-authority: ca.crt", "{as-user-extra: {scopes: [a]}}", "impersonation"},
		{"auth provider", "certificate-authority: ca.crt", "{auth-provider: {name: gcp}}", "use exec"},
		{"password", "certificate-authority: ca.crt", "{username: x, password: y}", "username"},
		{"exec without version", "certificate-authority: ca.crt", "{exec: {command: x}}", "apiVersion"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
			text := "apiVersion: v1\nkind: Config\ncurrent-context: other\ncontexts:\n- {name: x, context: {cluster: c, user: u, namespace: shop}}\n" +
				"users:\n- {name: u, user: " + c.user + "}\nclusters:\n- {name: c, cluster: {" + c.cluster + ", server: \"" + server.URL + "\"}}\n"
			text = strings.Replace(text, "server: x, ", "", 1)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ask(t.Context(), file, "x")
			if err != nil {
				got = err.Error()
			}
			if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if _, err := ask(t.Context(), file, ""); err == nil || !strings.Contains(err.Error(), `no context "other", only: x`) {
				t.Errorf("a current context that is not there: %v", err)
			}
		})
	}
}

// ask makes one request with a kubeconfig and returns the answer.
func ask(ctx context.Context, file, name string) (string, error) {
	config, err := client.FromKubeconfig(file, name)
	if err != nil {
		return "", err
	}
	c, err := client.New(config)
	if err != nil {
		return "", err
	}
	var answer string
	err = c.Do(ctx, client.Request{Path: "/version"}, &answer)
	return answer, err
}
