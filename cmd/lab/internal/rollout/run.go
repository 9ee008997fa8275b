package rollout

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// options is the command line.
type options struct {
	scenes   []scene
	seed     uint64
	scale    scale
	repeat   int
	jobs     int // trials at a time
	quick    bool
	run      *regexp.Regexp
	lameduck string

	json, svg string // files to write, or ""
	from      string // a file that json was written to, or ""

	exe  string       // this program
	dir  string       // for files, if not on the loopback interface
	used atomic.Int32 // numbers of replicas and balancers
}

// scale compresses time: the lags, and everything compared with the lags.
type scale float64

func (s scale) of(d time.Duration) time.Duration { return time.Duration(float64(s) * float64(d)) }

// onLoopback reports whether the trials do without namespaces.
func (o *options) onLoopback() bool { return o.scenes[0] == demo || o.scenes[0] == anatomy }

// selects reports whether a contender plays with a server.
func (o *options) selects(c *contender, s *server) bool {
	return slices.Contains(o.scenes, s.scene) && (!o.quick || c.plays("quick") && s.quick()) &&
		o.run.MatchString(fmt.Sprintf("%s: %s | %s", s.scene, s.name, c.name))
}

// parse reads the command line of a subcommand. The defaults are those of o.
func (o *options) parse(name string, args []string) error {
	f := flag.NewFlagSet("lab "+name, flag.ContinueOnError)
	f.StringVar(&o.json, "json", "", "write the figures of the run to this file")
	f.StringVar(&o.svg, "svg", "", "draw the run into this file")
	f.StringVar(&o.from, "from", "", "draw and judge the figures of this file; LAMEDUCK is not needed")
	f.Uint64Var(&o.seed, "seed", 1, "what decides the lags, the order and the requests")
	f.Float64Var((*float64)(&o.scale), "scale", 1, "compress time: 0.5 halves lags, sleeps, holds and slow requests")
	f.IntVar(&o.repeat, "n", o.repeat, "rollouts of each contender and server")
	f.IntVar(&o.jobs, "jobs", o.jobs, "rollouts at a time, and a quarter as many of clients that never let go")
	f.BoolVar(&o.quick, "quick", false, "a selection of the contenders, once, at half the time")
	example := `only what matches this regular expression: "steady: go \| (bare|.*quiet)$"`
	f.Func("run", example, func(text string) (err error) {
		o.run, err = regexp.Compile(text)
		return err
	})
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "usage: lab %s [flags] LAMEDUCK\n", name)
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.quick {
		o.scale, o.repeat, o.jobs = 0.5, 1, 20
	}
	if o.from != "" && f.NArg() == 0 {
		return nil
	}
	if f.NArg() != 1 {
		return fmt.Errorf("want one argument, the built lameduck; see lab %s -help", name)
	}
	var err error
	if o.lameduck, err = filepath.Abs(f.Arg(0)); err != nil {
		return err
	}
	if _, err := os.Stat(o.lameduck); err != nil {
		return err
	}
	o.exe, err = os.Readlink("/proc/self/exe")
	return err
}

// Run plays the rollouts of args, and writes the tables to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o := &options{scenes: []scene{steady, kept, sparse}, repeat: 2, jobs: 16, run: regexp.MustCompile("")}
	err := o.parse("rollout", args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.from != "" {
		return o.redraw(out)
	}
	for _, program := range []string{"haproxy", "nginx", "tini", "ip", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w; Debian's packages are haproxy, nginx-light, tini, iproute2 and util-linux", err)
		}
	}
	trials, err := plan(o)
	if err != nil {
		return err
	}
	o.dir = os.Getenv(inside)
	if o.dir == "" {
		return enter()
	}
	if err := errors.Join(netns.MountProc(), netns.LoopbackUp()); err != nil {
		return err
	}
	f, err := o.play(ctx, os.Stderr, trials, progress)
	if err != nil {
		return err
	}
	printTables(out, f)
	return errors.Join(o.write(f), verdict(out, f))
}

// progress tells how many trials have been played.
func progress(trials []*trial) []string {
	return []string{fmt.Sprintf("%d of %d rollouts", count(trials, (*trial).ended), len(trials))}
}

// count returns the number of trials for which is is true.
func count(trials []*trial, is func(*trial) bool) (n int) {
	for _, t := range trials {
		if is(t) {
			n++
		}
	}
	return n
}

// inside is set in the process in new namespaces; the value is the folder for files.
const inside = "LAMEDUCK_LAB_INSIDE"

// enter runs the program again in new namespaces, as PID 1: the experiment leaves the
// machine's network alone, and no process outlives the laboratory.
func enter() error {
	dir, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-lab-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // nginx's workers run as another user
		return err
	}
	spaces := netns.Namespaces{Flags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Env: inside + "=" + dir, KeepUser: true}
	code, err := spaces.Reenter()
	if code != 0 {
		os.RemoveAll(dir)
		os.Exit(code) // the process inside has printed why
	}
	return err
}

// play plays trials, and shows lines meanwhile.
func (o *options) play(ctx context.Context, screen io.Writer, trials []*trial,
	lines func([]*trial) []string) (*findings, error) {
	began := time.Now()
	end := watch(screen, func() []string { return lines(trials) })
	err := runAll(ctx, o, trials)
	end()
	return &findings{Seed: o.seed, Scale: o.scale, Seconds: time.Since(began).Seconds(), Trials: trials}, err
}

// write writes the files of the command line.
func (o *options) write(f *findings) error {
	if o.json != "" {
		if err := f.save(o.json); err != nil {
			return err
		}
	}
	if o.svg != "" {
		if err := os.WriteFile(o.svg, []byte(f.draw()), 0o644); err != nil {
			return fmt.Errorf("cannot write the picture: %w", err)
		}
	}
	return nil
}

// redraw writes the files from the figures of an earlier run.
func (o *options) redraw(out io.Writer) error {
	f, err := readFindings(o.from)
	if err != nil {
		return err
	}
	return errors.Join(o.write(f), verdict(out, f))
}

// draw draws the findings: the chart of rollouts, or the picture of the demo or the anatomy.
func (f *findings) draw() string {
	switch f.Trials[0].server.scene {
	case demo:
		return drawDemo(f)
	case anatomy:
		return drawAnatomy(f.Trials[0])
	}
	return chart(f)
}

// watch shows lines until the returned function is called: on a terminal as they change,
// elsewhere once, at the end.
func watch(out io.Writer, lines func() []string) (end func()) {
	live := false
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		live = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	drawn := 0
	draw := func() {
		if drawn > 0 {
			fmt.Fprintf(out, "\x1b[%dA\x1b[J", drawn)
		}
		drawn = 0
		for _, line := range lines() {
			fmt.Fprintln(out, line)
			drawn++
		}
	}
	over, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		ticks := time.NewTicker(column)
		defer ticks.Stop()
		for {
			select {
			case <-over:
				draw()
				return
			case <-ticks.C:
				if live {
					draw()
				}
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}
