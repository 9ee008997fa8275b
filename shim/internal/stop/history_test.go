package stop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// actor is a process of a history, below lameduck, which is process 1. Its program is its name without
// digits. What it does at TERM, by its words:
//
//	(none)   ends: it has no handler
//	works    ends 1.5 s after the first TERM that it handles; a second one ends it at once
//	slow     the same, after 6 s
//	once     works, and its handler is gone from the first TERM on
//	ignores  works, and ignores TERM from the first one on
//	deaf     ignores TERM
//	exits    handles TERM: ends, and tells nobody
//	tells    handles TERM: passes it on to its children, and ends
//	waits    handles TERM: passes it on to its children, and ends when they have
//	keeps    handles TERM: ends when its children have
//	group    handles TERM: passes it on to all below it, and ends
//	far      handles TERM: passes it on to its children's children, and ends
//	runs     ends when its children have; without a handler
//	restarts starts its child again when that has ended; without a handler
//
// And, besides: ticks (its threads run all the time), listens (and closes its listener at TERM), lives
// by its parent (parent: it is cut when the parent ends), stopped (and does nothing until it is continued), brief
// (it ends after a second, whatever comes).
// A tree after "all" gets TERM from somebody else, and nothing from lameduck until the command has ended.
type actor struct {
	stop.Process
	words    []string
	children []*actor
	terms    int
	endsAt   time.Duration // 0: not yet known
	ended    bool
	pending  bool // it is stopped, and has TERM to handle
	switches uint64
}

// handlers are the words of those that handle TERM.
var handlers = []string{"works", "slow", "once", "ignores", "exits", "tells", "waits", "keeps", "group", "far"}

func (a *actor) is(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(a.words, w) })
}

// works reports whether an actor has work to do after TERM.
func (a *actor) works() bool { return a.is(handlers[:4]...) }

// ignoresTERM reports whether an actor ignores TERM by now.
func (a *actor) ignoresTERM() bool { return a.is("deaf") || a.is("ignores") && a.terms > 0 }

// family returns actors and all below them.
func family(some []*actor) (all []*actor) {
	for _, a := range some {
		all = append(append(all, a), family(a.children)...)
	}
	return all
}

// stage is a history in virtual time.
type stage struct {
	all     []*actor
	now     time.Duration
	history *stop.History
	said    []string // orders and ends, with their times

	toldByOthers bool
}

// newStage reads a tree: each process with its children in parentheses, NAME.WORD.WORD.
func newStage(text string) *stage {
	p := &stage{}
	parents := []*actor{nil}
	for _, word := range strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)) {
		switch word {
		case "(":
			parents = append(parents, p.all[len(p.all)-1])
		case ")":
			parents = parents[:len(parents)-1]
		case "all":
			p.toldByOthers = true
		default:
			words := strings.Split(word, ".")
			a := &actor{words: words}
			a.Stopped = a.is("stopped")
			if a.is("brief") {
				a.endsAt = time.Second
			}
			a.PID, a.Parent, a.Program = 100+len(p.all), 1, strings.TrimRight(words[0], "0123456789")
			if parent := parents[len(parents)-1]; parent != nil {
				a.Parent = parent.PID
				parent.children = append(parent.children, a)
			}
			p.all = append(p.all, a)
		}
	}
	return p
}

// list returns the processes, parents first.
func (p *stage) list() (list []stop.Process) {
	for _, a := range p.all {
		a.Handled, a.Ignored = 0, 0
		switch {
		case a.ignoresTERM():
			a.Ignored = sig.SetOf(sig.TERM)
		case a.is(handlers...) && !(a.is("once") && a.terms > 0):
			a.Handled = sig.SetOf(sig.TERM)
		}
		if !a.ended {
			list = append(list, a.Process)
		}
	}
	return list
}

func (p *stage) trace(pid int) sig.Trace {
	a := p.all[pid-100]
	t := sig.Trace{Known: true, Idle: !a.is("ticks") && !a.pending, Switches: a.switches}
	if a.is("listens") && a.terms == 0 {
		t.Listeners = 1
	}
	if a.is("ticks") {
		a.switches++
	}
	return t
}

func (p *stage) say(format string, args ...any) {
	p.said = append(p.said, fmt.Sprintf("%v ", p.now.Seconds())+fmt.Sprintf(format, args...))
}

