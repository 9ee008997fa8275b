package shim

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

var update = flag.Bool("update", false, "write what was found into the golden files")

// TestScripts plays every golden script in virtual time.
func TestScripts(t *testing.T) {
	scripts, err := script.Load(testutil.Path("testdata/stop/*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playVirtual(t, s) })
		})
	}
}

func playVirtual(t *testing.T, s *script.Script) {
	w := &world{t: t, began: time.Now(), signals: make(chan sig.Signal, 100), ended: make(chan death, 100), samples: make(chan observe.Snapshot, 100), wake: make(chan bool, 100)}
	cfg := flags.Read(t, s.Flags)
	cfg.Command = []string{"command"}
	cfg.Env = s.Env
	p, err := newPlan(&cfg, plan.Place{PID1: !s.Job})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Others {
		w.rest = append(w.rest, firstOther+i)
	}
	for _, name := range s.Catches {
		w.catches = w.catches.With(mustSignal(t, name))
	}
	for len(s.Events) > 0 && strings.HasPrefix(s.Events[0].Text, "early ") {
		w.signals <- mustSignal(t, s.Events[0].Text[len("early "):])
		s.Events = s.Events[1:]
	}
	w.refuses = s.Refuses
	w.notes = cfg.TerminationLog != ""
	code, err := run(p, w.host(s.Events))
	if err != nil {
		t.Fatal(err)
	}
	w.did("leaves %d", code)
	compare(t, s, w.actions)
}

func compare(t *testing.T, s *script.Script, actions []script.Step) {
	t.Helper()
	got := s.Format(actions)
	if *update {
		s.Write(got)
	} else if got != s.Text {
		t.Errorf("got:\n%s\nwant:\n%s", got, s.Text)
	}
}

// world is a host in which a script happens. Processes end when the script says so, and
// the actions of lameduck are recorded.
type world struct {
	t       *testing.T
	began   time.Time
	events  []script.Step
	signals chan sig.Signal
	ended   chan death
	samples chan observe.Snapshot
	wake    chan bool
	population
	record
}

// population are the processes of a world.
type population struct {
	gone     bool          // the command has exited
	refuses  bool          // the kernel refuses signals to the command
	rest     []int         // PIDs of the other processes
	catches  sig.Set       // the signals that the command catches
	frozen   atomic.Int64  // lameduck is stopped until so long after the beginning
	executes atomic.Value  // the name of the program that the command runs by now, a string
	inside   atomic.Uint64 // the set of signals that processes of the container sent last
}

// record is what lameduck did.
type record struct {
	actions []script.Step
	notes   bool // whether the termination log is recorded
}

// The PIDs of the world. anyOther stands for the first of the other processes.
const commandPID, hookPID, anyOther, firstOther = 100, 101, 200, 201

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

type death struct {
	pid    int
	status proc.Status
}

func (w *world) did(format string, args ...any) {
	w.actions = append(w.actions, script.Step{At: time.Since(w.began), Text: fmt.Sprintf(format, args...)})
}

func (w *world) happen(t *testing.T, events []script.Step) {
	for _, e := range events {
		time.Sleep(time.Until(w.began.Add(e.At)))
		word, arg, _ := strings.Cut(e.Text, " ")
		switch word {
		case "exit":
			var code int
			fmt.Sscan(arg, &code)
			w.end(commandPID, proc.Status{Code: code})
		case "killed":
			w.end(commandPID, proc.Status{Signal: mustSignal(t, arg)})
		case "stopped":
			w.end(commandPID, proc.Status{Stopped: mustSignal(t, arg)})
		case "continued":
			w.end(commandPID, proc.Status{Continued: true})
		case "hook": // "hook exit 0", "hook killed KILL"
			status := proc.Status{}
			if name, killed := strings.CutPrefix(arg, "killed "); killed {
				status.Signal = mustSignal(t, name)
			} else {
				fmt.Sscanf(arg, "exit %d", &status.Code)
			}
			w.end(hookPID, status)
		case "executes":
			w.executes.Store(arg)
		case "orphan":
			w.end(anyOther, proc.Status{})
		case "sample":
			word, left, _ := strings.Cut(arg, ", waiting for ")
			w.samples <- observe.Snapshot{Began: time.Now(), State: mustLook(t, word), PathsPresent: strings.Fields(left)}
			w.wake <- true
		case "frozen":
			length, err := time.ParseDuration(arg)
			if err != nil {
				t.Error(err)
			}
			w.frozen.Store(int64(e.At + length))
		case "inside":
			w.inside.Store(uint64(sig.SetOf(mustSignal(t, arg))))
			w.signals <- mustSignal(t, arg)
		default:
			w.inside.Store(0)
			w.signals <- mustSignal(t, word)
		}
	}
}

