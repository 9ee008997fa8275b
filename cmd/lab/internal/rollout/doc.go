// Package rollout answers whether a rollout loses requests, and how long the stops take,
// with lameduck and with the usual remedies.
//
// An experiment plays rollouts. In each, the replicas of a server are replaced one by one
// behind a real balancer and under load. The balancer learns late of each stop, by a lag
// that is drawn from one of several distributions:
//
//	           new namespaces (user, network, mount, pid)
//	+-----------------------------------------------------------------------+
//	|                                                  +- net, pid, mount -+ |
//	|  open-loop load --> haproxy or nginx --> veths --| PID 1: contender  | |
//	|        |             ^     retries: none   |     |        server     | |
//	|        |             |                     |     +-------------------+ |
//	|        |             | remove, a lag later +-----| another replica   | |
//	|     outcome          |                           +-------------------+ |
//	|        |          rollout -- stop signal, now -----------^             |
//	+--------|--------------------------------------------------------------+
//	         v
//	tables, JSON, chart, claims
//
// Rules for a fair comparison:
//
//   - Every contender meets the same servers, the same load and the same lags, some rollouts at a
//     time, those of a server beside each other.
//   - The lag's clock starts with the stop signal. A new replica is in the balancer before
//     an old replica is stopped, and the next stop waits until the old replica is gone and
//     removed.
//   - Requests are sent at planned times whatever becomes of earlier requests, and the time
//     of an answer counts from the planned time. Neither the balancer nor the client
//     retries.
//   - A failure belongs to the stop in whose time the request ended.
//   - In a quick run watch looks on beside each replica from a moment before its stop on, and the run
//     fails if it does not count what the clients lost.
//   - Where the machine stood still for so long that a hold may have seen silence, the
//     rollout is played again after the others, whatever the result, half as many at a time, and
//     after the last attempt left out. The output has the number of such rollouts.
//
// The scenes, contenders, servers, lags and claims are the rows of tables. lab demo needs no privileges
// and no other programs: its replicas are processes on the loopback interface. lameduck watch needs a
// network namespace without other losses: contenders that lose play one after the other there, and where
// the machine makes none, watch is left out.
//
// Clients behind kube-proxy connect directly: a new connection goes to the next of the replicas that are
// not yet removed, and stays there. That comes to the same as kube-proxy's rules, which pick a replica for
// the first packet of a connection. Servers see the client's address in both cases, and when a server has
// gone, its network remains for a while and refuses. Left out are connection tracking's own faults and the
// node's address in front of clients from outside.
//
// The experiment does not show lost packets or UDP.
package rollout