// term is TERM's arrival at processes.
func (p *stage) term(all ...*actor) {
	for _, a := range all {
		switch {
		case a.ended, a.ignoresTERM():
			continue
		case a.Stopped:
			a.pending = true
			continue
		}
		a.terms++
		a.switches++
		switch {
		case a.works() && a.terms > 1:
			p.say("%s twice", a.words[0])
			p.end(a)
		case a.is("slow"):
			a.endsAt = p.now + 6*time.Second
		case a.works():
			a.endsAt = p.now + 1500*time.Millisecond
		}
		for _, below := range family(a.children) {
			isChild := below.Parent == a.PID
			if a.is("group") || isChild && a.is("tells", "waits") || !isChild && a.is("far") {
				p.term(below)
			}
		}
		if !a.works() && !a.is("waits", "keeps") {
			p.end(a)
		}
	}
}

// end ends a process, whose children become lameduck's.
func (p *stage) end(a *actor) {
	if a.ended {
		return
	}
	a.ended = true
	for _, child := range a.children {
		if child.is("parent") && !child.ended {
			p.say("%s cut", child.words[0])
			p.end(child)
		}
		child.Parent = 1
	}
}

// step lets a moment pass.
func (p *stage) step(moment time.Duration) {
	p.now += moment
	for _, a := range slices.Backward(p.all) {
		open := slices.ContainsFunc(a.children, func(c *actor) bool { return !c.ended })
		switch {
		case a.ended:
		case a.endsAt > 0 && p.now >= a.endsAt:
			p.say("%s clean", a.words[0])
			p.end(a)
		case a.is("runs") && !open, a.is("waits", "keeps") && a.terms > 0 && !open:
			p.end(a)
		case a.is("restarts") && !open && len(a.children) == 1:
			again := &actor{words: a.children[0].words}
			again.Process = stop.Process{PID: 100 + len(p.all), Start: 1, Parent: a.PID, Program: again.words[0]}
			a.children = append(a.children, again)
			p.all = append(p.all, again)
		}
	}
}

// order sends TERM.
func (p *stage) order(processes []stop.Process) {
	for _, to := range processes {
		p.say("TERM %s", p.all[to.PID-100].words[0])
		p.history.Signaled(to)
		p.all[to.PID-100].Stopped = false // CONT follows
		p.term(p.all[to.PID-100])
	}
}

// run plays a stop with a grace period of 30 s, and looks each quarter of a second.
func (p *stage) run() {
	const look = 250 * time.Millisecond
	until := epoch.Add(29 * time.Second)
	p.history = stop.NewHistory(sig.Rewrites{}, false, func() func(int) sig.Trace { return p.trace })
	command := p.all[0]
	p.history.Look(command.PID, p.list())
	below := p.history.Aim(sig.TERM, "")
	if len(below) == 0 {
		below = []stop.Process{command.Process}
	}
	if p.toldByOthers {
		p.term(family(p.all[:1])...)
	} else {
		p.order(below)
	}
	told, idle := below[0].PID == command.PID, 0
	for ; p.now < 29*time.Second; p.step(look) {
		pid := command.PID
		if command.ended {
			pid = 0
		}
		p.history.Look(pid, p.list())
		orders, atWork, waits := p.history.Left(epoch.Add(p.now), until)
		switch {
		case command.ended:
			p.order(orders)
			if len(atWork) == 0 && !waits {
				return
			}
		case !told && idle > 0:
			told, idle = true, 0
			p.order([]stop.Process{command.Process})
			continue
		}
		if idle++; !command.ended && (told || len(p.history.Aim(sig.TERM, "")) > 0) {
			idle = 0
		}
	}
	p.say("end")
	for _, untold := range p.history.Untold() {
		p.say("%s untold", untold.Program)
	}
}

