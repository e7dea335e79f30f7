package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"tidings.example/shared/nearest"
)

// The texts of kong's parser for frequent mistakes. TestParseMistakes fails if they change.
var (
	noValue     = regexp.MustCompile(`^(--?[a-zA-Z0-9-]+): (?:expected .+ value but got "(EOL|-.*?)" \(.*|missing value, .*)$`)
	noNumber    = regexp.MustCompile(`expected a valid [0-9]+ bit u?int but got "([^"]*)"( \(.*)?$`)
	noArgument  = regexp.MustCompile(`^expected "<(.+)>`)
	noCommand   = regexp.MustCompile(`^expected one of (".*")$`)
	notExpected = regexp.MustCompile(`^unexpected argument (\S+?)(?:,.*)?$`)
)

// readable returns an error that says how to correct a mistake on the command line, and the command that prints help for it.
func readable(err error, root *kong.Node, args []string) (readable error, help string) {
	node := root
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		if selected := parse.Context.Selected(); selected != nil {
			node = selected
		}
	}
	help, text := node.FullPath()+" --help", err.Error()
	if m := noValue.FindStringSubmatch(text); m != nil {
		return missingValue(findFlag(node, m[1]), m[1], m[2]), help
	}
	if m := noArgument.FindStringSubmatch(text); m != nil {
		return missingArgument(node, m[1]), help
	}
	if m := noCommand.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("a command is missing behind %q: one of %s", node.FullPath(), strings.ReplaceAll(m[1], `"`, "")), help
	}
	if m := notExpected.FindStringSubmatch(text); m != nil && len(args) > 0 && args[0] == m[1] {
		return unknownCommand(root, m[1]), root.FullPath() + " --help"
	}
	changed := noNumber.ReplaceAllString(text, `"$1" is no whole number$2`)
	if changed == text {
		return err, help
	}
	return errors.New(changed), help
}

// missingValue is the error of a flag without a value: the last word, or followed by another flag.
func missingValue(flag *kong.Flag, name, next string) error {
	example := "VALUE"
	if flag != nil {
		name = "--" + flag.Name
		switch {
		case flag.Enum != "":
			example = slices.DeleteFunc(strings.Split(flag.Enum, ","), func(s string) bool { return s == "" })[0]
		case flag.Default != "":
			example = flag.Default
		default:
			example = flag.FormatPlaceHolder()
		}
	}
	if next != "EOL" && next != "" {
		return fmt.Errorf("%s has no value, %s follows: write %s=%s", name, next, name, example)
	}
	return fmt.Errorf("%s has no value: write %s=%s", name, name, example)
}

func missingArgument(node *kong.Node, name string) error {
	for _, arg := range node.Positional {
		if arg.Name == name {
			return fmt.Errorf("<%s> is missing: %s", name, arg.Help)
		}
	}
	return fmt.Errorf("<%s> is missing", name)
}

func unknownCommand(root *kong.Node, word string) error {
	known := commandNames(root)
	if near := nearest.Name(word, slices.Values(known)); near != "" {
		return fmt.Errorf("unknown command %q, did you mean %s?", word, near)
	}
	return fmt.Errorf("unknown command %q: there are %s", word, strings.Join(known, ", "))
}
