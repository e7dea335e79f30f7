package chart_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"

	"tidings.example/shared/porttest"
	"tidings.example/shared/waittest"
)

// cluster is a kube-apiserver of this process with RBAC and the foreign kinds, on an etcd of this process. No
// controllers run in it.
type cluster struct {
	t      *testing.T
	config *rest.Config // of its administrator
	admin  kubernetes.Interface
	ca     []byte // of its certificate, as kubelets mount it
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-trimpath", Value: "true"}) {
		modules, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output() // where the server's certificate is kept
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("TEST_SRCDIR", strings.TrimSpace(string(modules)))
		t.Setenv("TEST_WORKSPACE", ".")
	}
	server, err := apiserver.StartTestServer(t, &apiserver.TestServerInstanceOptions{EnableCertAuth: true, DisableInvariantChecks: true},
		[]string{"--authorization-mode=RBAC"}, startEtcd(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.TearDownFn)
	ca, err := os.ReadFile(server.ServerOpts.SecureServing.ServerCert.CertKey.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(server.ClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, config: server.ClientConfig, admin: admin, ca: ca}
	c.define()
	return c
}

// startEtcd starts an etcd that is reached by a socket.
func startEtcd(t *testing.T) *storagebackend.Config {
	t.Helper()
	dir := t.TempDir()
	config := embed.NewConfig()
	config.Dir, config.LogLevel = filepath.Join(dir, "data"), "error"
	client := url.URL{Scheme: "http", Host: porttest.Addr(t)}
	peer := url.URL{Scheme: "http", Host: porttest.Addr(t)}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	storage := storagebackend.NewDefaultConfig("registry", nil)
	storage.Transport.ServerList = []string{client.String()}
	return storage
}

// install applies the objects in a namespace, as Helm does at the server. It validates each of them. In a trial,
// nothing but the accounts is there afterwards, which pods need.
func (c *cluster) install(into string, all []runtime.Object, trial bool) {
	c.t.Helper()
	objects, err := dynamic.NewForConfig(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.admin.Discovery()))
	for _, object := range all {
		object = object.DeepCopyObject()
		plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			c.t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: plain}
		kind := u.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			c.t.Fatal(err)
		}
		to := dynamic.ResourceInterface(objects.Resource(mapping.Resource))
		if mapping.Scope.Name() == "namespace" {
			to = objects.Resource(mapping.Resource).Namespace(cmp.Or(u.GetNamespace(), into))
		}
		options := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict, FieldManager: "helm"}
		if trial && kind.Kind != "ServiceAccount" {
			options.DryRun = []string{metav1.DryRunAll}
		}
		text, err := u.MarshalJSON()
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := to.Patch(c.t.Context(), u.GetName(), types.ApplyPatchType, text, options); err != nil {
			c.t.Errorf("%s %s: %v", kind.Kind, u.GetName(), err)
		}
	}
}

