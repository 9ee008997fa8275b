package shim

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/flags"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

var update = flag.Bool("update", false, "write what was found into the golden files")

// TestScripts plays every golden script in virtual time.
func TestScripts(t *testing.T) {
	for _, s := range script.Load(testutil.Path("testdata/stop/*.txt")) {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playVirtual(t, s) })
		})
	}
}

func playVirtual(t *testing.T, s *script.Script) {
	w := &world{t: t, began: time.Now(), events: s.Events, refuses: s.Refuses}
	w.samples, w.answers = make(chan observe.Snapshot, 1), make(chan error, 1)
	cfg := flags.Read(t, s.Flags)
	cfg.Command = []string{"command"}
	cfg.Env = s.Env
	p := testutil.Must(plan.New(&cfg, plan.Place{PID1: !s.Job, Uncatchable: Uncatchable}))
	for _, text := range s.Others {
		w.rest = append(w.rest, newOther(text))
	}
	w.command.handles = setOf(s.Catches)
	w.notes = cfg.TerminationLog != ""
	w.did("leaves %d", testutil.Must(run(p, w.host())))
	if held := strings.Contains(s.Text, "holding "); w.sampling != held || w.sampledSeldom != held {
		t.Errorf("held: %v, sampled: %v, at last seldom: %v", held, w.sampling, w.sampledSeldom)
	}
	if isLeft := strings.Contains(s.Text, "the command is not started"); isLeft == w.started {
		t.Errorf("the command was started: %v", w.started)
	}
	got := s.Format(w.actions)
	if *update {
		s.Write(got)
	} else if got != s.Text {
		t.Errorf("got:\n%s\nwant:\n%s", got, s.Text)
	}
}

// world is a host in which a script happens. The events happen while lameduck waits for them, and
// the actions of lameduck are recorded.
type world struct {
	t       *testing.T
	began   time.Time
	events  []script.Step
	actions []script.Step
	signals []sig.Signal
	ended   []death
	samples chan observe.Snapshot
	answers chan error

	started bool       // the command runs
	gone    bool       // the command has exited
	refuses bool       // the kernel refuses signals
	rest    []other    // the other processes
	command other      // as it is by now
	arrived sig.Set    // signals so far
	inside  sig.Signal // the last signal came from a process of the container

	notes         bool // whether the termination log is recorded
	sampling      bool // samples are taken, first often
	sampledSeldom bool // and then seldom
}

// The PIDs of the world.
const commandPID, hookPID = 100, 101

// to returns the target of a signal in words, "" for the command.
func to(pid int) string {
	switch pid {
	case commandPID:
		return ""
	case -commandPID:
		return " to the group"
	case -hookPID:
		return " to what runs at the stop"
	}
	return fmt.Sprintf(" to %d", pid)
}

// other is one of the other processes.
type other struct {
	proc.Process
	program string
	handles sig.Set
}

// newOther reads a process as package script spells it.
func newOther(text string) (o other) {
	ids, program, _ := strings.Cut(text, ":")
	program, signals, _ := strings.Cut(program, ":")
	pid, parent, _ := strings.Cut(ids, "/")
	o.PID, o.Parent = testutil.Must(strconv.Atoi(pid)), testutil.Must(strconv.Atoi(cmp.Or(parent, "1")))
	o.program = program
	o.handles = setOf(strings.Fields(strings.ReplaceAll(signals, "+", " ")))
	return o
}

func setOf(signals []string) (set sig.Set) {
	for _, name := range signals {
		set = set.With(testutil.Must(sig.Parse(name)))
	}
	return set
}

type death struct {
	pid    int
	status proc.Status
}

func (w *world) did(format string, args ...any) {
	w.actions = append(w.actions, script.Step{At: time.Since(w.began), Text: fmt.Sprintf(format, args...)})
}

// next has the events happen up to one that is a signal or a sample, or until a deadline.
func (w *world) next(until time.Time, awaited [2]int) (s sig.Signal) {
	if awaited[0] != 0 && (awaited[0] != commandPID || w.gone) {
		w.t.Errorf("children may be reaped unseen, but %v, when the command is gone: %v", awaited, w.gone)
	}
	for len(w.signals) == 0 {
		mayHappen := len(w.events) > 0 && (w.started || strings.HasPrefix(w.events[0].Text, "early "))
		if !mayHappen && until.IsZero() {
			panic("nothing happens any more")
		}
		if !mayHappen || !until.IsZero() && w.began.Add(w.events[0].At).After(until) {
			time.Sleep(time.Until(until))
			return 0
		}
		e := w.events[0]
		w.events = w.events[1:]
		time.Sleep(time.Until(w.began.Add(e.At)))
		w.happen(e.Text)
		together := len(w.samples) == 0 && len(w.events) > 0 && w.events[0].At == e.At // one wake-up
		if len(w.samples)+len(w.answers) > 0 && !together {
			return 0
		}
	}
	s, w.signals = w.signals[0], w.signals[1:]
	return s
}

