package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"tidings.example/shared/nearest"
)

// Variable returns the environment variable of a flag: listen-http becomes PREFIX_LISTEN_HTTP.
func Variable(prefix, flag string) string {
	return prefix + "_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func allFlags(node *kong.Node) []*kong.Flag {
	flags := slices.Clone(node.Flags)
	for _, child := range node.Children {
		flags = append(flags, allFlags(child)...)
	}
	return flags
}

// unknownVariable returns an error for a variable with the prefix that belongs to no flag. It ignores variables that
// Kubernetes and Docker set for a service of that name (EVENTSVC_SERVICE_HOST, EVENTSVC_PORT_8080_TCP, …).
func unknownVariable(root *kong.Node, prefix string, environ []string) error {
	known := map[string]bool{} // without the prefix, which would make all names similar
	for _, flag := range allFlags(root) {
		for _, env := range flag.Envs {
			if rest, ours := strings.CutPrefix(env, prefix+"_"); ours {
				known[rest] = true
			}
		}
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, prefix+"_")
		if !ours || known[rest] || rest == "PORT" || strings.HasPrefix(rest, "PORT_") ||
			rest == "SERVICE_HOST" || strings.HasPrefix(rest, "SERVICE_PORT") {
			continue
		}
		if near := nearest.Name(rest, maps.Keys(known)); near != "" {
			return fmt.Errorf("unknown environment variable %s, did you mean %s_%s?", name, prefix, near)
		}
		return fmt.Errorf("unknown environment variable %s: unset it", name)
	}
	return nil
}

// unknownCommand returns the error for a first word that is no command.
func unknownCommand(root *kong.Node, word string) error {
	known := commandNames(root)
	if near := nearest.Name(word, slices.Values(known)); near != "" {
		return fmt.Errorf("unknown command %q, did you mean %s?", word, near)
	}
	return fmt.Errorf("unknown command %q: there are %s", word, strings.Join(known, ", "))
}
