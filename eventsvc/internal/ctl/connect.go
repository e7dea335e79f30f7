package ctl

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/service"
	"tidings.example/shared/tokenclient"
)

// Connection has the settings of the commands that use an event server: its address, the certificates to trust, and the
// token. Each is a flag, such as --token-file, and a variable, such as EVENTSVC_TOKEN_FILE.
type Connection struct {
	Server           string `placeholder:"URL" help:"The event server. Default: http://127.0.0.1:8080"`
	CAFile           string `name:"ca-file" placeholder:"FILE" help:"Certificates in PEM to trust instead of the system's, for --server and --token-url."`
	Token            string `placeholder:"TOKEN" secret:"" help:"The bearer token; use the variable, because other users can see command lines."`
	TokenFile        string `placeholder:"FILE" help:"File that holds the bearer token; read again for each request."`
	TokenCommand     string `placeholder:"COMMAND" help:"Program, with arguments separated by spaces, that prints a token or a credential for kubectl, such as 'tokensvc credential ...'."`
	TokenURL         string `name:"token-url" placeholder:"URL" help:"Token endpoint to fetch tokens from, with --client-id and --client-secret-file, or with --assertion-file."`
	ClientID         string `name:"client-id" placeholder:"ID" help:"Client to fetch tokens as; may be left out with --assertion-file."`
	ClientSecretFile string `placeholder:"FILE" help:"File that holds that client's secret."`
	AssertionFile    string `placeholder:"FILE" help:"File that holds an assertion instead of a secret, such as a service-account token of Kubernetes; read for each token."`
}

// access is a connection that a kubeconfig can describe instead.
type access struct {
	Connection  `embed:""`
	Kubeconfig  string `placeholder:"FILE" help:"Take server, certificates and token from this kubeconfig instead."`
	Context     string `placeholder:"NAME" help:"Context of the kubeconfig. Default: its current one."`
	GroupDomain string `default:"k8s.io" help:"The API group is events.GROUP-DOMAIN."`
}

// Open returns a client of --server.
func (c *Connection) Open() (*client.Client, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	return dial(config)
}

// Kubernetes has the settings of a connection to the API of a cluster.
type Kubernetes struct {
	Kubeconfig string `placeholder:"FILE" help:"Kubeconfig of the cluster. Default: the service account of this pod."`
	Context    string `placeholder:"NAME" help:"Context of the kubeconfig. Default: its current one."`
}

// Open returns a client of the cluster's API.
func (k *Kubernetes) Open() (*client.Client, error) {
	config, err := k.config()
	if err != nil {
		return nil, err
	}
	return dial(config)
}

func (k *Kubernetes) config() (client.Config, error) {
	switch {
	case k.Context != "" && k.Kubeconfig == "":
		return client.Config{}, cli.Usagef("--context has no effect without --kubeconfig: set both or none")
	case k.Kubeconfig != "":
		config, err := client.FromKubeconfig(k.Kubeconfig, k.Context)
		if err != nil {
			return config, cli.Usagef("--kubeconfig: %w", err)
		}
		return config, nil
	}
	config, inside, err := client.InCluster()
	if !inside {
		return config, cli.Usagef("--kubeconfig is not set, and this is no pod of a cluster: say how to reach the cluster")
	}
	return config, err
}

// config returns the settings of the client, or an error that names two settings that contradict each other.
func (a *access) config() (client.Config, error) {
	if a.Kubeconfig == "" {
		if a.Context != "" {
			return client.Config{}, cli.Usagef("--context has no effect without --kubeconfig: set both or none")
		}
		return a.Connection.config()
	}
	for _, other := range a.given() {
		return client.Config{}, cli.Usagef("--kubeconfig and --%s exclude each other: set one of them", other)
	}
	config, err := client.FromKubeconfig(a.Kubeconfig, a.Context)
	if err != nil {
		return config, cli.Usagef("--kubeconfig: %w", err)
	}
	return config, nil
}

// open returns a client, and the namespace to use if none is given.
func (a *access) open() (*client.Client, string, error) {
	config, err := a.config()
	if err != nil {
		return nil, "", err
	}
	c, err := dial(config)
	return c, cmp.Or(config.Namespace, "default"), err
}

// given returns the names of the settings that are set.
func (c *Connection) given() []string {
	var names []string
	for _, setting := range []struct{ name, value string }{
		{"server", c.Server}, {"ca-file", c.CAFile}, {"token", c.Token}, {"token-file", c.TokenFile},
		{"token-command", c.TokenCommand}, {"token-url", c.TokenURL},
	} {
		if setting.value != "" {
			names = append(names, setting.name)
		}
	}
	return names
}

