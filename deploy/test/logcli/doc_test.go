// Package logcli_test runs Loki's own command line client against a running eventsvc.
//
// It has a module of its own, because Loki has hundreds of dependencies and needs
// replacements that no other test must have. The first build takes about six minutes of one
// core, three of two.
package logcli_test
