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
	beside   bool                     // the end of the command is that of all, see NewHistory
	traces   func(pids []int) []Trace // takes time: asked about few processes

	members map[ID]*member
	command *member // nil: never seen

	// Of the last look:
	present  map[int]*member
	order    []*member         // parents before their children
	children map[int][]*member // by the parent's PID; 0: those whose parent is lameduck

	begun bool      // a signal of the schedule was sent, or the command has ended
	below []*member // that the schedule is for, rather than for the command

	group       int        // a process group that was signaled; 0: none was
	groupSignal sig.Signal // with what
	groupAt     uint64     // and when, as ID.Start
}

// member is a process, and its past.
type member struct {
	Process             // as of the last look that showed it
	parent   *member    // the last one that was not lameduck; nil: none was seen
	signal   sig.Signal // asks it to end
	works    bool       // it had a handler for that at some look, and is at work until it ends
	signaled bool       // by lameduck, by its PID
	before   Trace      // before the first signal, if somebody else may signal it
	now      Trace      // of the last look
	below    []*member  // a root that is signaled after them
	doubted  time.Time  // since when it is not clear whether somebody has; zero: it never was
}

// Trace is what a signal leaves behind in a process that handles it. Two of them, from before and after,
// show whether the process has got one.
type Trace struct {
	Known     bool   // the other fields are
	Idle      bool   // all threads sleep, and no signal waits for them
	Switches  uint64 // how often its threads have given up a processor
	Listeners int    // its TCP sockets that listen
}

// Order is a signal for a process.
type Order struct {
	Process
	Signal sig.Signal
}

// maxTraces limits the traces of one look, which take tens of milliseconds then.
const maxTraces = 256

// NewHistory returns the history of a stop in which a rewrite of TERM asks processes to end, or of the stop
// by a hook beside the command, whose end is that of the container. traces returns the present traces of
// processes.
func NewHistory(rewrites sig.Rewrites, beside bool, traces func(pids []int) []Trace) *History {
	return &History{rewrites: rewrites, beside: beside, traces: traces, members: map[ID]*member{}}
}

