package cli

import (
	"encoding"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// hidden is printed instead of the value of a secret setting.
const hidden = "(hidden)"

// Settings returns the settings of the selected command as a config file, with the origin of each value. For a setting
// with the tag secret:"" it shows only whether it is set.
func Settings(kctx *Context) (string, error) {
	origins := map[*kong.Flag]string{}
	for _, path := range kctx.Path {
		switch {
		case path.Flag == nil:
		case path.Resolved:
			origins[path.Flag] = "file"
		default:
			origins[path.Flag] = "flag"
		}
	}
	var out strings.Builder
	for _, flag := range settingsOf(kctx) {
		value, err := inline(flag)
		if err != nil {
			return "", fmt.Errorf("--%s: %w", flag.Name, err)
		}
		line := flag.Name + ": " + value
		if flag.Name == configFileFlag {
			line = "# " + line // the one setting that the file cannot have
		}
		origin := origins[flag]
		if env := fromEnvironment(flag); origin == "" && env != "" {
			origin = "env " + env
		} else if origin == "" {
			origin = "default"
		}
		fmt.Fprintf(&out, "%-50s # %s\n", line, origin)
	}
	return out.String(), nil
}

// listSettings writes the settings of the selected command as a Markdown table with flag, variable, default and
// meaning.
func listSettings(kctx *kong.Context) error {
	var out strings.Builder
	out.WriteString("| flag | variable | default | |\n|---|---|---|---|\n")
	for _, flag := range settingsOf(kctx) {
		value := flag.Default
		if value == "" && flag.IsBool() {
			value = "false"
		}
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&out, "| `--%s` | `%s` | %s | %s |\n", flag.Name, strings.Join(flag.Envs, "`, `"), value, flag.Help)
	}
	_, err := io.WriteString(kctx.Stdout, out.String())
	return err
}

// Changed returns the settings of the selected command that differ from their defaults, as an attribute of a log line.
// Secrets are hidden as by config print.
func Changed(kctx *Context) (slog.Attr, error) {
	var changed []any
	for _, flag := range settingsOf(kctx) {
		usual := reflect.New(flag.Target.Type()).Elem()
		if flag.HasDefault {
			scan := kong.Scan().PushTyped(flag.Default, kong.FlagValueToken)
			if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, usual); err != nil {
				return slog.Attr{}, fmt.Errorf("default of --%s: %w", flag.Name, err)
			}
		}
		if reflect.DeepEqual(plain(usual), plain(flag.Target)) {
			continue
		}
		value, err := inline(flag)
		if err != nil {
			return slog.Attr{}, fmt.Errorf("--%s: %w", flag.Name, err)
		}
		changed = append(changed, slog.String(flag.Name, value))
	}
	return slog.Group("settings", changed...), nil
}

// settingsOf returns the flags of the selected command, after those of all commands.
func settingsOf(kctx *kong.Context) []*kong.Flag {
	var settings []*kong.Flag
	for _, group := range kctx.Selected().AllFlags(true) {
		for _, flag := range group {
			if len(flag.Envs) > 0 { // others, such as --help, are options of one call
				settings = append(settings, flag)
			}
		}
	}
	return settings
}

// inline returns a flag's value as YAML in one line.
func inline(flag *kong.Flag) (string, error) {
	if flag.Tag.Has("secret") && !flag.Target.IsZero() {
		return hidden, nil
	}
	value := plain(flag.Target)
	if text, ok := value.(string); ok {
		if u, err := url.Parse(text); err == nil && u.User != nil {
			value = u.Redacted() // the address of keys may have a password in it
		}
	}
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		return "", err
	}
	node.Style = yaml.FlowStyle
	text, err := yaml.Marshal(node)
	return strings.TrimSpace(string(text)), err
}

// plain returns a value as it is written on the command line or, of a slice, the values of its items.
func plain(value reflect.Value) any {
	if text, ok := value.Interface().(encoding.TextMarshaler); ok {
		written, err := text.MarshalText()
		if err == nil {
			return string(written)
		}
	}
	if value.Kind() != reflect.Slice {
		if text, ok := value.Interface().(fmt.Stringer); ok {
			return text.String()
		}
		return value.Interface()
	}
	items := make([]any, value.Len())
	for i := range items {
		items[i] = plain(value.Index(i))
	}
	return items
}
