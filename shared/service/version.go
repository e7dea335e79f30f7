package service

import "runtime/debug"

// Version is what the Go tool put into the binary: the version of the module and, where that is no release, the commit.
func Version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "", ""
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision" && len(setting.Value) > 12:
			revision = " " + setting.Value[:12]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = " modified"
		}
	}
	if version := build.Main.Version; version != "" && version != "(devel)" {
		return version + " " + build.GoVersion
	}
	return "(devel)" + revision + modified + " " + build.GoVersion
}
