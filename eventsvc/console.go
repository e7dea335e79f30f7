package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/console"
	"tidings.example/eventsvc/internal/event"
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
func (s *serve) console(c *codec.Codec, trusted *trust.Trust, log *slog.Logger) (webPage, error) {
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
		Issuer: s.Issuer, TokenURL: tokens,
	})
	if err != nil {
		return webPage{}, err
	}
	return webPage{page, signin.New(signin.Config{Issuers: trusted.Issuers, ClockSkew: s.ClockSkew, Found: page.SetSignIn, Log: log})}, nil
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

// tellConsole has the console's address logged when the listener is open. A listener of
// all addresses, as in a container, is reached at localhost.
func (s *serve) tellConsole(log *slog.Logger, e httpserver.Endpoint) httpserver.Endpoint {
	if !s.Console {
		return e
	}
	scheme, listened := "http", e.OnListen
	if e.TLS != nil {
		scheme = "https"
	}
	e.OnListen = func(a net.Addr) {
		host, port, _ := net.SplitHostPort(a.String())
		if ip := net.ParseIP(host); ip.IsUnspecified() {
			host = "localhost"
		}
		log.Info("console", "url", scheme+"://"+net.JoinHostPort(host, port)+console.Folder+"/")
		if listened != nil {
			listened(a)
		}
	}
	return e
}
