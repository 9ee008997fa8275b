// Package plays is the table of what clients do around a stop and when the hold should end, in
// table.txt. A row is played with real sockets and servers (lab truth), and a simulated one, in the tests of
// shim/internal/traffic, in a simulated kernel (package world of testutil), too. What the simulated kernel
// assumes, these rows prove.
//
// A row has a name, a server, the plays of its clients, and options:
//
//	slow: 11 s begun at -8 s | nginx ssl | -10s https: get /; until -8s; get /?think=11s | quick
//
// The server is a script of cmd/lab/internal/peers with its arguments, and listens on port 8080.
//
// # Plays
//
// Plays are separated by " & ", and run beside each other. A play is words, a colon, and steps
// separated by "; ". A word of the plays or a step may be the name of a session in
// sessions.txt. The words:
//
//	10x                 so many clients, else one
//	-1s                 when the steps are taken, relative to TERM
//	-3s..5s/500ms       again and again, one each period; without an end, until the server has gone
//	-3s..5s~10          at random, so many a second
//	jitter=150ms        so much sooner or later
//	new                 a new connection for each time, else one connection for all
//	first=NAME          steps on each new connection
//	on=LABEL            the connection of all plays with this label
//	aside               the steps do not count
//	tcp mptcp udp tls tls-h2 websocket      streams, and datagrams: see Take of Stream in peers
//	http https https12 h2 h2c               net/http: see Take of site
//	grpc                                    grpc-go: see Take of channel
//	undici requests httpclient              libraries of Node, Python and Java: see programs
//	port=8099 peer=1 ping=2s front          see the fields of play
//	pool burst=3 think=20ms share=4         clients that keep their connections: see runPool of lab truth
//	work=20ms slow                          how long THINK is: see the fields of play
//
// All clients know the steps wait D, until MOMENT, run SCRIPT, syn, signal NAME (to lameduck), and
// ingress: nginx or haproxy in front of the server, which lets go of the server at "ingress gone".
// In an argument THINK is 20ms, or 300ms one time in eight, SECONDS the same in seconds, NAME the
// request's, and ADDRESS the client's.
//
// The hold must not end before the last step that counts (E), and a request that fails is
// lost. Of a pool only the lost requests count; a request for which the server has left no
// connection is not lost.
//
// # Options
//
// Words with two dashes are lameduck's flags. The signal should be sent by L, which is E plus
// --quiet-for plus 1 s. The verdicts of a trial:
//
//	right  the signal was sent from E to L, and no request was lost
//	early  the signal was sent before E, or a request was lost
//	late   the signal was sent after L
//
// The others:
//
//	from=9s     E is not before this
//	slack=11s   L is so long after E
//	by=8s       L, relative to TERM
//	cut=2       so many lost requests are right
//	ends=kept   the reason in lameduck's report
//	graceful    the server finishes the requests in flight at its signal, as under a preset:
//	            a signal before E is right, and only a lost request is early
//	race        connections are kept to the signal: a request that was on its way when the server
//	            closed its connection is right, and the server must close all connections
//	unasked     --close-idle closes no connection
//	rtt=10ms    clients are so far away
//	precise     a few milliseconds decide
//	limit=NAME  lameduck cannot get this right: limits.txt has the words of
//	            docs/how-long.md, and the verdict that is no fault
//	simulated   in the simulated kernel, too: its servers have sockets, and its clients know tcp, mptcp and http
//	quick       with real sockets in make test: ends within 25 s, and seldom is simulated too
//	far         the row has a twin with remote clients; quickfar: which is in make test
//
// Those of lab kept, whose rows, in kept.txt, are judged by what was lost, are lag, sleep, stop,
// nobody and retries: see the fields of Row.
package plays
