package service

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// VersionCommands are the command version and the flag --version of every command, which print the same.
type VersionCommands struct {
	Version     versionCommand `cmd:"" help:"Print the version."`
	VersionFlag versionFlag    `name:"version" env:"-" help:"Print the version, as the command does."`
}

type versionCommand struct{}

// Run prints the name of the program and its version.
func (versionCommand) Run(app *kong.Kong) error {
	_, err := fmt.Fprintln(app.Stdout, app.Model.Name, Version())
	return err
}

type versionFlag bool

// BeforeReset prints the version before other settings are looked at, as --help does.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	if err := (versionCommand{}).Run(app); err != nil {
		return err
	}
	app.Exit(0)
	return nil
}

// revision is the commit, if the linker sets it: images are built without the repository, from which the Go tool would
// take it.
var revision string

// built returns the version and the commit of the binary; what is unknown is empty.
func built() (version, commit string) {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "", revision
	}
	modified := ""
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision":
			commit = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = "-dirty"
		}
	}
	if commit == "" {
		return build.Main.Version, revision
	}
	return build.Main.Version, commit + modified
}

// Version returns the version of the binary and, if it is not a release, the commit.
func Version() string {
	version, commit := built()
	if version == "" || version == "(devel)" { // otherwise it has the commit in it
		version = "(devel)"
		if commit != "" {
			version += " " + commit
		}
	}
	return version + " " + runtime.Version()
}
