package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// lintDockerfile returns the findings for the image of a Dockerfile's last stage.
func lintDockerfile(text []byte) ([]finding, error) {
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, noDockerfile(err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, noDockerfile(err)
	}
	if len(stages) == 0 {
		return nil, errors.New("not a Dockerfile: FROM is missing")
	}
	im := image{shell: []string{"/bin/sh", "-c"}}
	im.read(stages, len(stages)-1)
	return im.lint(), nil
}

func noDockerfile(err error) error {
	return fmt.Errorf("not a Dockerfile: %s", strings.Join(strings.Fields(err.Error()), " "))
}

// image is what the instructions of a stage, and of the stages that it is based on, make.
type image struct {
	entrypoint, cmd []word
	entered         bool // there is an ENTRYPOINT
	env             []variable
	stop            word
	shell           []string
	base            string // the base image outside the Dockerfile
}

// read adds a stage, after the stage that it is based on.
func (im *image) read(stages []instructions.Stage, i int) {
	im.base = stages[i].BaseName
	if j, ok := instructions.HasStage(stages[:i], im.base); ok {
		im.read(stages, j)
	}
	ordered := false // this stage has a CMD
	for _, command := range stages[i].Commands {
		line := command.Location()[0].Start.Line
		switch c := command.(type) {
		case *instructions.EntrypointCommand:
			im.entrypoint = im.line(c.ShellDependantCmdLine, line)
			im.entered = true
			if !ordered {
				im.cmd = nil // an entrypoint clears the CMD of the base image
			}
		case *instructions.CmdCommand:
			im.cmd, ordered = im.line(c.ShellDependantCmdLine, line), true
		case *instructions.StopSignalCommand:
			im.stop = word{c.Signal, line}
		case *instructions.ShellCommand:
			im.shell = c.Shell
		case *instructions.EnvCommand:
			for _, e := range c.Env {
				value := strings.Trim(e.Value, `"'`)
				if strings.Contains(value, "$") {
					value = "$(" + value + ")"
				}
				im.env = append(im.env, variable{e.Key, word{value, line}})
			}
		}
	}
}

// line returns the command of an instruction.
func (im *image) line(c instructions.ShellDependantCmdLine, line int) (words []word) {
	list := c.CmdLine
	if c.PrependShell {
		list = append(slices.Clone(im.shell), list...)
	}
	for _, text := range list {
		words = append(words, word{text, line})
	}
	return words
}

// lint returns the findings for the image. An image from scratch is for copying: it needs no
// command.
func (im *image) lint() []finding {
	c := &container{line: 1, image: im.base, complete: im.entered || im.base == "scratch", env: im.env}
	c.words = append(slices.Clone(im.entrypoint), im.cmd...)
	c.findEntry(false)
	c.reportOneWord(c.words, doesNotStart)
	c.reportCommand()
	c.reportNoCommand("ENTRYPOINT clears the CMD of " + im.base +
		", and in shell form gets none: repeat the CMD after an ENTRYPOINT in brackets, or give a command in the pod")
	c.reportStopSignal("STOPSIGNAL", im.stop.text, im.stop.line)
	return c.found
}
