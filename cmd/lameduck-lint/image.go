package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// lintDockerfile returns the findings for the image of a Dockerfile's last stage.
func lintDockerfile(text []byte) ([]finding, error) {
	var stages []instructions.Stage
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err == nil {
		stages, _, err = instructions.Parse(parsed.AST, nil)
	}
	if err == nil && len(stages) == 0 {
		err = errors.New("FROM is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("not a Dockerfile: %s", oneLine(err.Error()))
	}
	c := &container{shell: []string{"/bin/sh", "-c"}}
	c.readStage(stages, len(stages)-1)
	return c.lint(), nil
}

// configuresRE matches instructions that may write nginx.conf.
var configuresRE = regexp.MustCompile(`(?i)daemon +off|nginx\.conf|^(COPY|ADD).*\s"?/?(etc/?)?(etc/nginx/?)?"?\]?$`)

// readStage adds a stage to an image, after the stage that it is based on.
func (c *container) readStage(stages []instructions.Stage, i int) {
	c.Image, c.Name.line = stages[i].BaseName, stages[i].Location[0].Start.Line
	if base, ok := instructions.HasStage(stages[:i], c.Image); ok {
		c.readStage(stages, base)
	}
	ordered := false // this stage has a CMD
	for _, instruction := range stages[i].Commands {
		line := instruction.Location()[0].Start.Line
		text := fmt.Sprint(instruction)
		c.configured = c.configured || configuresRE.MatchString(text) && !strings.Contains(text, "lameduck")
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
			c.Ports = append(c.Ports, i.Ports)
		case *instructions.ShellCommand:
			c.shell = i.Shell
		case *instructions.EnvCommand:
			for _, e := range i.Env {
				value := strings.ReplaceAll(strings.Trim(e.Value, `"'`), "$", "$(") // not known
				c.Env = append(c.Env, variable{Name: word{e.Key, line}, Value: word{value, line}})
			}
		}
	}
}

// wordsOf returns the command of an instruction.
func (c *container) wordsOf(list instructions.ShellDependantCmdLine, line int) []word {
	if list.PrependShell {
		return wordsAt(line, slices.Concat(c.shell, list.CmdLine))
	}
	return wordsAt(line, list.CmdLine)
}
