// Package truth holds lameduck to a table of cases: what clients do around a stop, and
// when the hold should end.
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
// Package plays (internal/plays at the module's root) has the table and its notation. The server
// runs in a folder of its own, which has a certificate, cert.pem.
//
// A wrong trial during which the machine stood still for 400 ms or more is played again, up
// to twice, and the output has the number of such trials. Precise trials run after the
// others, four at a time; such a trial is played again if the machine stood still for 5 ms
// around the signal. Windows are never wider on a busy machine.
package truth
