package main

import (
	"log/slog"
	"net"
	"net/http"
	"strings"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/console"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
)

// console returns the handler of the web page, or nil if it is not served. Tokens come from
// the issuer unless a setting names another place: with several issuers there is no right one.
func (s *serve) console(c *codec.Codec) (http.Handler, error) {
	if !s.Console {
		return nil, nil
	}
	tokens := s.ConsoleTokenURL
	switch {
	case tokens == noTokenURL:
		tokens = ""
	case tokens == "" && s.IssuersFile == "" && bearer.IsURL(s.Issuer):
		tokens = strings.TrimSuffix(s.Issuer, "/") + "/oauth2/token"
	}
	return console.New(console.Config{
		Version: service.Version(), EventsPath: "/apis/" + c.Group.GroupVersion(event.EventsV1).String(),
		Issuer: s.Issuer, TokenURL: tokens,
	})
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
