// Package scope tells which of the listening sockets that we see are this
// container's: the ports that the user named; else those with our control
// group's id, or of which one of our processes holds a descriptor; else all of the
// network namespace.
//
// Look finds facts, and Decide, which is pure, makes a Scope of them. "Could not
// look" is never "there is none": it costs the better method. What is ours
// but was given to another network namespace, or is held by nobody but a
// message that is on its way (SCM_RIGHTS), is not found.
//
// See cgroups(7), cgroup_namespaces(7), proc_pid_fd(5), sock_diag(7).
package scope
