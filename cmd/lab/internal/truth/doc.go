// Package truth holds lameduck to tables of cases: what clients do around a stop. Of one, lab
// truth, the judge says whether the hold ended when it should; of the other, lab kept, what a stop
// loses of clients that never let go of their connections, and what --close-idle changes.
//
// Each case runs in fresh namespaces. One program plays the clients and sends TERM, so one
// clock times both; lameduck's report says when the signal was passed on:
//
//	  network namespace of the clients              net, pid, mount namespaces
//	+----------------------------------+          +----------------------------+
//	|  clients: 10.8.x.y               |   near:  |  PID 1: lameduck           |
//	|  upstream of proxies: 10.9.0.1 --|-- veth --|-- 10.9.0.2:8080: server    |
//	|                                  |  remote: |                            |
//	|                                  |--  tun --|  (20 ms in each direction) |
//	+----------------------------------+          +----------------------------+
//
// Package plays (internal/plays at the module's root) has the tables and their notation. The server
// runs in a folder of its own, which has a certificate, cert.pem.
//
// In lab kept the server runs without privileges. Another one runs beside the clients, at 10.9.0.1,
// and from a second or so after TERM new connections go there, as kube-proxy has it; no open
// connection is moved. Every request has a name, which the server that processes the request prints.
// A request that fails is counted by whether its name was printed, and by whether it failed during
// the hold, by the closing of an idle connection, or at the signal. A name that was printed twice was
// sent again by the client. Handlers in Go give up if their context ends, as handlers that query a
// database do.
//
// A wrong trial during which the machine stood still for 400 ms or more is played again, up
// to twice, and the output has the number of such trials. Precise trials run after the
// others, four at a time; such a trial is played again if the machine stood still for 5 ms
// around the signal. Windows are never wider on a busy machine.
package truth
