// Package scope finds which of the listening sockets of a network namespace belong to this
// container: the ports that the user named; else the sockets with the id of our control
// group, or with a descriptor in one of our processes; else all sockets of the namespace.
//
// Gather collects facts, and Decide, which is pure, makes a Scope of them. "Could not look"
// is never "there is none": an error costs the better method. Not found are sockets of ours
// that were given to another network namespace, and sockets that only a message in flight
// holds (SCM_RIGHTS).
//
// See cgroups(7), cgroup_namespaces(7), proc_pid_fd(5), sock_diag(7).
package scope
