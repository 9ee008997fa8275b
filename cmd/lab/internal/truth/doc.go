// Package truth holds lameduck to a table of cases: what clients do around a stop, and
// when the hold should end.
//
// Each case runs in fresh namespaces. The script plays the clients and sends TERM, so one
// clock times both; lameduck's report says when the signal was passed on:
//
//	  network namespace of the clients              net, pid, mount namespaces
//	+----------------------------------+          +----------------------------+
//	|  script: 10.8.x.y on lo          |   near:  |  PID 1: lameduck           |
//	|  upstream of proxies: 10.9.0.1 --|-- veth --|-- 10.9.0.2:8080: server    |
//	|                                  |  remote: |                            |
//	|                                  |--  tun --|  (20 ms in each direction) |
//	+----------------------------------+          +----------------------------+
//
// A case is a value in a file cases_*.go, and a server a value in a file server_*.go. Each
// file of cases has a slice, which the table in table.go lists:
//
//	{
//		name:   "11 s request begun 8 s before TERM",
//		server: goHTTP,
//		quick:  true, // in make test; ends within 25 s
//		script: func(t *trial) {
//			site := t.client().site(keep)
//			t.at(-8*s, func() { site.get("/?think=11s") })
//		},
//	},
//
// A script only plans: at, every and poisson take moments relative to TERM, the earliest
// of which decides how long before TERM the trial begins. Planned functions run later,
// each in a goroutine of its own. A connection that several of them use is dialed by
// the first: conn := sync.OnceValue(client.dial).
//
// What get, post, ask and real do counts: the hold must not end before the last such
// answer (E), and a request that fails is lost. What ping, probe and the other helpers do
// does not count. The signal should be sent by L, which is E plus --quiet-for plus 1 s
// unless the case has slack (from E) or by (from TERM). notBefore moves E explicitly.
//
// A case that lameduck cannot get right has a limit, words of docs/limits.md, and the
// expected deviation. The verdicts of a trial:
//
//	right  the signal was sent from E to L, and no request was lost
//	early  the signal was sent before E, or a request was lost
//	late   the signal was sent after L
//
// With graceful the server finishes the requests in flight at its signal, as under a
// preset: a signal before E is right, and only a lost request is early.
//
// Clients that never let go use a connPool. Their requests count if they are lost, and
// their answers do not move E; a request for which the server has left no connection is
// not lost. The terms of a case may have a reason in the report, and allow losses.
//
// A wrong trial during which the machine stood still for 400 ms or more is played again, up
// to twice, and the output has the number of such trials. Precise trials, in which a few
// milliseconds decide, run after the others, four at a time; such a trial is played again
// if the machine stood still for 5 ms around the signal. Windows are never wider on a busy
// machine.
package truth
