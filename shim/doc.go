// Package shim runs the command, and is the loop between what is decided and
// what is done.
//
// A signal's path: sig notes it, from its init; the loop (shim.go) takes it and
// tells the stop machine, which answers with actions; act.go does them through
// the kernel, which is all that we ask of the system.
//
//	signals ──┐                        ┌── kill, reap ── proc
//	 (sig)    ├─> loop ──> act ──> kernel
//	 timer ───┤    │ ^                 ├── line ──────── stderr
//	 looks ───┘  event │ action        └── watch ─┐
//	   ^           v │                            │
//	   │          stop       traffic <── observe <┘
//	   └─────────────────────────────────── │
//	                         scope <────────┴──> sockdiag, procnet
//
// The rooms: sig has the words for signals and takes them, stop decides (and is
// pure), proc starts, signals and reaps, stderr writes without waiting. In a hold
// observe, on a goroutine of its own, gives traffic (pure too) the sockets that sockdiag or
// procnet list for the ports that scope finds, and sends the loop snapshots. For neighbours there is alive, the file that says that the command runs,
// and health, which answers health checks on a goroutine of its own. tcp has the
// words, e2e and testutil are for tests. The walls between them are a test: deps_test.go.
//
// The front doors: Run runs a command; Hold (hold.go) is the same loop without one,
// for a hook, and Watch (watch.go) shows the snapshots of observe without the loop. A Config is plain
// values; plan makes it whole (config.go, grace.go, and preset.go with the table in
// presets.go), and Explain says it in words. The report (report.go, advice.go,
// json.go, termlog.go) is made of what the machine and the last look have recorded.
//
// Invariants: one goroutine owns the state and is the only caller of kill and
// wait4. Before the command has started every fault is an error; afterwards
// none is fatal.
//
// What is not ideal: for some 0.3 ms of the start, between the initialisation of
// Go's runtime and ours, HUP, INT, QUIT, ABRT, TERM, SYS, STKFLT and the signals of
// faults end us as they end any Go program, with code 2 where we are PID 1. The
// entry point is for amd64 and arm64, and needs the Makefile's linker flags.
// Without it os/signal catches signals: 27 and 32 to 34 never reach us (27 is the
// runtime's for profiling, 32 and 33 the C library's, 34 the runtime leaves to its
// default action), queued real-time signals of one kind merge, and the command
// gets an empty mask, and HUP, INT and the like at their defaults.
package shim
