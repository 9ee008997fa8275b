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
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// image is the image after the instructions so far.
type image struct {
	entrypoint, cmd []word
	entered         bool // entrypoint is complete; else the base image may have an entrypoint
	env             []variable
	args            []string // NAME=value
	stop            word
	shell           []string
	base            string // the base image outside the Dockerfile
	mentions        bool   // an instruction that may copy lameduck contains the name
	shellForm       bool   // entrypoint is in shell form, and gets no CMD

	installed []string // inits of which an instruction contains the name
	replaced  []string // inits for which lameduck may have been copied
}

// lintDockerfile returns the findings for the image of a Dockerfile's last stage.
func lintDockerfile(text []byte) ([]finding, error) {
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, noDockerfile(err)
	}
	stages, global, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, noDockerfile(err)
	}
	if len(stages) == 0 {
		return nil, errors.New("not a Dockerfile: FROM is missing")
	}
	var args []string
	for _, a := range global {
		args = append(args, argsOf(&a)...)
	}
	return imageOf(stages, len(stages)-1, args, parsed.EscapeToken).lint(), nil
}

func noDockerfile(err error) error {
	return fmt.Errorf("not a Dockerfile: %s", strings.Join(strings.Fields(err.Error()), " "))
}

// imageOf returns the image of a stage and of the stages before it.
func imageOf(stages []instructions.Stage, i int, global []string, escape rune) image {
	stage := &stages[i]
	im := image{shell: []string{"/bin/sh", "-c"}}
	lex := shell.NewLex(escape)
	base, _, err := lex.ProcessWord(stage.BaseName, shell.EnvsFromSlice(global))
	if err != nil {
		base = stage.BaseName
	}
	if j, ok := instructions.HasStage(stages[:i], base); ok {
		im = imageOf(stages, j, global, escape)
		im.args = nil
	} else {
		im.base, im.entered = base, base == "scratch"
	}
	ordered := false // in this stage
	for _, command := range stage.Commands {
		line := command.Location()[0].Start.Line
		im.expand(lex, command)
		switch c := command.(type) {
		case *instructions.EntrypointCommand:
			im.entrypoint = im.line(c.ShellDependantCmdLine, line)
			im.entered = true
			im.shellForm = c.PrependShell
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
				im.env = slices.DeleteFunc(im.env, func(v variable) bool { return v.name == e.Key })
				im.env = append(im.env, variable{e.Key, word{e.Value, line}})
			}
		case *instructions.ArgCommand:
			im.args = append(im.args, argsOf(c)...)
		default:
			im.noteInstruction(fmt.Sprint(command))
		}
	}
	return im
}

// noteInstruction notes the programs that the source of an instruction names.
func (im *image) noteInstruction(source string) {
	named := strings.Contains(source, "lameduck")
	im.mentions = im.mentions || named
	for _, word := range nameRE.FindAllString(source, -1) {
		switch {
		case !slices.Contains(inits, word):
		case named:
			im.replaced = append(im.replaced, word)
		default:
			im.installed = append(im.installed, word)
		}
	}
}

// nameRE matches the name of a program or a package.
var nameRE = regexp.MustCompile(`[\w-]+`)

func argsOf(a *instructions.ArgCommand) (args []string) {
	for _, arg := range a.Args {
		if arg.Value != nil {
			args = append(args, arg.Key+"="+*arg.Value)
		}
	}
	return args
}

// expand expands variables in an instruction. Unknown variables stay as $(NAME).
func (im *image) expand(lex *shell.Lex, command instructions.Command) {
	c, ok := command.(instructions.SupportsSingleWordExpansion)
	if !ok {
		return
	}
	env := slices.Clone(im.args)
	for _, v := range im.env {
		env = append(env, v.name+"="+v.value.text)
	}
	_ = c.Expand(func(text string) (string, error) {
		result, err := lex.ProcessWordWithMatches(text, shell.EnvsFromSlice(env))
		if err != nil || len(result.Unmatched) > 0 {
			return "$(" + text + ")", nil
		}
		return result.Result, nil
	})
}

// line returns the command of an instruction.
func (im *image) line(c instructions.ShellDependantCmdLine, line int) (words []word) {
	if c.PrependShell {
		for _, text := range im.shell {
			words = append(words, word{text, line})
		}
	}
	for _, text := range c.CmdLine {
		words = append(words, word{text, line})
	}
	return words
}

// lint returns the findings for the image.
func (im image) lint() []finding {
	c := &container{line: 1, image: im.base, complete: im.entered, words: append(slices.Clone(im.entrypoint), im.cmd...), env: im.env}
	if !im.entered && len(im.cmd) > 0 && isShell(im.cmd[0].text) { // the base image's entrypoint executes CMD
		before := &container{image: im.base, words: im.cmd, complete: true, program: programOf(im.cmd)}
		before.reportShells(false)
		c.found = before.found
	}
	init := programOf(c.words).behind
	c.realInit = slices.Contains(im.installed, init) && !slices.Contains(im.replaced, init)
	c.findEntry(false)
	im.reportNoCommand(c)
	c.reportCommand()
	c.reportPrefixes()
	c.reportShells(false)
	if !im.mentions && !strings.Contains(im.base, "lameduck") {
		c.reportUnusedVariables()
	}
	c.reportStopSignal("STOPSIGNAL", im.stop.text, im.stop.line)
	return c.found
}

// reportNoCommand reports an entrypoint lameduck without a command. An image from scratch is
// for copying: the base image has no CMD that ENTRYPOINT could clear.
func (im image) reportNoCommand(c *container) {
	d := c.entry
	switch {
	case d == nil || !d.complete || !d.starts || len(d.command) > 0 || im.base == "scratch":
	case im.shellForm:
		c.report(d.line, noCommand, `lameduck does not start: no command to run: an ENTRYPOINT in shell form gets no CMD; write ENTRYPOINT ["/lameduck", "--"]`)
	default:
		c.report(d.line, noCommand, "lameduck does not start: no command to run: ENTRYPOINT clears the CMD of %s; repeat that CMD after ENTRYPOINT, or give a command in the pod", im.base)
	}
}
