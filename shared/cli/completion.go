package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Completion is the command that prints a shell's completion script. The script runs the program with completeArg as
// first argument to get candidates, so it always knows the current flags.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown below the settings, with the name of the program.
func (*Completion) Help() string {
	return `For this shell, or for all to come from a file that it reads at start:

    source <(PROGRAM completion bash)        # in ~/.bashrc
    source <(PROGRAM completion zsh)         # in ~/.zshrc, after compinit
    PROGRAM completion fish | source         # in ~/.config/fish/config.fish`
}

// Run prints the script.
func (c *Completion) Run(kctx *kong.Context) error {
	_, err := fmt.Fprint(kctx.Stdout, strings.ReplaceAll(completionScripts[c.Shell], "PROGRAM", kctx.Model.Name))
	return err
}

// completeArg makes a program print candidates for the last of the words that follow, one a line, instead of running a
// command.
const completeArg = "__complete"

// Completer is a command that knows values which the table of settings does not have, such as those of a server.
// Complete returns candidates for the value of a setting or, if its name is "", for an argument. The command has the
// settings of the words before. A user is waiting: Complete must be quick, and returns nil if it cannot know.
type Completer interface {
	Complete(setting, last string) []string
}

// completeFile is printed if a file or directory name is expected; the shell then completes it.
const completeFile = ":file"

// The scripts pass the words up to the cursor. bash splits words at = and :, so its script removes the part before the
// last of them from the candidates.
var completionScripts = map[string]string{
	"bash": `_PROGRAM_complete() {
  local line=${COMP_LINE:0:COMP_POINT} words found cur
  read -r -a words <<<"$line"
  [[ $line == *' ' ]] && words+=('')
  cur=${words[${#words[@]}-1]}
  mapfile -t found < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
  if [[ ${found[0]} == :file ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "${cur#*=}")
    compopt -o filenames 2>/dev/null
    return
  fi
  if [[ $cur == *=* && $COMP_WORDBREAKS == *=* ]]; then
    found=("${found[@]#*=}")
  fi
  [[ ${found[0]} == *= ]] && compopt -o nospace 2>/dev/null
  COMPREPLY=("${found[@]}")
}
complete -F _PROGRAM_complete PROGRAM
`,
	"zsh": `#compdef PROGRAM
_PROGRAM() {
  local -a found
  found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ ${found[1]} == :file ]]; then
    [[ $PREFIX == *=* ]] && compset -P '*='
    _files
    return
  fi
  found=(${found:#})
  compadd -S '' -- ${(M)found:#*=}
  compadd -- ${found:#*=}
}
compdef _PROGRAM PROGRAM
`,
	"fish": `function __PROGRAM_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)
  if test "$found[1]" = :file
    set -l cur (commandline -ct)
    if string match -q -- '*=*' $cur
      set -l flag (string replace -r -- '=.*' '=' $cur)
      __fish_complete_path (string replace -r -- '^[^=]*=' '' $cur) | string replace -r -- '^' $flag
    else
      __fish_complete_path $cur
    end
  else
    string join \n -- $found
  end
end
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
`,
}

// complete returns the candidates for the last word.
func complete(parser *kong.Kong, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	p := place(parser.Model.Node, before)
	if p.flag != nil { // its value is the last word
		before = before[:len(before)-1]
	}
	p.learn = func() {
		if !slices.Contains(before, "--help") && !slices.Contains(before, "-h") { // these would print
			_, _ = parser.Parse(before) // sets what it can; a line that is being written may be wrong
		}
	}
	found := p.candidates(last)
	if slices.Contains(found, completeFile) {
		return []string{completeFile}
	}
	found = slices.DeleteFunc(found, func(s string) bool { return !strings.HasPrefix(s, last) })
	slices.Sort(found)
	return found
}

