// Package stop decides what happens when a container is told to stop.
//
// The sequence is a pure state machine: the loop hands it events with the time
// at which they happened, and it answers with actions. It holds no clock,
// process, goroutine or file, so that every case of it can be played in a
// test. Deadlines are absolute and set once; a spurious tick changes nothing.
//
// A hook, which runs no command, is asked to hold; its hold ends all.
//
// The ways through it, with --delay=2s --stop-schedule=USR1/5s/QUIT --linger=3s (a
// test holds this drawing against the machine; testdata/table.txt has every state's
// answer to every event):
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