// TestHistories: whom lameduck tells to end, and when, behind what usually stands in front of a program;
// the command comes first in each tree.
func TestHistories(t *testing.T) {
	for _, cells := range tables.Rows(`
		# tree | what happens, after so many seconds

		# Commands that do not handle the signal: shells first, others last.
		app.works                               | 0 TERM app, 1.5 app clean
		sh(app.works)                           | 0 TERM sh, 0 TERM app, 1.5 app clean
		sh(app.works tee)                       | 0 TERM sh, 0 TERM app, 1.5 app clean, 1.75 TERM tee
		sh(sh(app.works))                       | 0 TERM sh, 0 TERM sh, 0.25 TERM app, 1.75 app clean
		sh(sleep)                               | 0 TERM sh, 0.25 TERM sleep
		tail app.works                          | 0 TERM tail, 0 TERM app, 1.5 app clean
		python.runs(app.works)                  | 0 TERM app, 1.5 app clean
		python(app.works.parent)                | 0 TERM app, 1.5 app clean, 1.75 TERM python
		python(sleep)                           | 0 TERM python, 0.25 TERM sleep
		forever.restarts(app.works)             | 0 TERM app, 1.5 app clean, 1.75 TERM forever, 2 TERM app, 3.5 app clean
		sh(forever.restarts(app.works))         | 0 TERM sh, 0 TERM app, 1.5 app clean, 1.5 TERM forever, 1.75 TERM app, 3.25 app clean
		sh(python(app.works.parent))            | 0 TERM sh, 0 TERM app, 1.5 app clean, 1.75 TERM python
		bash.deaf(app.works)                    | 0 TERM app, 1.5 app clean, 1.75 TERM bash, 29 end
		sh(bash.deaf(app.works sleep))          | 0 TERM sh, 0 TERM app, 1.5 app clean, 1.75 TERM sleep
		sh(trap.deaf(sh(app.works)))            | 0 TERM sh, 0 TERM sh, 0.25 TERM app, 1.75 app clean

		# Wrappers that handle the signal.
		npm.waits(app.works)                    | 0 TERM npm, 1.5 app clean
		npm.tells(sh(app.works))                | 0 TERM npm, 0 TERM app, 1.5 app clean
		tini.waits(sh(app.works))               | 0 TERM tini, 0.25 TERM app, 1.75 app clean
		bash.tells(app.works)                   | 0 TERM bash, 1.5 app clean
		bash.tells(app.slow)                    | 0 TERM bash, 6 app clean
		bash.group(sh(app.works.listens))       | 0 TERM bash, 1.5 app clean
		bash.far(flock.runs(app.works))         | 0 TERM bash, 1.5 app clean
		bash.exits(app.works)                   | 0 TERM bash, 0 TERM app, 1.5 app clean
		bash.exits(app.works.listens)           | 0 TERM bash, 0 TERM app, 1.5 app clean
		bash.exits(app.works.ticks)             | 0 TERM bash, 14.5 TERM app, 16 app clean
		bash.exits(sh(app.works))               | 0 TERM bash, 0 TERM sh, 0.25 TERM app, 1.75 app clean
		bash.exits(sleep) app.works             | 0 TERM bash, 0 TERM app, 1.5 app clean, 1.75 TERM sleep
		bash.exits app.works.ticks              | 0 TERM bash, 14.5 TERM app, 16 app clean
		master.keeps(one.works two.works)       | 0 TERM master, 29 end, 29 one untold, 29 two untold

		npm.tells(sh(app.works.ticks))          | 0 TERM npm, 0 TERM app, 1.5 app clean
		bash.tells(app.works.stopped)           | 0 TERM bash, 14.5 TERM app, 16 app clean
		all bash.exits(app.works)               | 1.5 app clean

		# Programs whose handler goes at the first signal.
		sh(app.ignores)                         | 0 TERM sh, 0 TERM app, 1.5 app clean
		bash.group(sh(app.once))                | 0 TERM bash, 1.5 app clean

		# su and runuser KILL what they run soon after TERM.
		su.waits(app.slow)                      | 0 TERM app, 6 app clean, 6.25 TERM su
		sh(su.waits(app.slow))                  | 0 TERM sh, 0 TERM app, 6 app clean, 6 TERM su
		sh(su.waits(one.works.ticks.brief two.works.ticks)) | 0 TERM sh, 1 one clean, 14.5 TERM two, 16 two clean, 16 TERM su
		sh(su.waits(bash(app.slow)))            | 0 TERM sh, 0 TERM app, 6 app clean, 6 TERM su
		su.waits(sleep)                         | 0 TERM su
	`) {
		p := newStage(cells[0])
		p.run()
		if got := strings.Join(p.said, ", "); got != cells[1] {
			t.Errorf("%s:\n  %s\nwant\n  %s", cells[0], got, cells[1])
		}
	}
}

// newHistory returns a history that has looked at some processes, of which the first is the command.
func newHistory(beside bool, list ...stop.Process) *stop.History {
	tracer := func() func(int) sig.Trace { return func(int) sig.Trace { return sig.Trace{} } }
	h := stop.NewHistory(sig.Rewrites{}, beside, tracer)
	h.Look(list[0].PID, list)
	return h
}

