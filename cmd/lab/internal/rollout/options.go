package rollout

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options is the command line.
type options struct {
	seed       uint64
	scale      scale
	rate       int // requests a second, each trial
	repeat     int
	jobs       int // trials at a time
	quick      bool
	contenders []contender
	servers    []server
	lags       []lag
	lameduck   string
	files
}

// files are the files to write, or "". from is a file that json was written to.
type files struct{ json, svg, page, from string }

// scale compresses time: the lags, and everything compared with the lags.
type scale float64

func (s scale) of(d time.Duration) time.Duration { return time.Duration(float64(s) * float64(d)) }

// words returns of as text for a command line.
func (s scale) words(d time.Duration) string { return s.of(d).String() }

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("lab rollout", flag.ContinueOnError)
	f.Uint64Var(&o.seed, "seed", 1, "what decides the lags, the order and the requests")
	f.Float64Var((*float64)(&o.scale), "scale", 1, "compress time: 0.5 halves lags, sleeps, holds and slow requests")
	f.IntVar(&o.rate, "rate", 40, "requests a second in each trial")
	f.IntVar(&o.repeat, "repeat", 2, "rollouts of each contender and server")
	f.IntVar(&o.jobs, "jobs", 16, "rollouts at a time, and a quarter as many of clients that never let go")
	f.BoolVar(&o.quick, "quick", false, "a selection of the contenders, once, at half the time")
	f.StringVar(&o.json, "json", "", "write everything to this file")
	f.StringVar(&o.page, "page", "", "write the README's tables, in Markdown, to this file")
	f.StringVar(&o.svg, "svg", "", "draw the chart into this file")
	f.StringVar(&o.from, "from", "", "draw the chart and write the tables from the figures of this file; LAMEDUCK is not needed")
	contenders := f.String("contenders", "", "only these: names, or parts of names, with semicolons between")
	servers := f.String("servers", "", "only these servers: names, or the scenes steady, kept and sparse, with semicolons between")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: lab rollout [flags] LAMEDUCK")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if o.from != "" && f.NArg() == 0 {
		return o, nil
	}
	if f.NArg() != 1 {
		return nil, fmt.Errorf("want one argument, the built lameduck; see lab rollout --help")
	}
	if o.quick {
		o.scale, o.repeat = 0.5, 1
		o.jobs = 20
	}
	var err error
	o.lameduck, err = filepath.Abs(f.Arg(0))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.lameduck); err != nil {
		return nil, err
	}
	return o, o.choose(*contenders, *servers)
}

func (o *options) choose(names, servers string) error {
	o.lags = allLags
	o.contenders = slices.DeleteFunc(contenders(), func(c contender) bool {
		if names == "" {
			return c.hidden || o.quick && !c.quick
		}
		return !slices.ContainsFunc(strings.Split(names, ";"), c.named)
	})
	o.servers = slices.DeleteFunc(allServers(), func(s server) bool {
		if servers == "" {
			return o.quick && !s.quick()
		}
		named := strings.Split(servers, ";")
		return !slices.Contains(named, s.name) && !slices.Contains(named, string(s.scene))
	})
	if len(o.contenders) == 0 || len(o.servers) == 0 {
		return errors.New("no contender or no server has such a name")
	}
	return o.installed()
}

// installed returns an error if a program is missing.
func (o *options) installed() error {
	var programs []string
	for _, c := range o.contenders {
		if c.init == "tini" || c.init == "dumb-init" {
			programs = append(programs, c.init)
		}
	}
	for _, s := range o.servers {
		if s.balancer != "kube-proxy" { // part of this program
			programs = append(programs, s.balancer)
		}
		if s.name == "haproxy" || s.name == "nginx" {
			programs = append(programs, s.name)
		}
	}
	slices.Sort(programs)
	for _, program := range slices.Compact(programs) {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not installed; Debian's packages are haproxy, nginx-light, tini and dumb-init", program)
		}
	}
	return nil
}

// write writes the files of the command line.
func (o *options) write(found *findings, trials []*trial) error {
	if o.json != "" {
		text, err := json.MarshalIndent(struct {
			*findings
			Trials []*trial `json:"trials"`
		}{found, trials}, "", " ")
		if err == nil {
			err = os.WriteFile(o.json, append(text, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("cannot write the figures: %w", err)
		}
	}
	if o.page != "" {
		if err := os.WriteFile(o.page, []byte(page(found)), 0o644); err != nil {
			return fmt.Errorf("cannot write the tables: %w", err)
		}
	}
	if o.svg != "" {
		if err := os.WriteFile(o.svg, []byte(chart(found)), 0o644); err != nil {
			return fmt.Errorf("cannot write the chart: %w", err)
		}
	}
	return nil
}

// rewrite writes the files from figures of an earlier run.
func (o *options) rewrite(out io.Writer) error {
	text, err := os.ReadFile(o.from)
	found := &findings{}
	if err == nil {
		err = json.Unmarshal(text, found)
	}
	if err != nil {
		return fmt.Errorf("cannot read the figures: %w", err)
	}
	if err := o.write(found, nil); err != nil {
		return err
	}
	return verdict(out, found)
}
