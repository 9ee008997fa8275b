// Package sigcatch catches signals. With the entry point (entry_*.s) they are caught from
// the package's init on, so that a signal sent while the program is still starting is kept;
// in a plain build, from Start on.
//
// The handler notes a signal where it arrives, and the loop takes it with Next. On amd64 and
// arm64 the handler is our own (handler_*.s) and catches every signal, from one system call
// on. On other machines os/signal catches (relay.go): some 40 µs for each signal at the
// start, and every arrival passes through a thread of the runtime's.
//
// The handler masks a noted kind of signal until the loop has taken it. So a flood of one
// signal drowns no other, real-time signals stay in the kernel's queue, and the loop gets
// on. Go's runtime keeps HUP, INT, QUIT, ABRT, TERM, CHLD and some others unmasked in all
// of its threads, and in a plain build all signals; in each thread they are masked after the
// first. Therefore, and for Unblocked, arrivals are counted, and real-time signals returned
// as often as counted.
//
// On amd64 and arm64, Next also reaps orphans while it waits (orphans.go): most of them need
// nothing else from the loop, and Go's scheduler sleeps on.
//
// See signal(7), sigaction(2), futex(2), waitid(2).
package sigcatch
