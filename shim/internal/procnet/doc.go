// Package procnet reads tables of sockets from /proc/net: the second best source, for
// systems that refuse or lack sock_diag(7) (gVisor, Kata, some SELinux hosts), and the only
// source of UDP and Unix listeners and of counters of connections and segments.
//
// The parsers take bytes and make no system call; a Root opens the files. An error means
// "could not look", never "there is none": a table without its header, or cut short, is an
// error. The kernel prints a table a page at a time: sockets that come and go meanwhile may
// be missing or doubled.
//
// See proc_net(5), proc_pid_net(5), Documentation/networking/proc_net_tcp.rst.
package procnet
