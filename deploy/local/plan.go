package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// plan is what is started and what the templates say about it.
type plan struct {
	Root       string // of the repository, absolute
	TokenURL   string
	EventsURL  string // plain HTTP, for curl
	SecureURL  string // HTTPS, because kubectl sends no token without
	TokenAdmin string
	EventAdmin string
	CA         string // of SecureURL: PEM in base64
	env        []string
}

// newPlan sets what both services need to find each other. A variable of the
// environment wins over it, so that another port can be chosen.
func newPlan(dir string) (*plan, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &plan{Root: root, env: os.Environ()}
	p.TokenURL = p.url("http", p.set("TOKENSVC_LISTEN_HTTP", "127.0.0.1:9000"))
	p.TokenAdmin = p.url("http", p.set("TOKENSVC_LISTEN_ADMIN", "127.0.0.1:9001"))
	p.set("TOKENSVC_CLIENTS_FILE", filepath.Join(root, "deploy/local/clients.yaml"))
	p.EventsURL = p.url("http", p.set("EVENTSVC_LISTEN_HTTP", "127.0.0.1:8080"))
	p.SecureURL = p.url("https", p.set("EVENTSVC_LISTEN_HTTPS", "127.0.0.1:8443"))
	p.EventAdmin = p.url("http", p.set("EVENTSVC_LISTEN_ADMIN", "127.0.0.1:8081"))
	p.set("EVENTSVC_ISSUER", p.TokenURL)
	p.set("EVENTSVC_PUBLIC_URL", p.public())
	p.set("EVENTSVC_BASIC_TOKEN_URL", p.TokenURL+"/oauth2/token")
	p.set("TOKENSVC_CORS_ORIGIN", origins(p.EventsURL, p.SecureURL))
	p.set("EVENTSVC_TLS_SELF_SIGNED", "true")
	p.set("EVENTSVC_DATA_DIR", filepath.Join(root, "var/eventsvc"))
	return p, os.MkdirAll(p.Path("var"), 0o755)
}

// set gives a variable its default unless it is set, and returns its value.
func (p *plan) set(name, value string) string {
	if given, ok := os.LookupEnv(name); ok {
		return given
	}
	p.env = append(p.env, name+"="+value)
	return value
}

// url is where a client on this machine reaches a listener.
func (p *plan) url(scheme, listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return scheme + "://" + listen // the service itself says what is wrong with it
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// public is where clients are led to: the listener that needs no certificate, if it is not switched off.
func (p *plan) public() string {
	if strings.HasSuffix(p.EventsURL, "://") {
		return p.SecureURL
	}
	return p.EventsURL
}

// origins are what browsers call the page of a listener: by address, and by name on this machine.
func origins(urls ...string) string {
	var all []string
	for _, u := range urls {
		if strings.HasSuffix(u, "://") {
			continue // a listener that is switched off
		}
		all = append(all, u)
		if name := strings.Replace(u, "127.0.0.1", "localhost", 1); name != u {
			all = append(all, name)
		}
	}
	return strings.Join(all, ",")
}

// Path is an absolute path inside the repository.
func (p *plan) Path(rel string) string { return filepath.Join(p.Root, rel) }

// Typed is that path as a user types it in a shell.
func (p *plan) Typed(rel string) string {
	path := p.Path(rel)
	if strings.ContainsAny(path, " \t'\"\\$`&|;<>()*?[]#~!{}") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

//go:embed kubeconfig.tmpl
var kubeconfig string

//go:embed guide.tmpl
var guide string

// tell writes var/kubeconfig and prints what to type next.
func (p *plan) tell(out io.Writer) error {
	ca, err := os.ReadFile(p.Path("var/eventsvc/tls/ca.crt"))
	if err != nil {
		return fmt.Errorf("the certificate that kubectl is to trust: %w", err)
	}
	p.CA = base64.StdEncoding.EncodeToString(ca)
	var file bytes.Buffer
	if err := render(&file, kubeconfig, p); err != nil {
		return err
	}
	if err := os.WriteFile(p.Path("var/kubeconfig"), file.Bytes(), 0o600); err != nil {
		return err
	}
	return render(out, guide, p)
}

func render(w io.Writer, text string, p *plan) error {
	t, err := template.New("").Parse(text)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}
