// Package procnet reads what /proc/net tells of sockets: the second best
// observer, for where sock_diag(7) is refused or absent (gVisor, Kata, some
// SELinux hosts), and the only source of UDP and Unix listeners and of
// counters of connections and segments.
//
// The parsers take bytes and make no system call; a Root opens the files. An
// error means "could not look", never "there is none": a table without its
// header, or cut short, is an error. The kernel prints a table a page at a time, so
// sockets that come and go meanwhile may be missed or be there twice.
//
// See proc_net(5), proc_pid_net(5), Documentation/networking/proc_net_tcp.rst.
package procnet