// config returns the settings of a client of --server.
func (c *Connection) config() (client.Config, error) {
	config := client.Config{Server: cmp.Or(c.Server, "http://127.0.0.1:8080"), CAFile: c.CAFile}
	if !bearer.IsURL(config.Server) {
		return config, cli.Usagef("--server %q is no http(s) URL, such as http://127.0.0.1:8080", config.Server)
	}
	var err error
	if c.CAFile != "" {
		if config.TLS, err = client.TrustFile(c.CAFile); err != nil {
			return config, cli.Usagef("--ca-file: %w", err)
		}
	}
	config.Tokens, err = c.tokens()
	return config, err
}

// tokens returns the source of tokens, or nil if there is none.
func (c *Connection) tokens() (*client.Tokens, error) {
	var sources []string
	for _, name := range c.given() {
		if strings.HasPrefix(name, "token") {
			sources = append(sources, name)
		}
	}
	switch {
	case len(sources) > 1:
		return nil, cli.Usagef("--%s and --%s exclude each other: set one of them", sources[0], sources[1])
	case c.Token != "":
		return client.StaticToken(c.Token), nil
	case c.TokenFile != "":
		return client.FileToken(c.TokenFile), nil
	case c.TokenCommand != "":
		words := strings.Fields(c.TokenCommand)
		if len(words) == 0 {
			return nil, cli.Usagef("--token-command is blank: name a program")
		}
		return client.CommandToken(nil, words[0], words[1:]...), nil
	}
	return c.fetchedToken()
}

// fetchedToken returns the source that asks a token endpoint, or nil if none is set.
func (c *Connection) fetchedToken() (*client.Tokens, error) {
	switch {
	case c.ClientSecretFile != "" && c.AssertionFile != "":
		return nil, cli.Usagef("--client-secret-file and --assertion-file exclude each other: set one of them")
	case c.TokenURL == "" && c.ClientSecretFile != "":
		return nil, cli.Usagef("--client-secret-file is set but --token-url is not: set both or none")
	case c.TokenURL == "" && c.AssertionFile != "":
		return nil, cli.Usagef("--assertion-file is set but --token-url is not: set both or none")
	case c.TokenURL == "":
		return nil, nil
	case c.AssertionFile == "" && (c.ClientID == "" || c.ClientSecretFile == ""):
		return nil, cli.Usagef("--token-url, --client-id and --client-secret-file go together: set all or none, or --assertion-file in place of the last two")
	case !bearer.IsURL(c.TokenURL):
		return nil, cli.Usagef("--token-url %q is no http(s) URL, such as http://127.0.0.1:9000/oauth2/token", c.TokenURL)
	}
	sender, err := tokenclient.Trusting(c.CAFile)
	if err != nil {
		return nil, cli.Usagef("--ca-file: %w", err)
	}
	sender.Timeout = fetchTimeout
	return client.FetchedToken(func(ctx context.Context) (string, time.Time, error) {
		request, err := c.request()
		if err != nil {
			return "", time.Time{}, err
		}
		token, err := request.Fetch(ctx, sender)
		if err != nil {
			return "", time.Time{}, err
		}
		return token.AccessToken, token.Expires, nil
	}), nil
}

// fetchTimeout is the longest time that a token endpoint may take.
const fetchTimeout = 30 * time.Second

// request returns how the client authenticates. The file is read for each token, because others replace it: an operator
// the secret, a kubelet the assertion.
func (c *Connection) request() (tokenclient.Request, error) {
	r := tokenclient.Request{TokenURL: c.TokenURL, ClientID: c.ClientID}
	kind, file, into := "assertion", c.AssertionFile, &r.Assertion
	if file == "" {
		kind, file, into = "secret", c.ClientSecretFile, &r.Secret
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if *into = strings.TrimSpace(string(content)); *into == "" {
		return r, fmt.Errorf("%s is empty: write the %s into it", file, kind)
	}
	r.Source = "the " + kind + " in " + file
	return r, nil
}

func dial(config client.Config) (*client.Client, error) {
	config.UserAgent = "eventsvc/" + strings.Fields(service.Version())[0]
	c, err := client.New(config)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return c, nil
}

// at adds the server to a refusal. Other errors name it already.
func at(c *client.Client, err error) error {
	if err == nil || client.Code(err) == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", c.Server(), err)
}
