// Package procfs reads /proc: processes, their descriptors and programs, the mounts and the
// control group of our own process, and the tables and counters of sockets in /proc/net.
// The tables are the second best source of TCP sockets, for systems that refuse or lack
// sock_diag(7) (gVisor, Kata, some SELinux hosts), and the only source of UDP and Unix
// listeners.
//
// An error means "could not look", never "there is none": a table without its header, or
// cut short, is an error. Lists of processes and descriptors are good, though perhaps not
// complete, if an error comes with them. A process may end at any time: Gone recognizes the
// error. The kernel prints a table a page at a time: sockets that come and go meanwhile may
// be missing or doubled.
//
// See proc(5), proc_pid_stat(5), proc_pid_fd(5), proc_pid_mountinfo(5), proc_pid_net(5),
// Documentation/networking/proc_net_tcp.rst.
package procfs
