// Package shim runs a command as the first process of a container, and stops the command
// gracefully: shim is the loop between the decisions of the stop machine and the operating
// system.
//
// # The path of a signal
//
// Package sigcatch catches the signal. The loop (loop.go) takes the signal and hands the
// stop machine an event. The machine answers with actions, which act.go performs through
// the host (host.go), the loop's view of the operating system.
//
//	sigcatch ── signals ──┐                                ┌── proc
//	clock ──── deadlines ─┼─> loop ────────> act ──> host ─┼── observe
//	observe ── snapshots ─┘   │ ^                          ├── health
//	                    event v │ actions                  └── stderr, termlog
//	                        stop
//
// During a hold the sampler of package observe, on a goroutine of its own, shows the sockets of
// the container's ports to the ledger. Package traffic judges each sample of the ledger, and the
// sampler sends the verdicts to the loop. With --close-idle or --goaway, package letgo reads the
// same samples, and says which connections package closer may close, or send GOAWAY on.
//
//	sockdiag ── sockets ──> ledger ── sample ─┬─> traffic ── verdict ──> loop
//	                                          └─> letgo ──> closer
//
// Package watch is a loop of its own on the same sampler, and has package cost judge each sample, too.
//
// # Rooms
//
// Policy is pure: the packages sig (signals in words), stop (the stop sequence), tcp (sockets
// in words), ledger (what samples show of each connection), traffic (which traffic counts, and
// whether it has stopped), letgo (which kept connections are closed), cost (what the end of a
// server cost), preset (known servers), check (health checks and requests in words), plan (what a configuration
// means), report (the report of a stop) and quote (text for people) do no I/O and know no clock.
// Mechanism knows no policy, but for observe, which knows what a verdict means for the hold, what a report
// shows of a sample, and when the next one is due: sigcatch (catching signals, and reaping orphans meanwhile), proc
// (starting, signaling and reaping processes), observe (sampling), with scope (whose sockets count),
// closer (closing kept connections, or sending GOAWAY), sockdiag (netlink) and procfs (/proc) below, health (the health
// listener, and requests), alive (the alive file), stderr and termlog (output that never delays a stop). Package
// watch is a loop beside that of shim, on the same rooms. lastresort takes over from the loop after
// a fault of lameduck's own. The folders of e2e test the built binary, and testutil serves tests.
// walls_test.go tests which package may import which.
//
// # Entry points
//
// [Run] runs a command. [Hold] is the same loop without a command, for a preStop hook.
// [Watch] is the loop of package watch. [Config] is plain values, of which package plan makes
// the plan. [Review] makes a plan for people who look at it before it runs.
//
// # Invariants
//
// One goroutine owns the state, and is the only caller of kill(2) and wait4(2), so that no
// PID is reused between the two. Before the command has started every fault is an error.
// Afterwards no fault is fatal.
//
// # Glossary
//
//	adaptive hold   a hold whose end depends on the traffic
//	alive file      a locked file that exists while the command runs (--alive-file)
//	at work         a process that the command has left behind, and that handles its signal
//	caveat          what the users of a preset have to set in the server
//	ceiling         the longest time that a hold may last
//	command         the process that lameduck runs, and what that process executes later
//	condition       settled, quiet or drained: what ends an adaptive hold (--until)
//	drained         no traffic for a while, and no open connection
//	drop-in name    the name of another init, under which lameduck takes that init's flags
//	floor           the shortest time that a hold lasts (--delay)
//	gate            the floor, the ceiling and the conditions of a hold
//	grace period    the time from the stop signal to the orchestrator's KILL
//	hold            the time in which a command that was asked to stop goes on serving
//	hook            lameduck hold: a hold beside the container's command (preStop)
//	kept            no new connection for a while, but clients that never let go still talk
//	ledger          the table of connections, by socket, from which a sample is read
//	linger          the time that processes may outlive the command (--linger)
//	lull            a moment without a request that a signal would cut
//	mark            the name of a lameduck that will hold, by which hooks know it (/proc/PID/comm)
//	observer        the source of samples: sock_diag, /proc/net, or none
//	preset          how a known server is stopped gracefully (--preset)
//	probe           a health check, which looks like a short connection at a steady period
//	quiet           no new connection and no byte for a while, and no request in flight
//	reserve         the part of the grace period that is kept for the command's own stop
//	sample          one look at the sockets that count
//	schedule        the signals and waits after the hold (--stop-schedule); its items are steps
//	scope           the set of sockets that belong to the container
//	second stage    a re-execution of lameduck that restores signal mask and dispositions
//	settled         no new connection for a while
//	stop signal     a signal that begins a stop: TERM, and others that the plan names
//	trigger         the stop signal that began the stop
//
// # Known limits
//
// The entry point exists for amd64 and arm64, and needs the Makefile's linker flags. Without
// the entry point, HUP, INT, QUIT, ABRT, TERM, SYS, STKFLT and the signals of faults end
// lameduck as they end any Go program (as PID 1 with code 2) in the first few milliseconds,
// and the command gets an empty mask, and HUP, INT and the like at their defaults; see
// docs/install.md. On other machines os/signal catches signals: 27 and 32 to 34
// never arrive (27 is the runtime's for profiling, 32 and 33 are the C library's, 34 keeps
// its default action), and queued real-time signals of one kind merge.
package shim
