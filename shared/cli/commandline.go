package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Context is a parsed command line. The method Run of a command may have a parameter of this type.
type Context = kong.Context

// ErrHelp is returned by [Parse] after it has printed help, the version or completion candidates. The program should
// exit with success.
var ErrHelp = errors.New("help was printed")

// UsageError is a mistake in the settings: an unknown flag, a value that cannot be used, two settings that contradict
// each other, or a setting that names a file which is missing or wrong. Its exit code is 2, so that a supervisor can
// distinguish it from a failure while running.
type UsageError struct{ Err error }

// Error returns the text of the mistake, which names the setting and says how to correct it.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a [UsageError].
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// ExitCode returns the exit code for err: 0 for nil and for [ErrHelp], 2 for a [UsageError], 1 for any other error.
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

// Parse fills cli, a pointer to a struct with kong tags, from args, from environment variables and from a YAML file.
//
// A flag has the variable PREFIX_FLAG_NAME unless it names another one, and its name is its key in the file that
// --config-file names. A flag with the tag env:"-" has neither and is no setting. Help goes to stdout and usage errors
// to stderr.
func Parse(name, prefix, description string, cli any, args []string, stdout, stderr io.Writer) (*Context, error) {
	printed := false
	var file configFile
	var help helpTopics
	parser, err := kong.New(cli, kong.Embed(&file), kong.WithBeforeResolve(file.load),
		kong.Name(name), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { printed = true }),
		kong.PostBuild(nameVariables(prefix)), kong.PostBuild(nameProgram(name)), kong.ValueFormatter(explain),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.Help(help.print), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 120}),
	)
	if err != nil {
		return nil, fmt.Errorf("settings of %s: %w", name, err)
	}
	if len(args) > 0 && args[0] == completeArg {
		_, err := fmt.Fprintln(stdout, strings.Join(complete(parser, args[1:]), "\n"))
		return nil, errors.Join(ErrHelp, err)
	}
	kctx, err := parser.Parse(help.take(parser.Model.Node, args))
	if printed {
		return nil, ErrHelp
	}
	if err == nil {
		err = unknownVariable(parser.Model.Node, prefix, os.Environ())
	}
	if err != nil {
		root := parser.Model.Node
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") && child(root, args[0]) == nil {
			err = unknownCommand(root, args[0])
		}
		_, _ = fmt.Fprintf(stderr, "%s: %v\nRun \"%s --help\" for all settings.\n", name, err, selected(root, err).FullPath())
		return nil, &UsageError{Err: err}
	}
	return kctx, nil
}

// selected returns the command that was being parsed when a mistake was found.
func selected(root *kong.Node, err error) *kong.Node {
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil && parse.Context.Selected() != nil {
		return parse.Context.Selected()
	}
	return root
}

// nameVariables sets the environment variable of each flag. The option of kong would split names at digits (HTTP_2).
func nameVariables(prefix string) func(*kong.Kong) error {
	return func(k *kong.Kong) error {
		for _, flag := range allFlags(k.Model.Node) {
			switch {
			case slices.Equal(flag.Envs, []string{"-"}): // an option of one call, and no setting
				flag.Envs, flag.Tag.Envs = nil, nil
			case len(flag.Envs) == 0 && flag.Name != "help":
				flag.Envs = []string{Variable(prefix, flag.Name)}
				flag.Tag.Envs = flag.Envs
			}
		}
		return nil
	}
}

// nameProgram replaces PROGRAM in the longer help of commands by the program's name.
func nameProgram(name string) func(*kong.Kong) error {
	return func(k *kong.Kong) error {
		for _, command := range k.Model.Children {
			command.Detail = strings.ReplaceAll(command.Detail, "PROGRAM", name)
		}
		return nil
	}
}

// explain returns the help of a flag with its default and its variable. kong shows no default beside a placeholder.
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

// Secret returns the value of a secret setting, which is given directly or as the name of a file (--flag-file or its
// variable). Giving both is an error. White space around the content of the file is removed, because editors and shells
// end files with a line feed.
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
