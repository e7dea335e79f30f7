package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// helpTopics prints the help of commands whose flags have the tag group:"NAME". "--help" alone shows the examples and
// the names of the flags of each group, "--help GROUP" explains the flags of one, and "--help all" those of all.
type helpTopics struct{ topic string }

// take removes the word behind --help or -h, which is a group unless a command has that name, and returns the other
// words.
func (h *helpTopics) take(root *kong.Node, args []string) []string {
	i := slices.IndexFunc(args, func(arg string) bool { return arg == "-h" || arg == "--help" })
	if i < 0 || i != len(args)-2 || strings.HasPrefix(args[i+1], "-") || isCommand(root, args[i+1]) {
		return args
	}
	h.topic = args[i+1]
	return args[:i+1]
}

func isCommand(node *kong.Node, name string) bool {
	return slices.ContainsFunc(node.Children, func(n *kong.Node) bool { return n.Name == name || isCommand(n, name) })
}

// print is a [kong.HelpPrinter].
func (h *helpTopics) print(options kong.HelpOptions, ctx *kong.Context) error {
	command := ctx.Selected()
	groups := groupsOf(command)
	if len(groups) == 0 {
		if h.topic != "" {
			return fmt.Errorf("there is no help about %q", h.topic)
		}
		return kong.DefaultHelpPrinter(options, ctx)
	}
	if h.topic == "all" {
		return kong.DefaultHelpPrinter(options, ctx)
	}
	if h.topic != "" {
		if !slices.Contains(groups, h.topic) {
			return fmt.Errorf("there is no group %q of settings: choose one of %s, or all", h.topic, strings.Join(groups, ", "))
		}
		command.Detail = "" // the examples are of all groups
	}
	for _, flag := range allFlags(ctx.Model.Node) {
		flag.Hidden = flag.Hidden || groupOf(flag) != h.topic // those of no group are on the first page
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || h.topic != "" {
		return err
	}
	_, err := fmt.Fprintf(ctx.Stdout, "\nSettings, in groups. \"%s --help GROUP\" explains the settings of a group, \"--help all\" all settings:\n\n%s",
		command.FullPath(), overview(command, groups))
	return err
}

// groupsOf returns the groups of a command's flags in their order. A nil command has none.
func groupsOf(command *kong.Node) (groups []string) {
	if command == nil {
		return nil
	}
	for _, flag := range command.Flags {
		if group := groupOf(flag); group != "" && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

func groupOf(flag *kong.Flag) string {
	if flag.Group == nil {
		return ""
	}
	return flag.Group.Key
}

// overview lists the flags of each group, in lines of at most 80 columns.
func overview(command *kong.Node, groups []string) string {
	const (
		indent = 14
		width  = 80
	)
	var out strings.Builder
	for _, group := range groups {
		fmt.Fprintf(&out, "  %-*s", indent-3, group)
		column := indent - 1
		for _, flag := range command.Flags {
			if groupOf(flag) != group {
				continue
			}
			if column+len(" --")+len(flag.Name) > width {
				out.WriteString("\n" + strings.Repeat(" ", indent-1))
				column = indent - 1
			}
			column += len(" --") + len(flag.Name)
			out.WriteString(" --" + flag.Name)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