// Look notes the processes below lameduck, parents before their children. command is the PID of the
// command, or 0 when it has ended.
func (h *History) Look(command int, list []Process) {
	h.begun = h.begun || command == 0 && h.command != nil
	if !h.begun {
		clear(h.members)
		h.command = nil
	}
	h.present, h.children, h.order = map[int]*member{}, map[int][]*member{}, nil
	for _, p := range list {
		m := h.members[p.ID]
		if m == nil {
			m = &member{}
			h.members[p.ID] = m
		}
		m.Process = p
		if p.PID == command {
			h.command = m
		}
		parent := h.present[p.Parent]
		if parent == nil {
			h.children[0] = append(h.children[0], m)
		} else {
			m.parent = parent
			h.children[p.Parent] = append(h.children[p.Parent], m)
		}
		h.present[p.PID] = m
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
	s := sig.TERM
	to, passes := h.rewrites.Of(s)
	isOfCommand := m != h.command && h.command != nil && h.command.Handled.Has(to)
	switch {
	case m.Asks != 0 && m.Handled.Has(m.Asks):
		s = m.Asks
	case passes && m.Handled.Has(to) && !isOfCommand:
		s = to
	}
	handles := m.Handled.Has(s)
	m.works = handles || m.works && h.begun
	if handles || !m.works {
		m.signal = s
	}
}

// takeTraces takes the traces of the processes that another than lameduck may signal, or has.
func (h *History) takeTraces() {
	var of []*member
	var pids []int
	for _, m := range h.order {
		byParent, byOthers := h.mayBeTold(m)
		isOpen := !h.begun || m.before.Known && !h.wasSignaled(m)
		if m.works && (byParent || byOthers) && isOpen && len(of) < maxTraces {
			of = append(of, m)
			pids = append(pids, m.PID)
		}
	}
	if len(of) == 0 {
		return
	}
	for i, t := range h.traces(pids) {
		of[i].now = t
		if !h.begun {
			of[i].before = t
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
	for range h.members { // no look shows a cycle, but two of them may
		if above == nil {
			break
		}
		byOthers = byOthers || above.works
		above = above.parent
	}
	return byParent, byOthers
}

// Aim returns the processes below the command that a signal of the schedule is for, with the known
// server that the command is or has below it, if any. It returns none if the signal is for the command, as
// KILL is.
//
// That is whoever handles it, from the top. A shell gets it even so, since it would go on with its next
// command. Any other program may be what those below it write to, or what they live by: it gets the
// signal when they have ended. So do shells and inits that a hook stops, since they end the container.
func (h *History) Aim(s sig.Signal, server string) []Process {
	if s == sig.KILL {
		return nil
	}
	if !h.begun {
		h.below = h.aim(s, server)
	}
	return h.Below()
}

// Below returns the processes that Aim has returned and that have not ended.
func (h *History) Below() (list []Process) {
	for _, m := range h.stillPresent(h.below) {
		list = append(list, m.Process)
	}
	return list
}

// stillPresent returns those of some processes that the last look showed.
func (h *History) stillPresent(some []*member) (list []*member) {
	for _, m := range some {
		if h.isPresent(m) {
			list = append(list, m)
		}
	}
	return list
}

func (h *History) isPresent(m *member) bool { return m != nil && h.present[m.PID] == m }

func (h *History) aim(s sig.Signal, server string) []*member {
	c := h.command
	if c == nil || c.Program == "" {
		return nil
	}
	if server != "" && c.Server != server && !c.takes(s) {
		if found := h.servers(c, server); len(found) > 0 {
			return found[:1]
		}
	}
	isInit := slices.Contains(inits, c.Program)
	isFirst := c.Awaited.Has(s) || isInit || c.isShell(s)
	isLast := h.beside && (isInit || c.IsShell())
	if server != "" && c.Server == server || c.takes(s) || isFirst && !isLast {
		return nil
	}
	return h.topmost(h.children[c.PID], func(m *member) bool { return m.Handled.Has(s) })
}

// takes reports whether a process has a handler for s, and ends by it. Shells catch INT, but only to wait for
// their child; inits pass signals on, mostly without handlers; su passes them on, and kills.
func (m *member) takes(s sig.Signal) bool {
	caught := m.Handled.Without(m.Awaited)
	passesOn := slices.Contains(inits, m.Program) || slices.Contains(killers, m.Program)
	return caught.Has(s) && (s != sig.INT || caught.Has(sig.TERM)) && !passesOn
}

// isShell reports whether a process is a shell that s would end.
func (m *member) isShell(s sig.Signal) bool {
	return m.IsShell() && !m.Handled.Has(s) && !m.Ignored.Has(s)
}

// topmost returns the topmost processes among some and their descendants that are of a kind.
func (h *History) topmost(some []*member, is func(*member) bool) (found []*member) {
	for _, m := range some {
		if is(m) {
			found = append(found, m)
		} else {
			found = append(found, h.topmost(h.children[m.PID], is)...)
		}
	}
	return found
}

// servers returns the topmost known servers below a process that are at the same depth: those of a name,
// or with an empty name all.
func (h *History) servers(m *member, name string) (found []*member) {
	for generation := h.children[m.PID]; len(generation) > 0 && len(found) == 0; {
		var next []*member
		for _, m := range generation {
			if m.Server != "" && (name == "" || m.Server == name) {
				found = append(found, m)
			}
			next = append(next, h.children[m.PID]...)
		}
		generation = next
	}
	return found
}

// Server returns the only known server at its depth below a command that does not handle s.
func (h *History) Server(s sig.Signal) (server Process, found bool) {
	if h.command == nil || h.command.takes(s) {
		return server, false
	}
	servers := h.servers(h.command, "")
	if len(servers) != 1 {
		return server, false
	}
	return servers[0].Process, true
}

// Processes returns the processes of the last look.
func (h *History) Processes() (list []Process) {
	for _, m := range h.order {
		list = append(list, m.Process)
	}
	return list
}

// Command returns the command, as the last look showed it, if one did.
func (h *History) Command() (command Process, seen bool) {
	if h.command == nil {
		return command, false
	}
	return h.command.Process, true
}

// Signaled notes that lameduck has sent a process a signal of the stop.
func (h *History) Signaled(id ID) {
	h.begun = true
	if m := h.members[id]; m != nil {
		m.signaled = true
	}
}

// SignaledCommand notes that lameduck has sent the command, or its process group unless that is 0, a
// signal at a time in the unit of ID.Start.
func (h *History) SignaledCommand(s sig.Signal, group int, at uint64) {
	h.begun = true
	if h.command != nil {
		h.command.signaled = true
	}
	if group != 0 {
		h.group, h.groupSignal, h.groupAt = group, s, at
	}
}

// wasSignaled reports whether lameduck has sent a process a signal of the stop, alone or with its group.
func (h *History) wasSignaled(m *member) bool {
	inGroup := h.group != 0 && m.Group == h.group && m.Start <= h.groupAt
	return m.signaled || inGroup && !m.Ignored.Has(h.groupSignal)
}

// Left returns, of what the command has left behind, which processes are signaled now, which are at
// work, so that lameduck waits for their end, and which are signaled when nobody is at work any more:
// others may write to them, and they have nothing to clean up. lameduck waits until a given time at most.
//
// Only roots are signaled. Their children are left to them, and become roots when they end. But a root
// that neither handles its signal nor is a shell gets it last, after what is at work below it; see Aim.
func (h *History) Left(now, until time.Time) (signal, atWork, last []Order) {
	for _, root := range h.roots(0) {
		working := h.topmost([]*member{root}, (*member).isAtWork)
		atWork = append(atWork, orders(working)...)
		switch {
		case h.wasSignaled(root) && root.Stopped: // a member of the group
			signal = append(signal, Order{root.Process, sig.CONT})
		case h.wasSignaled(root), h.seemsTold(root, now, until):
		case len(working) == 0:
			last = append(last, Order{root.Process, root.signal})
		default:
			signal = append(signal, h.belowRoot(root, now, until)...)
		}
	}
	return signal, atWork, last
}

// belowRoot returns the orders for those at work below a root that neither takes its signal nor is a shell,
// until they have ended, and then for the root, which may start others. Any other root gets its signal first.
func (h *History) belowRoot(root *member, now, until time.Time) []Order {
	isFirst := root.works && root.takes(root.signal) || root.isShell(root.signal)
	if !isFirst && root.below == nil {
		root.below = h.topmost(h.children[root.PID], (*member).isAtWork)
	}
	below := h.stillPresent(root.below)
	if len(below) == 0 {
		return []Order{{root.Process, root.signal}}
	}
	return orders(slices.DeleteFunc(below, func(m *member) bool {
		return h.wasSignaled(m) || h.seemsTold(m, now, until)
	}))
}

func (m *member) isAtWork() bool { return m.works }

// orders returns the signals that ask some processes to end.
func orders(some []*member) (list []Order) {
	for _, m := range some {
		list = append(list, Order{m.Process, m.signal})
	}
	return list
}

// roots returns lameduck's own children, and instead of those that ignore their signal, and would neither
// end nor pass it on, their children.
func (h *History) roots(parent int) (roots []*member) {
	for _, m := range h.children[parent] {
		if m.Ignored.Has(m.signal) && !m.works {
			roots = append(roots, h.roots(m.PID)...)
		} else {
			roots = append(roots, m)
		}
	}
	return roots
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
	case !m.Handled.Has(m.signal):
		return true
	case !byParent && !byOthers:
		return false
	}
	switch {
	case m.now.Known && m.now.Listeners < m.before.Listeners:
		return true
	case m.isUntouched(), !byParent && !h.isPresent(m.parent): // without a handler the signal has ended it
		return false
	}
	if m.doubted.IsZero() {
		m.doubted = now
	}
	return now.Before(m.doubted.Add(until.Sub(m.doubted) / 2))
}

// isUntouched reports whether the traces prove that a process has got no signal.
func (m *member) isUntouched() bool {
	return m.before.Known && m.now.Idle && m.now.Switches == m.before.Switches
}

// Untold returns the processes at work below the command that certainly nobody has told to end.
func (h *History) Untold() (list []Process) {
	for _, m := range h.order {
		if m.works && m.isUntouched() {
			list = append(list, m.Process)
		}
	}
	return list
}
