// Package rollout answers whether a rollout loses requests, and how long the stops take,
// with lameduck and with the usual remedies.
//
// An experiment plays rollouts. In each, the replicas of a server are replaced one by one
// behind a real balancer and under steady load. The balancer learns late of each stop, by
// a lag that is drawn from one of several distributions:
//
//	           new namespaces (user, network, mount, pid)
//	+------------------------------------------------------------------------+
//	|                                                   +- net, pid, mount -+ |
//	|  open-loop load --> haproxy or nginx --> bridge --| PID 1: contender  | |
//	|        |             ^     retries: none    |     |        server     | |
//	|        |             |                      |     +-------------------+ |
//	|        |             | remove, a lag later  +-----| another replica   | |
//	|     outcome          |                            +-------------------+ |
//	|        |          rollout -- stop signal, now ------------^             |
//	+--------|---------------------------------------------------------------+
//	         v
//	table, JSON, chart, verdict
//
// Rules for a fair comparison:
//
//   - Every contender meets the same servers, the same load and the same lags, in a drawn
//     order, some rollouts at a time. The seed alone decides all of these.
//   - The lag's clock starts with the stop signal. A new replica is in the balancer before
//     an old replica is stopped, and the next stop waits until the old replica is gone and
//     removed.
//   - Requests are sent at planned times whatever becomes of earlier requests, and the time
//     of an answer counts from the planned time. Neither the balancer nor the client
//     retries.
//   - A failure belongs to the stop in whose time the request ended.
//   - Where the machine stood still for so long that a hold may have seen silence, the
//     rollout is played again, whatever the result, and after the third time left out. The
//     output has the number of such rollouts.
//
// The experiment does not show a lag between nodes, lost packets, UDP, thin traffic (where
// silence proves little, and a floor is needed), or kept connections behind a balancer of
// the transport layer: like a WebSocket such a connection lasts until the server goes, and
// the requests in flight then are lost whatever the contender.
//
// The smallest case, -demo, needs nothing of the machine: one stop on the loopback
// interface, bare and held, behind a balancer of its own, drawn while the case is played.
//
// See namespaces(7), pid_namespaces(7), veth(4).
package rollout
