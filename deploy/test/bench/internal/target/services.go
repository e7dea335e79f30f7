package target

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
)

// ClientCount is the number of registered clients, all with ClientSecret.
const (
	ClientCount  = 16
	ClientSecret = "bench-secret-of-thirty-two-chars"
)

const readyWithin = 60 * time.Second

// ClientID is the id of client i, counted in a circle.
func ClientID(i int) string { return fmt.Sprintf("bench-client-%02d", i%ClientCount) }

// Services are the two processes that are measured, with their default
// settings: authentication is on, every write is on disk before its answer.
type Services struct {
	// Dir holds their data and logs.
	Dir string
	// Token and Events are the processes.
	Token, Events *proc.Process
	// TokenAddr and EventsAddr are where both answer over HTTP.
	TokenAddr, EventsAddr netip.AddrPort
	// TokenAdmin and EventsAdmin are the URLs of the admin listeners.
	TokenAdmin, EventsAdmin string
	// TLS is set where both are measured over HTTPS.
	TLS *tls.Config

	bin, cgroup           string         // cgroup may be empty
	secureAddr            netip.AddrPort // of eventsvc
	secureTokenAddr       netip.AddrPort
	tokenArgs, eventsArgs []string
}

// API is where the API is measured.
func (s *Services) API() netip.AddrPort {
	if s.TLS != nil {
		return s.secureAddr
	}
	return s.EventsAddr
}

// TokenAPI is where tokens are measured.
func (s *Services) TokenAPI() netip.AddrPort {
	if s.TLS != nil {
		return s.secureTokenAddr
	}
	return s.TokenAddr
}

// Options are settings besides the defaults.
type Options struct {
	Cgroup   string   // directory of a control group for both
	Hashes   []string // of the clients' secrets
	Token    []string // arguments of tokensvc
	DSN      string   // of a database with the clients; else they are in a file
	Clients  string   // that file; empty: one with clients that have secrets
	Secure   bool     // HTTPS on both
	Profiles bool     // both serve CPU profiles
	MaxBytes string   // what eventsvc's files may take; empty: its default
	Events   []string // more arguments of eventsvc
}

// Prepared returns services that are not started, for commands that need the files of eventsvc for themselves.
func Prepared(bin, dir string) *Services { return &Services{Dir: dir, bin: bin} }

// OnData returns a command of eventsvc on the data of these services: on the files, or through eventsvc where it is
// started.
func (s *Services) OnData(command string, args ...string) *exec.Cmd {
	admin := cmp.Or(strings.TrimPrefix(s.EventsAdmin, "http://"), "127.0.0.1:1")
	return s.command("eventsvc", append([]string{command, "--data-dir=" + s.DataDir(), "--listen-admin=" + admin}, args...))
}

