package service

import (
	"runtime"
	"runtime/debug"
)

// revision is the commit where the linker is told of it: an image is built without the repository that the Go tool could
// ask.
var revision string

// built is the version and the commit that a binary is made of; what is not known is empty.
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

// Version says what a binary is made of: its version and, where that is no release, the commit.
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
