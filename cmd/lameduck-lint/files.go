package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// stdin is the path for standard input.
const stdin = "-"

// collect returns the files in paths, and in folders the files that may be manifests or
// Dockerfiles.
func collect(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if path == stdin || err == nil && !info.IsDir() {
			files = append(files, path)
			continue
		}
		if err != nil {
			return nil, unreadable(path, err)
		}
		before := len(files)
		err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return unreadable(file, err)
			case entry.IsDir() && file != path && (entry.Name() == ".git" || entry.Name() == "node_modules"):
				return fs.SkipDir
			case entry.Type().IsRegular() && (isDockerfile(file) || isManifest(file)):
				files = append(files, file)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(files) == before {
			return nil, fmt.Errorf(
				"nothing to read in %s: give a folder with *.yaml, *.yml, *.json, Dockerfile*, *.Dockerfile or "+
					"Containerfile*", path)
		}
	}
	return files, nil
}

// unreadable returns the error for a file that cannot be read.
func unreadable(file string, err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err // without the path
	}
	return fmt.Errorf("cannot read %s: %w", file, err)
}

func isManifest(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file))
}

func isDockerfile(file string) bool {
	name, ext := filepath.Base(file), filepath.Ext(file)
	if ext == ".dockerignore" || isManifest(file) {
		return false
	}
	return strings.HasPrefix(name, "Dockerfile") || strings.HasPrefix(name, "Containerfile") || ext == ".Dockerfile"
}

// looksKubernetes reports whether a text may be a manifest. Folders contain other YAML and
// JSON files as well, which are left alone, valid or not.
func looksKubernetes(text []byte) bool {
	return bytes.Contains(text, []byte("apiVersion")) && bytes.Contains(text, []byte("kind"))
}

// lintFile returns the findings for a file. A file on the command line is a Dockerfile or
// else a manifest, by the name. Standard input is judged by the text.
func lintFile(file string, named bool, in io.Reader) (found []finding, err error) {
	var text []byte
	if file == stdin {
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(file)
	}
	switch {
	case err != nil:
		return nil, unreadable(file, err)
	case isDockerfile(file) && (named || looksDocker(text)) || file == stdin && looksDocker(text):
		found, err = lintDockerfile(text)
	case !isDockerfile(file) && (named || looksKubernetes(text)):
		found, err = lintManifest(text)
		if errors.Is(err, errNoKind) && !named {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lint %s: %w", file, err)
	}
	return tidy(file, text, found), nil
}

// looksDocker reports whether a text begins as a Dockerfile does.
func looksDocker(text []byte) bool {
	for line := range bytes.Lines(text) {
		word, _, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if word != "" && word[0] != '#' {
			return strings.EqualFold(word, "FROM") || strings.EqualFold(word, "ARG")
		}
	}
	return false
}

// tidy sorts the findings for a file, and drops findings that a comment silences.
func tidy(file string, text []byte, found []finding) []finding {
	lines := strings.Split(string(text), "\n")
	found = slices.DeleteFunc(found, func(f finding) bool {
		return ignored(lines, f.Line, f.Rule) || ignored(lines, f.Line-1, f.Rule)
	})
	for i := range found {
		found[i].File = file
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.Line - b.Line })
	return found
}

var ignore = regexp.MustCompile(`#\s*lameduck-lint:\s*ignore=([a-z0-9,-]+)`)

// ignored reports whether a comment on a line, counted from 1, names a rule.
func ignored(lines []string, line int, rule string) bool {
	if line < 1 || line > len(lines) {
		return false
	}
	m := ignore.FindStringSubmatch(lines[line-1])
	return m != nil && slices.Contains(strings.Split(m[1], ","), rule)
}
