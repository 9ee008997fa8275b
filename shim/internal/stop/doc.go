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
// Every state answers every event; testdata/table.txt has all answers. The
// transitions with --delay=2s --stop-schedule=USR1/5s/QUIT --linger=3s, compared
// with the machine by TestDrawing:
//
//	starting  -> running:   started
//	starting  -> gone:      TERM
//	starting  -> gone:      TERM within 1 s
//	starting  -> holding:   asked
//	running   -> holding:   TERM
//	running   -> holding:   TERM within 1 s
//	running   -> lingering: exit 3
//	holding   -> stopping:  TERM
//	holding   -> stopping:  INT
//	holding   -> stopping:  tick at +2 s
//	holding   -> stopping:  tick at G-1s
//	holding   -> lingering: exit 3
//	stopping  -> lingering: exit 3
//	lingering -> gone:      TERM
//	lingering -> gone:      TERM within 1 s
//	lingering -> gone:      tick at G-1s
//	lingering -> gone:      childless
package stop
