package proc

import "strings"

// defaultPath is where execvp(3) looks when there is no PATH at all.
const defaultPath = "/bin:/usr/bin"

// candidates are the paths that execvp(3) would try for file, in order. An
// empty entry of PATH is the working directory.
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

// pathOf is the PATH of env: the first one counts, as in getenv(3).
func pathOf(env []string) string {
	for _, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			return path
		}
	}
	return defaultPath
}
