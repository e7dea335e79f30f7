package service

import (
	"runtime"
	"runtime/debug"
)

// revision is the commit, if the linker sets it: images are built without the repository, from which the Go tool would take
// it.
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