// position is where the words before the last one lead.
type position struct {
	node       *kong.Node
	flag       *kong.Flag // the last word is its value; nil: it is none
	positional int        // number of positional arguments so far
	learn      func()     // gives the command the settings of the words before
}

func place(root *kong.Node, words []string) position {
	p := position{node: root}
	for _, word := range words {
		switch {
		case p.flag != nil: // the word before was a flag without =, so this is its value
			p.flag = nil
		case strings.HasPrefix(word, "-"):
			if flag := findFlag(p.node, word); flag != nil && !flag.IsBool() && !strings.Contains(word, "=") {
				p.flag = flag
			}
		case child(p.node, word) != nil:
			p.node = child(p.node, word)
		default:
			p.positional++
		}
	}
	return p
}

// candidates returns what the last word may become. The shell drops those that do not begin like it.
func (p position) candidates(last string) []string {
	name, _, equals := strings.Cut(last, "=")
	switch {
	case p.flag != nil:
		return append(values(p.flag.Value, ""), p.known(p.flag.Name, last)...)
	case equals && strings.HasPrefix(last, "--"):
		flag := findFlag(p.node, name)
		if flag == nil {
			return nil
		}
		found := values(flag.Value, name+"=")
		for _, value := range p.known(flag.Name, last[len(name)+1:]) {
			found = append(found, name+"="+value)
		}
		return found
	case strings.HasPrefix(last, "-"):
		return flagNames(p.node)
	}
	found := commandNames(p.node)
	if p.positional < len(p.node.Positional) {
		found = append(found, values(p.node.Positional[p.positional], "")...)
	}
	return append(found, p.known("", last)...)
}

// known returns what the command itself knows.
func (p position) known(setting, last string) []string {
	if p.node.Target.Kind() != reflect.Struct || !p.node.Target.CanAddr() {
		return nil
	}
	command, ok := p.node.Target.Addr().Interface().(Completer)
	if !ok {
		return nil
	}
	p.learn()
	return command.Complete(setting, last)
}

// child returns the command of that name.
func child(node *kong.Node, name string) *kong.Node {
	for _, c := range node.Children {
		if c.Name == name && !c.Hidden {
			return c
		}
	}
	return nil
}

func commandNames(node *kong.Node) []string {
	var names []string
	for _, c := range node.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// flagsAt returns the flags that are allowed after the words so far, including those of the default command.
func flagsAt(node *kong.Node) []*kong.Flag {
	var flags []*kong.Flag
	if node.DefaultCmd != nil {
		flags = append(flags, node.DefaultCmd.Flags...)
	}
	for n := node; n != nil; n = n.Parent {
		flags = append(flags, n.Flags...)
	}
	return flags
}

// findFlag finds the flag of a word such as --name, --no-name, --name=value or -n.
func findFlag(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(word, "=")
	for _, flag := range flagsAt(node) {
		if name == "--"+flag.Name || name == "--no-"+flag.Name || flag.Short != 0 && name == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

// flagNames returns the flags as they are typed; those that need a value end with =.
func flagNames(node *kong.Node) []string {
	var names []string
	for _, flag := range flagsAt(node) {
		switch {
		case flag.Hidden:
		case !flag.IsBool():
			names = append(names, "--"+flag.Name+"=")
		case flag.Tag.Negatable != "" && flag.Default == "true":
			names = append(names, "--no-"+flag.Name)
		default:
			names = append(names, "--"+flag.Name)
		}
	}
	return names
}

// values returns the known values of a flag or an argument.
func values(v *kong.Value, prefix string) []string {
	var all []string
	switch {
	case v.Enum != "":
		for value := range strings.SplitSeq(v.Enum, ",") {
			all = append(all, prefix+value)
		}
	case v.IsBool():
		all = []string{prefix + "true", prefix + "false"}
	case v.Tag.PlaceHolder == "FILE" || v.Tag.PlaceHolder == "DIR" || v.Name == "file":
		all = []string{completeFile}
	}
	return all
}
