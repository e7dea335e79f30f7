package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// ErrHelp is returned by [Parse] when help or a version was asked for and has been printed: nothing is left to do, and
// it is no failure.
var ErrHelp = errors.New("help was printed")

// UsageError is a mistake in the settings: an unknown flag, a value that cannot be used, two settings that contradict
// each other. [ExitCode] makes it 2, so that supervisors can tell a wrong command line from a failure while running.
type UsageError struct{ Err error }

// Error is the text of the mistake, which names the setting and says how to mend it.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the wrapped error.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a [UsageError].
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// ExitCode is the process's exit code for err: 0 for success and for printed help, 2 for a [UsageError], 1 for the rest.
func ExitCode(err error) int {
	var usage *UsageError
	switch {
	case err == nil, errors.Is(err, ErrHelp):
		return 0
	case errors.As(err, &usage):
		return 2
	default:
		return 1
	}
}

// Parse fills cli, a pointer to a struct with kong tags, from args, from environment variables and from a YAML file. That
// struct is the one table of settings: every flag that names no variable of its own gets PREFIX_FLAG_NAME (with the tag
// env:"-" it gets none and is no setting), its name is also its key in the file that --config-file names, and help lists all
// of it. A flag on the command line goes before the environment, the environment before the file, the file before the default. A variable that starts with PREFIX_ and a key
// of the file that belong to no flag are errors: a misspelt setting must not be silently without effect.
//
// Parse prints help to stdout and usage errors to stderr itself; the caller only exits with [ExitCode] of the error.
func Parse(name, prefix, description string, cli any, args []string, stdout, stderr io.Writer) (*kong.Context, error) {
	printed := false
	var file configFile
	parser, err := kong.New(cli, kong.Embed(&file), kong.WithBeforeResolve(file.load),
		kong.Name(name), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { printed = true }),
		kong.PostBuild(nameVariables(prefix)), kong.PostBuild(nameProgram(name)), kong.ValueFormatter(explain),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 120}),
	)
	if err != nil {
		return nil, fmt.Errorf("settings of %s: %w", name, err)
	}
	if len(args) > 0 && args[0] == completeArg {
		_, err := fmt.Fprintln(stdout, strings.Join(complete(parser.Model.Node, args[1:]), "\n"))
		return nil, errors.Join(ErrHelp, err)
	}
	kctx, err := parser.Parse(args)
	if printed {
		return nil, ErrHelp
	}
	if err == nil {
		err = unknownVariable(parser.Model.Node, prefix, os.Environ())
	}
	if err != nil {
		said, help := readable(err, parser.Model.Node, args)
		_, _ = fmt.Fprintf(stderr, "%s: %v\nRun \"%s\" for all settings.\n", name, said, help)
		return nil, &UsageError{Err: err}
	}
	return kctx, nil
}

// nameVariables gives each flag its environment variable. kong's own option would split names at digits (HTTP_2).
func nameVariables(prefix string) func(*kong.Kong) error {
	return func(k *kong.Kong) error {
		for _, flag := range allFlags(k.Model.Node) {
			switch {
			case slices.Equal(flag.Envs, []string{"-"}): // what a command is about, which is no setting
				flag.Envs, flag.Tag.Envs = nil, nil
			case len(flag.Envs) == 0 && flag.Name != "help":
				flag.Envs = []string{Variable(prefix, flag.Name)}
				flag.Tag.Envs = flag.Envs
			}
		}
		return nil
	}
}

// nameProgram puts the program's name into the longer help of commands.
func nameProgram(name string) func(*kong.Kong) error {
	return func(k *kong.Kong) error {
		for _, command := range k.Model.Children {
			command.Detail = strings.ReplaceAll(command.Detail, "PROGRAM", name)
		}
		return nil
	}
}

// explain is the help of a flag with its default and its variable. kong shows a default only where no placeholder hides it.
func explain(v *kong.Value) string {
	var details []string
	if v.HasDefault && v.Default != "" && v.Tag.PlaceHolder != "" {
		details = append(details, "default "+v.Default)
	}
	for _, env := range v.Tag.Envs {
		details = append(details, "$"+env)
	}
	if len(details) == 0 {
		return v.Help
	}
	return fmt.Sprintf("%s (%s).", strings.TrimSuffix(v.Help, "."), strings.Join(details, ", "))
}

// Secret is the value of a secret setting that may be given directly or as the name of a file that holds it (--flag-file
// or its variable). Both at once are refused, because nobody can tell which is meant. White space around a file's content
// is cut: editors and shells end files with a line feed.
func Secret(flag, value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	if value != "" {
		return "", Usagef("--%s and --%s-file are both set: set only one of them", flag, flag)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", Usagef("--%s-file: %w: name a readable file", flag, err)
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", Usagef("--%s-file: %s is empty: write the value into it", flag, file)
	}
	return secret, nil
}