// namespace makes a namespace that enforces the restricted standard, with the account that a controller makes.
func (c *cluster) namespace(name string) {
	c.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
	}}}
	_, err := c.admin.CoreV1().Namespaces().Create(c.t.Context(), ns, metav1.CreateOptions{})
	if err == nil {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		_, err = c.admin.CoreV1().ServiceAccounts(name).Create(c.t.Context(), account, metav1.CreateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// token asks for a token of a service account. Without an audience it is for the API server.
func (c *cluster) token(namespace, account, audience string, seconds int64) string {
	c.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	answer, err := c.admin.CoreV1().ServiceAccounts(namespace).CreateToken(c.t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.Status.Token
}

// as is a client with the token of a service account.
func (c *cluster) as(account string) kubernetes.Interface {
	c.t.Helper()
	config := rest.AnonymousClientConfig(c.config)
	config.TLSClientConfig = rest.TLSClientConfig{CAData: c.ca}
	config.BearerToken = c.token(namespace, account, "", 3600)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// kubelet runs a container of a pod as a process: with its variables, its arguments, its files and the mounts that are
// tokens of its account. More are variables that replace its own.
func (c *cluster) kubelet(all []runtime.Object, spec *corev1.PodSpec, container corev1.Container, more ...string) *process {
	c.t.Helper()
	dir := c.t.TempDir()
	env := environment(c.t, dir, all, spec, container)
	account := map[string]string{"ca.crt": string(c.ca)}
	for _, volume := range spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken == nil {
				continue
			}
			asked := source.ServiceAccountToken
			token := c.token(namespace, spec.ServiceAccountName, asked.Audience, *asked.ExpirationSeconds)
			if asked.Audience == "" {
				account["token"] = token
				continue
			}
			file := filepath.Join(dir, asked.Path)
			writeFile(c.t, file, token)
			for i, variable := range env {
				env[i] = strings.Replace(variable, mountOf(container, volume.Name)+"/"+asked.Path, file, 1)
			}
		}
	}
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		account["token"] = c.token(namespace, spec.ServiceAccountName, "", 3607)
	}
	mounted := filepath.Join(dir, "mounted")
	for name, content := range account {
		writeFile(c.t, filepath.Join(mounted, name), content)
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(c.config.Host, "https://"))
	if err != nil {
		c.t.Fatal(err)
	}
	env = append(env, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port, "PATH="+os.Getenv("PATH"))
	// The directory of the account is where a kubelet mounts it, in a mount namespace of the process alone.
	script := `mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/kubernetes.io && ln -s "$0" /run/secrets/kubernetes.io/serviceaccount && exec "$@"`
	args := append([]string{"--mount", "sh", "-c", script, mounted, filepath.Join(bin, "eventsvc")}, container.Args...)
	if os.Getuid() != 0 {
		args = append([]string{"--map-root-user"}, args...)
	}
	p := &process{cmd: exec.Command("unshare", args...)}
	p.cmd.Env = append(env, more...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
		if c.t.Failed() {
			c.t.Logf("%s said:\n%s", container.Name, p.said())
		}
	})
	return p
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func mountOf(c corev1.Container, volume string) string {
	for _, mount := range c.VolumeMounts {
		if mount.Name == volume {
			return mount.MountPath
		}
	}
	return ""
}

// process is a program that runs, and what it has said.
type process struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// eventually waits until there is no error.
func eventually(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	waittest.Becomes(t, func() error {
		if err := try(t.Context()); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// authority waits for the authority that eventsvc writes into a ConfigMap, and returns it and a file with it.
func (c *cluster) authority(name string) (authority, file string) {
	c.t.Helper()
	eventually(c.t, "the authority of eventsvc is in the ConfigMap", func(ctx context.Context) error {
		m, err := c.admin.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && m.Data["ca.crt"] == "" {
			err = errors.New("there is no ca.crt")
		}
		if err == nil {
			authority = m.Data["ca.crt"]
		}
		return err
	})
	file = filepath.Join(c.t.TempDir(), "ca.crt")
	writeFile(c.t, file, authority)
	return authority, file
}

// TestCluster installs the chart with its viewer into a cluster, and runs both programs as its pods describe them: with
// the rights that the chart gives their accounts, and with tokens that this cluster signs. Nothing is typed in: not the
// issuer, no key, no certificate, no secret. Events of the cluster are then readable by the viewer, and by nobody
// without a rule.
func TestCluster(t *testing.T) { // not parallel, because kube-apiserver has global state
	c := newCluster(t)
	c.namespace(namespace)
	c.namespace("shop")
	all := objects(t, viewed)
	c.install(namespace, all, false)
	if t.Failed() {
		t.FailNow()
	}
	if _, err := c.admin.CoreV1().ServiceAccounts("shop").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "batch"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	address := porttest.Addr(t)
	pod := &find[*appsv1.StatefulSet](t, all, "eventsvc").Spec.Template.Spec
	c.kubelet(all, pod, pod.Containers[0], "EVENTSVC_LISTEN_HTTPS="+address, "EVENTSVC_LISTEN_ADMIN=", "EVENTSVC_DATA_DIR="+t.TempDir())
	authority, trusted := c.authority("eventsvc-ca")
	pod = &find[*appsv1.Deployment](t, all, "eventsvc-mirror").Spec.Template.Spec
	c.kubelet(all, pod, pod.Containers[0], "EVENTSVC_SERVER=https://"+address, "EVENTSVC_CA_FILE="+trusted, "EVENTSVC_LISTEN_ADMIN=")

	history := func(token string) kubernetes.Interface {
		client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://" + address, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(authority)}})
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	viewer := history(c.token(namespace, "tidings-viewer", "eventsvc", 1200))
	controller := true
	owned := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Labels: map[string]string{"app.kubernetes.io/name": "web"}, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "3f0c1a52-0c43-4bb8-8f8e-5a5f6f1f7a01", Controller: &controller},
	}}, Spec: *find[*corev1.Pod](t, all, "tidings-test").Spec.DeepCopy()}
	owned.Spec.ServiceAccountName, owned.Spec.Volumes, owned.Spec.InitContainers = "batch", nil, nil
	for i := range owned.Spec.Containers {
		owned.Spec.Containers[i].VolumeMounts = nil
	}
	owned, err := c.admin.CoreV1().Pods("shop").Create(t.Context(), owned, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const events = 20
	for i := range events {
		ev := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Namespace: "shop"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-0", UID: owned.UID},
			Reason:         "BackOff", Type: "Warning", Message: "again", FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
		}
		if _, err := c.admin.CoreV1().Events("shop").Create(t.Context(), ev, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the viewer reads the events of the cluster", func(ctx context.Context) error {
		list, err := viewer.CoreV1().Events("shop").List(ctx, metav1.ListOptions{LabelSelector: "cluster=kubernetes,tidings.example/owner-kind=StatefulSet,tidings.example/owner-name=web,app.kubernetes.io/name=web", FieldSelector: "reason=BackOff"})
		if err == nil && len(list.Items) != events {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})

	// What eventsvc refuses.
	for name, tc := range map[string]struct {
		token string
		want  func(error) bool
	}{
		"no token":                        {"", apierrors.IsUnauthorized},
		"another audience":                {c.token(namespace, "tidings-viewer", "vault", 1200), apierrors.IsUnauthorized},
		"for the API server":              {c.token(namespace, "tidings-viewer", "", 1200), apierrors.IsUnauthorized},
		"for an hour":                     {c.token(namespace, "tidings-viewer", "eventsvc", 3600), apierrors.IsUnauthorized},
		"an account without a rule":       {c.token("shop", "batch", "eventsvc", 1200), apierrors.IsForbidden},
		"the mirror, which needs no list": {c.token(namespace, "eventsvc-mirror", "eventsvc", 1200), apierrors.IsForbidden},
		"the account of eventsvc":         {c.token(namespace, "eventsvc", "eventsvc", 1200), apierrors.IsForbidden},
		"the test, in another namespace":  {c.token(namespace, "tidings-test", "eventsvc", 1200), apierrors.IsForbidden},
	} {
		if _, err := history(tc.token).CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{}); err == nil || !tc.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := viewer.CoreV1().Events("shop").Delete(t.Context(), "web-0", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the viewer deletes: %v", err)
	}

	impersonate(t, "system:serviceaccount:"+namespace+":tidings-viewer", viewer)

	// What the cluster refuses: the rights end at what the programs do.
	anonymous := rest.AnonymousClientConfig(c.config)
	anonymous.TLSClientConfig = rest.TLSClientConfig{CAData: c.ca}
	nobody, err := kubernetes.NewForConfig(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nobody.CoreV1().RESTClient().Get().AbsPath("/openid/v1/jwks").DoRaw(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("anybody may read the keys, so that this test shows nothing: %v", err)
	}
	mirror, server := c.as("eventsvc-mirror"), c.as("eventsvc")
	for name, try := range map[string]func() error{
		"the mirror reads ConfigMaps": func() error {
			_, err := mirror.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"the mirror lists Deployments": func() error {
			_, err := mirror.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"the mirror reads secrets": func() error {
			_, err := mirror.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"the mirror deletes events": func() error {
			return mirror.CoreV1().Events("shop").Delete(t.Context(), "web-0", metav1.DeleteOptions{})
		},
		"eventsvc reads events": func() error {
			_, err := server.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"eventsvc reads another ConfigMap": func() error {
			_, err := server.CoreV1().ConfigMaps(namespace).Get(t.Context(), "eventsvc-access", metav1.GetOptions{})
			return err
		},
		"eventsvc lists ConfigMaps": func() error {
			_, err := server.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"the viewer reads events of the API": func() error {
			_, err := c.as("tidings-viewer").CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
			return err
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestValid: a kube-apiserver takes every object that the chart makes, with each set of values, and every pod in a
// namespace that enforces the restricted standard.
func TestValid(t *testing.T) { // not parallel, because kube-apiserver has global state
	c := newCluster(t)
	c.namespace("shop") // which mirrors of some namespaces have rights in
	c.namespace("mail")
	for name, values := range valueSets(t) {
		all := objects(t, values)
		into := "with-" + name
		c.namespace(into)
		slices.SortStableFunc(all, func(a, b runtime.Object) int { return accountsFirst(a) - accountsFirst(b) })
		for _, object := range slices.Clone(all) {
			meta, spec := podOf(object)
			if spec == nil {
				continue
			}
			meta = metav1.ObjectMeta{Name: meta.Name + "-0", Labels: meta.Labels}
			pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: *spec.DeepCopy()}
			if _, ok := object.(*appsv1.StatefulSet); ok { // what its controller adds
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			}
			all = append(all, pod)
		}
		c.install(into, all, true)
		if t.Failed() {
			t.Fatalf("with the values %s", name)
		}
	}
}

func accountsFirst(o runtime.Object) int {
	if _, ok := o.(*corev1.ServiceAccount); ok {
		return 0
	}
	return 1
}
