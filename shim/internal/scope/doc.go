// Package scope finds the listening sockets of this container in a network namespace: the
// ports that the user named; else the sockets with the id of our control group, or with a
// descriptor in one of our processes; else all sockets of the namespace.
//
// Gather collects facts, and Decide, a pure function, makes a Scope of the facts. Find does
// both, and looks for sockets in no table before "no listener" is certain. An error costs
// the better method, and never means "no listener". Not found are sockets of ours in
// another network namespace, if no process of ours is in that namespace, and sockets held
// only by a message in flight (SCM_RIGHTS).
//
// See cgroups(7), cgroup_namespaces(7), proc_pid_fd(5), sock_diag(7).
package scope
