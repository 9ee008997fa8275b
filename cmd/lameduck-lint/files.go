package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// stdin is the path for standard input.
const stdin = "-"

// The names and the texts of manifests and Dockerfiles. Folders contain other files with such
// names, which are left alone, valid or not.
const (
	others         pattern = `^(\.git|node_modules)$` // folders
	fileNames      pattern = `(^|/)(Dockerfile|Containerfile)[^/]*$|\.(Dockerfile|yaml|yml|json)$`
	manifestNames  pattern = `\.(yaml|yml|json)$`
	composeNames   pattern = `(^|/)(docker-)?compose[^/]*\.ya?ml$`
	manifestText   pattern = `(?s)apiVersion.*kind|kind.*apiVersion|"(containerDefinitions|TaskGroups)"`
	dockerfileText pattern = `(?i)^(\s*(#.*)?\n)*\s*(FROM|ARG)\s`
)

// collect returns the files in paths, and in folders the files that may be manifests or
// Dockerfiles. A path that cannot be read is an error, but the others are returned.
func collect(paths []string) (files []string, err error) {
	for _, path := range paths {
		if path == stdin {
			files = append(files, path)
			continue
		}
		before := len(files)
		var failed error
		_ = filepath.WalkDir(path, func(file string, entry fs.DirEntry, fault error) error {
			switch {
			case fault != nil:
				failed = errors.Join(failed, unreadable(file, fault))
			case entry.IsDir() && others.matches(entry.Name()):
				return fs.SkipDir
			case entry.IsDir():
			case file == path || entry.Type().IsRegular() && fileNames.matches(file):
				files = append(files, file)
			}
			return nil
		})
		if len(files) == before && failed == nil {
			failed = fmt.Errorf("nothing to read in %s: give a folder with *.yaml, *.yml, *.json, "+
				"Dockerfile*, *.Dockerfile or Containerfile*", path)
		}
		err = errors.Join(err, failed)
	}
	return files, err
}

// unreadable returns the error for a file that cannot be read.
func unreadable(file string, err error) error {
	return fmt.Errorf("cannot read %s: %w", file, cmp.Or(errors.Unwrap(err), err)) // without the path
}

// lintFile returns the findings for a file, or an error that wraps errNoKind. A file on the command
// line is a Dockerfile or else a manifest, by the name. Standard input is judged by the text. The
// build context of a Dockerfile is its folder.
func lintFile(file string, named bool, in io.Reader) (kept []finding, err error) {
	defer func() {
		if fault := recover(); fault != nil { // the other files are linted all the same
			err = fmt.Errorf("cannot lint %s: a fault of lameduck-lint: %v", file, fault)
		}
	}()
	context := os.DevNull // has no files
	if file != stdin {
		context = filepath.Dir(file)
	}
	text, err := read(file, in)
	if err != nil {
		return nil, unreadable(file, err)
	}
	var stops []*stop
	switch s := string(text); {
	case !manifestNames.matches(file) && dockerfileText.matches(s):
		stops, err = stopInDockerfile(text, context)
	case named || manifestText.matches(s) || composeNames.matches(file):
		stops, err = stopsInManifest(text)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lint %s: %w", file, err)
	}
	lines := strings.Split(string(text), "\n")
	for _, f := range judge(stops) {
		if f.File = file; !silenced(f, lines) {
			kept = append(kept, f)
		}
	}
	slices.SortStableFunc(kept, func(a, b finding) int {
		return cmp.Or(a.Line-b.Line, strings.Compare(a.Container, b.Container))
	})
	return kept, nil
}

// read returns the text of a file. A FIFO may have no writer, some devices have no end, an empty file in /proc waits
// for what it reads, and a program that a Dockerfile copies may be large.
func read(file string, in io.Reader) (text []byte, err error) {
	if file == stdin {
		return io.ReadAll(in)
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file: give - for standard input")
	case info.Size() > 64<<20:
		return nil, errors.New("larger than 64 MB")
	case info.Size() == 0:
		return nil, nil
	}
	return os.ReadFile(file)
}

// silenced reports whether a comment on the line of a finding, or on the line above, names
// the rule.
func silenced(f finding, lines []string) bool {
	end := min(f.Line, len(lines)) // YAML knows other ends of lines
	comment := pattern(`#\s*lameduck-lint:\s*ignore=([a-z0-9-]+,)*` + f.Rule + `([^a-z0-9-]|$)`)
	return comment.matches(strings.Join(lines[max(end-2, 0):end], "\n"))
}
