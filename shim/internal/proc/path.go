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
	search := defaultPath
	for _, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			search = path
			break // the first entry counts, as in getenv(3)
		}
	}
	var paths []string
	for dir := range strings.SplitSeq(search, ":") {
		if dir != "" {
			dir = strings.TrimSuffix(dir, "/") + "/"
		}
		paths = append(paths, dir+file)
	}
	return paths
}
