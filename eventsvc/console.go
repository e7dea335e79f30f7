package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/console"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/session"
	"tidings.example/eventsvc/internal/signin"
	"tidings.example/eventsvc/internal/trust"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
)

// webPage is the console, and what tells it where people sign in.
type webPage struct {
	http.Handler // nil: there is none
	signIn       *signin.Finder
}

// console returns the web page. Tokens come from the issuer unless a setting names another
// place: with several issuers there is no right one.
func (s *serve) console(ctx context.Context, c *codec.Codec, trusted *trust.Trust, db engine, log *slog.Logger) (webPage, error) {
	if !s.Console {
		return webPage{}, nil
	}
	tokens := s.ConsoleTokenURL
	switch {
	case tokens == noTokenURL:
		tokens = ""
	case tokens == "" && s.IssuersFile == "" && bearer.IsURL(s.Issuer):
		tokens = strings.TrimSuffix(s.Issuer, "/") + "/oauth2/token"
	}
	page, err := console.New(console.Config{
		Version: service.Version(), EventsPath: "/apis/" + c.Group.GroupVersion(event.EventsV1).String(),
		Issuer: s.Issuer, TokenURL: tokens, Sessions: true,
	})
	if err != nil {
		return webPage{}, err
	}
	sessions, err := s.sessions(ctx, trusted, db, log)
	if err != nil {
		return webPage{}, err
	}
	mux := http.NewServeMux()
	mux.Handle(session.Path, sessions)
	mux.Handle("/", page)
	return webPage{mux, signin.New(signin.Config{Issuers: trusted.Issuers, ClockSkew: s.ClockSkew, Found: page.SetSignIn, Log: log})}, nil
}

// sessions returns what keeps people signed in. Replicas share what they know of sessions in the database.
func (s *serve) sessions(ctx context.Context, trusted *trust.Trust, db engine, log *slog.Logger) (http.Handler, error) {
	keeper, shared := db.(session.Keeper)
	if !shared {
		files, err := session.NewFiles(filepath.Join(s.DataDir, "console"))
		if err != nil {
			return nil, fmt.Errorf("--data-dir %s: the sessions of the console: %w", s.DataDir, err)
		}
		keeper = files
	}
	return session.New(ctx, session.Config{Keeper: keeper, Log: log, Verify: func(ctx context.Context, token string) error {
		_, err := trusted.Verify(ctx, token)
		return err
	}})
}

// run finds where people sign in until ctx ends.
func (p webPage) run(ctx context.Context) error {
	if p.signIn == nil {
		return nil
	}
	return p.signIn.Run(ctx)
}

// issuersChanged says that the issuers file has a new version.
func (p webPage) issuersChanged() {
	if p.signIn != nil {
		p.signIn.Recheck()
	}
}

// tellConsole has the console's address logged when the listener is open.
func (s *serve) tellConsole(log *slog.Logger, e httpserver.Endpoint) httpserver.Endpoint {
	if !s.Console {
		return e
	}
	scheme, listened := "http", e.OnListen
	if e.TLS != nil {
		scheme = "https"
	}
	e.OnListen = func(a net.Addr) {
		log.Info("console", "url", httpserver.URL(scheme, a)+console.Folder+"/")
		if listened != nil {
			listened(a)
		}
	}
	return e
}
