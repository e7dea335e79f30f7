// Package ctl has the commands that use an event server: get, query, tail, record, mirror, alerts and mcp. Each command
// reads its settings from flags and variables, opens a client, and prints what it finds. The requests are in package
// client, the copying of a cluster's events in package mirror.
//
// The files: each command has a file of its name. connect.go has the flags that name a server, filters.go those that
// choose events and terms.go the terms of a search; answer.go reads answers of /query/v1 and show.go makes tables of
// them; output.go prints events; complete.go completes flags. How to undelete: `eventsvc query --deleted -o json` says
// what was deleted, `eventsvc import` stores it again.
package ctl

import (
	"io"
	"net"
	"os"
)

// Commands has one field for each command.
type Commands struct {
	Get    get       `cmd:"" help:"List the events of a server."`
	Query  queryCmd  `cmd:"" help:"Ask what happened: search, counts, changes."`
	Tail   tail      `cmd:"" help:"Follow the events of a server as they happen, or wait for one."`
	Record record    `cmd:"" help:"Record an event on a server, or many."`
	Mirror mirrorCmd `cmd:"" help:"Copy the events of a Kubernetes cluster into a server, continuously."`
	Alerts alertsCmd `cmd:"" help:"Tell somebody: send alerts of events to Alertmanager."`
	MCP    mcpCmd    `cmd:"" name:"mcp" help:"Let a program that starts its tools as commands ask a server, by the Model Context Protocol."`
}

// IO is what a command reads from and writes to, besides the server.
type IO struct {
	In       io.Reader
	Out      io.Writer
	Err      *os.File       // messages, and progress on a terminal
	OnListen func(net.Addr) // called with the address of --listen-admin; may be nil
}
