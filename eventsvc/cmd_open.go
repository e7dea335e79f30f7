package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/console"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/load"
	"tidings.example/eventsvc/internal/localca"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/bearer"
	"tidings.example/shared/cli"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/printable"
	"tidings.example/shared/safefile"
	"tidings.example/shared/service"
)

// openC shows the events of files.
type openC struct {
	File        []string `arg:"" help:"Files and folders that have events in any form; - is standard input."`
	ListenHTTP  string   `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Serve the console and the API here; port 0 is any free one."`
	ListenHTTPS string   `env:"-" default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Serve kubectl here, which sends no token over plain HTTP; empty: not at all."`
	Browser     bool     `env:"-" help:"Open the console in the browser."`
	Keep        string   `env:"-" placeholder:"DIR" help:"Keep the events in this directory, to be opened or served again. Default: nothing is left."`
	reading
}

// Help is the rest of the command's help.
func (*openC) Help() string {
	return `Examples:

    eventsvc open events.json --browser
    eventsvc open must-gather.tar.gz
    kubectl get events -A -o json | eventsvc open -
    docker run --rm -i -p 127.0.0.1:8080:8080 tidings/eventsvc open - --listen-https= < events.json

Reads the files as import does, into a store that is removed at the end, and shows it on this machine: the console, both APIs,
Loki's API and kubectl, all of them only for reading. It prints the addresses, and ends with Ctrl-C. Nothing expires.

Exit codes: 0 after a signal, 1 failed, 2 wrong settings, 3 there are no events in the files, or --strict refuses one,
4 a file of its store could not be written.`
}

// opened is what open shows, and where.
type opened struct {
	*openC
	std    stdio
	dir    string // of the store and the files beside it
	token  string
	sum    load.Result
	listen sync.WaitGroup // until the addresses are known
	http   net.Addr
	https  net.Addr
}

// The names of the files that clients of an opened dump need.
const (
	openTokenFile  = "token"
	openKubeconfig = "kubeconfig"
	openPage       = "open.html"
	openTLS        = "tls"
)

