package stop

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// History is what is known about the processes below lameduck during a stop: who was there, who had a
// handler, and who was signaled. It decides by the past, since at its first signal a process may take
// its handler out, and a wrapper may pass its signal on and end.
type History struct {
	rewrites sig.Rewrites
	beside   bool                           // the end of the command is that of all, see NewHistory
	tracer   func() func(pid int) sig.Trace // for one look; each trace takes time: asked about few processes

	members map[id]*member
	command *member // without a PID: never seen
	begun   bool    // a signal of the schedule was sent, or the command has ended

	// Of the last look:
	order []*member // parents before their children
	roots []*member // those whose parent is lameduck

	group       int        // a process group that was signaled; 0: none was
	groupSignal sig.Signal // with what
	groupAt     uint64     // and when, as Process.Start

	readUntil time.Time // when the last have had readTime; zero: it has not begun
}

// member is a process, and its past.
type member struct {
	Process            // as of the last look that showed it
	parent   *member   // the last one that was not lameduck; nil: none was seen
	works    bool      // it had a handler for that at some look, and is at work until it ends
	signaled bool      // by lameduck, by its PID
	below    []*member // those below it that are signaled first, once that is decided

	// Of the last look:
	present  bool
	children []*member

	// Whether somebody else has signaled it:
	before  sig.Trace // before the first signal
	now     sig.Trace // of the last look
	doubted time.Time // since when it is not clear; zero: it never was
}

// maxTraces limits the traces of one look, which take tens of milliseconds then.
const maxTraces = 256

// NewHistory returns the history of a stop in which a rewrite of TERM asks processes to end, or of the stop
// by a hook beside the command, whose end is that of the container. tracer returns what takes
// the present traces of processes.
func NewHistory(rewrites sig.Rewrites, beside bool, tracer func() func(pid int) sig.Trace) *History {
	return &History{
		rewrites: rewrites, beside: beside, tracer: tracer, members: map[id]*member{}, command: &member{},
	}
}

// Look notes the processes below lameduck, parents before their children. command is the PID of the
// command, or 0 when it has ended.
func (h *History) Look(command int, list []Process) {
	h.begun = h.begun || command == 0 && h.command.PID != 0
	if !h.begun {
		clear(h.members)
		h.command = &member{}
	}
	for _, m := range h.order {
		m.present, m.children = false, nil
	}
	h.order, h.roots = nil, nil
	shown := map[int]*member{}
	for _, p := range list {
		m := h.members[p.id()]
		if m == nil {
			m = &member{}
			h.members[p.id()] = m
		}
		m.Process, m.present = p, true
		if p.PID == command {
			h.command = m
		}
		if parent := shown[p.Parent]; parent == nil {
			h.roots = append(h.roots, m)
		} else {
			m.parent = parent
			parent.children = append(parent.children, m)
		}
		shown[p.PID] = m
		h.order = append(h.order, m)
	}
	for _, m := range h.order {
		h.noteHandler(m)
	}
	h.takeTraces()
}

// noteHandler notes which signal asks a process to end, and whether the process handles it. It is that of
// the server that the process is, or TERM, rewritten unless the rewritten signal was for the command.
func (h *History) noteHandler(m *member) {
	to, _ := h.rewrites.Of(sig.TERM) // 0: dropped, and handled by nobody
	isOfCommand := m != h.command && h.command.Handled.Has(to)
	switch {
	case m.Handled.Has(m.Asks):
	case m.Handled.Has(to) && !isOfCommand:
		m.Asks = to
	default:
		m.Asks = sig.TERM
	}
	m.works = m.works || m.Handled.Has(m.Asks)
}

// takeTraces takes the traces of the processes that another than lameduck may signal, or has.
func (h *History) takeTraces() {
	trace, left := h.tracer(), maxTraces
	for _, m := range h.order {
		if byParent, byOthers := h.mayBeTold(m); m.works && (byParent || byOthers) && left > 0 {
			left--
			m.now = trace(m.PID)
			if !h.begun {
				m.before = m.now
			}
		}
	}
}

