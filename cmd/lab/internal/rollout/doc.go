// Lab is the rollout laboratory: it answers whether a rollout loses requests, and
// how long its stops take, with lameduck and with what people use instead.
//
//	lab [flags] LAMEDUCK
//
// It plays rollouts. In each, the replicas of a server are replaced one by one
// behind a real balancer and under steady load; the balancer learns late of each
// stop, by a lag that is drawn from one of several distributions:
//
//	           namespaces of the lab's own (user, network, mount, pid)
//	+------------------------------------------------------------------------+
//	|                                                   +- net, pid, mount -+ |
//	|  open-loop load --> haproxy or nginx --> bridge --| PID 1: contender  | |
//	|        |             ^     retries: none    |     |        server     | |
//	|        |             |                      |     +-------------------+ |
//	|        |             | remove, a lag later  +-----| another replica   | |
//	|   how it ended       |                            +-------------------+ |
//	|        |          rollout -- stop signal, now ------------^             |
//	+--------|---------------------------------------------------------------+
//	         v
//	table, JSON, chart, verdict
//
// What keeps it fair:
//
//   - Every contender meets the same servers, the same load and the same lags, in
//     a drawn order, some rollouts at a time; the seed alone decides all of these.
//   - The lag's clock starts with the stop signal. A new replica is in the
//     balancer before an old one is stopped, and the next stop waits until this
//     replica is gone and removed.
//   - Requests are sent at their planned times whatever became of the earlier ones,
//     and an answer's time counts from the planned one. Nobody retries: neither
//     the balancer nor the client.
//   - A failure belongs to the stop in whose time it ended.
//   - Where the machine stood still for so long that a hold may have taken it for
//     silence, the rollout is played again, whatever came of it, and after the
//     third time left out; how often is in the output.
//
// What it does not show: a lag between nodes, packets lost, UDP, thin traffic (a
// silence proves little there: that is what the floor is for), and kept connections
// that a balancer of the transport layer leaves where they are: like a WebSocket
// they last until the server goes, and what is on them then is lost whoever waits.
//
// Its smallest case, lab -demo, asks nothing of the machine: one stop on the loopback
// interface, bare and held, behind a balancer of its own, drawn as it plays.
//
// Beside it, lab systems boots lameduck as PID 1 of other kernels and processors; see
// package systems.
//
// See namespaces(7), pid_namespaces(7), veth(4).
package rollout
