package issuers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"

	"tidings.example/shared/bearer"
)

// Cluster is what an entry writes for its issuer if it means the Kubernetes cluster that this process is a pod of,
// whatever the issuer of its service-account tokens is called.
const Cluster = "cluster"

// A Pod is what the kubelet tells the containers of a pod about the cluster.
type Pod struct {
	Host, Port string // of the API server
	Dir        string // with a token of the pod's service account and the authority of the API server: token and ca.crt
}

// ThisPod is the pod that this process runs in. Its fields are empty outside of a cluster.
func ThisPod() Pod {
	return Pod{os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"), "/var/run/secrets/kubernetes.io/serviceaccount"}
}

// clusterKeys is where an API server publishes the keys of its tokens: to every service account, but not to everybody.
const clusterKeys = "/openid/v1/jwks"

// Issuer returns the issuer of the cluster's tokens and the source of their keys. The issuer is the one that the
// mounted token names: its signature need not be verified, because only the kubelet writes the file. The keys come from
// the API server and not from where the issuer publishes them, which pods may be unable to reach. Given is what the
// entry says about keys: nothing but algorithms; empty: those that API servers sign with.
func (p Pod) Issuer(given bearer.KeySource) (string, bearer.KeySource, error) {
	none := bearer.KeySource{Algorithms: given.Algorithms}
	if !reflect.DeepEqual(given, none) {
		return "", given, errors.New("issuer: cluster: the pod's own cluster says where its keys are: leave jwksURL, jwksFile, caFile and bearerTokenFile out")
	}
	if p.Host == "" || p.Port == "" {
		return "", given, errors.New("issuer: cluster: this is no pod of a cluster, because KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: name the issuer itself, and its jwksURL")
	}
	keys := bearer.KeySource{
		JWKSURL: "https://" + net.JoinHostPort(p.Host, p.Port) + clusterKeys, CAFile: filepath.Join(p.Dir, "ca.crt"),
		TokenFile: filepath.Join(p.Dir, "token"), Algorithms: given.Algorithms,
	}
	if len(keys.Algorithms) == 0 {
		keys.Algorithms = []string{bearer.RS256, bearer.ES256}
	}
	token, err := bearer.ReadTokenFile(keys.TokenFile)
	if err != nil {
		return "", given, fmt.Errorf("issuer: cluster: the token of the service account is not mounted: %w", err)
	}
	decoded, err := bearer.Decode(token)
	if err != nil || decoded.Issuer == "" {
		return "", given, fmt.Errorf("issuer: cluster: %s holds no token that names its issuer", keys.TokenFile)
	}
	return decoded.Issuer, keys, nil
}

// mounted is the issuer of the mounted token; empty: there is none.
func (p Pod) mounted() string {
	issuer, _, _ := p.Issuer(bearer.KeySource{})
	return issuer
}