func (w *world) next(until time.Time) sig.Signal {
	defer func() { time.Sleep(time.Until(w.began.Add(time.Duration(w.frozen.Load())))) }()
	var over <-chan time.Time
	if !until.IsZero() {
		over = time.After(time.Until(until))
	}
	select {
	case s := <-w.signals:
		return s
	case <-w.wake:
		return 0
	case <-over:
	}
	select { // a signal at the deadline wins
	case s := <-w.signals:
		return s
	default:
		return 0
	}
}

func (w *world) end(pid int, status proc.Status) {
	w.ended <- death{pid, status}
	w.signals <- sig.CHLD
}

// reap runs on the loop's goroutine, which alone changes w.rest.
func (w *world) Reap() (int, proc.Status) {
	select {
	case d := <-w.ended:
		if d.pid == anyOther && len(w.rest) > 0 {
			d.pid, w.rest = w.rest[0], w.rest[1:]
		}
		if d.pid == commandPID && d.status.Stopped == 0 && !d.status.Continued {
			w.gone = true
		}
		return d.pid, d.status
	default:
	}
	if w.gone && len(w.rest) == 0 {
		return proc.None, proc.Status{}
	}
	return proc.NoneYet, proc.Status{}
}

func (w *world) Descendants() (family []proc.Process) {
	for _, pid := range w.rest {
		family = append(family, proc.Process{PID: pid, Parent: 1})
	}
	return family
}

