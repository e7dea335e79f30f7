package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"tidings.example/shared/nearest"
)

// configFile is the setting that names the file with the other settings; [Parse] adds it to every command.
type configFile struct {
	ConfigFile string `placeholder:"FILE" help:"YAML file with settings; its keys are the names of flags."`
}

// load reads the file, and makes kong use its values for settings that neither a flag nor a variable sets.
func (c *configFile) load(kctx *kong.Context) error {
	flags := allFlags(kctx.Model.Node)
	for _, flag := range flags {
		if flag.Name == configFileFlag {
			c.ConfigFile, _ = kctx.FlagValue(flag).(string)
		}
	}
	if c.ConfigFile == "" {
		return nil
	}
	content, err := os.ReadFile(c.ConfigFile)
	if err != nil {
		return fmt.Errorf("--%s: %w: name a readable file", configFileFlag, err)
	}
	inFile, err := readSettings(content)
	if err != nil {
		return fmt.Errorf("--%s: %s: %w", configFileFlag, c.ConfigFile, err)
	}
	if err := inFile.known(flags); err != nil {
		return fmt.Errorf("%s:%w", c.ConfigFile, err)
	}
	kctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		setting, ok := inFile[flag.Name]
		if !ok || len(flag.Envs) == 0 || fromEnvironment(flag) != "" {
			return nil, nil
		}
		text, err := setting.text(flag)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", c.ConfigFile, setting.line, err)
		}
		return text, nil
	}))
	return nil
}

const configFileFlag = "config-file"

// fromEnvironment returns the variable that sets a flag, or "".
func fromEnvironment(flag *kong.Flag) string {
	for _, name := range flag.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return name
		}
	}
	return ""
}

// fileSettings has the settings of a file by their keys.
type fileSettings map[string]fileSetting

type fileSetting struct {
	line  int
	value *yaml.Node
}

// readSettings reads a file that must be one YAML map.
func readSettings(content []byte) (fileSettings, error) {
	var document yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(content)).Decode(&document)
	if errors.Is(err, io.EOF) { // nothing but comments
		return fileSettings{}, nil
	}
	if err != nil {
		return nil, err
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: not a map: write one setting a line, such as log-level: debug", root.Line)
	}
	found := fileSettings{}
	for i := 0; i < len(root.Content); i += 2 {
		key := root.Content[i]
		if first, ok := found[key.Value]; ok {
			return nil, fmt.Errorf("line %d: %s was set in line %d already: keep one of them", key.Line, key.Value, first.line)
		}
		found[key.Value] = fileSetting{key.Line, root.Content[i+1]}
	}
	return found, nil
}

// known returns an error for the first key that is no setting.
func (s fileSettings) known(flags []*kong.Flag) error {
	names := map[string]bool{}
	for _, flag := range flags {
		if len(flag.Envs) > 0 && flag.Name != configFileFlag { // flags without a variable are no settings: see Parse
			names[flag.Name] = true
		}
	}
	line, unknown := 0, ""
	for name, setting := range s {
		if !names[name] && (line == 0 || setting.line < line) {
			line, unknown = setting.line, name
		}
	}
	if line == 0 {
		return nil
	}
	if near := nearest.Name(unknown, maps.Keys(names)); near != "" {
		return fmt.Errorf("%d: unknown setting %q, did you mean %s?", line, unknown, near)
	}
	return fmt.Errorf("%d: unknown setting %q: take it out", line, unknown)
}

// text returns the setting as the value of a command-line flag, or an error if the flag cannot have it.
func (s fileSetting) text(flag *kong.Flag) (string, error) {
	items := []*yaml.Node{s.value}
	if s.value.Kind == yaml.SequenceNode && flag.IsSlice() {
		items = s.value.Content
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return "", errors.New("not a value: write it as behind the flag, or a list where that takes several")
		}
		texts[i] = item.Value
	}
	text := s.value.Value
	if s.value.Kind == yaml.SequenceNode {
		text = kong.JoinEscaped(texts, flag.Tag.Sep)
	}
	scan := kong.Scan().PushTyped(text, kong.FlagValueToken)
	scratch := reflect.New(flag.Target.Type()).Elem()
	return text, flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, scratch)
}