// mayBeTold reports whether the parent of a process, or somebody further above, may have passed a signal on
// to it: whoever has no handler is ended by the signal. The command may have told those who were orphans
// already.
func (h *History) mayBeTold(m *member) (byParent, byOthers bool) {
	above := m.parent
	if above == nil && m != h.command {
		above = h.command
	}
	byParent = above != nil && above.works
	for i := 0; above != nil && i < len(h.members); i++ { // no look shows a cycle, but two of them may
		byOthers = byOthers || above.works
		above = above.parent
	}
	return byParent, byOthers
}

// Aim returns the processes below the command that a signal of the schedule is for, and that have not
// ended, with the known server that the command is or has below it, if any. It returns none if the signal is
// for the command, as KILL is.
//
// That is whoever handles it, from the top. A shell gets it even so, since it would go on with its next
// command. Any other program may be what those below it write to, or what they live by: it gets the
// signal when they have ended. So do shells and inits that a hook stops, since they end the container.
func (h *History) Aim(s sig.Signal, server string) []Process {
	c := h.command
	isServer := server != "" && c.Server == server
	servers := nearest(c.children, func(m *member) bool { return server != "" && m.Server == server })
	isInit := slices.Contains(inits, c.Program)
	isFirst := c.Awaited.Has(s) || isInit || c.isShell(s)
	isLast := h.beside && (isInit || c.IsShell())
	switch {
	case s == sig.KILL:
		return nil
	case h.begun: // the first signal has decided it
	case isServer, c.takes(s), c.Program == "":
		c.below = nil
	case len(servers) > 0:
		c.below = servers[:1]
	case isFirst && !isLast:
		c.below = nil
	default:
		c.below = topmost(c.children, func(m *member) bool { return m.Handled.Has(s) })
	}
	return h.Below()
}

// Below returns the processes that Aim has returned and that have not ended.
func (h *History) Below() []Process { return processes(h.command.below, (*member).isPresent) }

// takes reports whether a process has a handler for s, and ends by it. Shells catch INT, but only to wait for
// their child; inits pass signals on, mostly without handlers; su passes them on, and kills.
func (m *member) takes(s sig.Signal) bool {
	caught := m.Handled.Without(m.Awaited)
	passesOn := slices.Contains(inits, m.Program) || slices.Contains(killers, m.Program)
	return caught.Has(s) && (s != sig.INT || caught.Has(sig.TERM)) && !passesOn
}

// isShell reports whether a process is a shell that s would end.
func (m *member) isShell(s sig.Signal) bool {
	return m.IsShell() && !m.Accepts(s)
}

// topmost returns the topmost processes among some and their descendants that are of a kind.
func topmost(some []*member, is func(*member) bool) (found []*member) {
	for _, m := range some {
		if is(m) {
			found = append(found, m)
		} else {
			found = append(found, topmost(m.children, is)...)
		}
	}
	return found
}

// nearest returns those of a kind among some processes, or else among their children, and so on.
func nearest(some []*member, is func(*member) bool) (found []*member) {
	for len(some) > 0 && len(found) == 0 {
		var next []*member
		for _, m := range some {
			if is(m) {
				found = append(found, m)
			}
			next = append(next, m.children...)
		}
		some = next
	}
	return found
}

// Server returns the only known server at its depth below a command that does not handle s.
func (h *History) Server(s sig.Signal) (server Process, found bool) {
	servers := nearest(h.command.children, func(m *member) bool { return m.Server != "" })
	if len(servers) == 1 && !h.command.takes(s) {
		return servers[0].Process, true
	}
	return server, false
}

// processes returns those of some members that are of a kind.
func processes(some []*member, are func(*member) bool) (list []Process) {
	for _, m := range some {
		if are(m) {
			list = append(list, m.Process)
		}
	}
	return list
}

func (m *member) isPresent() bool { return m.present }

func (m *member) isAtWork() bool { return m.works }

// Processes returns the processes of the last look.
func (h *History) Processes() []Process { return processes(h.order, (*member).isPresent) }

// Command returns the command, as the last look showed it, without a PID if none did.
func (h *History) Command() Process { return h.command.Process }

// Signaled notes that lameduck has sent a process a signal of the stop.
func (h *History) Signaled(p Process) {
	h.begun = true
	if m := h.members[p.id()]; m != nil {
		m.signaled = true
	}
}

