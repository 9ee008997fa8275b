package main

import "runtime/debug"

// version is set by the linker in a release.
var version = ""

// versionOf returns the linker's version, or else the version or the revision that the go
// command has recorded.
func versionOf(linked string) string {
	info, ok := debug.ReadBuildInfo()
	if linked != "" || !ok {
		return linked
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "dev"
}