// Run reads the files, and serves their events until ctx ends.
func (o *openC) Run(ctx context.Context, std stdio) (err error) {
	if o.ListenHTTP == "" {
		return cli.Usagef("--listen-http is empty: set an address, such as 127.0.0.1:0")
	}
	formats, err := codec.New("k8s.io")
	if err != nil {
		return err
	}
	options, done, err := o.options(std, "open", formats)
	if err != nil {
		return err
	}
	defer done()
	run := &opened{openC: o, std: std, dir: o.Keep, token: rand.Text()}
	if run.dir == "" {
		if run.dir, err = os.MkdirTemp("", "eventsvc-open-"); err != nil {
			return fmt.Errorf("%w: set TMPDIR to a directory that this user may write to, or name one with --keep", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(run.dir)) }()
	} else if err := safefile.MkdirAll(run.dir); err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	log, err := service.Logger(std.err, "auto", "warn")
	if err != nil {
		return err
	}
	db, err := bolt.Open(bolt.Options{Dir: filepath.Join(run.dir, "store"), MaxBytes: -1, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	run.sum, err = load.Files(ctx, admin.Local{DB: db, Codec: formats}, o.File, options)
	done()
	for _, text := range run.sum.Messages {
		_, _ = fmt.Fprintln(std.err, printable.OneLine(text))
	}
	switch {
	case ctx.Err() != nil:
		return nil // by Ctrl-C
	case errors.Is(err, store.ErrFull):
		return fmt.Errorf("%w: free some room, or name a directory that has more with TMPDIR or --keep", err)
	case err != nil:
		return err
	case run.sum.Events == 0:
		return errFindings
	}
	return run.serve(ctx, db, formats, log)
}

// serve shows the events of a store.
func (o *opened) serve(ctx context.Context, db *bolt.DB, formats *codec.Codec, log *slog.Logger) error {
	rights, err := policy.Parse([]byte("{}"), policy.Options{Default: openIssuer, Issuers: []string{openIssuer}})
	if err != nil {
		return err
	}
	from, to := o.span()
	page, err := console.New(console.Config{
		Version: service.Version(), EventsPath: "/apis/" + formats.Group.GroupVersion(event.EventsV1).String(),
		Issuer: openIssuer, From: from, To: to,
	})
	if err != nil {
		return err
	}
	health := &service.Health{}
	health.Add("store", db.Ready)
	const most = 1024 // requests and watches, all of them of one person
	server, err := api.New(api.Config{
		Store: db, Timeline: db.Timeline(), Codec: formats, Verify: o.verify, Policy: func() *policy.Policy { return rights },
		Withdrawn: func(context.Context, *bearer.Caller) bool { return false }, Console: page, Probe: health.Handler,
		Limits: api.Limits{
			MaxWatches: most, MaxClientWatches: most, MaxRequests: most, MaxClientRequests: most, MaxBody: maxBody, MaxQuery: maxQuery, MaxSelectorTerms: maxSelectorTerms,
		},
		Fresh: db.Fresh, Log: log,
	})
	if err != nil {
		return err
	}
	endpoints, err := o.endpoints(server)
	if err != nil {
		return err
	}
	defer o.removeFiles()
	return service.Run(ctx, service.Config{
		HTTP:   httpserver.Config{Name: "eventsvc", Log: log, Endpoints: endpoints},
		Health: health, Tasks: []func(context.Context) error{db.Run, server.Run, o.tell}, Drain: server.Drain,
	})
}

// openIssuer names who made the token of an opened dump.
const openIssuer = "eventsvc open"

// verify accepts the one token, which may only read.
func (o *opened) verify(_ context.Context, token string) (*bearer.Caller, error) {
	if subtle.ConstantTimeCompare([]byte(token), []byte(o.token)) != 1 {
		return nil, &bearer.Error{Reason: "it is not the token that eventsvc open has printed", Status: http.StatusUnauthorized, Code: "invalid_token"}
	}
	now := time.Now()
	return &bearer.Caller{
		Issuer: openIssuer, Subject: openIssuer, ClientID: "open", Scopes: []string{policy.RoleRead}, IssuedAt: now, Expires: now.Add(365 * 24 * time.Hour),
	}, nil
}

// endpoints returns the listeners.
func (o *opened) endpoints(server *api.Server) ([]httpserver.Endpoint, error) {
	listened := func(setting string, to *net.Addr) func(net.Addr) {
		o.listen.Add(1)
		return func(a net.Addr) {
			*to = a
			if o.std.listened != nil {
				o.std.listened(setting, a)
			}
			o.listen.Done()
		}
	}
	all := []httpserver.Endpoint{{Setting: "--listen-http", Addr: o.ListenHTTP, Handler: server, Streaming: true, OnListen: listened("--listen-http", &o.http)}}
	if o.ListenHTTPS == "" {
		return all, nil
	}
	tls, err := localca.TLSConfig(filepath.Join(o.dir, openTLS), []string{"localhost", "127.0.0.1", "::1"}, time.Now())
	if err != nil {
		return nil, err
	}
	return append(all, httpserver.Endpoint{
		Setting: "--listen-https", Addr: o.ListenHTTPS, Handler: server, Streaming: true, TLS: tls, OnListen: listened("--listen-https", &o.https),
	}), nil
}

// span is the range of time in which the events were observed, in whole minutes, as the console has it.
func (o *opened) span() (from, to string) {
	const minute = time.Minute
	return o.sum.From.UTC().Truncate(minute).Format(time.RFC3339), o.sum.To.UTC().Truncate(minute).Add(minute).Format(time.RFC3339)
}

// tell prints where the events are to be seen, once the listeners are open.
func (o *opened) tell(ctx context.Context) error {
	o.listen.Wait()
	if err := o.writeFiles(); err != nil {
		return err
	}
	text := fmt.Sprintf("%d events, from %s to %s\n\n", o.sum.Events, o.sum.From.UTC().Format(time.DateTime), o.sum.To.UTC().Format(time.DateTime+" MST")) +
		fmt.Sprintf("  Console   %s\n", o.consoleURL())
	if o.https != nil {
		text += fmt.Sprintf("  kubectl   kubectl --kubeconfig %s get events -A\n", filepath.Join(o.dir, openKubeconfig))
	}
	text += fmt.Sprintf("  eventsvc  eventsvc get -A --server %s --token-file %s\n", address("http", o.http), filepath.Join(o.dir, openTokenFile)) +
		fmt.Sprintf("  Loki      %s, with the token %s\n\n", address("http", o.http), o.token)
	if o.Keep == "" {
		text += "Ctrl-C ends this, and leaves nothing.\n"
	} else {
		text += fmt.Sprintf("Ctrl-C ends this. The events stay in %s.\n", o.Keep)
	}
	if _, err := io.WriteString(o.std.out, printable.Lines(text)); err != nil {
		return err
	}
	if o.Browser {
		if err := browse(ctx, filepath.Join(o.dir, openPage)); err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintf(o.std.err, "eventsvc: --browser: %s: open the address of the console yourself\n", printable.OneLine(err.Error()))
		}
	}
	<-ctx.Done()
	return nil
}

// consoleURL has the token in the fragment, which is sent to nobody.
func (o *opened) consoleURL() string {
	return address("http", o.http) + console.Folder + "/#/?token=" + url.QueryEscape(o.token)
}

// address is the URL of a listener. One of all addresses, as in a container, is reached at localhost.
func address(scheme string, a net.Addr) string {
	host, port, _ := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// writeFiles writes what clients need: the token, a kubeconfig, and a page that leads to the console, because the
// command line of a browser can be seen by other users.
func (o *opened) writeFiles() error {
	files := map[string][]byte{
		openTokenFile: []byte(o.token),
		openPage:      []byte(fmt.Sprintf(`<!doctype html><meta http-equiv="refresh" content="0; url=%s">`, html.EscapeString(o.consoleURL()))),
	}
	if o.https != nil {
		ca, err := os.ReadFile(filepath.Join(o.dir, openTLS, "ca.crt"))
		if err != nil {
			return err
		}
		if files[openKubeconfig], err = json.MarshalIndent(map[string]any{
			"apiVersion": "v1", "kind": "Config", "current-context": "dump",
			"clusters": []any{map[string]any{"name": "dump", "cluster": map[string]any{"server": address("https", o.https), "certificate-authority-data": ca}}},
			"users":    []any{map[string]any{"name": "dump", "user": map[string]any{"token": o.token}}},
			"contexts": []any{map[string]any{"name": "dump", "context": map[string]any{"cluster": "dump", "user": "dump"}}},
		}, "", "  "); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := safefile.Write(filepath.Join(o.dir, name), content); err != nil {
			return err
		}
	}
	return nil
}

// removeFiles removes what no later run needs. If nothing is kept, everything goes anyway.
func (o *opened) removeFiles() {
	for _, name := range []string{openTokenFile, openKubeconfig, openPage, openTLS} {
		_ = os.RemoveAll(filepath.Join(o.dir, name))
	}
}

// browse opens a file in the browser of the desktop.
func browse(ctx context.Context, file string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	start := exec.CommandContext(ctx, program, file)
	start.WaitDelay = time.Second // the browser that it has started may keep its output open
	out, err := start.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
