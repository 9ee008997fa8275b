// Package sigcatch catches signals from its init on, so that a signal sent while the
// program is still starting is kept.
//
// The handler notes a signal where it arrives, and the loop takes it with Next. With the
// entry point (entry_*.s) the handler is our own (handler_*.s) and catches every signal,
// from one system call on. Without the entry point os/signal catches: some 40 µs for each
// signal at the start, and every arrival passes through a thread of the runtime's.
//
// The handler masks a noted kind of signal until the loop has taken it. So a flood of one
// signal drowns no other, real-time signals stay in the kernel's queue, and the loop gets
// on. Go's runtime keeps HUP, INT, QUIT, ABRT, TERM, CHLD and some others unmasked in all
// of its threads; in each thread they are masked after the first. Therefore, and for
// Unblocked, arrivals are counted, and real-time signals returned as often as counted.
//
// See signal(7), sigaction(2), futex(2).
package sigcatch
