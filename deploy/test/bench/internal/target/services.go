package main

import (
	"bytes"
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
	"tidings.example/deploy/test/bench/internal/proc"
)

const (
	clientCount  = 16
	clientSecret = "bench-secret-of-thirty-two-chars"
	readyWithin  = 60 * time.Second
)

func clientID(i int) string { return fmt.Sprintf("bench-client-%02d", i%clientCount) }

// services are the two processes that are measured, with their default
// settings: authentication is on, every write is on disk before its answer.
type services struct {
	dir, bin      string
	cgroup        string // or empty
	token, events *proc.Process

	tokenAddr, eventsAddr, secureAddr netip.AddrPort
	tokenAdmin, eventsAdmin           string
	tokenArgs, eventsArgs             []string
	tls                               *tls.Config // of the API where it is measured over HTTPS
}

// api is where the API is measured.
func (s *services) api() netip.AddrPort {
	if s.tls != nil {
		return s.secureAddr
	}
	return s.eventsAddr
}

// extra are settings besides the defaults.
type extra struct {
	cgroup   string   // directory of a control group for both
	hashes   []string // of the clients' secrets
	token    []string // of tokensvc
	dsn      string   // of a database with the clients; else they are in a file
	secure   bool     // HTTPS on eventsvc
	profiles bool     // offered, for -profile
}

// startServices starts both on free ports with empty data.
func startServices(ctx context.Context, bin, dir string, more extra) (*services, error) {
	s := &services{dir: dir, bin: bin, cgroup: more.cgroup}
	if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	ports := make([]netip.AddrPort, 5)
	for i := range ports {
		port, err := proc.FreePort()
		if err != nil {
			return nil, err
		}
		ports[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
	}
	s.tokenAddr, s.eventsAddr, s.secureAddr = ports[0], ports[1], ports[2]
	s.tokenAdmin, s.eventsAdmin = "http://"+ports[3].String(), "http://"+ports[4].String()

	s.tokenArgs = append([]string{"serve", "--listen-http=" + ports[0].String(), "--listen-admin=" + ports[3].String()}, more.token...)
	if more.dsn != "" {
		s.tokenArgs = append(s.tokenArgs, "--database-dsn="+more.dsn)
	} else {
		clients, err := clientsFile(dir, more.hashes)
		if err != nil {
			return nil, err
		}
		s.tokenArgs = append(s.tokenArgs, "--clients-file="+clients)
	}
	if more.profiles {
		s.tokenArgs = append(s.tokenArgs, "--profiles")
	}
	if _, err := s.startToken(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.eventsArgs = []string{"serve", "--listen-http=" + ports[1].String(),
		"--listen-admin=" + ports[4].String(), "--data-dir=" + s.dataDir(), "--issuer=http://" + ports[0].String()}
	if more.profiles {
		s.eventsArgs = append(s.eventsArgs, "--profiles")
	}
	if more.secure {
		s.eventsArgs = append(s.eventsArgs, "--listen-https="+ports[2].String(), "--tls-self-signed")
	}
	if _, err := s.startEvents(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if !more.secure {
		return s, nil
	}
	var err error
	if s.tls, err = trust(filepath.Join(s.dataDir(), "tls", "ca.crt")); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
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
func (s *services) command(name string, args []string) *exec.Cmd {
	binary := filepath.Join(s.bin, name)
	if s.cgroup == "" {
		return exec.Command(binary, args...)
	}
	const enter = `echo $$ > "$0/cgroup.procs" && exec "$@"`
	return exec.Command("/bin/sh", append([]string{"-c", enter, s.cgroup, binary}, args...)...)
}

// startToken starts tokensvc and returns the time until it was ready.
func (s *services) startToken(ctx context.Context) (time.Duration, error) {
	var err error
	if s.token, err = proc.Start(filepath.Join(s.dir, "tokensvc.log"), s.command("tokensvc", s.tokenArgs)); err != nil {
		return 0, err
	}
	return s.token.Ready(ctx, s.tokenAdmin+"/readyz", readyWithin)
}

// startEvents starts eventsvc and returns the time until it was ready.
func (s *services) startEvents(ctx context.Context) (time.Duration, error) {
	var err error
	if s.events, err = proc.Start(filepath.Join(s.dir, "eventsvc.log"), s.command("eventsvc", s.eventsArgs)); err != nil {
		return 0, err
	}
	return s.events.Ready(ctx, s.eventsAdmin+"/readyz", readyWithin)
}

func (s *services) stop() error {
	var errs []error
	for _, p := range []*proc.Process{s.events, s.token} {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	return errors.Join(errs...)
}

func (s *services) dataDir() string { return filepath.Join(s.dir, "data") }

// secretHashes are bcrypt hashes of the clients' secret, one for each client.
func secretHashes() (hashes []string, err error) {
	for range clientCount {
		hash, err := bcrypt.GenerateFromPassword([]byte(clientSecret), floor.BcryptCost)
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
		fmt.Fprintf(&text, "  - {client_id: %s, client_name: Bench, client_secret: '%s', scope: events}\n", clientID(i), hash)
	}
	path := filepath.Join(dir, "clients.yaml")
	return path, os.WriteFile(path, text.Bytes(), 0o600)
}

// fetchToken asks for a token as a client would. They live for five minutes,
// so every row begins with a new one.
func (s *services) fetchToken(ctx context.Context) (string, error) {
	return s.fetchTokenOf(ctx, clientID(0))
}

func (s *services) fetchTokenOf(ctx context.Context, client string) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {clientSecret}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.tokenAddr.String()+"/oauth2/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	err = fetch(req, &answer)
	return answer.AccessToken, err
}

// revision is the store's current revision.
func (s *services) revision(ctx context.Context, token, namespace string) (uint64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.eventsAddr.String()+resource+namespace+"/events?limit=1", nil)
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