func (w *world) Kill(pid int, s sig.Signal) error {
	if w.refuses && pid == commandPID {
		return syscall.EPERM
	}
	w.did("sends %v%s", s, to(pid))
	if i := slices.Index(w.rest, pid); i >= 0 && s == sig.KILL {
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

// Find and StartBeside fail for a program called "missing".
func (w *world) Find(argv, _ []string) error {
	if argv[0] == "missing" {
		return &StartError{Command: argv[0], Err: syscall.ENOENT}
	}
	return nil
}

func (w *world) StartBeside(argv, env []string) (int, error) {
	w.did("runs %s", strings.Join(append(argv, env[len(env)-2:]...), " "))
	if argv[0] == "missing" {
		return 0, &StartError{Command: argv[0], Err: syscall.ENOENT}
	}
	return hookPID, nil
}

func mustLook(t *testing.T, text string) stop.TrafficState {
	for l := stop.Busy; l <= stop.Unseen; l++ {
		if l.String() == text {
			return l
		}
	}
	t.Errorf("no sample is called %q", text)
	return stop.Busy
}

func mustSignal(t *testing.T, text string) sig.Signal {
	s, err := sig.Parse(text)
	if err != nil {
		t.Error(err)
	}
	return s
}

// The world is the host.

func (w *world) host(events []script.Step) host {
	w.events = events
	return host{
		processes:   w,
		next:        w.next,
		fromOutside: func(s sig.Signal) bool { return !sig.Set(w.inside.Load()).Has(s) },
		startSampling: func(observe.Config) sampler {
			w.did("samples")
			return w
		},
		snapshots:     w.samples,
		serveHealth:   func(check.Spec) error { return nil },
		setHealthMode: func(during check.Mode) { w.did("answers health checks with %v", during) },
		writeLine:     w.writeLine,
		writeTermlog:  w.writeTermlog,
		flush:         func() {},
	}
}

func (w *world) Reserve() error                        { return nil }
func (w *world) BecomeSubreaper() error                { return nil }
func (w *world) SetParentDeathSignal(sig.Signal) error { return nil }
func (w *world) Start(proc.Command) (int, error)       { return commandPID, nil }
func (w *world) ReleaseInherited()                     { go w.happen(w.t, w.events) }
func (w *world) Catches(_ int, s sig.Signal) bool      { return w.catches.Has(s) }
func (w *world) Tell(pid int, s sig.Signal) (bool, error) {
	if !w.catches.Has(s) {
		return false, nil
	}
	return true, w.Kill(pid, s)
}
func (w *world) IsShell(int) bool      { return false }
func (w *world) StopSelf(s sig.Signal) { w.did("stops itself with %v", s) }
func (w *world) RetakeTerminal(int)    { w.did("takes back the terminal") }

func (w *world) KillDescendant(p proc.Process, s sig.Signal) error { return w.Kill(p.PID, s) }

func (w *world) GiveTerminal(int) bool {
	w.did("hands over the terminal")
	return true
}

func (w *world) Program(int) (string, []string) {
	name, _ := w.executes.Load().(string)
	return name, []string{name}
}

func (w *world) Continue(bool) {}
func (w *world) SlowDown()     { w.did("samples seldom") }

func (w *world) writeLine(lines ...string) {
	for _, line := range lines {
		w.did("says %s", strings.TrimPrefix(line, "lameduck: "))
	}
}

// TestMain runs the tests in network and mount namespaces of their own.
func TestMain(m *testing.M) { netns.Main(m, syscall.CLONE_NEWNS) }

// loggedEntry is a line in JSON.
type loggedEntry struct {
	Schema         int
	Time           time.Time
	Level, Message string
	report.Figures
}

// TestTroubleOnce: why the traffic is not observed in the best way is said when it changes.
func TestTroubleOnce(t *testing.T) {
	var said []string
	l := &loop{
		plan: &plan.Plan{Config: Config{Level: Warn, Until: Quiet}},
		host: host{writeLine: func(lines ...string) { said = append(said, lines...) }},
	}
	for _, trouble := range []string{"", "first", "first", "second", "", ""} {
		s := observe.Snapshot{Observer: observe.ProcNet, Trouble: trouble}
		l.warnUnobservable(&s, &report.Observation{})
		l.sample = s
	}
	const prefix = "lameduck: warning: observing the traffic through /proc/net: "
	if !slices.Equal(said, []string{prefix + "first", prefix + "second"}) {
		t.Errorf("said %q", said)
	}
}

// TestGapInJSON: dropped lines are reported in the format of the other lines.
func TestGapInJSON(t *testing.T) {
	var e loggedEntry
	if line := newStderr(2, true).DroppedText(7); json.Unmarshal([]byte(line), &e) != nil || e.Level != "warn" || !strings.HasPrefix(e.Message, "7 lines dropped") {
		t.Errorf("it says %s", line)
	}
	if line := newStderr(2, false).DroppedText(7); !strings.HasPrefix(line, "lameduck: 7 lines dropped") {
		t.Errorf("it says %s", line)
	}
}

// TestViewOfSlowRequest: a request that was silent before the first view is in flight, as
// for a hold that begins with the view, and is given up as late as in that hold.
func TestViewOfSlowRequest(t *testing.T) {
	first := time.Unix(1_000_000_000, 0)
	v := &watch{start: first.Add(-known), givesUp: first.Add(30 * time.Second)}
	s := &observe.Snapshot{Sample: traffic.Sample{
		Verdict: traffic.Verdict{Settled: true, Quiet: true}, Open: 1, LeftOut: traffic.LeftOut{GivenUp: 1},
	}}
	for after, inFlight := range map[time.Duration]int{0: 1, 29 * time.Second: 1, 30 * time.Second: 0} {
		view := v.view(first.Add(after), s)
		if view.InFlight != inFlight || view.Quiet != (inFlight == 0) || !view.Settled || view.Open != 1 {
			t.Errorf("after %v: %d in flight, quiet: %v, settled: %v, %d open; want %d in flight", after, view.InFlight, view.Quiet, view.Settled, view.Open, inFlight)
		}
	}
}
