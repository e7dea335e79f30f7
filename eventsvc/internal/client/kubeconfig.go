package client

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// kubeconfig is the part of the format (v1 Config) that a client of events needs.
type kubeconfig struct {
	CurrentContext string  `json:"current-context"`
	Clusters       []named `json:"clusters"`
	Users          []named `json:"users"`
	Contexts       []named `json:"contexts"`
}

// named is an entry of one of these lists. Only the member of its list is set.
type named struct {
	Name    string      `json:"name"`
	Cluster kubeCluster `json:"cluster"`
	User    kubeUser    `json:"user"`
	Context kubeContext `json:"context"`
}

func find(list []named, name string) (named, bool) {
	i := slices.IndexFunc(list, func(e named) bool { return e.Name == name })
	if i < 0 {
		return named{}, false
	}
	return list[i], true
}

type kubeContext struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace"`
}

type kubeCluster struct {
	Server                   string `json:"server"`
	CertificateAuthority     string `json:"certificate-authority"`
	CertificateAuthorityData []byte `json:"certificate-authority-data"`
	InsecureSkipTLSVerify    bool   `json:"insecure-skip-tls-verify"`
	TLSServerName            string `json:"tls-server-name"`
	ProxyURL                 string `json:"proxy-url"`
}

type kubeUser struct {
	ClientCertificate     string          `json:"client-certificate"`
	ClientCertificateData []byte          `json:"client-certificate-data"`
	ClientKey             string          `json:"client-key"`
	ClientKeyData         []byte          `json:"client-key-data"`
	Token                 string          `json:"token"`
	TokenFile             string          `json:"tokenFile"`
	Exec                  *kubeExec       `json:"exec"`
	Username              string          `json:"username"`
	Impersonate           string          `json:"as"`
	ImpersonateUID        string          `json:"as-uid"`
	ImpersonateGroups     []string        `json:"as-groups"`
	ImpersonateExtra      json.RawMessage `json:"as-user-extra"`
	AuthProvider          json.RawMessage `json:"auth-provider"`
}

type kubeExec struct {
	APIVersion string   `json:"apiVersion"`
	Command    string   `json:"command"`
	Args       []string `json:"args"`
	Env        []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
}

// FromKubeconfig reads a kubeconfig. context "" is its current one. Relative paths in the file are relative to it.
func FromKubeconfig(file, context string) (Config, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	var k kubeconfig
	if err := yaml.Unmarshal(content, &k); err != nil {
		return Config{}, fmt.Errorf("%s is no kubeconfig: %w", file, err)
	}
	config, err := k.config(cmp.Or(context, k.CurrentContext), filepath.Dir(file))
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
}

// config returns the settings of a context. dir is the directory of the file.
func (k kubeconfig) config(name, dir string) (config Config, err error) {
	selected, ok := find(k.Contexts, name)
	if !ok {
		var names []string
		for _, other := range k.Contexts {
			names = append(names, other.Name)
		}
		return config, fmt.Errorf("there is no context %q, only: %s", name, strings.Join(names, ", "))
	}
	cluster, ok := find(k.Clusters, selected.Context.Cluster)
	if !ok {
		return config, fmt.Errorf("context %q names the cluster %q, which is not there", name, selected.Context.Cluster)
	}
	user, _ := find(k.Users, selected.Context.User) // a context need not name one
	config = Config{Server: cluster.Cluster.Server, Namespace: selected.Context.Namespace}
	if file := cluster.Cluster.CertificateAuthority; file != "" && len(cluster.Cluster.CertificateAuthorityData) == 0 {
		config.CAFile = relative(dir, file)
	}
	if config.TLS, err = cluster.Cluster.tls(dir); err == nil {
		err = user.User.certificate(config.TLS, dir)
	}
	if err == nil {
		config.Tokens, err = user.User.tokens(dir)
	}
	if err != nil {
		err = fmt.Errorf("context %q: %w", name, err)
	}
	return config, err
}