// TestGroup: the signal of a process group reaches its members of that moment that do not ignore it.
func TestGroup(t *testing.T) {
	var list []stop.Process
	for _, cells := range tables.Rows(`
		# PID and group | start
		7 7   | 1
		8 7   | 2
		9 9   | 2
		10 7  | 2
		11 7  | 2
		12 7  | 11
	`) {
		var p stop.Process
		fmt.Sscan(strings.Join(cells, " "), &p.PID, &p.Group, &p.Start)
		p.Handled = sig.SetOf(sig.TERM)
		list = append(list, p)
	}
	list[0].Handled, list[3].Ignored, list[4].Stopped = 0, sig.SetOf(sig.INT), true
	h := newHistory(false, list...)
	h.Signaled(list[0])
	h.SignaledGroup(7, sig.INT, 10)
	h.Look(0, list[1:])
	orders, atWork, _ := h.Left(epoch, epoch.Add(time.Minute))
	got := ""
	for _, o := range orders {
		got += fmt.Sprint(o.Asks, " ", o.PID, " ")
	}
	if got != "TERM 9 TERM 10 CONT 11 TERM 12 " || len(atWork) != 5 {
		t.Errorf("%s, %d at work", got, len(atWork))
	}
}

// TestInit: below an init or a shell beside which a hook runs, those who handle the signal get it. What else
// waits for signals gets it itself. A known server gets its own wherever it is.
func TestInit(t *testing.T) {
	terms := sig.SetOf(sig.TERM, sig.QUIT)
	for _, cells := range tables.Rows(`
		# the first process | the preset's server | who gets TERM by a hook | by lameduck as PID 1
		tini      |       | nginx |
		tini      | nginx | nginx | nginx
		catatonit |       | nginx |
		s6-svscan |       |       |
		s6-svscan | nginx | nginx | nginx
		dumb-init |       | nginx |
		dumb-init | nginx | nginx | nginx
		bash      |       | nginx |
		bash      | nginx | nginx | nginx
		python    |       | nginx | nginx
		nginx     | nginx |       |
	`) {
		for i, beside := range []bool{true, false} {
			first := stop.Process{PID: 7, Program: cells[0]}
			switch cells[0] {
			case "dumb-init": // which has handlers that do nothing
				first.Handled = terms
			case "nginx":
				first.Server = "nginx"
			case "tini", "catatonit", "s6-svscan":
				first.Handled, first.Awaited = terms, terms
			}
			nginx := stop.Process{PID: 8, Parent: 7, Program: "nginx", Server: "nginx", Handled: terms}
			h := newHistory(beside, first, nginx)
			got := ""
			for _, p := range h.Aim(sig.TERM, cells[1]) {
				got += p.Program
			}
			if server, found := h.Server(sig.TERM); got != cells[2+i] || !found || server.PID != 8 {
				t.Errorf("%s, beside: %v: %s; server %v", cells, beside, got, server)
			}
		}
	}
}

// TestNearest: of several known servers that of the least depth is meant, such as a master beside a script that
// has it reopen its logs.
func TestNearest(t *testing.T) {
	nginx := func(pid, parent int) stop.Process {
		return stop.Process{PID: pid, Parent: parent, Server: "nginx", Handled: sig.SetOf(sig.TERM)}
	}
	h := newHistory(false, stop.Process{PID: 7, Program: "sh"},
		stop.Process{PID: 8, Parent: 7, Program: "sh"}, nginx(9, 8), nginx(10, 7))
	below := h.Aim(sig.TERM, "nginx")
	if server, _ := h.Server(sig.TERM); len(below) != 1 || below[0].PID != 10 || server.PID != 10 {
		t.Errorf("%v, %v", below, server)
	}
}

// TestBadTrees: whatever two looks show, and of however many processes, each look has an answer.
func TestBadTrees(t *testing.T) {
	process := func(pid, parent int) stop.Process {
		return stop.Process{PID: pid, Parent: parent, Handled: sig.SetOf(sig.TERM)}
	}
	h := newHistory(false, process(2, 1), process(3, 2), process(4, 3))
	h.Signaled(stop.Process{PID: 2})
	for _, list := range [][]stop.Process{
		{process(4, 1), process(3, 4)}, // the parent's parent is its child
		{process(3, 4), process(4, 3)}, // each is the other's
		{process(3, 3)},
		{process(4, 99)}, // whose parent is not shown
		nil,
	} {
		h.Look(0, list)
		if _, atWork, _ := h.Left(epoch, epoch.Add(time.Minute)); len(atWork) != min(len(list), 1) {
			t.Errorf("%v: %v at work", list, atWork)
		}
	}
	var deep []stop.Process
	for pid := range 5000 {
		deep = append(deep, process(pid+2, pid+1))
	}
	h.Look(0, deep)
	if orders, _, _ := h.Left(epoch, epoch.Add(time.Minute)); len(orders) > 1 {
		t.Errorf("%d orders", len(orders))
	}
}
