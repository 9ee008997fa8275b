package sig

// Trace is what a signal leaves behind in a process that handles it. Two of them, from before and after,
// show whether the process has got one.
type Trace struct {
	Known     bool   // the other fields are
	Idle      bool   // all threads sleep, and no signal waits for them
	Switches  uint64 // how often its threads have given up a processor
	Listeners int    // its TCP sockets that listen
}
