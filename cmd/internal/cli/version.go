package cli

import "runtime/debug"

// RecordedVersion returns the version of the program's module, if the go command has recorded
// a version, or otherwise.
func RecordedVersion(otherwise string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return otherwise
	}
	return info.Main.Version
}