func (w *world) happen(text string) {
	word, arg, _ := strings.Cut(text, " ")
	pid := commandPID
	switch word {
	case "executes":
		w.command.program = arg
		return
	case "answered":
		var err error
		if arg != "" {
			err = errors.New(arg)
		}
		w.answers <- err
		return
	case "frozen":
		time.Sleep(testutil.Must(time.ParseDuration(arg)))
		return
	case "forks":
		w.rest = append(w.rest, newOther(arg))
		return
	case "ends":
		i := w.find(testutil.Must(strconv.Atoi(arg)))
		if gone := w.rest[i]; gone.Parent == 1 || gone.Parent == commandPID && w.gone {
			w.end(gone.PID, proc.Status{})
		}
		w.rest = slices.Delete(w.rest, i, i+1)
		return
	case "both":
		w.happen(arg)
		w.happen("hook " + arg)
		return
	case "hook":
		pid, text = hookPID, arg
	case "early", "inside", "old":
		text = arg
	}
	text, url, _ := strings.Cut(text, ", the URL ")
	text, paths, _ := strings.Cut(text, ", waiting for ")
	text, trouble, _ := strings.Cut(text, ", trouble: ")
	e := script.ParseEvent(text)
	switch e.Kind {
	case stop.SignalArrived:
		w.inside = 0
		if word == "inside" {
			w.inside = e.Signal
		}
		w.signals, w.arrived = append(w.signals, e.Signal), w.arrived.With(e.Signal)
	case stop.Sampled:
		sample := observe.Snapshot{Began: time.Now(), State: e.Traffic, Requests: e.Requests, Trouble: trouble}
		if word == "old" {
			sample.Began = sample.Began.Add(-2 * maxSampleAge)
		}
		sample.PathsPresent = strings.Fields(paths)
		sample.URLState = url
		if trouble != "" {
			sample.Observer = report.ProcNet
		}
		w.samples <- sample
	case stop.CommandStopped:
		w.end(pid, proc.Status{Change: proc.Stopped, Signal: e.Signal})
	case stop.CommandContinued:
		w.end(pid, proc.Status{Change: proc.Continued})
	default:
		w.end(pid, proc.Status{Code: e.Code, Signal: e.Signal})
	}
}

func (w *world) end(pid int, status proc.Status) {
	w.ended = append(w.ended, death{pid, status})
	w.signals = append(w.signals, sig.CHLD)
}

func (w *world) Reap() (int, proc.Status) {
	if len(w.ended) > 0 {
		d := w.ended[0]
		w.ended = w.ended[1:]
		w.gone = w.gone || d.pid == commandPID && d.status.Change == proc.Ended
		return d.pid, d.status
	}
	if w.gone && len(w.rest) == 0 {
		return proc.None, proc.Status{}
	}
	return proc.NoneYet, proc.Status{}
}

func (w *world) Descendants() (family []proc.Process) {
	if !w.gone {
		family = append(family, proc.Process{PID: commandPID, Parent: 1, Group: commandPID})
	}
	for _, o := range w.rest {
		family = append(family, o.Process)
	}
	return family
}

// find returns the index of another process, -1 if there is none with that PID.
func (w *world) find(pid int) int {
	return slices.IndexFunc(w.rest, func(o other) bool { return o.PID == pid })
}

// process returns another process, or the command.
func (w *world) process(pid int) other {
	if i := w.find(pid); i >= 0 {
		return w.rest[i]
	}
	return w.command
}

func (w *world) Kill(pid int, s sig.Signal) error {
	if w.refuses {
		return syscall.EPERM
	}
	w.did("sends %v%s", s, to(pid))
	if i := w.find(pid); i >= 0 && s == sig.KILL {
		w.rest = slices.Delete(w.rest, i, i+1)
	}
	return nil
}

func (w *world) writeTermlog(lines ...string) error {
	for _, line := range lines {
		if w.notes {
			w.did("notes %s", line)
		}
	}
	return nil
}

// Find and Start fail for a program called "missing".
func (w *world) Find(argv, _ []string) error {
	if argv[0] == "missing" {
		return &StartError{Command: argv[0], Err: syscall.ENOENT}
	}
	return nil
}

func (w *world) Start(c proc.Command) (int, error) {
	if !c.Background {
		return commandPID, nil
	}
	w.did("runs %s", strings.Join(append(c.Argv, c.Env[len(c.Env)-2:]...), " "))
	return hookPID, w.Find(c.Argv, nil)
}

// The world is the host.

func (w *world) host() host {
	return host{
		processes: w,
		next:      w.next,
		sender:    func(s sig.Signal) (isProcess, isOutside bool) { return w.arrived.Has(s), s != w.inside },
		startSampling: func(observe.Config) sampler {
			w.sampling = true
			return w
		},
		snapshots:     w.samples,
		ask:           func(r *check.Request, limit time.Duration) { w.did("sends %v, for %v", r, limit) },
		answers:       w.answers,
		setHealthMode: func(during check.Mode) { w.did("answers health checks with %v", during) },
		writeLine:     w.writeLine,
		writeTermlog:  w.writeTermlog,
		flush:         func() {},
	}
}

func (w *world) ReleaseInherited()           { w.started = true }
func (w *world) Ticks() uint64               { return 1 }
func (w *world) Tracer() func(int) sig.Trace { return func(int) sig.Trace { return sig.Trace{} } }
func (w *world) Handled(p proc.Process) (handled, awaited, ignored sig.Set) {
	return w.process(p.PID).handles, 0, 0
}
func (w *world) StopSelf(s sig.Signal) { w.did("stops itself with %v", s) }
func (w *world) RetakeTerminal(int)    { w.did("takes back the terminal") }

func (w *world) KillDescendant(pid int, _ uint64, s sig.Signal) error { return w.Kill(pid, s) }

func (w *world) GiveTerminal(int) bool {
	w.did("hands over the terminal")
	return true
}

func (w *world) Program(pid int, _ bool) (string, []string) {
	program := w.process(pid).program
	return program, []string{program}
}

func (w *world) Continue(bool) {}
func (w *world) SlowDown()     { w.sampledSeldom = w.sampling }

func (w *world) writeLine(lines ...string) {
	for _, line := range lines {
		w.did("says %s", strings.TrimPrefix(line, "lameduck: "))
	}
}

// TestMain runs the tests in network and mount namespaces of their own.
func TestMain(m *testing.M) { netns.Main(m, syscall.CLONE_NEWNS) }
