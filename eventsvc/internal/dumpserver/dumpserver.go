// Package dumpserver shows the events of files to one person on this machine, for `eventsvc open`: the console, both
// APIs, Loki's API and kubectl, all of them only for reading.
//
// [Serve] makes one token, accepts no other, and writes what clients need beside the store: the token, a kubeconfig
// with a certificate authority of its own, and a page that leads a browser to the console. It removes them at its end.
package dumpserver

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
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/printable"
	"tidings.example/shared/safefile"
	"tidings.example/shared/service"
)

// Config is what is shown, and where.
type Config struct {
	ListenHTTP  string
	ListenHTTPS string // empty: not at all
	Browser     bool   // whether to open the console in the browser
	Dir         string // of the files beside the store
	Kept        bool   // whether Dir stays
	DB          Engine
	Codec       *codec.Codec
	Loaded      load.Result
	Out, Err    io.Writer
	OnListen    func(setting string, a net.Addr) // called for each listener; may be nil
	Log         *slog.Logger
}

// Engine is a store that serves by itself.
type Engine interface {
	admin.Engine
	Ready(context.Context) error
	Run(context.Context) error
}

// dump is what Serve shows.
type dump struct {
	Config
	token  string
	listen sync.WaitGroup // until the addresses are known
	http   net.Addr
	https  net.Addr
}

// The names of the files that clients need.
const (
	tokenFile  = "token"
	kubeconfig = "kubeconfig"
	pageFile   = "open.html"
	tlsDir     = "tls"
)

// Serve shows the events of a store until ctx ends.
func Serve(ctx context.Context, c Config) error {
	o := &dump{Config: c, token: rand.Text()}
	rights, err := policy.Parse([]byte("{}"), policy.Options{Default: issuer, Issuers: []string{issuer}})
	if err != nil {
		return err
	}
	from, to := o.span()
	page, err := console.New(console.Config{
		Version: service.Version(), EventsPath: "/apis/" + c.Codec.Group.GroupVersion(event.EventsV1).String(),
		Issuer: issuer, From: from, To: to,
	})
	if err != nil {
		return err
	}
	health := &service.Health{}
	health.Add("store", c.DB.Ready)
	const most = 4096 // requests and watches; the one person may have a quarter of them
	server, err := api.New(api.Config{
		Store: c.DB, Timeline: c.DB.Timeline(), Codec: c.Codec, Verify: o.verify, Policy: func() *policy.Policy { return rights },
		Withdrawn: func(context.Context, *bearer.Caller) bool { return false }, Console: page, Probe: health.Handler,
		Limits: api.LimitsOf(most, most), Fresh: c.DB.Fresh, Log: c.Log,
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
		HTTP:   httpserver.Config{Name: "eventsvc", Log: c.Log, Endpoints: endpoints},
		Health: health, Tasks: []func(context.Context) error{c.DB.Run, server.Run, o.tell}, Drain: server.Drain,
	})
}

// issuer names who made the token of an opened dump.
const issuer = "eventsvc open"

// verify accepts the one token, which may only read.
func (o *dump) verify(_ context.Context, token string) (*bearer.Caller, error) {
	if subtle.ConstantTimeCompare([]byte(token), []byte(o.token)) != 1 {
		return nil, &bearer.Error{Reason: "it is not the token that eventsvc open has printed", Status: http.StatusUnauthorized, Code: "invalid_token"}
	}
	now := time.Now()
	return &bearer.Caller{
		Issuer: issuer, Subject: issuer, ClientID: "open", Scopes: []string{policy.RoleRead}, IssuedAt: now, Expires: now.Add(365 * 24 * time.Hour),
	}, nil
}

// endpoints returns the listeners.
func (o *dump) endpoints(server *api.Server) ([]httpserver.Endpoint, error) {
	listened := func(setting string, to *net.Addr) func(net.Addr) {
		o.listen.Add(1)
		return func(a net.Addr) {
			*to = a
			if o.OnListen != nil {
				o.OnListen(setting, a)
			}
			o.listen.Done()
		}
	}
	all := []httpserver.Endpoint{{Setting: "--listen-http", Addr: o.ListenHTTP, Handler: server, Streaming: true, OnListen: listened("--listen-http", &o.http)}}
	if o.ListenHTTPS == "" {
		return all, nil
	}
	tls, err := localca.TLSConfig(filepath.Join(o.Dir, tlsDir), []string{"localhost", "127.0.0.1", "::1"}, time.Now())
	if err != nil {
		return nil, err
	}
	return append(all, httpserver.Endpoint{
		Setting: "--listen-https", Addr: o.ListenHTTPS, Handler: server, Streaming: true, TLS: tls, OnListen: listened("--listen-https", &o.https),
	}), nil
}