// SignaledGroup notes that lameduck has sent a process group a signal, at a time in the unit of Process.Start.
func (h *History) SignaledGroup(group int, s sig.Signal, at uint64) {
	h.begun, h.group, h.groupSignal, h.groupAt = true, group, s, at
}

// wasSignaled reports whether lameduck has sent a process a signal of the stop, alone or with its group.
func (h *History) wasSignaled(m *member) bool {
	inGroup := h.group != 0 && m.Group == h.group && m.Start <= h.groupAt
	return m.signaled || inGroup && !m.Ignored.Has(h.groupSignal)
}

// readTime is how long what the command or the others wrote to, such as tee, has to read the rest when they have
// ended, and to end by itself.
const readTime = 80 * time.Millisecond

// Left returns, of what the command has left behind, which processes are signaled now, and which are at
// work, so that lameduck waits for their end, until a given time at most. When nobody is at work any more the rest
// is signaled, which has nothing to clean up: waits reports whether it still has time to read. At the end of the
// time the rest is signaled alone.
//
// Only roots are signaled: lameduck's own children, and instead of those that ignore their signal, and
// would neither end nor pass it on, their children. The children of roots are left to them, and become
// roots when they end. But a root that neither handles its signal nor is a shell gets it last, after what
// is at work below it; see Aim.
func (h *History) Left(now, until time.Time) (signal, atWork []Process, waits bool) {
	var last []Process
	isOpen := func(m *member) bool { return m.present && !h.wasSignaled(m) && !h.seemsTold(m, now, until) }
	isRoot := func(m *member) bool { return m.works || !m.Ignored.Has(m.Asks) }
	for _, root := range topmost(h.roots, isRoot) {
		working := topmost([]*member{root}, (*member).isAtWork)
		atWork = append(atWork, processes(working, (*member).isPresent)...)
		switch {
		case h.wasSignaled(root) && root.Stopped: // a member of the group
			resumed := root.Process
			resumed.Asks = sig.CONT
			signal = append(signal, resumed)
		case !isOpen(root):
		case len(working) == 0:
			last = append(last, root.Process)
		case root.isLast():
			signal = append(signal, processes(root.below, isOpen)...)
		default:
			signal = append(signal, root.Process)
		}
	}
	switch {
	case !now.Before(until): // who is in doubt was told by now
		return last, atWork, false
	case len(atWork) > 0 || len(last) == 0:
		return signal, atWork, false
	}
	if h.readUntil.IsZero() {
		h.readUntil = now.Add(readTime)
	}
	waits = now.Before(h.readUntil)
	if !waits {
		signal = append(signal, last...)
	}
	return signal, atWork, waits
}

// isLast reports whether a root waits for those at work below it, since it neither takes its signal nor is a
// shell. When they have ended it gets its signal, since it may start others.
func (m *member) isLast() bool {
	isFirst := m.works && m.takes(m.Asks) || m.isShell(m.Asks)
	if !isFirst && m.below == nil {
		m.below = topmost(m.children, (*member).isAtWork)
	}
	return slices.ContainsFunc(m.below, (*member).isPresent)
}

// seemsTold reports whether a process at work is left alone, because another than lameduck has told it
// to end, or may have. A handler that is gone and a listener that is closed are signs that somebody has;
// that no thread has run since the first signal proves that nobody has. In doubt, the process is told
// when half of the time until the end has passed.
func (h *History) seemsTold(m *member, now, until time.Time) bool {
	byParent, byOthers := h.mayBeTold(m)
	switch {
	case !m.works:
		return false
	case !m.Handled.Has(m.Asks):
		return true
	case !byParent && !byOthers:
		return false
	case m.now.Known && m.now.Listeners < m.before.Listeners:
		return true
	case m.isUntouched(), !byParent && !m.parent.present: // without a handler the signal has ended it
		return false
	case m.doubted.IsZero():
		m.doubted = now
	}
	return now.Before(m.doubted.Add(until.Sub(m.doubted) / 2))
}

// isUntouched reports whether the traces prove that a process at work has got no signal.
func (m *member) isUntouched() bool {
	return m.before.Known && m.now.Idle && m.now.Switches == m.before.Switches
}

// Untold returns the processes at work below the command that certainly nobody has told to end.
func (h *History) Untold() []Process { return processes(h.order, (*member).isUntouched) }
