package proc

import "strings"

// defaultPath is the search path of execvp(3) without PATH.
const defaultPath = "/bin:/usr/bin"

// candidates returns the paths that execvp(3) would try for file, in order. An empty entry
// of PATH is the working directory.
func candidates(file string, env []string) []string {
	switch {
	case file == "":
		return nil
	case strings.Contains(file, "/"):
		return []string{file}
	}
	var paths []string
	for dir := range strings.SplitSeq(pathOf(env), ":") {
		if dir != "" {
			dir = strings.TrimSuffix(dir, "/") + "/"
		}
		paths = append(paths, dir+file)
	}
	return paths
}

// pathOf returns the PATH of env: the first entry counts, as in getenv(3).
func pathOf(env []string) string {
	for _, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			return path
		}
	}
	return defaultPath
}
