// Package stop decides what happens when a container is told to stop.
//
// Machine is a pure state machine. The loop passes every event with its time to
// Handle, and does the returned actions in order. The machine owns no clock,
// process, goroutine or file, so a test can play every case. Deadlines are
// absolute and set once: an early or repeated Tick changes nothing.
//
// A hold without a command (lameduck hold) begins with PreStop. The machine then
// sends no signal, and the end of the hold is the end of the sequence.
//
// Every state answers every event; testdata/table.txt has all answers that do something. The
// transitions with --delay=2s --stop-schedule=USR1/5s/QUIT --linger=3s, by events so long after
// the last one, compared with the machine by TestTable:
//
//	running   -> holding:   0s hold
//	running   -> holding:   1s TERM
//	running   -> holding:   0.999s TERM
//	running   -> lingering: 0s exit 3
//	holding   -> stopping:  1s TERM
//	holding   -> stopping:  0.5s INT
//	holding   -> stopping:  2s tick
//	holding   -> stopping:  9s tick
//	holding   -> lingering: 0s exit 3
//	stopping  -> lingering: 0s exit 3
//	lingering -> gone:      1s TERM
//	lingering -> gone:      0.999s TERM
//	lingering -> gone:      9s tick
//	lingering -> gone:      0s childless
package stop