// span is the range of time in which the events were observed, in whole minutes, as the console has it.
func (o *dump) span() (from, to string) {
	const minute = time.Minute
	return o.Loaded.From.UTC().Truncate(minute).Format(time.RFC3339), o.Loaded.To.UTC().Truncate(minute).Add(minute).Format(time.RFC3339)
}

// tell prints where the events are to be seen, once the listeners are open.
func (o *dump) tell(ctx context.Context) error {
	o.listen.Wait()
	if err := o.writeFiles(); err != nil {
		return err
	}
	text := fmt.Sprintf("%d events, from %s to %s\n\n", o.Loaded.Events, o.Loaded.From.UTC().Format(time.DateTime), o.Loaded.To.UTC().Format(time.DateTime+" MST")) +
		fmt.Sprintf("  Console   %s\n", o.consoleURL())
	if o.https != nil {
		text += fmt.Sprintf("  kubectl   kubectl --kubeconfig %s get events -A\n", filepath.Join(o.Dir, kubeconfig))
	}
	text += fmt.Sprintf("  eventsvc  eventsvc get -A --server %s --token-file %s\n", httpserver.URL("http", o.http), filepath.Join(o.Dir, tokenFile)) +
		fmt.Sprintf("  Loki      %s, with the token %s\n\n", httpserver.URL("http", o.http), o.token)
	if !o.Kept {
		text += "Ctrl-C ends this, and leaves nothing.\n"
	} else {
		text += fmt.Sprintf("Ctrl-C ends this. The events stay in %s.\n", o.Dir)
	}
	if _, err := io.WriteString(o.Out, printable.Lines(text)); err != nil {
		return err
	}
	if o.Browser {
		if err := browse(ctx, filepath.Join(o.Dir, pageFile)); err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintf(o.Err, "eventsvc: --browser: %s: open the address of the console yourself\n", printable.OneLine(err.Error()))
		}
	}
	<-ctx.Done()
	return nil
}

// consoleURL has the token in the fragment, which is sent to nobody.
func (o *dump) consoleURL() string {
	return httpserver.URL("http", o.http) + console.Folder + "/#/?token=" + url.QueryEscape(o.token)
}

// writeFiles writes what clients need: the token, a kubeconfig, and a page that leads to the console, because the
// command line of a browser can be seen by other users.
func (o *dump) writeFiles() error {
	files := map[string][]byte{
		tokenFile: []byte(o.token),
		pageFile:  []byte(fmt.Sprintf(`<!doctype html><meta http-equiv="refresh" content="0; url=%s">`, html.EscapeString(o.consoleURL()))),
	}
	if o.https != nil {
		ca, err := os.ReadFile(filepath.Join(o.Dir, tlsDir, "ca.crt"))
		if err != nil {
			return err
		}
		if files[kubeconfig], err = json.MarshalIndent(map[string]any{
			"apiVersion": "v1", "kind": "Config", "current-context": "dump",
			"clusters": []any{map[string]any{"name": "dump", "cluster": map[string]any{"server": httpserver.URL("https", o.https), "certificate-authority-data": ca}}},
			"users":    []any{map[string]any{"name": "dump", "user": map[string]any{"token": o.token}}},
			"contexts": []any{map[string]any{"name": "dump", "context": map[string]any{"cluster": "dump", "user": "dump"}}},
		}, "", "  "); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := safefile.Write(filepath.Join(o.Dir, name), content); err != nil {
			return err
		}
	}
	return nil
}

// removeFiles removes what no later run needs. If nothing is kept, everything goes anyway.
func (o *dump) removeFiles() {
	for _, name := range []string{tokenFile, kubeconfig, pageFile, tlsDir} {
		_ = os.RemoveAll(filepath.Join(o.Dir, name))
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