func (c kubeCluster) tls(dir string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.TLSServerName, InsecureSkipVerify: c.InsecureSkipTLSVerify}
	if c.ProxyURL != "" {
		return nil, errors.New("proxy-url cannot be used here: set HTTPS_PROXY instead")
	}
	authority, err := dataOrFile(dir, c.CertificateAuthorityData, c.CertificateAuthority)
	if err != nil || authority == nil {
		return config, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", cmp.Or(c.CertificateAuthority, "certificate-authority-data"))
	}
	return config, nil
}

// TrustFile returns a configuration that trusts the certificates of a PEM file and no others.
func TrustFile(name string) (*tls.Config, error) {
	return kubeCluster{CertificateAuthority: name}.tls("")
}

// certificate makes connections use the client certificate. Its files are read for each connection, so that they can be
// renewed while a command runs.
func (u kubeUser) certificate(config *tls.Config, dir string) error {
	load := func() (*tls.Certificate, error) {
		cert, err := dataOrFile(dir, u.ClientCertificateData, u.ClientCertificate)
		if err != nil {
			return nil, err
		}
		key, err := dataOrFile(dir, u.ClientKeyData, u.ClientKey)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		return &pair, err
	}
	if u.ClientCertificate == "" && u.ClientCertificateData == nil {
		return nil
	}
	if _, err := load(); err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return nil
}

func (u kubeUser) tokens(dir string) (*Tokens, error) {
	switch {
	case u.Impersonate != "", u.ImpersonateUID != "", u.ImpersonateGroups != nil, u.ImpersonateExtra != nil:
		return nil, errors.New("as, as-uid, as-groups and as-user-extra (impersonation) are not supported here: leave them out")
	case u.AuthProvider != nil:
		return nil, errors.New("auth-provider is no longer supported, as in kubectl: use exec")
	case u.Username != "":
		return nil, errors.New("username and password are no longer supported, as in Kubernetes: use a token or a client certificate")
	case u.TokenFile != "":
		return FileToken(relative(dir, u.TokenFile)), nil
	case u.Token != "":
		return StaticToken(u.Token), nil
	case u.Exec != nil:
		return u.Exec.tokens(dir)
	}
	return nil, nil
}

func (e *kubeExec) tokens(dir string) (*Tokens, error) {
	if !strings.HasPrefix(e.APIVersion, "client.authentication.k8s.io/") || e.Command == "" {
		return nil, fmt.Errorf("exec needs a command and an apiVersion such as client.authentication.k8s.io/v1, not %q", e.APIVersion)
	}
	name := e.Command
	if strings.ContainsRune(name, filepath.Separator) {
		name = relative(dir, name)
	}
	env := []string{fmt.Sprintf(`KUBERNETES_EXEC_INFO={"apiVersion":%q,"kind":"ExecCredential","spec":{"interactive":false}}`, e.APIVersion)}
	for _, variable := range e.Env {
		env = append(env, variable.Name+"="+variable.Value)
	}
	return CommandToken(env, name, e.Args...), nil
}

// dataOrFile returns data from the kubeconfig itself or from a file, or nil if there is neither.
func dataOrFile(dir string, data []byte, file string) ([]byte, error) {
	if len(data) > 0 || file == "" {
		return data, nil
	}
	return os.ReadFile(relative(dir, file))
}

func relative(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// serviceAccount is the directory in which the kubelet puts what a pod needs to reach its API server.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// InCluster returns the settings for the API server of the cluster in which this process is a pod, and whether it is
// one.
func InCluster() (Config, bool, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Config{}, false, nil
	}
	authority := serviceAccount + "ca.crt"
	trusted, err := TrustFile(authority)
	return Config{Server: "https://" + net.JoinHostPort(host, port), Tokens: FileToken(serviceAccount + "token"), TLS: trusted, CAFile: authority}, true, err
}
