// Package kept answers whether a stop loses requests of clients that never let go of their
// connections, by kind of server and client, and what --close-idle changes.
//
// In each trial a server runs under lameduck, as PID 1 of a namespace and without
// privileges, and another one beside it. Clients have used 24 connections to the first (or
// 6 of HTTP/2, with several requests at a time) when TERM comes, and go on. From a second or
// so later (-lag), new connections go to the other server, as kube-proxy has it; no open
// connection is moved.
//
// Every request has a name, which the server that processes the request prints. A request
// that fails is counted by whether its name was printed, and by whether it failed during
// the hold, by the closing of an idle connection, or at the signal. A name that was printed
// twice was sent again by the client. Handlers in Go give up if their context ends, as
// handlers that query a database do.
//
// testdata/rows.txt has the servers and the clients, which are a veth away: on a longer way
// more requests meet the end of a connection.
package kept