// Start starts both on free ports, with the data that is in the directory.
func Start(ctx context.Context, bin, dir string, more Options) (*Services, error) {
	s := &Services{Dir: dir, bin: bin, cgroup: more.Cgroup}
	if err := os.MkdirAll(s.DataDir(), 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	ports := make([]netip.AddrPort, 6)
	for i := range ports {
		var err error
		if ports[i], err = proc.FreeAddr(); err != nil {
			return nil, err
		}
	}
	s.TokenAddr, s.EventsAddr, s.secureAddr, s.secureTokenAddr = ports[0], ports[1], ports[2], ports[5]
	s.TokenAdmin, s.EventsAdmin = "http://"+ports[3].String(), "http://"+ports[4].String()

	s.tokenArgs = append([]string{"serve", "--listen-http=" + ports[0].String(), "--listen-admin=" + ports[3].String()}, more.Token...)
	if more.DSN != "" {
		s.tokenArgs = append(s.tokenArgs, "--database-dsn="+more.DSN)
	} else {
		if more.Clients == "" {
			var err error
			if more.Clients, err = clientsFile(dir, more.Hashes); err != nil {
				return nil, err
			}
		}
		s.tokenArgs = append(s.tokenArgs, "--clients-file="+more.Clients)
	}
	if more.Profiles {
		s.tokenArgs = append(s.tokenArgs, "--profiles")
	}
	if _, err := s.StartToken(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	s.eventsArgs = []string{"serve", "--listen-http=" + ports[1].String(),
		"--listen-admin=" + ports[4].String(), "--data-dir=" + s.DataDir(), "--issuer=" + s.Issuer(), "--basic-token-url=" + s.Issuer() + "/oauth2/token"}
	if more.Profiles {
		s.eventsArgs = append(s.eventsArgs, "--profiles")
	}
	if more.MaxBytes != "" {
		s.eventsArgs = append(s.eventsArgs, "--max-bytes="+more.MaxBytes)
	}
	if more.Secure {
		s.eventsArgs = append(s.eventsArgs, "--listen-https="+ports[2].String(), "--tls-self-signed")
	}
	s.eventsArgs = append(s.eventsArgs, more.Events...)
	if _, err := s.StartEvents(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if more.Secure {
		if err := s.secure(ctx); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	return s, nil
}

// secure starts tokensvc again, with the certificate that eventsvc has made, and then eventsvc, for the new keys.
func (s *Services) secure(ctx context.Context) (err error) {
	dir := filepath.Join(s.DataDir(), "tls")
	if s.TLS, err = trust(filepath.Join(dir, "ca.crt")); err != nil {
		return err
	}
	if err := s.Token.Stop(); err != nil {
		return err
	}
	s.tokenArgs = append(s.tokenArgs, "--listen-https="+s.secureTokenAddr.String(),
		"--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-key-file="+filepath.Join(dir, "tls.key"))
	if _, err := s.StartToken(ctx); err != nil {
		return err
	}
	_, err = s.RestartEvents(ctx, false)
	return err
}

// trust makes a client's configuration for HTTP/2 from the authority that
// eventsvc has made itself.
func trust(ca string) (*tls.Config, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("certificate authority: no certificate in its file")
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}, nil
}

// command runs a service, in the control group where there is one: a process
// that enters it first and is then replaced, so that all its memory counts.
func (s *Services) command(name string, args []string) *exec.Cmd {
	binary := filepath.Join(s.bin, name)
	if s.cgroup == "" {
		return exec.Command(binary, args...)
	}
	const enter = `echo $$ > "$0/cgroup.procs" && exec "$@"`
	return exec.Command("/bin/sh", append([]string{"-c", enter, s.cgroup, binary}, args...)...)
}

// StartToken starts tokensvc and returns the time until it was ready.
func (s *Services) StartToken(ctx context.Context) (time.Duration, error) {
	var err error
	if s.Token, err = proc.Start(filepath.Join(s.Dir, "tokensvc.log"), s.command("tokensvc", s.tokenArgs)); err != nil {
		return 0, err
	}
	return s.Token.Ready(ctx, s.TokenAdmin+"/readyz", readyWithin)
}

// StartEvents starts eventsvc and returns the time until it was ready.
func (s *Services) StartEvents(ctx context.Context) (time.Duration, error) {
	var err error
	if s.Events, err = proc.Start(filepath.Join(s.Dir, "eventsvc.log"), s.command("eventsvc", s.eventsArgs)); err != nil {
		return 0, err
	}
	return s.Events.Ready(ctx, s.EventsAdmin+"/readyz", readyWithin)
}

// RestartEvents stops eventsvc and starts it again, and returns the time until it was ready. For a cold start the
// kernel has to read its files again.
func (s *Services) RestartEvents(ctx context.Context, cold bool) (time.Duration, error) {
	err := s.Events.Stop()
	if cold {
		err = errors.Join(err, proc.DropCached(s.DataDir()))
	}
	if err != nil {
		return 0, err
	}
	return s.StartEvents(ctx)
}

// Stop stops both.
func (s *Services) Stop() error {
	var errs []error
	for _, p := range []*proc.Process{s.Events, s.Token} {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	return errors.Join(errs...)
}

// DataDir is where eventsvc keeps its data.
func (s *Services) DataDir() string { return filepath.Join(s.Dir, "data") }

// SecretHashes are bcrypt hashes of the clients' secret, one for each client.
func SecretHashes() (hashes []string, err error) {
	for range ClientCount {
		hash, err := bcrypt.GenerateFromPassword([]byte(ClientSecret), floor.BcryptCost)
		if err != nil {
			return nil, fmt.Errorf("client secret: %w", err)
		}
		hashes = append(hashes, "{bcrypt}"+string(hash))
	}
	return hashes, nil
}

// clientsFile writes the registrations.
func clientsFile(dir string, hashes []string) (string, error) {
	var text bytes.Buffer
	fmt.Fprintln(&text, "clients:")
	for i, hash := range hashes {
		fmt.Fprintf(&text, "  - {client_id: %s, client_name: Bench, client_secret: '%s', scope: events}\n", ClientID(i), hash)
	}
	path := filepath.Join(dir, "clients.yaml")
	return path, os.WriteFile(path, text.Bytes(), 0o600)
}

// FetchToken asks for a token as a client would. Tokens live for five minutes,
// so every row begins with a new one.
func (s *Services) FetchToken(ctx context.Context, client int) (string, error) {
	form := tokenForm(ClientID(client), ClientSecret)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.TokenAddr.String()+tokenPath, strings.NewReader(form))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", formType)
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	err = fetch(req, &answer)
	return answer.AccessToken, err
}

const (
	tokenPath = "/oauth2/token"
	formType  = "application/x-www-form-urlencoded"
)

// tokenForm is the body of a token request.
func tokenForm(client, secret string) string {
	return url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {secret}}.Encode()
}

// TokenRequest formats a request for a token.
func (s *Services) TokenRequest(client, secret string) []byte {
	body := tokenForm(client, secret)
	return []byte("POST " + tokenPath + " HTTP/1.1\r\nHost: " + s.TokenAddr.String() +
		"\r\nContent-Type: " + formType + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// EventsOf makes requests for the events of a namespace, with a new token of a client.
func (s *Services) EventsOf(ctx context.Context, client int, namespace string) (*Events, error) {
	token, err := s.FetchToken(ctx, client)
	if err != nil {
		return nil, err
	}
	return NewEvents(s.EventsAddr.String(), token, namespace), nil
}

// CreateSpec creates events 0, 1, 2 … of e.
func (s *Services) CreateSpec(e *Events, conns int) load.Spec {
	return load.Spec{Addr: s.API(), Secure: s.TLS, Conns: conns, Next: e.Create.Fill, Check: e.CheckEvent(201, Same)}
}

// fillPart is how many events are created with one token. That may take as long as fillPatience, so that filling ends
// only if it does not progress any more, however busy the machine is.
const (
	fillPart     = 10_000
	fillPatience = 4 * time.Minute // less than the life of a token
)

// Fill creates the events from to upTo-1 of a namespace.
func (s *Services) Fill(ctx context.Context, namespace string, from, upTo int) error {
	for at := from; at < upTo; at += fillPart {
		e, err := s.EventsOf(ctx, 0, namespace)
		if err != nil {
			return fmt.Errorf("fill %s: %w", namespace, err)
		}
		spec := s.CreateSpec(e, 100) // a source may ask 128 at once before its token is known
		spec.Next = func(dst []byte, i int) []byte { return e.Create.Fill(dst, at+i) }
		spec.Check = e.CheckEvent(201, func(i int) int { return at + i })
		spec.Limit = min(fillPart, upTo-at)
		if err := load.Do(spec, fillPatience); err != nil {
			return fmt.Errorf("fill %s: %w", namespace, err)
		}
	}
	return nil
}

// Revision is the store's current revision.
func (s *Services) Revision(ctx context.Context) (uint64, error) {
	token, err := s.FetchToken(ctx, 0)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.EventsAddr.String()+resource+"default/events?limit=1", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := fetch(req, &list); err != nil {
		return 0, err
	}
	return strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
}

// fetch sends a single request that is not measured, and decodes the answer.
func fetch(req *http.Request, into any) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", resp.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, err)
	}
	return nil
}
