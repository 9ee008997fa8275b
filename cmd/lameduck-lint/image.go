package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// stopInDockerfile returns the stop of the image of a Dockerfile's last stage. context is the
// folder of the files that are copied from outside.
func stopInDockerfile(text []byte, context string) ([]*stop, error) {
	var stages []instructions.Stage
	var args []instructions.ArgCommand
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err == nil {
		stages, args, err = instructions.Parse(parsed.AST, nil)
	}
	if err == nil && len(stages) == 0 {
		err = errors.New("FROM is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("not a Dockerfile: %s", oneLine(err.Error()))
	}
	i := &image{shell: []string{"/bin/sh", "-c"}, dir: "/", context: context, args: map[string]string{}}
	for _, list := range args {
		for _, arg := range list.Args {
			i.args[arg.Key] = arg.ValueString()
		}
	}
	i.script = i.read
	i.add(stages, len(stages)-1)
	s := &stop{container: &i.container, Platform: platforms[len(platforms)-1]}
	return []*stop{s.run()}, nil
}

// image is what the instructions up to one say.
type image struct {
	container
	shell   []string    // of SHELL
	dir     string      // of WORKDIR
	copies  [][2]string // from the build context, and to the image
	context string
	args    map[string]string // of ARG before FROM
}

// add adds a stage to an image, after the stage that it is based on.
func (c *image) add(stages []instructions.Stage, i int) {
	c.Name.line = stages[i].Location[0].Start.Line
	c.Image = os.Expand(stages[i].BaseName, func(name string) string { return cmp.Or(c.args[name], "${"+name+"}") })
	if base, ok := instructions.HasStage(stages[:i], c.Image); ok {
		c.add(stages, base)
	}
	ordered := false // this stage has a CMD
	for _, instruction := range stages[i].Commands {
		line := instruction.Location()[0].Start.Line
		switch i := instruction.(type) {
		case *instructions.EntrypointCommand:
			c.Command = c.wordsOf(i.ShellDependantCmdLine, line)
			if !ordered {
				c.Args = nil // an entrypoint clears the CMD of the base image
			}
		case *instructions.CmdCommand:
			c.Args, ordered = c.wordsOf(i.ShellDependantCmdLine, line), true
		case *instructions.StopSignalCommand:
			c.Lifecycle.StopSignal = word{i.Signal, line}
		case *instructions.ExposeCommand:
			c.Ports = append(c.Ports, port{})
		case *instructions.ShellCommand:
			c.shell = i.Shell
		case *instructions.WorkdirCommand:
			c.dir = c.abs(i.Path)
		case *instructions.AddCommand:
			c.copy(i.SourcesAndDest)
		case *instructions.CopyCommand:
			if i.From == "" {
				c.copy(i.SourcesAndDest)
			}
		case *instructions.EnvCommand:
			for _, e := range i.Env {
				value := strings.ReplaceAll(strings.Trim(e.Value, `"'`), "$", "$(") // not known
				c.Env = append(c.Env, variable{Name: word{e.Key, line}, Value: word{value, line}})
			}
		}
	}
}

// wordsOf returns the command of an instruction.
func (c *image) wordsOf(list instructions.ShellDependantCmdLine, line int) []word {
	words := list.CmdLine
	if list.PrependShell {
		words = slices.Concat(c.shell, words)
	}
	return wordsAt(line, words)
}

// abs returns the absolute form of a path in the image.
func (c *image) abs(file string) string {
	if path.IsAbs(file) {
		return path.Clean(file)
	}
	return path.Join(c.dir, file)
}

func (c *image) copy(files instructions.SourcesAndDest) {
	for _, from := range files.SourcePaths {
		c.copies = append(c.copies, [2]string{cmp.Or(path.Join("/", from)[1:], "."), c.abs(files.DestPath)})
	}
}

// read returns the text of a file of the image, or "" if it is not known to be from the build context.
func (c *image) read(program string) string {
	if path.Base(program) == program {
		program = path.Join("/usr/local/bin", program)
	}
	name := c.abs(program)
	for _, copied := range slices.Backward(c.copies) {
		from, to := copied[0], copied[1]
		rel, isBelow := strings.CutPrefix(name, strings.TrimSuffix(to, "/")+"/")
		if !isBelow && name != to {
			continue
		}
		sources, _ := filepath.Glob(filepath.Join(c.context, from))
		for _, from := range sources {
			if isBelow && rel != filepath.Base(from) {
				from = filepath.Join(from, rel)
			}
			if text, err := read(from, nil); err == nil {
				return string(text)
			}
		}
	}
	return ""
}
